"""Reads the metric values that alert rules watch, from the tables and the validation results."""

import datetime
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, get_args

from modwatch.data.lake.day_scores import demonstrations
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import LOG_VERIFICATIONS
from modwatch.data.validation.result import CheckStore, Suite
from modwatch.monitoring.incidents.incidents import MetricValue
from modwatch.statistics.dependence import KINDS
from modwatch.statistics.drift.seasons import NO_CALENDAR, Calendar, Volume, season, usual_factor
from modwatch.statistics.estimate import SIGNIFICANT

#: An older witness of the decision log is missing: one is written every day.
WITNESS_HOURS = 1.0

#: A flagged share that is more than this many times that of its reference is far from it.
FAR = 3.0

#: Shares of the comments of a day that usually arrive, or are deleted, afterwards, at most.
LATE, DELETED = 0.005, 0.05

#: Level and severity of a rule of validation that warns about a day.
_WARNING = ("day", "warning")

#: How the names of those begin that alert rules of their own watch.
_ALERTED = (
    *("language_", "detected_language_", "script_", "volume_shift", "missing_share_"),
    *("score_shift", "flagged_shift"),
)

#: What is watched of groups of moderators, by metric of `annotator_groups`.
_OF_ANNOTATORS = {
    "agreement": "annotators_agreement_difference",
    "uncertainty_divergence": "annotators_uncertainty_divergence",
}

#: The metrics that `annotator_values` returns.
ANNOTATOR_METRICS = tuple(_OF_ANNOTATORS.values())

_VOLUME = "volume_ratio"
#: Features of a day that its model makes.
_OF_SCORES = ("prob", "uncertainty", "flagged")
_NUMBERS = ("value", "low", "high")
_NAMES = ("feature", "reference")
_SHARED = ("dt", "metric", *_NUMBERS, "n", "status")
_DEPLOYED = ("window", "design", "strategy", "alpha", "effective_n")


def metric_values(
    lake: Lake, checks: CheckStore, first: datetime.date, last: datetime.date
) -> list[MetricValue]:
    """Return the metric values of the days `first` … `last`, both included.

        metric                             from
        accuracy, ece, …: `FIGURES`        `estimates`, as deployed, of the day by the design alone
        window_accuracy, …                 `estimates` of the trailing window, as deployed
        group_…_difference                 `comment_groups`, by attribute and group
        dependent_confirmations            `assumption_checks`: sets that agree too often, by kind
        psi, volume_ratio, cbpe_…, …       `drift`, by feature and reference
        flagged_share_excess               from `drift`: `flagged_share_excess`
        checks_rejected                    the day's validation results: 1 or 0
        checks_warned                      whether a rule of validation warned, by rule: 1 or 0
        log_problems, log_witness_missing  `log_verifications`: how many, and 1 or 0
        log_unverified, clock_difference   whether that was not completed, 1 or 0; seconds
        rows_late, rows_gone               the counts of the source, by the day of the rows

    Estimates at a strategy or review fraction other than that day's deployed one are skipped, and
    what the demonstration model says of a platform's comments.
    """
    silent = demonstrations(lake, first, last)
    of_model = [*_estimates(lake, first, last), *_groups(lake, first, last)]
    of_day = [*_drift(lake, first, last), *_validation(checks, first, last, silent)]
    return [
        *(value for value in of_model if value.day not in silent),
        *(value for value in of_day if value.day not in silent or value.feature not in _OF_SCORES),
        *_dependence(lake, first, last),
        *_log(lake, first, last),
        *_late_rows(checks, first, last),
    ]


def with_usual_volumes(
    values: Sequence[MetricValue],
    earlier: Mapping[datetime.date, Volume] | None = None,
    empty: Collection[datetime.date] = (),
    calendar: Calendar = NO_CALENDAR,
) -> list[MetricValue]:
    """Return values in which volumes have an interval: how far volumes usually vary.

    A volume that a season explains, or a person, is insufficient.

    Args:
        values: of any metrics and days; `n` of a volume ratio is the volume. Values of other
            metrics are returned as they are.
        earlier: volumes of other days, such as those of the year before.
        empty: days that people declared to have no comments, or on which a task failed; with
            comments they count.
        calendar: days that people know to be unusual.

    >>> days = [datetime.date(2026, 1, day) for day in range(5, 12)]
    >>> volumes = [1000, 1000, 1000, 1000, 1000, 310, 60]
    >>> ratios = [MetricValue(day=day, metric="volume_ratio", value=n / 1000, n=n)
    ...           for day, n in zip(days, volumes)]
    >>> [value.status for value in with_usual_volumes(ratios)][-2:]
    ['insufficient', 'ok']
    """
    known = {
        value.day: Volume(rows=value.n, ratio=value.value)
        for value in values
        if value.metric == _VOLUME
    }
    past = {**(earlier or {}), **known}

    def judged(value: MetricValue) -> MetricValue:
        if value.value is None:
            return value
        explained = season(value.day, known[value.day], past, calendar)
        if explained or (value.day in empty and not value.n):
            return replace(value, status="insufficient")
        factor = usual_factor(value.day, past)
        return replace(value, low=value.value / factor, high=value.value * factor)

    return [judged(value) if value.metric == _VOLUME else value for value in values]


