"""Part 11 of a transparency report, from a finished audit and the measures of its period."""

from collections.abc import Mapping, Sequence
from typing import Any

from modwatch.audits.descriptions import repeated
from modwatch.audits.dsa.cells import refuse_unusable
from modwatch.audits.dsa.from_audit import (
    NO_DECISIONS,
    Measures,
    file_of,
    interval_text,
    period_text,
    reason_of,
    value_text,
)
from modwatch.audits.dsa.vocabulary import (
    ACCURACY_DESCRIPTION,
    ALL_QUALITATIVE,
    APPLICABILITY,
    DESCRIPTION,
    PURPOSES,
    QUALITATIVE_COLUMNS,
    SAFEGUARDS,
)
from modwatch.statistics.audit.plan import AuditPlan

_SHARES = {
    "accuracy": "Accuracy, the share of all decisions that are correct",
    "precision": "Precision, the share of flagged comments that violate the rules",
    "recall": "Recall, the share of comments that violate the rules that was flagged",
    "prevalence_unflagged": "Share of unflagged comments that violate the rules",
    "specificity": "Specificity, the share of comments within the rules that was not flagged",
    "false_positive_rate": (
        "False positive rate (fall-out), the share of comments within the rules that was flagged"
    ),
    "negative_predictive_value": (
        "Negative predictive value, the share of unflagged comments that is within the rules"
    ),
}


def qualitative(
    plan: AuditPlan,
    result: Mapping[str, Any],
    measures: Mapping[str, Measures],
    *,
    service: str,
    others: Sequence[str] = (),
) -> bytes:
    """Return the header of part 11 and its four rows on automated means, as CSV.

    As far as the evidence of an audit allows: the service adds the other rows, the consequences of
    a flag, and other automated means. `measures` and `others` as in `automated_means`. Raises
    DsaReportError if the name of the service is empty, or it or the version of the model has
    control characters.
    """
    refuse_unusable("service", service)
    texts = {
        DESCRIPTION: (
            f"A statistical model, version {plan.model}, scores each comment from 0 to 1 "
            f"automatically. {_flagged(plan.threshold)} {_decided(measures)} People "
            "review some of the comments; their decision replaces an automated one."
        ),
        ACCURACY_DESCRIPTION: " ".join([*_accuracy(plan, result), *others]),
        PURPOSES: (
            "To detect comments that violate the rules of the service, on its own initiative, and "
            "to select comments for human review. The rules of the service define the consequences "
            "of a flag."
        ),
        SAFEGUARDS: " ".join(_safeguards(plan, result, measures)),
    }
    rows = [
        (APPLICABILITY[ALL_QUALITATIVE[name]], service, period_text(plan), name, text)
        for name, text in texts.items()
    ]
    return file_of(QUALITATIVE_COLUMNS, rows)


def _decided(measures: Mapping[str, Measures]) -> str:
    """Return in a sentence what the automated decisions are."""
    if any(part.decided for part in measures.values()):
        return (
            "The automated decisions are those of the service, by a model or a rule; where a "
            "person decided, or the decision is unknown, the flag."
        )
    return f"{NO_DECISIONS[0].upper()}{NO_DECISIONS[1:]}; rates below are those of flags."


def _flagged(threshold: float | None) -> str:
    """Return in a sentence which comments are flagged."""
    if threshold is None:
        return "Which comments are flagged need not follow from one threshold of the score."
    return f"Comments with a score above {threshold:.4g} are flagged."


def _accuracy(plan: AuditPlan, result: Mapping[str, Any]) -> list[str]:
    """Return sentences on the audited decisions, each rate, and annotator errors."""
    estimates = {estimate["metric"]: estimate for estimate in result["figures"]}
    sentences = [
        f"Audit {plan.audit}: from {plan.first} to {plan.last} the model decided "
        f"{result['comments']} comments and flagged {result['flagged']}. Of a random sample of "
        f"{result['drawn']} comments, {result['labelled']} were labelled blind by people."
    ]
    sentences += _without_label(result)
    for metric, share in _SHARES.items():
        estimate, level = estimates[metric], plan.rule.level
        if estimate["status"] == "ok":
            words = f"{value_text(estimate)}. {interval_text(estimate, level)}"
            sentences.append(f"{share}: {words}")
        else:
            reason = reason_of(estimate, level)
            sentences.append(f"{share}: unknown. {reason[:1].upper()}{reason[1:]}.")
    if plan.rule.sides != "both":
        sentences.append(f"Intervals are one-sided: only the {plan.rule.sides} bound is given.")
    return [*sentences, *_annotators(result)]


def _without_label(result: Mapping[str, Any]) -> list[str]:
    """Return a sentence on the comments whose label the intervals allow to be either."""
    passed_over = result["missing"]["passed_over"]
    if not passed_over:
        return []
    return [
        f"Of the others, {passed_over} were passed over; the confidence intervals allow for both "
        "outcomes of each."
    ]


def _annotators(result: Mapping[str, Any]) -> list[str]:
    """Return sentences on the agreement of annotators and the effect of their errors."""
    sentences = [
        f"The observed agreement between two people on the same comment is {measure['value']:.4f}, "
        f"from {measure['n']} comments."
        for measure in result["agreement"]
        if measure["metric"] == "observed" and measure["status"] == "ok"
    ]
    errors = result.get("label_errors")
    if errors is not None:
        return [*sentences, _confirmations(errors)]
    return sentences


def _confirmations(errors: Mapping[str, Any]) -> str:
    """Return a sentence on confirmations and error rates."""
    text = (
        f"{errors['confirmed']} first labels were confirmed by a second person, and "
        f"{errors['overturned']} of them overturned by most people; the rates and their intervals "
        "allow for errors of the people who labelled, of which a second person repeats "
        f"{repeated(errors)}, as where a guideline is unclear."
    )
    if not errors["enough"]:
        return f"{text} The confirmations are too few to tell how frequent such errors are."
    for side, rates in errors["rates"].items():
        false_positive, false_negative = rates["false_positive"], rates["false_negative"]
        text += (
            f" Of {side} comments, one person alone labels {false_positive['value']:.4f} of those "
            f"within the rules as violations ({false_positive['low']:.4f} to "
            f"{false_positive['high']:.4f}), and does not recognise {false_negative['value']:.4f} "
            f"of the violations ({false_negative['low']:.4f} to {false_negative['high']:.4f})."
        )
    return text


def _safeguards(
    plan: AuditPlan, result: Mapping[str, Any], measures: Mapping[str, Measures]
) -> list[str]:
    total = sum(measures.values(), Measures())
    people = "1 person" if result["labellers"] == 1 else f"{result['labellers']} people"
    return [
        f"People reviewed {total.reviewed} of the {total.comments} comments of the period; their "
        "decisions replaced those of the model.",
        f"The automated decisions were audited. The plan (SHA-256 {plan.digest}) was frozen before "
        f"the sample was drawn. The sample was labelled by {people}, who did not see scores, "
        "decisions or each other's labels, and labelled no comment that they had decided before. "
        "No label was given under the name that signed the result. Sample, labels and result can "
        "be verified from their files.",
    ]
