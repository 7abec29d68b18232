"""The words on a run's page: what the day was, in about five lines of Markdown."""

from collections.abc import Hashable, Mapping
from datetime import date
from typing import Any

import pandas as pd

from modwatch.tracking.facts import DayFacts
from modwatch.tracking.keys import deployed_rows, known, metric_title

_TOGETHER = ("oc_accuracy", "oc_auroc", "oc_auprc", "review_efficiency", "review_effectiveness")
_ALONE = ("accuracy", "auroc", "auprc", "brier_score", "expected_calibration_error")


def describe_day(day: date, measurements: pd.DataFrame, facts: DayFacts) -> str:
    """Return the Markdown description of one day.

    It says volume and checks, model with moderators, model alone, the queue, what could not be
    estimated and why, and links. Intervals are 95 %.
    """
    rows = deployed_rows(measurements, facts)
    numbers = rows[known(rows)]
    lines = [
        _volume(day, facts),
        "With review: " + _estimates(numbers, _TOGETHER),
        "Model alone: " + _estimates(numbers, _ALONE),
        _queue(facts),
        _missing(measurements, rows),
        _links(facts),
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


def _volume(day: date, facts: DayFacts) -> str:
    seen = facts.comments + facts.quarantined
    return (
        f"**{day}**: {facts.comments:,} comments, "
        f"{facts.quarantined:,} quarantined{_share(facts.quarantined, seen)}, "
        f"{facts.flagged:,} flagged{_share(facts.flagged, facts.comments)}. "
        f"Checks: **{facts.checks}**."
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


def _missing(measurements: pd.DataFrame, deployed: pd.DataFrame) -> str:
    """Name what could not be estimated as deployed, and count the rest."""
    absent = deployed[~known(deployed)]
    elsewhere = int((~known(measurements)).sum()) - len(absent)
    named = [
        f"{metric_title(row['metric'])} ({row['reason']})"
        if row["reason"]
        else metric_title(row["metric"])
        for row in absent.to_dict("records")
    ]
    if elsewhere:
        named.append(f"{elsewhere} estimates at other settings (`tables/measurements.json`)")
    return f"Not enough data for: {', '.join(named)}." if named else ""


def _links(facts: DayFacts) -> str:
    pages = {
        "Check page": facts.check_page_url,
        "Review queue": facts.queue_url,
        "Airflow run": facts.airflow_run_url,
    }
    return " · ".join(f"[{name}](<{url}>)" for name, url in pages.items() if url)