def annotator_values(lake: Lake, first: datetime.date, last: datetime.date) -> list[MetricValue]:
    """Return the values of `ANNOTATOR_METRICS` of the comparisons from `first` to `last`, by group.

    A permutation test says whether a group differs: what is not significant counts as 0.
    """
    columns = ["dt", "group", "metric", "value", "difference", "p_holm", "annotators"]
    rows = list(lake.rows_between("annotator_groups", first, last, columns))
    groups = Counter((row["dt"], row["metric"]) for row in rows)
    return [
        MetricValue(
            day=row["dt"],
            metric=_OF_ANNOTATORS[row["metric"]],
            feature=f"moderators {row['group']}",
            value=_significant(row, groups[row["dt"], row["metric"]]),
            n=row["annotators"],
        )
        for row in rows
        if row["metric"] in _OF_ANNOTATORS
    ]


def _significant(row: Mapping[str, Any], groups: int) -> float:
    """Return what a group differs by; 0 if that is not significant among the `groups`.

    Of two groups one is above by as much as the other is below: only the one below has a value.
    """
    if row["p_holm"] is None or not row["p_holm"] < SIGNIFICANT:
        return 0.0
    if row["metric"] == "uncertainty_divergence":
        return float(row["value"])
    return float(row["difference"]) if groups > 2 else min(float(row["difference"]), 0.0)


def _estimates(lake: Lake, first: datetime.date, last: datetime.date) -> Iterator[MetricValue]:
    design = lake.rows_between("routing_design", first, last, ["dt", "strategy", "review_fraction"])
    deployed = {row["dt"]: (row["strategy"], row["review_fraction"]) for row in design}
    for row in lake.rows_between("estimates", first, last, [*_SHARED, *_DEPLOYED]):
        # Of a day, what its own labels give: the days of a series must not share labels.
        if row["design"] == row["window"]:
            continue
        strategy, fraction = deployed.get(row["dt"], (None, math.nan))
        as_deployed = row["strategy"] == strategy and math.isclose(row["alpha"] or 0, fraction)
        if row["alpha"] is None or as_deployed:
            effective, prefix = _finite(row["effective_n"]), "window_" * row["window"]
            yield _metric_value(row, metric=prefix + row["metric"], effective_n=effective)


def _groups(lake: Lake, first: datetime.date, last: datetime.date) -> Iterator[MetricValue]:
    """Yield the difference of each group of comments from all others.

    If it is not significant among all that are compared, its interval contains 0.
    """
    names = ("difference", "difference_low", "difference_high")
    columns = ["dt", "attribute", "group", "metric", *names, "p_holm", "comments"]
    for row in lake.rows_between("comment_groups", first, last, columns):
        value, low, high = (_finite(row[name]) for name in names)
        if value is None or low is None or high is None:
            continue
        if (row["p_holm"] or 0.0) >= SIGNIFICANT:
            low, high = min(low, 0.0), max(high, 0.0)
        yield MetricValue(
            day=row["dt"],
            metric=f"group_{row['metric']}_difference",
            feature=f"{row['attribute']} {row['group']}",
            value=value,
            low=low,
            high=high,
            n=row["comments"],
        )


def _dependence(lake: Lake, first: datetime.date, last: datetime.date) -> Iterator[MetricValue]:
    columns = ["dt", "check", "found", "n"]
    for row in lake.rows_between("assumption_checks", first, last, columns):
        if row["check"] in KINDS:
            names = {"metric": "dependent_confirmations", "feature": row["check"]}
            yield MetricValue(day=row["dt"], value=float(row["found"]), n=row["n"], **names)


def _drift(lake: Lake, first: datetime.date, last: datetime.date) -> Iterator[MetricValue]:
    shares, changes = dict[datetime.date, float | None](), list[MetricValue]()
    for row in lake.rows_between("drift", first, last, [*_SHARED, *_NAMES, "reason"]):
        value = _metric_value(row, **{name: row[name] for name in _NAMES}, remark=row["reason"])
        if value.metric == "flagged_share":
            shares[value.day] = value.value
        if (value.metric, value.reference) == ("flagged_share_change", "fixed"):
            changes.append(value)
        yield value
    yield from (flagged_share_excess(change, shares.get(change.day)) for change in changes)


