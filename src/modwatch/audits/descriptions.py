"""Descriptions of plan and result in Markdown, to read before approving and signing."""

from collections.abc import Mapping, Sequence
from datetime import date
from math import ceil, floor
from typing import Any

from modwatch.statistics.audit.confirmation_rules import expected_confirmations
from modwatch.statistics.audit.forecast import Forecast, forecast
from modwatch.statistics.audit.plan import SIDES, AuditPlan, PlannedStratum
from modwatch.statistics.recalibration import EXPECTED

#: Speed of the paper's annotators (Wei et al., appendix D).
LABELS_AN_HOUR = 600

#: The remark on an audit without four eyes.
ONE_PERSON = (
    "none: planner, approver and signer may be one person, and no one else answers for the audit"
)

_RESULT_HEADER = "| metric | value | confidence interval | labels |"
_METRICS = ("precision", "recall", "f1", "accuracy", "prevalence_unflagged")


#: What is forecast, in words.
_FORECASTS = {
    "recall": "recall",
    "precision": "precision",
    "prevalence_unflagged": "share of positives among the unflagged",
}


#: Most days that a sentence names.
_NAMED = 31


def describe_days(days: Sequence[date]) -> str:
    """Return the number of days, and which they are.

    >>> describe_days([date(2026, 1, 5), date(2026, 1, 9)])
    '2 days (2026-01-05, 2026-01-09)'
    """
    named = ", ".join(map(str, days[:_NAMED]))
    more = f" and {len(days) - _NAMED} more" if len(days) > _NAMED else ""
    return f"{len(days)} day{'s' if len(days) > 1 else ''} ({named}{more})"


def describe_missing_days(plan: AuditPlan) -> list[str]:
    """Return in a sentence which days the audit does not cover, for report and approval."""
    if not plan.missing_days:
        return []
    return [
        f"Not covered: {describe_days(plan.missing_days)} between {plan.first} and {plan.last} had "
        "no scores when the audit was planned. Comments of these days, if there were any, were "
        "neither counted nor drawn, and no figure of the audit covers them."
    ]


def describe_plan(plan: AuditPlan) -> str:
    """Return the period of a plan, its strata, the hours of work, and a forecast of its result.

    >>> from datetime import date
    >>> from modwatch.statistics.audit.plan import PopulationDay
    >>> day = PopulationDay(day=date(2026, 1, 5), comments=9000, flagged=0, model_version="3",
    ...                     threshold=0.5, digest="00", texts="11")
    >>> stratum = PlannedStratum(side="unflagged", lower=None, upper=None, population=9000,
    ...                          labels=500, score=0.02)
    >>> plan = AuditPlan(audit="2026-01", population=(day,), strata=(stratum,))
    >>> print(describe_plan(plan))  # doctest: +ELLIPSIS
    **2026-01-05 to 2026-01-05**: 9,000 comments, 0 flagged by model 3 (score above 0.5).
    <BLANKLINE>
    | decided | score | comments | to label |
    |---|---|---:|---:|
    | unflagged | 0 to 0.5 | 9,000 | 500 |
    <BLANKLINE>
    500 comments to label, each by one person (no label is confirmed, so that the intervals do \
not include errors of the annotators): about 500 decisions, 0.8 hours at 600 per hour. Deadline: \
14 days. Confidence level: 95 %.
    <BLANKLINE>
    **Forecast**, by the scores alone: recall cannot be estimated; precision cannot be \
estimated; share of positives among the unflagged about 0.02 (interval 0.0099 to 0.036), with too \
few positives to estimate it in 0.25 % of such audits.
    <BLANKLINE>
    The sample is not fixed yet. ...
    <BLANKLINE>
    The planner cannot approve the audit; neither planner nor approver can sign the result.
    <BLANKLINE>
    Plan `...`
    """
    comments = sum(day.comments for day in plan.population)
    flagged = sum(day.flagged for day in plan.population)
    wanted = sum(stratum.labels for stratum in plan.strata)
    rows = [
        f"| {stratum.side} | {_range(stratum, plan.threshold)} | {stratum.population:,} "
        f"| {stratum.labels:,} |"
        for stratum in plan.strata
    ]
    return "\n\n".join(
        [
            f"**{plan.first} to {plan.last}**: {comments:,} comments, {flagged:,} flagged by model "
            f"{plan.model} ({_decided(plan)}).",
            "\n".join(["| decided | score | comments | to label |", "|---|---|---:|---:|", *rows]),
            *(f"**{sentence}**" for sentence in describe_missing_days(plan)),
            f"{_stages(plan, wanted)} {_further(plan)}: {_effort(plan, wanted)}. Deadline: "
            f"{plan.deadline_days} days{' per stage' if plan.stages > 1 else ''}. Confidence "
            f"level: {_percent(plan.rule.level)}.",
            f"**Forecast**, {describe_forecast(plan)}",
            *_people(plan),
            f"Plan `{plan.digest}`",
        ]
    )


