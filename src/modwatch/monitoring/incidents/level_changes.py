"""The size of the fall that is in force on each day, from the daily estimates of a metric."""

import datetime
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from modwatch.common.days import between
from modwatch.monitoring.incidents.incidents import Incident, LevelChange, MetricValue
from modwatch.monitoring.incidents.rules import LEVEL_CHANGES
from modwatch.statistics.drift.change_points import ChangePoint, Fall, follow_falls

_NOTHING = (math.nan, math.nan, math.nan)


def level_changes(
    values: Iterable[MetricValue],
    *,
    reported: Mapping[str, Incident] | None = None,
    accepted: Sequence[tuple[datetime.date, datetime.date]] = (),
) -> list[MetricValue]:
    """Return how far each metric of `LEVEL_CHANGES` has fallen, on each day with an estimate.

    A value is the present level − the level before, in [−1, 1], with its 95 % interval, and 0 on a
    day without a fall in force. The value of a day depends on it and earlier days alone.

    Args:
        values: daily estimates of any metrics, in any order; at most one a metric and day.
        reported: by metric of the result, the fall that receivers see as active.
        accepted: levels that a person has accepted as the new normal: the day of the acceptance,
            and the first day at that level. From the first on, days before the second are ignored.

    >>> day = datetime.date(2026, 1, 1)
    >>> accuracy = [MetricValue(day=day + datetime.timedelta(number), metric="accuracy", n=200,
    ...                         value=value, low=value - 0.04, high=value + 0.03)
    ...             for number, value in enumerate([0.96] * 10 + [0.7] * 2)]
    >>> fallen = level_changes(accuracy)[-1]
    >>> fallen.metric, round(fallen.value, 2), fallen.change.day.isoformat()
    ('accuracy_change', -0.26, '2026-01-11')
    """
    by_metric: dict[str, list[MetricValue]] = {}
    for value in sorted(values, key=lambda value: value.day):
        if value.metric in LEVEL_CHANGES:
            by_metric.setdefault(value.metric, []).append(value)
    return [
        change
        for metric, series in by_metric.items()
        for change in _followed(series, LEVEL_CHANGES[metric], reported or {}, accepted)
    ]


def _followed(
    series: Sequence[MetricValue],
    name: str,
    reported: Mapping[str, Incident],
    accepted: Sequence[tuple[datetime.date, datetime.date]],
) -> Iterator[MetricValue]:
    """Yield the values of one metric, in one stretch from each acceptance to the next."""
    starts = [(datetime.date.min, series[0].day), *sorted(accepted)]
    ends = [*(day for day, _ in starts[1:]), datetime.date.max]
    for (start, level_since), end in zip(starts, ends, strict=True):
        known = [value for value in series if level_since <= value.day < end]
        for value in _stretch(known, name, reported.get(name)):
            if value.day >= start:
                yield value


def _stretch(
    known: Sequence[MetricValue], name: str, reported: Incident | None
) -> Iterator[MetricValue]:
    """Yield the size of the fall in force on each day that has an estimate."""
    if not known:
        return
    first = known[0].day
    estimates = {value.day: value for value in known}
    days = between(first, known[-1].day)
    columns = zip(*(_estimate(estimates.get(day)) for day in days), strict=True)
    labels = [_labels(estimates.get(day)) for day in days]
    known_falls = follow_falls(*map(list, columns), n=labels, **_positions(reported, first))
    for day, fall in zip(days, known_falls, strict=True):
        estimate = estimates.get(day)
        if estimate is not None and not math.isnan(_estimate(estimate)[0]):
            yield _value(estimate, name, fall, first)


def _positions(reported: Incident | None, first: datetime.date) -> dict[str, int]:
    if reported is None or reported.since < first:
        return {}
    since, opened = reported.since - first, reported.opened - first
    return {"reported": since.days, "reported_on": opened.days}


def _estimate(value: MetricValue | None) -> tuple[float, float, float]:
    """Return value, low and high within [0, 1]; NaN without an interval."""
    if value is None or value.status != "ok":
        return _NOTHING
    if value.value is None or value.low is None or value.high is None:
        return _NOTHING
    middle = min(max(value.value, 0.0), 1.0)
    return middle, min(max(value.low, 0.0), middle), max(min(value.high, 1.0), middle)


def _labels(value: MetricValue | None) -> float:
    """Return the labels behind an estimate; 1 where their number is not known."""
    known = (value.effective_n or float(value.n)) if value else 1.0
    return max(known, 1.0)


def _value(
    estimate: MetricValue, name: str, fall: Fall | None, first: datetime.date
) -> MetricValue:
    if fall is None:
        return MetricValue(day=estimate.day, metric=name, value=0.0, n=estimate.n)
    value, low, high = fall.change
    return MetricValue(
        day=estimate.day,
        metric=name,
        value=value,
        low=low,
        high=high,
        n=estimate.n,
        change=replace(_change(fall.first, first), after=fall.now),
    )


def _change(found: ChangePoint, first: datetime.date) -> LevelChange:
    """Return a change with days in place of positions; position 0 is `first`."""
    days = [
        first + datetime.timedelta(place) for place in (found.day, found.day_low, found.day_high)
    ]
    return LevelChange(
        day=days[0],
        day_low=days[1],
        day_high=days[2],
        before=found.before,
        after=found.after,
        evidence=found.evidence,
    )