def flagged_share_excess(change: MetricValue, share: float | None) -> MetricValue:
    """Return by how much more is flagged than in a reference, if it is `FAR` times as much; else 0.

    Args:
        change: of the flagged share, against the reference.
        share: the flagged share of the day.

    >>> change = MetricValue(day=datetime.date(2026, 1, 5), metric="flagged_share_change",
    ...                      value=0.3, low=0.27, high=0.33, n=900)
    >>> flagged_share_excess(change, 0.4).low, flagged_share_excess(change, 0.5).low
    (0.27, 0.0)
    """
    named = replace(change, metric="flagged_share_excess")
    if share is None or change.value is None:
        return replace(named, value=None, low=None, high=None, status="insufficient")
    if share > FAR * (share - change.value):
        return named
    return replace(named, value=0.0, low=0.0, high=0.0)


def _validation(
    checks: CheckStore, first: datetime.date, last: datetime.date, silent: Set[datetime.date]
) -> Iterator[MetricValue]:
    """Yield whether each validated day was rejected and, if it was not, what has warnings.

    A rule that is no longer validated passes. Of `silent` days the scores mean nothing.
    """
    names: dict[Suite, set[str]] = {suite: set() for suite in get_args(Suite)}
    for day in (day for day in checks.days() if first <= day <= last):
        results = {suite: found for suite in names if (found := checks.load(suite, day))}
        rejected = any(result.status == "rejected" for result in results.values())
        n = max((result.rows for result in results.values()), default=0)
        yield MetricValue(day=day, metric="checks_rejected", value=float(rejected), n=n)
        if rejected:
            continue
        warned: dict[str, bool] = {}
        for suite, result in results.items():
            if suite == "scores" and day in silent:
                continue
            rules = [one for one in result.results if (one.level, one.severity) == _WARNING]
            failed = {rule.name for rule in rules if not rule.passed}
            names[suite] |= {rule.name for rule in rules if not rule.name.startswith(_ALERTED)}
            for name in sorted(names[suite]):
                warned[name] = warned.get(name, False) or name in failed
        for name, value in warned.items():
            yield MetricValue(
                day=day, metric="checks_warned", feature=name, value=float(value), n=n
            )


def _log(lake: Lake, first: datetime.date, last: datetime.date) -> Iterator[MetricValue]:
    """Yield what the verification of the decision log found, and whether it was completed.

    A measured day between verified ones, or before the last, has no record if the task was killed.
    """
    columns = [field.name for field in LOG_VERIFICATIONS]
    rows = {row["dt"]: row for row in lake.rows_between("log_verifications", first, last, columns)}
    days = {day for day in lake.days("estimates") if min(rows, default=last) < day < last}
    for day in sorted(days | rows.keys()):
        row = rows.get(day, {"completed": False, "decisions": 0, "clock_difference_seconds": None})
        at = {"day": day, "n": row["decisions"]}
        yield MetricValue(metric="log_unverified", value=float(not row["completed"]), **at)
        if (seconds := row["clock_difference_seconds"]) is not None:
            yield MetricValue(metric="clock_difference", value=seconds, **at)
        if row["completed"]:
            yield MetricValue(metric="log_problems", value=float(row["problems"]), **at)
        if row["completed"] and row["witness_expected"]:
            age = row["witness_age_hours"]
            missing = age is None or age > WITNESS_HOURS
            yield MetricValue(metric="log_witness_missing", value=float(missing), **at)


def _late_rows(
    checks: CheckStore, first: datetime.date, last: datetime.date
) -> Iterator[MetricValue]:
    """Yield how many rows of a day the source has more than landed, and how many fewer.

    Some comments arrive late or are deleted every day, and sources drop old days, at last or in
    parts.
    """
    counts = (
        (day, past, *numbers)
        for day in checks.days()
        if first <= day <= last
        for past, numbers in checks.load_counts(day).items()
    )
    for day, past, source, landed in counts:
        named: dict[str, Any] = {"day": day, "feature": str(past), "n": landed}
        late = source - landed if source > landed * (1 + LATE) else 0
        yield MetricValue(metric="rows_late", value=float(late), **named)
        gone = landed - source if landed / 2 <= source < landed * (1 - DELETED) else 0
        yield MetricValue(metric="rows_gone", value=float(gone), **named)


def _metric_value(row: Mapping[str, Any], **names: Any) -> MetricValue:
    numbers = {name: _finite(row[name]) for name in _NUMBERS}
    status = "insufficient" if numbers["value"] is None else row["status"]
    shared = {"day": row["dt"], "metric": row["metric"], "n": row["n"], "status": status}
    return MetricValue(**{**shared, **numbers, **names})


def _finite(value: float | None) -> float | None:
    """Return a finite number, else None: any comparison with NaN would look like a good value."""
    return value if value is not None and math.isfinite(value) else None
