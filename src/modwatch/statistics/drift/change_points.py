"""Changes of level in a series of daily estimates of a share, such as accuracy.

A day's estimate is uncertain by several points; the days before and after a change are many.
`modwatch.statistics.drift.daily_levels` has the model: a level that changes, the season of the
weekdays, wandering from day to day, and the sampling error that a day's interval states.

*Whether* the level changed: the evidence is R, the sum over the days of the likelihood ratio of a
change on that day against none. A fall is detected at R ≥ `ALARM`; without a fall that takes at
least `ALARM` days in the mean, though it is looked at every evening.

*When*: the terms of the same sum, over the sum, are the posterior of the change day. The day that
is named has the least expected loss, where a day off costs half as much as any other error.

*How far*: the levels before and after it, weighted means of the shares, with intervals that allow
for the season, the wandering and how much of them is not known.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats
from modwatch.statistics.drift.daily_levels import Changes, DailyLevels, Direction, Level, angle
from modwatch.statistics.intervals import LEVEL, NORMAL_QUANTILE

#: R from which a change counts as detected: mean days to a false alarm are at least as many. Six
#: quarters.
ALARM = 540.0

#: R below which a fall that was detected is no longer supported by the later days.
RELEASE = 7.0

#: Days with an estimate since the reference began, from which on a fall is looked for.
MINIMUM_DAYS = 4

#: Days at a level after which it can be the reference of the next fall, and within which a fall
#: that was reported is the same as one that is detected.
MINIMUM_BEFORE = 7

#: Days with an estimate at the level after a rise that must be seen before a fall is over.
MINIMUM_AFTER = 5

#: Share of the cost of a wrong change day that remains when it is a day off.
_A_DAY_OFF = 0.5

#: Largest logarithm of R, so that R is finite.
_MOST = 700.0


@dataclass(frozen=True, kw_only=True)
class ChangePoint:
    """The most likely change of a series; days are positions in it, from 0."""

    #: First day with an estimate at the new level.
    day: int
    #: 95 % interval of the first day at the new level, both ends included.
    day_low: int
    day_high: int
    #: R, over 0: without a change it takes this many days in the mean to be reached, or more. From
    #: `ALARM` on the change counts as detected.
    evidence: float
    before: Level
    after: Level


@dataclass(frozen=True, kw_only=True)
class Fall:
    """A fall from which a series has not recovered."""

    #: When it fell first, and from which level: the reference until the level is back.
    first: ChangePoint
    #: Position from which the present level holds: after `first.day` if it changed further.
    level_since: int
    #: The present level.
    now: Level
    #: Position from which the level before the last further fall held; None without one.
    further_from: int | None = None

    @property
    def change(self) -> tuple[float, float, float]:
        """Present level − level before the fall, in [−1, 1], with its approximate 95 % interval."""
        return self.first.before.change_to(self.now)


def follow_falls(
    value: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    *,
    n: ArrayLike | None = None,
    reported: int | None = None,
    reported_on: int = 0,
) -> list[Fall | None]:
    """Return, for each day, the fall from which the series has not recovered by then.

    The answer for a day depends on that day and earlier ones only. A fall begins when it is
    detected. It ends when a rise of `MINIMUM_AFTER` days is detected after which the interval of
    the level reaches the level before the fall, or when later days leave its evidence under
    `RELEASE`, but not because it lasts. `MINIMUM_BEFORE` days at the new level must pass before
    another fall is detected.

    Args:
        value: (n,) a day's estimate each, in [0, 1]; NaN where there is none.
        low: (n,) lower ends of their 95 % intervals.
        high: (n,) upper ends.
        n: (n,) labels behind each estimate, over 0 where there is one; only their ratios count.
            Default: as many every day.
        reported: change day of a fall that was reported before. Within a week of it `RELEASE` is
            enough to detect one, so that late labels do not withdraw what they hardly change.
        reported_on: the day on which it was reported; the answers for earlier days stay the same.

    Raises:
        MetricInputError: lengths differ, a number lies outside [0, 1], low ≤ value ≤ high does
            not hold, or `n` is not positive.

    >>> value = [0.96] * 9 + [0.7] * 5 + [0.96] * 7
    >>> falls = follow_falls(value, [share - 0.05 for share in value], [0.98] * 9 + [0.75] * 5
    ...                      + [0.98] * 7)
    >>> "".join("." if fall is None else "x" for fall in falls)
    '.........xxxxxxxxx...'
    """
    return list(_Series.from_days(value, low, high, n).falls(reported, reported_on))


@dataclass(frozen=True, kw_only=True)
class _Series:
    """The days with an estimate; levels are the positions on which they begin, in order."""

    #: (n + 1,) days with an estimate before each position.
    seen: NDArray[np.intp]
    #: (m,) positions of these days.
    position: NDArray[np.intp]
    days: DailyLevels
    #: What was computed before, by levels.
    known: dict[tuple[int, ...], dict[Direction, Changes]] = field(default_factory=dict)

    @classmethod
    def from_days(
        cls, value: ArrayLike, low: ArrayLike, high: ArrayLike, n: ArrayLike | None
    ) -> "_Series":
        given = {"value": value, "low": low, "high": high}
        columns = [_shares(name, values) for name, values in given.items()]
        if len({column.size for column in columns}) > 1:
            raise MetricInputError("value, low and high should have the same length")
        there = np.asarray(~np.isnan(np.stack(columns)).any(axis=0), dtype=np.bool_)
        mid, bottom, top = (column[there] for column in columns)
        if not ((bottom <= mid) & (mid <= top)).all():
            raise MetricInputError("value should lie between low and high on every day")
        error = (angle(top) - angle(bottom)) / (2 * NORMAL_QUANTILE)
        position = np.flatnonzero(there)
        return cls(
            seen=np.concatenate([[0], np.cumsum(there)]).astype(np.intp),
            position=position,
            days=DailyLevels.from_days(position, mid, _usual(error**2, _sizes(n, there))),
        )

    def _changes(self, levels: tuple[int, ...], direction: Direction) -> Changes:
        if levels not in self.known:
            self.known[levels] = self.days.changes([int(self.seen[day]) for day in levels])
        return self.known[levels][direction]

    def evidence(self, levels: tuple[int, ...], stop: int, direction: Direction) -> float:
        """Return R of a change after `levels`, from the positions before `stop`."""
        total = self._changes(levels, direction).total[self.seen[stop] - 1]
        return float(np.exp(min(total, _MOST)))

    def change_point(
        self, levels: tuple[int, ...], stop: int, direction: Direction
    ) -> ChangePoint | None:
        """Return the most likely change after `levels`, detected or not.

        None with fewer than 2 estimates since the last level began.
        """
        split = np.arange(self.seen[levels[-1]] + 1, self.seen[stop])
        if not split.size:
            return None
        logs = self._changes(levels, direction).logs[split[-1], : split.size]
        likely = np.exp(logs - logs.max())
        posterior = likely / likely.sum()
        day = int(self.position[split[_least_loss(posterior)]])
        day_low, day_high = self._ends(split, posterior)
        *_, before, after = self.levels((*levels, day), stop)
        return ChangePoint(
            day=day,
            day_low=min(day_low, day),
            day_high=max(day_high, day),
            evidence=self.evidence(levels, stop, direction),
            before=before,
            after=after,
        )

    def _ends(self, split: NDArray[np.intp], posterior: Floats) -> tuple[int, int]:
        """Return the central credible interval of the change day; gaps before it count."""
        below = np.cumsum(posterior)
        tail = (1 - LEVEL) / 2
        low, high = np.searchsorted(below, [tail, 1 - tail])
        earliest = self.position[split[low] - 1] + 1
        return int(earliest), int(self.position[split[min(high, split.size - 1)]])

    def levels(self, levels: tuple[int, ...], stop: int) -> list[Level]:
        """Return the levels that begin on these positions."""
        return self.days.levels([int(self.seen[day]) for day in levels], int(self.seen[stop]))

    def falls(self, reported: int | None, reported_on: int) -> Iterator[Fall | None]:
        """Yield the fall in force at the end of each position."""
        levels: tuple[int, ...] = (0,)
        fall: Fall | None = None
        for stop in range(1, self.seen.size):
            if fall is None and self.seen[stop] - self.seen[levels[-1]] >= MINIMUM_DAYS:
                levels, fall = self._begun(levels, stop, reported if stop > reported_on else None)
            elif fall is not None:
                levels, fall = self._continued(levels, stop, fall)
            yield fall

    def _begun(
        self, levels: tuple[int, ...], stop: int, reported: int | None
    ) -> tuple[tuple[int, ...], Fall | None]:
        """Return the levels, the last of them the reference, and a fall from it if detected."""
        rise = self._detected(levels, stop, "rise")
        if rise is not None and self.seen[stop] - self.seen[rise.day] >= MINIMUM_BEFORE:
            return (*levels, rise.day), None  # a reference of fewer days would show no fall
        if self.evidence(levels, stop, "fall") < (ALARM if reported is None else RELEASE):
            return levels, None  # most days: nothing to look at
        fallen = self.change_point(levels, stop, "fall")
        if fallen is None:
            return levels, None
        known = reported is not None and abs(fallen.day - reported) <= MINIMUM_BEFORE
        if fallen.evidence < (RELEASE if known else ALARM):
            return levels, None
        return levels, self._fall(levels, fallen, fallen.day, stop)

    def _continued(
        self, levels: tuple[int, ...], stop: int, fall: Fall
    ) -> tuple[tuple[int, ...], Fall | None]:
        """Return the levels, the last of them the reference, and what has become of a fall."""
        since, fallen_from = self._refined(levels, stop, fall)
        present = _with(levels, fall.first.day, since)
        rise = self._detected(present, stop, "rise")
        if rise is not None and self.seen[stop] - self.seen[rise.day] < MINIMUM_AFTER:
            rise = None  # a lucky day or two
        if rise is not None:
            levels_now = self.levels(_with(present, rise.day), stop)
            if rise.after.high >= levels_now[len(levels) - 1].value:
                return _with(present, rise.day), None
        if rise is not None:
            since, fallen_from = rise.day, None
        elif further := self._detected(present, stop, "fall"):
            since, fallen_from = further.day, since
        # A fall is still detected without the days after the level moved again.
        if since > fall.first.day and self.evidence(levels, since, "fall") >= ALARM:
            return levels, self._fall(levels, fall.first, since, stop, fallen_from)
        first = self.change_point(levels, stop, "fall")
        if first is None or first.evidence < RELEASE:
            return levels, None
        return levels, self._fall(levels, first, first.day, stop)

    def _refined(self, levels: tuple[int, ...], stop: int, fall: Fall) -> tuple[int, int | None]:
        """Return from where the present level holds, and the level before a further fall to it."""
        if fall.further_from is None:
            return fall.level_since, None
        further = self.change_point(_with(levels, fall.first.day, fall.further_from), stop, "fall")
        if further is None or further.evidence < RELEASE:
            return fall.further_from, None
        return further.day, fall.further_from

    def _detected(
        self, levels: tuple[int, ...], stop: int, direction: Direction
    ) -> ChangePoint | None:
        if self.evidence(levels, stop, direction) < ALARM:
            return None
        return self.change_point(levels, stop, direction)

    def _fall(
        self,
        levels: tuple[int, ...],
        first: ChangePoint,
        since: int,
        stop: int,
        fallen_from: int | None = None,
    ) -> Fall:
        levels_now = self.levels(_with(levels, first.day, since), stop)
        return Fall(
            first=replace(first, before=levels_now[len(levels) - 1]),
            level_since=since,
            now=levels_now[-1],
            further_from=fallen_from,
        )


def _with(levels: tuple[int, ...], *days: int) -> tuple[int, ...]:
    """Return levels with further ones that begin on `days`."""
    return tuple(sorted({*levels, *days}))


def _shares(name: str, values: ArrayLike) -> Floats:
    """Return shares as a float64 array; NaN is a day without an estimate."""
    array = arguments.numbers(name, values)
    if not (np.isnan(array) | ((array >= 0) & (array <= 1))).all():
        raise MetricInputError(f"{name} should lie in [0, 1], or be NaN where there is no estimate")
    return array


def _sizes(n: ArrayLike | None, there: NDArray[np.bool_]) -> Floats:
    """Return the labels behind each estimate that there is."""
    if n is None:
        return np.ones(int(there.sum()))
    sizes = np.asarray(n, dtype=np.float64)
    if sizes.shape != there.shape:
        raise MetricInputError("n should have the length of value")
    if not (np.isfinite(sizes[there]) & (sizes[there] > 0)).all():
        raise MetricInputError("n should be positive on every day with an estimate")
    return sizes[there]


def _usual(variance: Floats, sizes: Floats) -> Floats:
    """Return the usual variance of a day with as many labels, from the days up to each.

    The first `MINIMUM_DAYS` share theirs: nothing is stated before all are there.
    """
    of_one = variance * sizes
    known = [np.median(of_one[: max(day + 1, MINIMUM_DAYS)]) for day in range(variance.size)]
    return np.asarray(known, dtype=np.float64) / sizes


def _least_loss(posterior: Floats) -> int:
    """Return the day with the least expected loss, if being a day off costs `_A_DAY_OFF` less."""
    near = np.convolve(np.pad(posterior, 1), [1 - _A_DAY_OFF, 1, 1 - _A_DAY_OFF], "valid")
    return int(np.argmax(near))
