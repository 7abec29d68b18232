"""What a finished audit can say in part 11 of a transparency report."""

from collections.abc import Mapping
from typing import Any

from modwatch.audit.dsa.from_audit import Measures, rate_of
from modwatch.audit.dsa.statement import Qualitative, Rate
from modwatch.audit.dsa.writing import interval_in_words, value_in_words
from modwatch.audit.plan import AuditPlan

_SHARES = {
    "accuracy": "Accuracy, the share of all its decisions that are right",
    "precision": (
        "Precision, the share of flagged comments that break the rules, the rest being flagged "
        "wrongly"
    ),
    "recall": (
        "Recall, the share of comments that break the rules that is flagged, the rest being missed"
    ),
    "prevalence_unflagged": "The share of comments that break the rules among those not flagged",
}


def qualitative(
    plan: AuditPlan, result: Mapping[str, Any], measures: Mapping[str, Measures], *, service: str
) -> Qualitative:
    """Return part 11 for the period of an audit, as far as its evidence tells.

    What follows for a flagged comment, and which other means there are, the service adds.
    `measures` is what `automated_means` takes. Raises DsaReportError where the name of the service
    or the version of the model cannot be written.
    """
    return Qualitative(
        service=service,
        start=plan.first,
        end=plan.last,
        description=(
            f"A statistical model, version {plan.model_version}, gives each comment a score from 0 "
            f"to 1 without any person. Comments with a score above {plan.threshold:.4g} are "
            "flagged. People review a part of all comments; what they decide stands in the place "
            "of what the model decided."
        ),
        accuracy=" ".join(_accuracy(plan, result)),
        purposes=(
            "To find comments that break the rules of the service, on its own initiative, and to "
            "choose those that people review. What follows for a flagged comment, the rules of "
            "the service say."
        ),
        safeguards=" ".join(_safeguards(plan, result, measures)),
    )


def _accuracy(plan: AuditPlan, result: Mapping[str, Any]) -> list[str]:
    """Return the figures in sentences: of which decisions, each rate, what people's errors do."""
    told = {figure["metric"]: figure for figure in result["figures"]}
    words = [
        f"Audit {plan.audit}: from {plan.first} to {plan.last} the model decided "
        f"{result['comments']} comments and flagged {result['flagged']}. Of a random sample of "
        f"{result['drawn']}, {result['labelled']} have a label that people gave blind."
    ]
    for metric, share in _SHARES.items():
        figure = rate_of(told[metric], plan.rule.level, "sample")
        if isinstance(figure, Rate):
            words.append(f"{share}: {value_in_words(figure)}. {interval_in_words(figure)}")
        else:
            words.append(f"{share}: not known. {figure.reason[:1].upper()}{figure.reason[1:]}.")
    if plan.rule.sides != "both":
        words.append(f"Of each interval only the {plan.rule.sides} end is a bound.")
    return [*words, *_people(result)]


def _people(result: Mapping[str, Any]) -> list[str]:
    """Return how far people can be relied on, and what follows."""
    words = [
        f"Two people who labelled the same comment agreed on {each['value']:.4f} of "
        f"{each['n']} comments."
        for each in result["agreement"]
        if each["metric"] == "observed" and each["status"] == "ok"
    ]
    for row in result["sensitivity"]:
        recall = "unknown" if row["recall"] is None else f"{row['recall']:.4f}"
        cut = ", cut to what is possible" if row["cut"] else ""
        words.append(
            f"If people call {row['false_positive']:.4g} of harmless comments a breach and "
            f"overlook {row['false_negative']:.4g} of breaches ({row['source']} rates), precision "
            f"without their errors is {row['precision']:.4f} and recall {recall}{cut}."
        )
    return words


def _safeguards(
    plan: AuditPlan, result: Mapping[str, Any], measures: Mapping[str, Measures]
) -> list[str]:
    whole = sum(measures.values(), Measures())
    people = "1 person" if result["labellers"] == 1 else f"{result['labellers']} people"
    return [
        f"People decided {whole.reviewed} of the period's {whole.comments} comments in ordinary "
        "review, and what they decided stands.",
        "The automated decisions were audited: the plan, SHA-256 "
        f"{plan.digest}, was frozen before the sample was drawn; {people} "
        "labelled it without score, decision or each other's labels, none of them a comment that "
        "they had decided before; no label was given under the name that signed the result. "
        "Sample, labels and result can be checked from their files.",
    ]
