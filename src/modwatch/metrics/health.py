"""How a day is doing, whatever its scores mean: volume, gaps, flagged share, queue."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from modwatch.metrics.distance import share
from modwatch.metrics.drift import Finding
from modwatch.metrics.profile import Profile

#: Trailing days that a usual volume is told from.
MINIMUM_DAYS = 3

_SECONDS = 3600.0


def day_health(today: Profile, trailing: Sequence[Profile]) -> Iterator[Finding]:
    """Yield volume ratio and the shares that are missing, quarantined and flagged.

    Shares come with Wilson's interval; of an empty day they are insufficient. The volume of an
    empty day is 0, which is a figure.

    >>> week = [Profile(comments=size) for size in (90, 100, 5000)]
    >>> next(day_health(Profile(comments=50), week)).value
    0.5
    """
    landed = today.comments + today.quarantined
    yield volume_ratio(today, trailing)
    yield _share("flagged_share", "flagged", today.flagged, today.scored)
    yield _share("quarantined_share", "quarantined", today.quarantined, landed)
    for column, gaps in today.missing.items():
        yield _share("missing_share", column, gaps, today.comments)


def volume_ratio(today: Profile, trailing: Sequence[Profile]) -> Finding:
    """Return the day's comments over the median of the trailing days, which one storm leaves alone.

    Weekdays are not told apart: where they differ, so does the ratio.

    >>> volume_ratio(Profile(comments=50), []).reason
    '0 trailing days; 3 are needed'
    """
    volumes = [day.comments for day in trailing]
    usual, reason = median(volumes or [0]), ""
    if len(volumes) < MINIMUM_DAYS:
        reason = f"{len(volumes)} trailing days; {MINIMUM_DAYS} are needed"
    elif not usual:
        reason = "half of the trailing days are empty"
    ratio = None if reason else today.comments / usual
    return Finding(
        metric="volume_ratio",
        feature="comments",
        reference="trailing",
        value=ratio,
        direction=None if ratio in (None, 1) else "higher" if today.comments > usual else "lower",
        n=today.comments,
        reference_n=sum(volumes),
        reason=reason,
    )


def _share(metric: str, feature: str, part: int, whole: int) -> Finding:
    if not whole:
        return Finding(metric=metric, feature=feature, value=None, n=0, reason="an empty day")
    found = share(part, whole)
    return Finding(
        metric=metric, feature=feature, value=found.value, low=found.low, high=found.high, n=whole
    )


@dataclass(frozen=True, kw_only=True)
class Queue:
    """Where the routed comments of a day stand; times in seconds, None where there is none."""

    waiting: int
    decided: int
    #: Of what waits, since it was queued.
    age_median: float | None = None
    age_oldest: float | None = None
    #: Of what is decided, from queued to the first label.
    decision_median: float | None = None


def queue_health(queue: Queue) -> Iterator[Finding]:
    """Yield completion, size, ages and speed of a day's queue; times in hours, to a tenth.

    >>> {finding.metric: finding.value for finding in queue_health(Queue(waiting=1, decided=3))}
    ... # doctest: +NORMALIZE_WHITESPACE
    {'queue_completion': 0.75, 'queue_waiting': 1.0, 'queue_age_median_hours': None,
     'queue_age_oldest_hours': None, 'queue_decision_median_hours': None}
    """
    queued = queue.waiting + queue.decided
    completion = queue.decided / queued if queued else None
    yield _of_queue("completion", completion, queued, "nothing was queued")
    yield _of_queue("waiting", float(queue.waiting), queued, "")
    for name, seconds, n, reason in (
        ("age_median_hours", queue.age_median, queue.waiting, "nothing waits"),
        ("age_oldest_hours", queue.age_oldest, queue.waiting, "nothing waits"),
        ("decision_median_hours", queue.decision_median, queue.decided, "none is decided"),
    ):
        hours = None if seconds is None else round(seconds / _SECONDS, 1)
        yield _of_queue(name, hours, n, reason)


def _of_queue(name: str, value: float | None, n: int, reason: str) -> Finding:
    why = reason if value is None else ""
    return Finding(metric=f"queue_{name}", feature="queue", value=value, n=n, reason=why)
