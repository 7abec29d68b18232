"""The words on a run's page: what the day was, in five lines of Markdown."""

from collections.abc import Hashable, Mapping
from datetime import date, timedelta
from typing import Any

import pandas as pd

from modwatch.tracking.changes import COMPARED, Change, changes
from modwatch.tracking.effects import drift_status
from modwatch.tracking.facts import DayFacts, DayTables
from modwatch.tracking.keys import deployed_rows, known, metric_title

# Few: MLflow hides what goes beyond some five lines.
_TOGETHER = ("oc_accuracy", "oc_auroc", "review_efficiency")
_ALONE = ("accuracy",)
_NAMED_ALERTS = 3
_ONE_DAY = timedelta(days=1)


def describe_day(day: date, tables: DayTables, facts: DayFacts) -> str:
    """Return the Markdown description of one day, in five lines.

    They say how the day stands, what changed beyond noise, where to look next, how well model and
    moderators do, and what could not be estimated and why. Intervals are 95 %.
    """
    lines = [
        _status(day, tables, facts),
        _changed(day, tables, facts),
        _links(facts),
        _quality(tables, facts),
        _queue(facts) + _missing(tables.measurements, facts),
    ]
    return "  \n".join(line for line in lines if line)  # Markdown breaks a line at two spaces


def describe_timeline(first: date, last: date, days: int) -> str:
    """Return the Markdown description of the timeline run.

    >>> print(describe_timeline(date(2026, 1, 5), date(2026, 1, 6), 2))
    **2026-01-05 to 2026-01-06**, 2 days; one point a day, recomputed while labels come in.
    <BLANKLINE>
    Step 0 is 2026-01-05. For dates on the charts: Model metrics, gear, x-axis "Time (wall)".
    The same with 95 % intervals: Artifacts, `figures/timeline.png`.
    """
    noun = "day" if days == 1 else "days"
    return (
        f"**{first} to {last}**, {days} {noun}; one point a day, recomputed while labels come in."
        f'\n\nStep 0 is {first}. For dates on the charts: Model metrics, gear, x-axis "Time (wall)"'
        ".\nThe same with 95 % intervals: Artifacts, `figures/timeline.png`."
    )


def _status(day: date, tables: DayTables, facts: DayFacts) -> str:
    seen = facts.comments + facts.quarantined
    drift, where = drift_status(tables.drift)
    return (
        f"**{day}**: {facts.comments:,} comments, "
        f"{facts.quarantined:,} quarantined{_share(facts.quarantined, seen)}, "
        f"{facts.flagged:,} flagged{_share(facts.flagged, facts.comments)}. "
        f"Checks: **{facts.checks}**. Drift: **{drift}**{where and f' ({where})'}. "
        f"Alerts: {_alerts(facts)}."
    )


def _alerts(facts: DayFacts) -> str:
    """Name the most severe incidents that stand, and count the others."""
    named = [standing.line for standing in facts.alerts[:_NAMED_ALERTS]]
    others = len(facts.alerts) - len(named)
    return "; ".join([*named, *([f"{others} more"] if others else [])]) or "**none**"


def _changed(day: date, tables: DayTables, facts: DayFacts) -> str:
    """Say what changed against the day before and the window before, which hold other labels."""
    among = 2 * len(COMPARED)
    found = {
        str(day - _ONE_DAY): changes(tables.measurements, tables.day_before, facts, among=among),
        "the window before": changes(tables.measurements, tables.window_before, facts, among=among),
    }
    compared = [name for name, (count, _) in found.items() if count]
    if not compared:
        return "Changes: nothing to compare with."
    moved = {name: found[name][1] for name in compared}
    if not any(moved.values()):
        return f"Changes: no change beyond noise against {' or '.join(compared)}."
    return (
        "Changes: "
        + "; ".join(
            f"against {name} {', '.join(map(_moved, changed)) or 'no change beyond noise'}"
            for name, changed in moved.items()
        )
        + "."
    )


def _moved(change: Change) -> str:
    return f"**{metric_title(change.metric)} {change.before:.3f} → {change.now:.3f}**"


def _quality(tables: DayTables, facts: DayFacts) -> str:
    """Give the estimates of the window, or of the day when there is no window."""
    measurements, over = tables.measurements, "the day"
    if len(tables.window):
        measurements = tables.window
        over = f"{facts.pooled_days} of {facts.window_days} days"
    rows = deployed_rows(measurements, facts.strategy, facts.review_fraction)
    numbers = rows[known(rows)]
    return (
        f"With review ({over}): {_estimates(numbers, _TOGETHER)} "
        f"Model alone: {_estimates(numbers, _ALONE)}"
    )


def _queue(facts: DayFacts) -> str:
    return (
        f"Model {facts.model_version}; {facts.routed:,} comments routed by {facts.strategy} "
        f"(review fraction {facts.review_fraction:.3g}), "
        f"{facts.labelled:,} labelled{_share(facts.labelled, facts.routed)}."
    )


def _share(part: int, whole: int) -> str:
    return f" ({100 * part / whole:.3g} %)" if whole else ""


def _estimates(numbers: pd.DataFrame, metrics: tuple[str, ...]) -> str:
    """Return the estimates of these metrics, in this order."""
    by_metric = {row["metric"]: row for row in numbers.to_dict("records")}
    found = [_estimate(by_metric[metric]) for metric in metrics if metric in by_metric]
    return f"{', '.join(found)}." if found else "not enough data."


def _estimate(row: Mapping[Hashable, Any]) -> str:
    text = f"{metric_title(row['metric'])} {row['value']:.3f}"
    if pd.isna(row["low"]) or pd.isna(row["high"]):
        return text
    return f"{text} ({row['low']:.3f} to {row['high']:.3f})"


def _missing(measurements: pd.DataFrame, facts: DayFacts) -> str:
    """Name what could not be estimated of the day as deployed, by reason, and count the rest."""
    deployed = deployed_rows(measurements, facts.strategy, facts.review_fraction)
    absent = deployed[~known(deployed)]
    elsewhere = int((~known(measurements)).sum()) - len(absent)
    reasons: dict[str, list[str]] = {}
    for row in absent.to_dict("records"):
        reasons.setdefault(str(row["reason"]), []).append(metric_title(row["metric"]))
    named = [
        f"{', '.join(metrics)}{reason and f' ({reason})'}" for reason, metrics in reasons.items()
    ]
    if elsewhere:
        noun = "estimate" if elsewhere == 1 else "estimates"
        named.append(f"{elsewhere} {noun} at other settings (`tables/measurements.json`)")
    return f" **Insufficient** on the day: {'; '.join(named)}." if named else ""


def _links(facts: DayFacts) -> str:
    pages = {
        "Check page": facts.check_page_url,
        "Review queue": facts.queue_url,
        "Airflow run": facts.airflow_run_url,
    }
    return " · ".join(f"[{name}](<{url}>)" for name, url in pages.items() if url)
