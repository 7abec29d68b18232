"""The figures that alerts watch, gathered from the tables and the verdicts of the checks."""

import datetime
import math
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from modwatch.alerts.incidents import Figure
from modwatch.quality.result import Suite
from modwatch.resources import Resources

_NUMBERS = ("value", "low", "high")
_SHARED = ("dt", "metric", *_NUMBERS, "n", "status")


def figures(at: Resources, first: datetime.date, last: datetime.date) -> list[Figure]:
    """Return every figure of the days `first` … `last`, both included.

        metric                             from
        accuracy, oc_accuracy, ece, …      `measurements`, as deployed on that day
        window_accuracy, …                 `window_measurements`, the same over the trailing window
        psi, volume_ratio, cbpe_…, …       `drift`, with its features and references
        checks_rejected, checks_warned     the day's verdicts: 1 or 0

    Strategy and review fraction are those that the day was routed with: others are no news. A table
    that is not there has no figures.
    """
    deployed = _deployed(at, first, last)
    return [
        *_estimates(at, "measurements", "", deployed, first, last),
        *_estimates(at, "window_measurements", "window_", deployed, first, last),
        *_drift(at, first, last),
        *_checks(at, first, last),
    ]


def _deployed(
    at: Resources, first: datetime.date, last: datetime.date
) -> Mapping[datetime.date, tuple[str, float]]:
    """Return strategy and review fraction of the days that were routed."""
    columns = ["dt", "strategy", "review_fraction"]
    rows = _rows(at, "routing_design", first, last, columns)
    return {row["dt"]: (row["strategy"], row["review_fraction"]) for row in rows}


def _estimates(
    at: Resources,
    table: str,
    prefix: str,
    deployed: Mapping[datetime.date, tuple[str, float]],
    first: datetime.date,
    last: datetime.date,
) -> Iterator[Figure]:
    for row in _rows(at, table, first, last, [*_SHARED, "strategy", "alpha"]):
        strategy, fraction = deployed.get(row["dt"], (None, math.nan))
        as_deployed = row["strategy"] == strategy and math.isclose(row["alpha"] or 0, fraction)
        if row["alpha"] is None or as_deployed:
            yield _figure(row, metric=prefix + row["metric"])


def _drift(at: Resources, first: datetime.date, last: datetime.date) -> Iterator[Figure]:
    for row in _rows(at, "drift", first, last, [*_SHARED, "feature", "reference"]):
        yield _figure(row, feature=row["feature"], reference=row["reference"])


def _checks(at: Resources, first: datetime.date, last: datetime.date) -> Iterator[Figure]:
    """Yield whether each checked day was rejected and, if it was not, whether it was warned of."""
    for day in (day for day in at.checks.days() if first <= day <= last):
        verdicts = [found for suite in get_args(Suite) if (found := at.checks.load(suite, day))]
        statuses = {verdict.status for verdict in verdicts}
        n = max((verdict.rows for verdict in verdicts), default=0)
        rejected, warned = float("rejected" in statuses), float("warned" in statuses)
        yield Figure(day=day, metric="checks_rejected", value=rejected, n=n)
        if not rejected:
            yield Figure(day=day, metric="checks_warned", value=warned, n=n)


def _rows(
    at: Resources, table: str, first: datetime.date, last: datetime.date, columns: list[str]
) -> Iterator[dict[str, Any]]:
    for batch in at.lake.read_between(table, first, last, columns=columns):
        yield from batch.to_pylist()


def _figure(row: Mapping[str, Any], **names: Any) -> Figure:
    numbers = {name: _number(row[name]) for name in _NUMBERS}
    known = {"day": row["dt"], "metric": row["metric"], "n": row["n"], "status": row["status"]}
    return Figure(**{**known, **numbers, **names})


def _number(value: float | None) -> float | None:
    """Return a number, or None for what is none: a comparison with NaN would say "all is well"."""
    return value if value is not None and math.isfinite(value) else None
