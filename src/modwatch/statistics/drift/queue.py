"""Metrics of the review queue of a day: completion, size, ages, speed."""

from collections.abc import Iterator
from dataclasses import dataclass

from modwatch.statistics.drift.drift import Finding

_SECONDS = 3600.0


@dataclass(frozen=True, kw_only=True)
class Queue:
    """The routed comments of a day in the queue; times in seconds, None where there is none."""

    waiting: int
    decided: int
    #: Of waiting items, since they were queued.
    age_median: float | None = None
    age_oldest: float | None = None
    #: Of decided items, from queued to the first label.
    decision_median: float | None = None


def queue_metrics(queue: Queue) -> Iterator[Finding]:
    """Yield completion, size, ages and speed of a day's queue; times in hours, to a tenth.

    >>> {finding.metric: finding.value for finding in queue_metrics(Queue(waiting=1, decided=3))}
    ... # doctest: +NORMALIZE_WHITESPACE
    {'queue_completion': 0.75, 'queue_waiting': 1.0, 'queue_age_median_hours': None,
     'queue_age_oldest_hours': None, 'queue_decision_median_hours': None}
    """
    queued = queue.waiting + queue.decided
    completion = queue.decided / queued if queued else None
    yield _of_queue("completion", completion, queued, "nothing was queued")
    yield _of_queue("waiting", float(queue.waiting), queued, "")
    for name, seconds, n, reason in (
        ("age_median_hours", queue.age_median, queue.waiting, "no item is waiting"),
        ("age_oldest_hours", queue.age_oldest, queue.waiting, "no item is waiting"),
        ("decision_median_hours", queue.decision_median, queue.decided, "no item is decided"),
    ):
        hours = None if seconds is None else round(seconds / _SECONDS, 1)
        yield _of_queue(name, hours, n, reason)


def _of_queue(name: str, value: float | None, n: int, reason: str) -> Finding:
    why = reason if value is None else ""
    return Finding(metric=f"queue_{name}", feature="queue", value=value, n=n, reason=why)
