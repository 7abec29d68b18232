"""Metric points: what MLflow draws, one a key and day."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlflow import MlflowClient

#: Metric values by day and key.
Rows = Mapping[date, Mapping[str, float]]

#: Step, key and value of a point.
Point = tuple[int, str, float]

_BATCH = 1000  # MLflow refuses more in one call


def points_of(rows: Rows, *, first: date) -> set[Point]:
    """Return the points of `rows`; the step counts days from `first`.

    Neither a date such as 20260105 nor days since 1970 serve as a step: MLflow's axis shows them
    as 20.26M and 20.46k, the former with a gap after every month.

    >>> points_of({date(2026, 1, 6): {"day/comments": 10.0}}, first=date(2026, 1, 5))
    {(1, 'day/comments', 10.0)}
    """
    return {
        ((day - first).days, key, float(value))
        for day, row in rows.items()
        for key, value in row.items()
    }


def log_points(client: "MlflowClient", run_id: str, points: set[Point], *, first: date) -> None:
    """Log points to a run, each at its day's UTC midnight, so that the time axis shows days."""
    from mlflow.entities import Metric

    start = midnight_ms(first)
    metrics = [
        Metric(key, value, start + step * 86_400_000, step) for step, key, value in sorted(points)
    ]
    for begin in range(0, len(metrics), _BATCH):
        client.log_batch(run_id, metrics=metrics[begin : begin + _BATCH])


def published_points(client: "MlflowClient", run_id: str) -> set[Point]:
    """Return every point that a run holds."""
    return {
        (point.step, key, point.value)
        for key in client.get_run(run_id).data.metrics
        for point in client.get_metric_history(run_id, key)
    }


def midnight_ms(day: date) -> int:
    """Return the day's UTC midnight in milliseconds since 1970.

    >>> midnight_ms(date(1970, 1, 2))
    86400000
    """
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000)
