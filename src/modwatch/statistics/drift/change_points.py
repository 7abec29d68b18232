r"""Changes of level in a series of daily estimates of a share, such as accuracy.

A day's estimate is uncertain by several points; the days before and after a change are many. Each
day is taken to the scale φ = 2·arcsin √p, on which the standard error of a share does not depend on
the share (Anscombe 1948), so that values of 1 and skewed intervals need no exception:

    s_i = (φ(high_i) − φ(low_i)) / (2 · 1.96)      w_i = 1 / (s_i² + SPREAD²)

*Whether* the level changed: for a change before day k, the levels are the weighted means m₀ and m₁
of the days before and from k on, with weights W₀ and W₁ in total, and the evidence is the
generalised likelihood ratio

    Z_k = (m₀ − m₁) / √(1/W₀ + 1/W₁)               Z = max_k Z_k

(Siegmund 1985, *Sequential Analysis*, chapter 3; Lai 1995 for a series that grows by a day).

*When*: with uniform priors of the day, of the level before and of the size of the fall, the last
two integrated out, the posterior of the change day is

    p(k) ∝ √(1/W₀ + 1/W₁) · Φ(Z_k) · exp(Z_k²/2)

The day that is named has the least expected loss, where a day off costs half as much as any other
error. Every day but the first can be it, also those too early for evidence. Here s_i² is replaced
by median_{j ≤ i}(s_j² n_j) / n_i, with n_i labels: the interval of a day that is low by chance is
wider than that of a day that is high by chance, so that weights from a day's own interval let low
days pass for the beginning of the fall.

*How far*: a level is the mean of the shares themselves, with the same weights, and its interval
φ ± 1.96/√W. The mean on the scale φ, or with a day's own weights, is too high near 1: at 100 labels
a day and a share of 0.965, its interval of 30 days holds the truth in 73 %, this one in 95 %.

`THRESHOLD` is calibrated by simulation, `benchmarks/alerts.py`: two series that are tested every
day give less than one false alarm a quarter.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr

from modwatch.common.errors import MetricInputError
from modwatch.statistics.arguments import Floats
from modwatch.statistics.intervals import LEVEL, NORMAL_QUANTILE

#: Evidence from which a change counts as detected; the false alarm rate follows from it.
THRESHOLD = 4.0

#: The same for a further fall within a fall. The level before it may be that of a single day.
FURTHER_THRESHOLD = 4.5

#: Evidence below which a fall that was detected is no longer supported by the later days.
RELEASE = 2.0

#: Standard deviation of the level from day to day beyond sampling error, on the scale φ: half a
#: point at an accuracy of 0.97, one and a half at 0.5.
SPREAD = 0.03

#: Days with an estimate that must precede a change for its evidence to count in full.
MINIMUM_BEFORE = 7

#: Days that must precede it at all: until there are `MINIMUM_BEFORE`, more evidence is needed, in
#: the ratio of `FURTHER_THRESHOLD` to `THRESHOLD`.
MINIMUM_EARLY = 3

#: Days with an estimate at the level after a rise that must be seen before a fall is over.
MINIMUM_AFTER = 5

#: Share of the cost of a wrong change day that remains when it is a day off.
_A_DAY_OFF = 0.5

Direction = Literal["fall", "rise"]

_SIGNS = {"fall": 1.0, "rise": -1.0}


@dataclass(frozen=True, kw_only=True)
class Level:
    """The mean of a share over several days, with its 95 % interval; all in [0, 1]."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class ChangePoint:
    """The most likely change of a series; days are positions in it, from 0."""

    #: First day with an estimate at the new level.
    day: int
    #: 95 % interval of the first day at the new level, both ends included.
    day_low: int
    day_high: int
    #: Z, in standard errors, less where few days precede; from `THRESHOLD` on the change counts as
    #: detected.
    evidence: float
    before: Level
    after: Level
    #: Standard error of after − before.
    error: float

    @property
    def change(self) -> tuple[float, float, float]:
        """After − before, in [−1, 1], with its approximate 95 % interval."""
        value = self.after.value - self.before.value
        margin = NORMAL_QUANTILE * self.error
        return value, max(value - margin, -1.0), min(value + margin, 1.0)


@dataclass(frozen=True, kw_only=True)
class Fall:
    """A fall from which a series has not recovered."""

    #: When it fell first, and from which level: the reference until the level is back.
    first: ChangePoint
    #: Position from which the present level holds: after `first.day` if it changed further.
    level_since: int
    #: The present level.
    now: Level
    #: Standard error of now − first.before.
    error: float
    #: The last further fall to the present level; None without one.
    further: ChangePoint | None = None
    #: Position from which the level before the further fall held.
    further_from: int | None = None

    @property
    def change(self) -> tuple[float, float, float]:
        """Present level − level before the fall, in [−1, 1], with its approximate 95 % interval."""
        return replace(self.first, after=self.now, error=self.error).change


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
class _Sums:
    """Cumulative weights, and weighted estimates; (m + 1,) of m days."""

    weight: Floats
    #: On the scale φ.
    total: Floats
    #: As shares.
    share: Floats

    @classmethod
    def from_shares(cls, share: Floats, variance: Floats) -> "_Sums":
        weight = 1 / (variance + SPREAD**2)
        weighted = (weight, weight * _angle(share), weight * share)
        sums = (np.concatenate([[0.0], np.cumsum(values)]) for values in weighted)
        return cls(**dict(zip(("weight", "total", "share"), sums, strict=True)))

    def evidence(
        self, first: np.intp, split: NDArray[np.intp], last: np.intp
    ) -> tuple[Floats, Floats]:
        """Return Z of a fall on each day of `split`, and 1/W₀ + 1/W₁."""
        before, after = (
            self.weight[split] - self.weight[first],
            self.weight[last] - self.weight[split],
        )
        fallen = (self.total[split] - self.total[first]) / before
        fallen -= (self.total[last] - self.total[split]) / after
        variance = 1 / before + 1 / after
        return fallen / np.sqrt(variance), variance


