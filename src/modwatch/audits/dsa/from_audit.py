"""Parts 8 and 11 of a transparency report from a finished audit and the measures of its period.

Values that the audit does not provide are left blank with the reason, such as counts of notices,
which Modwatch does not process.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import Any

from modwatch.audits.descriptions import repeated
from modwatch.audits.dsa.statement import (
    AutomatedMeans,
    Missing,
    Qualitative,
    Rate,
    ScopeValues,
    interval_text,
    value_text,
)
from modwatch.audits.dsa.vocabulary import (
    LANGUAGES,
    NAM_TOTAL,
    NAM_TRUSTED_FLAGGER,
    OWN_INITIATIVE,
    TOTAL,
    Provider,
)
from modwatch.common.errors import AuditError
from modwatch.statistics.audit.plan import AuditPlan
from modwatch.statistics.audit.results import LEAST_COMMENTS
from modwatch.statistics.audit.share_interval import IntervalOptions

#: Why there are no measures where the source of the comments brings no decisions.
NO_DECISIONS = (
    "the measures are unknown: the source of the comments brings no decisions of the service, and "
    "a flag of a model is no measure"
)
_NO_NOTICES = "the audited software does not process notices"
_INTERVAL = (
    "confidence interval by test inversion, allowing for violations that the score does not detect"
)
_RATES = ("accuracy", "precision", "recall")
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
_SIDES = {"both": "", "lower": ", lower bound only", "upper": ", upper bound only"}


@dataclass(frozen=True, kw_only=True)
class Measures:
    """How comments of a period were moderated; all fields are numbers of comments."""

    comments: int = 0
    #: With a decision of the platform that is known, if only that it did nothing.
    decided: int = 0
    #: Removed or limited by a model or rule.
    solely: int = 0
    #: Removed or limited by a person, or decided in review to violate the rules.
    not_solely: int = 0
    #: Removed or limited by nobody knows whom.
    by_unknown: int = 0
    #: Decided by a person in review, whose decision stands in place of an earlier one.
    reviewed: int = 0

    @property
    def are_unknown(self) -> bool:
        """Whether there are comments, and no decision of the platform on any."""
        return bool(self.comments) and not self.decided

    def __add__(self, other: "Measures") -> "Measures":
        return Measures(**{name: n + getattr(other, name) for name, n in vars(self).items()})


def official_language(tag: str) -> str | None:
    """Return the official language of the EU of a BCP 47 tag; None for any other.

    >>> official_language("de-AT"), official_language("PT"), official_language("nb")
    ('de', 'pt', None)
    """
    code = tag.partition("-")[0].lower()
    return code if code in LANGUAGES else None


def automated_means(
    plan: AuditPlan,
    result: Mapping[str, Any],
    measures: Mapping[str, Measures],
    *,
    service: str,
    others: Sequence[str] = (),
) -> AutomatedMeans:
    """Return part 8 for the period of an audit: totals, own initiative, languages.

    `measures` are those of the period by the language tag of the comments, "" for none; all are
    own-initiative measures. `others` are sentences about other audits of the same days.

    Raises:
        AuditError: the result belongs to another plan.
        DsaReportError: the name of the service is empty or has control characters.
    """
    if result["plan"] != plan.digest:
        raise AuditError(f"audit {plan.audit!r}: the result belongs to another plan")
    method = _method(plan.rule, corrected="label_errors" in result)
    rates = _rates(result["figures"], plan.rule.level, method)
    total = sum(measures.values(), Measures())
    undecided = total.comments - total.decided
    unknown = f"The decisions on {undecided} comments are unknown." if undecided else ""
    note = " ".join(filter(None, [_left_out(measures), unknown, *others]))
    remark = f"{note} Measures after notices or orders are unknown and not included."
    return AutomatedMeans(
        service=service,
        start=plan.first,
        end=plan.last,
        provider=Provider.VLOP,
        audit=plan.audit,
        scopes={
            TOTAL: _scope(total, rates, remark.strip()),
            OWN_INITIATIVE: _scope(total, rates, note),
            NAM_TOTAL: ScopeValues.missing(_NO_NOTICES),
            NAM_TRUSTED_FLAGGER: ScopeValues.missing(_NO_NOTICES),
            **(
                dict.fromkeys(LANGUAGES, ScopeValues.missing(NO_DECISIONS))
                if total.are_unknown
                else _languages(result["domains"], measures, plan.rule.level, method)
            ),
        },
    )


def rate_of(estimate: Mapping[str, Any], level: float, method: str) -> Rate | Missing:
    """Return an estimate of a result in the form of a statement.

    >>> few = {"status": "insufficient", "reason": "no label of 9 flagged comments", "labels": 0}
    >>> rate_of(few, 0.95, "stratified sample").reason
    'no label of 9 flagged comments'
    """
    if estimate["status"] != "ok":
        reason = estimate["reason"]
        if estimate.get("bound"):
            reason = f"{reason}. {_bound_text(estimate, level)}"
        return Missing(reason=reason, labels=estimate["labels"])
    low, high = estimate["low"], estimate["high"]
    return Rate(
        value=min(max(estimate["value"], low), high),
        low=low,
        high=high,
        labels=estimate["labels"],
        method=method,
        level=level,
        complete=bool(estimate.get("all_labelled")) and low == high,
    )


def _bound_text(estimate: Mapping[str, Any], level: float) -> str:
    """Return the bound of a rate without a value, rounded away from what it claims."""
    if estimate["bound"] == "lower":
        words = f"at least {floor(estimate['low'] * 10_000) / 10_000:.4f}"
    else:
        words = f"at most {ceil(estimate['high'] * 10_000) / 10_000:.4f}"
    return f"The rate is {words} ({100 * level:g} % confidence bound)"


def _method(rule: IntervalOptions, *, corrected: bool) -> str:
    errors = (
        "; estimate and interval allow for errors of the people who labelled, by blind second "
        "labels of a planned part of the sample"
    )
    return (
        "stratified random sample of the comments of the period, labelled blind; "
        f"{_INTERVAL}{_SIDES[rule.sides]}{errors if corrected else ''}"
    )


def _rates(figures: Any, level: float, method: str) -> dict[str, Rate | Missing]:
    """Return accuracy, precision and recall, as far as they were estimated."""
    estimates = {estimate["metric"]: estimate for estimate in figures}
    return {
        name: rate_of(estimates[name], level, method)
        if name in estimates
        else Missing(reason=f"the audit does not estimate {name} by language")
        for name in _RATES
    }


def _scope(measures: Measures, rates: dict[str, Rate | Missing], note: str) -> ScopeValues:
    """Return a scope; without values where it is not known what is a measure, or whose it is."""
    reason = ""
    if measures.are_unknown:
        reason = NO_DECISIONS
    elif measures.by_unknown:
        reason = f"the source of the comments does not say who took {measures.by_unknown} measures"
    if reason:
        return replace(ScopeValues.missing(reason), note=note)
    return ScopeValues(solely=measures.solely, not_solely=measures.not_solely, note=note, **rates)


def _languages(
    domains: Any, measures: Mapping[str, Measures], level: float, method: str
) -> dict[str, ScopeValues]:
    """Return the values of each official language."""
    if not any(measures.keys()):
        none = ScopeValues.missing("the language of the comments is unknown")
        return dict.fromkeys(LANGUAGES, none)
    tags: dict[str, list[str]] = defaultdict(list)
    for tag in measures:
        language = official_language(tag)
        if language is not None:
            tags[language].append(tag)
    by_tag = {
        domain["value"]: domain["figures"] for domain in domains if domain["column"] == "language"
    }
    note = ""
    if "" in measures:
        note = f"Comments of unknown language in the period: {measures[''].comments}, not included."
    scopes = {}
    for language in LANGUAGES:
        mine = sum((measures[tag] for tag in tags[language]), Measures())
        reason = _no_rates_reason(mine.comments, tags[language], by_tag)
        if reason:
            scopes[language] = _scope(mine, dict.fromkeys(_RATES, Missing(reason=reason)), note)
        else:
            rates = _rates(by_tag[tags[language][0]], level, method)
            scopes[language] = _scope(mine, rates, note)
    return scopes


def _no_rates_reason(comments: int, tags: list[str], by_tag: Mapping[str, Any]) -> str:
    """Return why there are no rates of a language; empty when there are."""
    if not comments:
        return "no comments of the period are known to be in this language"
    if len(tags) > 1:
        return (
            f"comments in this language have {len(tags)} different tags, which the audit estimated "
            "separately"
        )
    if tags[0] in by_tag:
        return ""
    if comments < LEAST_COMMENTS:
        return f"fewer than {LEAST_COMMENTS} comments of the period are in this language"
    return "the audit has no estimates for this language"


def _left_out(measures: Mapping[str, Measures]) -> str:
    """Return the measures that no language includes; empty without languages."""
    others = [counted for tag, counted in measures.items() if official_language(tag) is None]
    left = sum(others, Measures())
    if not left.comments or not any(measures.keys()):
        return ""
    return (
        "Not included under any language, because the language is unknown or not an official "
        f"language of the EU: {left.solely} solely by automated means and {left.not_solely} others."
    )


def qualitative(
    plan: AuditPlan,
    result: Mapping[str, Any],
    measures: Mapping[str, Measures],
    *,
    service: str,
    others: Sequence[str] = (),
) -> Qualitative:
    """Return part 11 for the period of an audit, as far as its evidence allows.

    The service adds the consequences of a flag, and other automated means. `measures` and `others`
    as in `automated_means`. Raises DsaReportError if the name of the service or the version of the
    model is empty or has control characters.
    """
    return Qualitative(
        service=service,
        start=plan.first,
        end=plan.last,
        description=(
            f"A statistical model, version {plan.model}, scores each comment from 0 to 1 "
            f"automatically. {_flagged(plan.threshold)} {_decided(measures)} People "
            "review some of the comments; their decision replaces an automated one."
        ),
        accuracy=" ".join([*_accuracy(plan, result), *others]),
        purposes=(
            "To detect comments that violate the rules of the service, on its own initiative, and "
            "to select comments for human review. The rules of the service define the consequences "
            "of a flag."
        ),
        safeguards=" ".join(_safeguards(plan, result, measures)),
    )


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
        if metric not in estimates:
            continue
        rate = rate_of(estimates[metric], plan.rule.level, "sample")
        if isinstance(rate, Rate):
            sentences.append(f"{share}: {value_text(rate)}. {interval_text(rate)}")
        else:
            sentences.append(f"{share}: unknown. {rate.reason[:1].upper()}{rate.reason[1:]}.")
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
