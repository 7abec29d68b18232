"""Confidence intervals with nominal coverage for few labels and fewer events.

Totals of 0/1 events get the mid-P interval of Fay & Kim (2017) for weighted sums, with the beta
distribution in place of the gamma: for equal weights this is the mid-P Clopper–Pearson interval. It
has width even if no event was observed. `live.areas` builds on the same distributions.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from modwatch.statistics.arguments import Floats

#: Two-sided level of every interval.
LEVEL = 0.95

#: Standard normal quantile of that level, 1.96.
NORMAL_QUANTILE = float(special.ndtri((1 + LEVEL) / 2))

_POINTS = (np.arange(1000) + 0.5) / 1000

#: Size of the sample of a sum, in units of the larger part.
_TIMES = 4


@dataclass(frozen=True, kw_only=True)
class PartialTotal:
    """A total of event mass over a population, observed in part.

    Total = seen + span × rate; the rate is estimated by Σ share·event over the m labelled rows.
    """

    #: Event mass of the observed rows.
    seen: float
    #: Mass of the rows that were not observed.
    span: float
    #: (m,) event mass in [0, 1] of each row.
    event: Floats
    #: (m,) part of the unobserved mass that each row represents; sums to 1, or 0 if span is 0.
    share: Floats
    #: (m,) share × standard error per event, ≥ share: the unobserved part is finite.
    error: Floats
    #: (m,) or one for all: stratum of each row. Only variation within strata is error.
    stratum: NDArray[np.integer] | int = 0
    #: (m,) or one for all: event mass of an unobserved event in place of the row.
    reach: Floats | float = 1.0
    #: Unobserved mass that no row represents: between none and all of it may be events.
    unknown: float = 0.0
    #: Event rate assumed for the unknown mass.
    supposed: float = 0.0
    #: Factor ≥ 1 of the standard error: events that are inferred from others vary with these.
    spread: float = 1.0

    @property
    def value(self) -> float:
        """Estimated total."""
        estimated = self.span * float(np.dot(self.share, self.event))
        return self.seen + estimated + self.supposed * self.unknown

    @property
    def variance(self) -> float:
        """Variance of the total."""
        rate = float(np.dot(self.share, self.event))
        return (self.spread * self.span) ** 2 * self._variance(self.event) * max(1 - rate, 0.0)

    def confidence(self) -> Floats:
        """Return the mid-P confidence distribution of the total, as an ascending sample.

        Its quantiles at 2.5 % and 97.5 % are the interval. For functions of independent totals,
        samples are combined at random (Fay, Proschan & Brittain 2015).

        >>> third = np.full(3, 1 / 3)
        >>> none = PartialTotal(seen=0, span=1000, event=np.zeros(3), share=third, error=third)
        >>> abs(interval(none.confidence())[1] / 1000 - (1 - 0.05 ** (1 / 3))) < 2e-3
        True
        """
        rate = float(np.dot(self.share, self.event))
        # The rarer outcome carries the information: three errors in a thousand are three events.
        if rate <= 0.5:
            lower, upper = self._bounds(self.event)
        else:
            upper, lower = (1 - points[::-1] for points in self._bounds(1 - self.event))
        lower, upper = self.span * lower, self.span * upper
        if self._whole:  # of two unobserved comments none or both may be events
            lower, upper = np.floor(lower), np.ceil(upper)
        points = np.concatenate([lower, np.minimum(upper, self.span) + self.unknown])
        if self.spread > 1:
            middle = self.value - self.seen
            points = middle + self.spread * (points - middle)
            points = np.clip(points, 0, self.span + self.unknown)
        return np.sort(self.seen + points)

    @cached_property
    def _whole(self) -> bool:
        """Whether events are whole comments."""
        return bool(((self.event == 0) | (self.event == 1)).all() and np.all(self.reach == 1))

    def _bounds(self, event: Floats) -> tuple[Floats, Floats]:
        """Return the lower and the upper confidence distribution of the rate of an event.

        The upper one assumes one event more than observed, with weight Σw³/Σw², which lies between
        the mean weight (Tiwari 2006) and the largest (Fay & Feuer 1997).
        """
        if self.span == 0:
            return np.zeros(_POINTS.size), np.zeros(_POINTS.size)
        rate, variance, one = float(np.dot(self.share, event)), self._variance(event), self._one
        return _beta_points(rate, variance), _beta_points(rate + one, variance + one**2)

    @property
    def one_more(self) -> float:
        """Mass of the additional event that the upper end assumes."""
        return self.span * self._one

    @cached_property
    def _one(self) -> float:
        possible = self.error * self.reach
        squares = float(np.dot(possible, possible))
        return float((possible**3).sum() / squares) if squares else 0.0

    def _variance(self, event: Floats) -> float:
        """Return the variance of the rate of rare events, over 1−rate.

        In a stratum full of events Σ(error·event)² is too large; only the spread around the
        stratum's mean counts.
        """
        squares = (self.error * event) ** 2
        rate, whole = float(np.dot(self.share, event)), float(squares.sum())
        if not whole or rate >= 1:
            return whole
        stratum = np.broadcast_to(self.stratum, event.shape)
        rows, mass, first, second, parts = (
            np.bincount(stratum, weights=weights)
            for weights in (
                self.share > 0, self.share, self.share * event, self.share * event**2, squares
            )
        )  # fmt: skip
        some = second > 0
        explained = first[some] ** 2 / (mass * second)[some]
        rows = rows[some]
        left = np.clip((1 - explained) * rows / np.maximum(rows - 1, 1), 1 / (rows + 2), 1)
        return min(whole, float(np.dot(left, parts[some])) / (1 - rate))


@lru_cache(maxsize=512)  # metrics of one sample share totals
def _beta_points(rate: float, variance: float) -> Floats:
    """Return quantiles of the beta distribution of rate/weight events in 1/weight trials."""
    if rate < np.finfo(float).tiny:  # quotients of smaller numbers are 0
        return np.zeros(_POINTS.size)
    weight = variance / rate
    events, trials = rate / weight, 1 / weight
    if trials - events + 1 <= 0:
        return np.ones(_POINTS.size)
    points: Floats = special.betaincinv(events, trials - events + 1, _POINTS)
    points.flags.writeable = False
    return points


def effective_number(weight: Floats) -> float:
    """Return how many equal weights say as much as these (n,), (Σw)²/Σw² (Kish 1965); 0: none.

    >>> effective_number(np.array([3.0, 3.0, 0.0])), effective_number(np.zeros(2))
    (2.0, 0.0)
    """
    return float(weight.sum() ** 2 / (weight**2).sum()) if weight.any() else 0.0


def mid_p(events: float, trials: float) -> tuple[float, float]:
    """Return the 95 % mid-P Clopper–Pearson interval of a proportion; counts may be fractional."""
    return interval(share_confidence(events, trials))


def share_confidence(events: float, trials: float) -> Floats:
    """Return the mid-P confidence distribution of a proportion, as an ascending sample.

    Half of it is the lower, half the upper Clopper–Pearson distribution.

    >>> float(share_confidence(1, 1).max())
    1.0
    """
    one = 1 / trials
    points = [_beta_points(k * one, k * one**2) for k in (events, events + 1)]
    return np.sort(np.concatenate(points))


def convolved(confidence: Floats, deviation: Floats, generator: np.random.Generator) -> Floats:
    """Return a sample of the sum of two independent quantities, given as samples.

    >>> float(convolved(np.array([1.0]), np.array([0.5, 0.5]), np.random.default_rng(0)).max())
    1.5
    """
    size = _TIMES * max(confidence.size, deviation.size)
    one, other = (
        generator.permutation(np.resize(values, size)) for values in (confidence, deviation)
    )
    return np.asarray(one + other)


def interval(confidence: Floats) -> tuple[float, float]:
    """Return the central 95 % interval of a confidence distribution given as a sample."""
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(confidence, [tail, 1 - tail])
    return float(low), float(high)


def wilson(part: int, whole: int) -> tuple[float, float]:
    """Return the 95 % score interval of a share (Wilson 1927); it contains part/whole."""
    value, square = part / whole, NORMAL_QUANTILE**2
    centre = (part + square / 2) / (whole + square)
    half = NORMAL_QUANTILE * math.sqrt(whole * value * (1 - value) + square / 4) / (whole + square)
    low, high = min(max(centre - half, 0.0), value), max(min(centre + half, 1.0), value)
    # At the ends the bound is exact, but for rounding.
    return 0.0 if part == 0 else low, 1.0 if part == whole else high


def difference_interval(
    one: tuple[float, float, float], other: tuple[float, float, float]
) -> tuple[float, float, float]:
    """Return the difference of two independent estimates (value, low, high), and its interval.

    By the method of variance estimates recovery (Zou & Donner 2008, *Construction of confidence
    limits about effect measures*), which keeps the asymmetry of both intervals; of shares with
    Wilson's interval this is method 10 of Newcombe (1998).

    >>> [round(end, 3) for end in difference_interval((0.9, 0.86, 0.93), (0.7, 0.62, 0.77))]
    [0.2, 0.119, 0.285]
    """
    value = one[0] - other[0]
    below = math.hypot(one[0] - one[1], other[2] - other[0])
    above = math.hypot(one[2] - one[0], other[0] - other[1])
    return value, value - below, value + above


def clopper_pearson(
    events: ArrayLike, trials: ArrayLike, tails: tuple[float, float] = (0.025, 0.025)
) -> tuple[Floats, Floats]:
    """Return the exact intervals (…) of binomial proportions; [0, 1] without trials.

    `tails` are the probabilities beyond the lower and the upper end; for a tail of 0 the end is 0
    or 1. Counts may be fractional, such as an effective sample size.

    >>> low, high = clopper_pearson([0, 2], [10, 4])
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.068], [0.308, 0.932])
    """
    events, trials = np.asarray(events, np.float64), np.asarray(trials, np.float64)
    others = trials - events
    some, more = (events > 0) & (tails[0] > 0), (others > 0) & (tails[1] > 0)
    low = special.betaincinv(np.where(some, events, 1), others + 1, tails[0])
    high = special.betaincinv(events + 1, np.where(more, others, 1), 1 - tails[1])
    return np.where(some, low, 0.0), np.where(more, high, 1.0)