@dataclass(frozen=True, kw_only=True)
class _Series:
    """The days with an estimate, on the scale φ."""

    #: (n,) days with an estimate up to a position, this one excluded; (n + 1,).
    seen: NDArray[np.intp]
    #: (m,) positions of these days.
    position: NDArray[np.intp]
    #: From the days' own intervals, for evidence.
    own: "_Sums"
    #: From the usual interval of a day with as many labels, for levels and the day of a change.
    usual: "_Sums"

    @classmethod
    def from_days(
        cls, value: ArrayLike, low: ArrayLike, high: ArrayLike, n: ArrayLike | None
    ) -> "_Series":
        columns = [
            _shares(name, values) for name, values in zip(_NAMES, (value, low, high), strict=True)
        ]
        if len({column.size for column in columns}) > 1:
            raise MetricInputError("value, low and high should have the same length")
        there = np.asarray(~np.isnan(np.stack(columns)).any(axis=0), dtype=np.bool_)
        mid, bottom, top = (column[there] for column in columns)
        if not ((bottom <= mid) & (mid <= top)).all():
            raise MetricInputError("value should lie between low and high on every day")
        error = (_angle(top) - _angle(bottom)) / (2 * NORMAL_QUANTILE)
        return cls(
            seen=np.concatenate([[0], np.cumsum(there)]).astype(np.intp),
            position=np.flatnonzero(there),
            own=_Sums.from_shares(mid, error**2),
            usual=_Sums.from_shares(mid, _usual(error**2, _sizes(n, there))),
        )

    def change_point(
        self, start: int, stop: int, direction: Direction, minimum: int = MINIMUM_EARLY
    ) -> ChangePoint | None:
        """Return the most likely change among the positions `start` ≤ … < `stop`, detected or not.

        None with fewer than `minimum` + 1 estimates, or if every split has the other direction.
        """
        first, last = self.seen[start], self.seen[stop]
        evidence = _SIGNS[direction] * self._evidence(start, stop, minimum)
        if not evidence.max(initial=0) > 0:
            return None
        split = np.arange(first + 1, last)
        dated, variance = self.usual.evidence(first, split, last)
        posterior = _posterior(_SIGNS[direction] * dated, variance)
        day = split[_least_loss(posterior)]
        named, (day_low, day_high) = int(self.position[day]), self._days(split, posterior)
        levels = self._level(first, day), self._level(day, last)
        return ChangePoint(
            day=named,
            day_low=min(day_low, named),
            day_high=max(day_high, named),
            evidence=float(evidence.max()),
            before=levels[0][0],
            after=levels[1][0],
            error=float(np.hypot(levels[0][1], levels[1][1])),
        )

    def _evidence(self, start: int, stop: int, minimum: int) -> Floats:
        """Return the evidence of a fall on each day that `minimum` days precede, as it counts."""
        first, last = self.seen[start], self.seen[stop]
        evidence = self.own.evidence(first, np.arange(first + minimum, last), last)[0]
        if minimum == MINIMUM_EARLY:
            evidence[: MINIMUM_BEFORE - MINIMUM_EARLY] *= THRESHOLD / FURTHER_THRESHOLD
        return evidence

    def _days(self, split: NDArray[np.intp], posterior: Floats) -> tuple[int, int]:
        """Return the central credible interval of the change day; gaps before it count."""
        below = np.cumsum(posterior)
        tail = (1 - LEVEL) / 2
        low, high = np.searchsorted(below, [tail, 1 - tail])
        earliest = self.position[split[low] - 1] + 1
        return int(earliest), int(self.position[split[min(high, split.size - 1)]])

    def _level(self, first: int, last: int) -> tuple[Level, float]:
        """Return the mean share of these days, and its standard error."""
        weight = self.usual.weight[last] - self.usual.weight[first]
        mean = (self.usual.share[last] - self.usual.share[first]) / weight
        ends = _angle(np.clip(mean, 0, 1)) + NORMAL_QUANTILE / np.sqrt(weight) * np.array(
            [0.0, -1.0, 1.0]
        )
        value, low, high = (float(end) for end in np.sin(np.clip(ends, 0, np.pi) / 2) ** 2)
        return Level(value=value, low=low, high=high), (high - low) / (2 * NORMAL_QUANTILE)

    def falls(self, reported: int | None, reported_on: int) -> Iterator[Fall | None]:
        """Yield the fall in force at the end of each position."""
        start, fall = 0, None
        for stop in range(1, self.seen.size):
            if fall is None:
                start, fall = self._begun(start, stop, reported if stop > reported_on else None)
            else:
                start, fall = self._continued(start, stop, fall)
            yield fall

    def _begun(self, start: int, stop: int, reported: int | None) -> tuple[int, Fall | None]:
        """Return where the reference starts, and a fall from it if one is detected."""
        evidence = self._evidence(start, stop, MINIMUM_EARLY)
        if np.abs(evidence).max(initial=0) < (THRESHOLD if reported is None else RELEASE):
            return start, None  # most days: nothing to look at
        rise = self._detected(start, stop, "rise")
        if rise is not None and self.seen[stop] - self.seen[rise.day] >= MINIMUM_BEFORE:
            return rise.day, None  # a reference of fewer days would show no fall
        fallen = self.change_point(start, stop, "fall")
        if fallen is None:
            return start, None
        known = reported is not None and abs(fallen.day - reported) <= MINIMUM_BEFORE
        if fallen.evidence < (RELEASE if known else THRESHOLD):
            return start, None
        return start, self._fall(fallen, fallen.day, stop)

    def _continued(self, start: int, stop: int, fall: Fall) -> tuple[int, Fall | None]:
        """Return where the reference starts, and what has become of a fall."""
        since, fallen_from = self._refined(stop, fall)
        rise = self._detected(since, stop, "rise", 1)
        if rise is not None and self.seen[stop] - self.seen[rise.day] < MINIMUM_AFTER:
            rise = None  # a lucky day or two
        if rise is not None and rise.after.high >= fall.first.before.value:
            return rise.day, None
        if rise is not None:
            since, fallen_from = rise.day, None
        elif further := self._detected(since, stop, "fall", 1, FURTHER_THRESHOLD):
            since, fallen_from = further.day, since
        # A fall is still detected without the days after the level moved again.
        if since > fall.first.day and self._detected(start, since, "fall") is not None:
            return start, self._fall(fall.first, since, stop, fallen_from)
        first = self.change_point(start, stop, "fall")
        if first is None or first.evidence < RELEASE:
            return start, None
        return start, self._fall(first, first.day, stop)

    def _refined(self, stop: int, fall: Fall) -> tuple[int, int | None]:
        """Return from where the present level holds, and the level before a further fall to it."""
        if fall.further_from is None:
            return fall.level_since, None
        further = self.change_point(fall.further_from, stop, "fall", 1)
        if further is None or further.evidence < RELEASE:
            return fall.further_from, None
        return further.day, fall.further_from

    def _detected(
        self,
        start: int,
        stop: int,
        direction: Direction,
        minimum: int = MINIMUM_EARLY,
        threshold: float = THRESHOLD,
    ) -> ChangePoint | None:
        evidence = self._evidence(start, stop, minimum)
        if (_SIGNS[direction] * evidence).max(initial=0) < threshold:
            return None
        return self.change_point(start, stop, direction, minimum)

    def _fall(
        self, first: ChangePoint, since: int, stop: int, fallen_from: int | None = None
    ) -> Fall:
        now, error = self._level(self.seen[since], self.seen[stop])
        before = (first.before.high - first.before.low) / (2 * NORMAL_QUANTILE)
        further = None
        if fallen_from is not None:
            further = self.change_point(fallen_from, stop, "fall", 1)
        return Fall(
            first=first,
            level_since=since,
            now=now,
            error=float(np.hypot(before, error)),
            further=further,
            further_from=fallen_from if further else None,
        )