def describe_forecast(plan: AuditPlan) -> str:
    """Return in a sentence which intervals to expect of a plan, by which knowledge."""
    figures = "; ".join(_expected(figure) for figure in forecast(plan))
    return f"{_knowledge(plan)}: {figures}."


def _expected(figure: Forecast) -> str:
    name = _FORECASTS[figure.metric]
    if figure.value is None:
        return f"{name} cannot be estimated"
    ends = f"{name} about {figure.value:.2g} (interval {figure.low:.2g} to {figure.high:.2g})"
    if not figure.insufficient:
        return ends
    audits = _percent(figure.insufficient, 2)
    return f"{ends}, with too few positives to estimate it in {audits} of such audits"


def _knowledge(plan: AuditPlan) -> str:
    """Return what the forecast rests on."""
    known = {side: plan.calibration_of(side) for side in SIDES if plan.of_side(side)}
    sources = dict.fromkeys(
        calibration.source for calibration in known.values() if calibration.labels
    )
    if not sources:
        expected = any(calibration.source == EXPECTED for calibration in known.values())
        return f"by the scores {'and the prevalence that was expected' if expected else 'alone'}"
    numbers = " and ".join(
        f"{calibration.positives:,} positives among {calibration.labels:,} {side}"
        for side, calibration in known.items()
        if calibration.labels
    )
    return f"by {', '.join(sources)} ({numbers})"


def describe_result(result: Mapping[str, Any], folder: str) -> str:
    """Return the estimates of a result and the location of its files, a path or URL.

    >>> recall = {"metric": "recall", "status": "ok", "value": 0.8, "low": 0.7, "high": 0.88,
    ...           "labels": 500, "reason": ""}
    >>> result = {"labelled": 490, "drawn": 500, "figures": [recall], "four_eyes": True}
    >>> print(describe_result(result, "lake/_audits/a"))
    490 of 500 drawn comments are labelled.
    <BLANKLINE>
    | metric | value | confidence interval | labels |
    |---|---:|---|---:|
    | recall | 0.8000 | 0.7000 to 0.8800 | 500 |
    <BLANKLINE>
    All files are in `lake/_audits/a`.
    """
    estimates = {estimate["metric"]: estimate for estimate in result["figures"]}
    rows = [_row(estimates[metric]) for metric in _METRICS if metric in estimates]
    return "\n\n".join(
        [
            f"{result['labelled']:,} of {result['drawn']:,} drawn comments are labelled.",
            *([] if result["four_eyes"] else [f"**Four eyes: {ONE_PERSON}.**"]),
            *_label_errors(result),
            "\n".join([_RESULT_HEADER, "|---|---:|---|---:|", *rows]),
            f"All files are in `{folder}`.",
        ]
    )


def _label_errors(result: Mapping[str, Any]) -> list[str]:
    """Return what the confirmations came to; nothing where labels count as true."""
    errors = result.get("label_errors")
    if errors is None:
        return []
    few = "" if errors["enough"] else ", too few to tell the error rates: intervals are wide"
    return [
        f"{errors['confirmed']:,} labels are confirmed, {errors['overturned']:,} of them "
        f"overturned{few}. Values and intervals allow for errors of the annotators, of which a "
        f"second person repeats {repeated(errors)}."
    ]


