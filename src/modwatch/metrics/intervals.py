"""Intervals that stay honest when few labels, and fewer errors, were seen.

Totals of 0/1 events get the mid-P interval of Fay & Kim (2017) for weighted sums, with the beta
distribution in place of the gamma: for equal weights it is the mid-P Clopper–Pearson interval. It
has width even when no event was seen. Shares of two totals, and areas under curves as means of the
credit of each positive, come from the same distributions.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from modwatch.metrics.inputs import Floats

#: Two-sided level of every interval.
LEVEL = 0.95

_POINTS = (np.arange(1000) + 0.5) / 1000


@dataclass(frozen=True, kw_only=True)
class PartialTotal:
    """A total of event mass over a population of which some rows were seen.

    Total = seen + span × rate, the rate being estimated by Σ share·event over the m rows.
    """

    #: Event mass of the rows that were seen.
    seen: float
    #: Mass of the rows that were not seen.
    span: float
    #: (m,) event mass in [0, 1] of each row.
    event: Floats
    #: (m,) part of the unseen mass that each row stands for; sums to 1, or all 0 when span is 0.
    share: Floats
    #: (m,) share × standard error per event, ≥ share: prediction of a finite unseen part.
    error: Floats
    #: (m,) or one for all: event mass that an event not yet seen would have in the row's place.
    reach: Floats | float = 1.0
    #: Unseen mass that no row stands for: anything between none and all of it may be events.
    unknown: float = 0.0
    #: Event rate that the value supposes for the unknown mass.
    supposed: float = 0.0

    @property
    def value(self) -> float:
        """Estimated total.

        >>> half = np.array([0.5, 0.5])
        >>> PartialTotal(seen=1, span=4, event=np.array([1.0, 0.0]), share=half, error=half).value
        3.0
        """
        estimated = self.span * float(np.dot(self.share, self.event))
        return self.seen + estimated + self.supposed * self.unknown

    def confidence(self) -> Floats:
        """Return the mid-P confidence distribution of the total, as a rising sample.

        Its quantiles at 2.5 % and 97.5 % are the interval; functions of independent totals get
        theirs from samples put together at random (Fay, Proschan & Brittain 2015).

        >>> third = np.full(3, 1 / 3)
        >>> none = PartialTotal(seen=0, span=1000, event=np.zeros(3), share=third, error=third)
        >>> abs(interval(none.confidence())[1] / 1000 - (1 - 0.05 ** (1 / 3))) < 2e-3
        True
        """
        rate = float(np.dot(self.share, self.event))
        # The rarer side decides how much was seen: three errors in a thousand are three events.
        if rate <= 0.5:
            lower, upper = self._bounds(self.event)
        else:
            upper, lower = (1 - points[::-1] for points in self._bounds(1 - self.event))
        # Unseen events are whole; of two unseen comments none or both may be events.
        lower, upper = np.floor(self.span * lower), np.ceil(self.span * upper)
        points = np.concatenate([lower, np.minimum(upper, self.span) + self.unknown])
        return np.sort(self.seen + points)

    def _bounds(self, event: Floats) -> tuple[Floats, Floats]:
        """Return the lower and the upper confidence distribution of the rate of an event.

        The upper one supposes one event more than was seen, of the weight that makes variance:
        Σw³/Σw² lies between the mean weight (Tiwari 2006) and the largest (Fay & Feuer 1997).
        """
        if self.span == 0:
            return np.zeros(_POINTS.size), np.zeros(_POINTS.size)
        rate = float(np.dot(self.share, event))
        variance = float(np.dot(self.error**2, event**2))
        possible = self.error * self.reach
        squares = float(np.dot(possible, possible))
        one = float((possible**3).sum() / squares) if squares else 0.0
        return _beta_points(rate, variance), _beta_points(rate + one, variance + one**2)


def _beta_points(rate: float, variance: float) -> Floats:
    """Return quantiles of the beta distribution that stands for rate/weight events of 1/weight."""
    if rate <= 0:
        return np.zeros(_POINTS.size)
    weight = variance / rate
    events, trials = rate / weight, 1 / weight
    if trials - events + 1 <= 0:
        return np.ones(_POINTS.size)
    return np.asarray(special.betaincinv(events, trials - events + 1, _POINTS), dtype=np.float64)


def interval(confidence: Floats) -> tuple[float, float]:
    """Return the central 95 % of a confidence distribution given as a sample.

    >>> [round(bound, 6) for bound in interval(np.arange(41.0))]
    [1.0, 39.0]
    """
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(confidence, [tail, 1 - tail])
    return float(low), float(high)


def share_of(part: Floats, rest: Floats, generator: np.random.Generator) -> Floats:
    """Return the confidence distribution of part/(part+rest) from those of the two.

    >>> share_of(np.ones(4), np.ones(4), np.random.default_rng(0)).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    other = generator.permutation(rest)
    whole = part + other
    # Nothing on either side says nothing about the share: half of such pairs count as 0, half as 1.
    blank = (np.arange(part.size) % 2).astype(np.float64)
    np.divide(part, whole, out=blank, where=whole > 0)
    return blank


def add_in_quadrature(
    value: float, first: tuple[float, float], second: tuple[float, float]
) -> tuple[float, float]:
    """Return the interval of a value in [0, 1] that varies for two independent reasons.

    Distances from the value to the two intervals' ends add as squares (Newcombe 1998).

    >>> low, high = add_in_quadrature(0.5, (0.2, 0.6), (0.1, 0.5))
    >>> round(low, 6), round(high, 6)
    (0.0, 0.6)
    """
    low = math.hypot(max(value - first[0], 0.0), max(value - second[0], 0.0))
    high = math.hypot(max(first[1] - value, 0.0), max(second[1] - value, 0.0))
    return max(value - low, 0.0), min(value + high, 1.0)