_NAMES = ("value", "low", "high")


def _shares(name: str, values: ArrayLike) -> Floats:
    """Return shares as a float64 array; NaN is a day without an estimate."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as exc:
        raise MetricInputError(f"{name} should be numeric; pass an array of floats") from exc
    if array.ndim != 1:
        raise MetricInputError(f"{name} should be a 1d array, got an array of shape {array.shape}")
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
    """Return the usual variance of a day with as many labels, from the days up to each."""
    of_one = variance * sizes
    known = [np.median(of_one[: max(day, MINIMUM_BEFORE) + 1]) for day in range(variance.size)]
    return np.asarray(known, dtype=np.float64) / sizes


def _posterior(evidence: Floats, variance: Floats) -> Floats:
    """Return the probability of each day to be the first after the change."""
    density = np.log(variance) / 2 + log_ndtr(evidence) + evidence**2 / 2
    likely = np.exp(density - density.max())
    return np.asarray(likely / likely.sum())


def _least_loss(posterior: Floats) -> int:
    """Return the day with the least expected loss, if being a day off costs `_A_DAY_OFF` less."""
    near = np.convolve(np.pad(posterior, 1), [1 - _A_DAY_OFF, 1, 1 - _A_DAY_OFF], "valid")
    return int(np.argmax(near))


def _angle(share: Floats) -> Floats:
    return np.asarray(2 * np.arcsin(np.sqrt(share)), dtype=np.float64)