def _row(estimate: Mapping[str, Any]) -> str:
    name = estimate["metric"].replace("_", " ")
    if estimate["status"] != "ok":
        bound = bound_text(estimate) or "insufficient"
        return f"| {name} | {bound} | {estimate['reason']} | {estimate['labels']:,} |"
    ends = f"{estimate['low']:.4f} to {estimate['high']:.4f}"
    return f"| {name} | {estimate['value']:.4f} | {ends} | {estimate['labels']:,} |"


def repeated(errors: Mapping[str, Any]) -> str:
    """Return up to which shares of errors a second person may repeat, from the `label_errors`.

    >>> repeated({"shared": {"false_positive": 0.2, "false_negative": 0.3}})
    'up to 20 % (false positives) and 30 % (false negatives)'
    """
    up, down = (_percent(errors["shared"][name]) for name in ("false_positive", "false_negative"))
    return f"up to {up} (false positives) and {down} (false negatives)"


def bound_text(estimate: Mapping[str, Any]) -> str:
    """Return the bound of a metric without a value, rounded away from what it claims.

    Empty without a bound.

    >>> bound_text({"bound": "lower", "low": 0.42196})
    'at least 0.4219'
    """
    if not estimate.get("bound"):
        return ""
    if estimate["bound"] == "lower":
        return f"at least {floor(estimate['low'] * 10_000) / 10_000:.4f}"
    return f"at most {ceil(estimate['high'] * 10_000) / 10_000:.4f}"


def _decided(plan: AuditPlan) -> str:
    """Return what was flagged."""
    if plan.threshold is None:
        return "as the source decided, whatever the score"
    return f"score above {plan.threshold:g}"


def _range(stratum: PlannedStratum, threshold: float | None) -> str:
    """Return the range of scores; an open end is the threshold, 0 or 1."""
    least, most = 0.0, 1.0
    if threshold is not None:
        least, most = (threshold, 1) if stratum.side == "flagged" else (0, threshold)
    lower = least if stratum.lower is None else stratum.lower
    upper = most if stratum.upper is None else stratum.upper
    return f"{lower:.4g} to {upper:.4g}"


def _stages(plan: AuditPlan, wanted: int) -> str:
    if plan.stages == 1:
        return f"{wanted:,} comments to label,"
    later = plan.second_stage_labels
    return f"{wanted:,} comments to label, and {later:,} more in a second stage,"


def _effort(plan: AuditPlan, wanted: int) -> str:
    again = _expected_further(plan) / wanted
    decisions = round((wanted + plan.second_stage_labels) * (1 + again))
    hours = decisions / LABELS_AN_HOUR
    return f"about {decisions:,} decisions, {hours:.1f} hours at {LABELS_AN_HOUR} per hour"


def _further(plan: AuditPlan) -> str:
    """Return which labels other people confirm."""
    if not plan.confirmations:
        return (
            "each by one person (no label is confirmed, so that the intervals do not include "
            "errors of the annotators)"
        )
    return (
        f"and about {round(_expected_further(plan)):,} confirmations by further people, who see no "
        f"other label ({'; '.join(_confirmed(plan))})"
    )


def _confirmed(plan: AuditPlan) -> list[str]:
    """Return which first labels of each side are confirmed."""
    return [
        f"{side}: {_percent(rule.positive)} of the labels against the rules, "
        f"{_percent(rule.negative)} of the others"
        for side, rule in sorted(plan.confirmations.items())
    ]


def _expected_further(plan: AuditPlan) -> float:
    """Return the expected number of second and third labels of the first stage."""
    strata = [(stratum.side, stratum.labels, stratum.score) for stratum in plan.strata]
    return expected_confirmations(plan.confirmations, strata)


def _people(plan: AuditPlan) -> list[str]:
    """Return how the sample is drawn, and who may approve."""
    also = f", and of {plan.public_value}" if plan.public_value else ""
    return [
        "The sample is not fixed yet. Its seed is made of this plan, of the decision log, of a "
        f"random number when the plan is approved{also}: no one can choose it.",
        "The planner cannot approve the audit; neither planner nor approver can sign the result."
        if plan.four_eyes
        else f"**Four eyes: {ONE_PERSON}.**",
    ]


def _percent(share: float, digits: int = 4) -> str:
    return f"{100 * share:.{digits}g} %"
