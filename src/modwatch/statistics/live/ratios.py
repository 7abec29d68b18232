"""Ratios whose denominator is estimated too: recall, Review Effectiveness, areas.

Each positive has a credit in [0, 1]; the ratio is their mean credit. The influence of a positive is
the effect of one more in its place. Positives that raise the ratio and those that lower it are
counted separately, since their numbers vary independently, and each count has the interval of
`metrics.intervals`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from modwatch.statistics.inputs import Floats
from modwatch.statistics.intervals import PartialTotal, convolved, interval


@dataclass(frozen=True, kw_only=True)
class Side:
    """Positives whose influence on the ratio has the same sign."""

    #: Total of the influence of the side's positives, each in [0, 1].
    total: PartialTotal
    #: (m,) whether each row is a positive of this side, or the probability of it.
    positive: Floats
    #: (m,) credit of each row if it is positive.
    credit: Floats
    #: (m,) observed mass of the side's positives.
    seen: Floats

    @property
    def _unseen(self) -> Floats:
        """(m,) estimated unobserved mass of the side's positives."""
        return self.total.span * self.total.share * self.positive

    @property
    def masses(self) -> tuple[float, float]:
        """Mass of unobserved positives, and of their credit."""
        return float(self._unseen.sum()), float(np.dot(self._unseen, self.credit))

    @property
    def known(self) -> tuple[float, float]:
        """Mass of observed positives, and of their credit."""
        return float(self.seen.sum()), float(np.dot(self.seen, self.credit))

    @property
    def relative_variance(self) -> float:
        """Variance of the unobserved influence over its square; 0 if none is estimated."""
        estimated = self.total.value - self.total.seen
        return self.total.variance / estimated**2 if estimated > 0 else 0.0

    def draws(self) -> tuple[Floats, Floats]:
        """Return the confidence distribution of the mass of positives, and of their credit.

        Positives beyond those observed are in part like these, in part like any row of the side:
        the additional event that intervals assume may be anywhere.
        """
        unseen = self.total.confidence() - self.total.seen
        (sure, sure_won), (whole, won) = self.known, self.masses
        estimated = self.total.value - self.total.seen
        like, one = unseen, np.zeros(unseen.size)
        if self.total.span <= 0:  # no row represents it: each comment may be positive or not
            like, one = one, unseen
        elif self.total.one_more > 0:
            part = self.total.one_more / (estimated + self.total.one_more)
            one = np.where(unseen > estimated, part * unseen, 0.0)
            like = unseen - one
        times = like / estimated if estimated > 0 else np.zeros(unseen.size)
        mass, credit = self._typical()
        return sure + times * whole + one * mass, sure_won + times * won + one * mass * credit

    def _typical(self) -> tuple[float, float]:
        """Return mass per influence, and credit, of a positive in place of any row."""
        if self.total.span <= 0:
            return 1.0, float(self.credit.mean()) if self.credit.size else 0.0
        reach = np.broadcast_to(self.total.reach, self.credit.shape)
        place = self.total.share * reach
        influence = float(np.dot(place, reach))
        if influence <= 0:
            return 0.0, 0.0
        return float(place.sum()) / influence, float(np.dot(place, self.credit) / place.sum())


def mean_credit(
    sides: Sequence[Side],
    generator: np.random.Generator,
    *,
    value: float | None = None,
    deviation: Floats | None = None,
) -> tuple[float, tuple[float, float]] | None:
    """Return the mean credit of all positives with its 95 % interval; None without positives.

    The quotient of two estimates from few events is biased; the result is unbiased to second order.
    `value` is the mean if credits only describe how it changes; `deviation` a sample of a further
    error of the mean, such as that of uncertain labels.
    """
    parts = [(side.known, side.masses, side.relative_variance) for side in sides]
    mass = sum(known[0] + masses[0] for known, masses, _ in parts)
    if mass <= 0:
        return None
    plain = sum(known[1] + masses[1] for known, masses, _ in parts) / mass
    # Second derivative of the ratio in each side's mass, times half the mass's variance.
    bias = sum(
        -whole * (won - plain * whole) / mass**2 * variance for _, (whole, won), variance in parts
    )
    shift = 0.0 if value is None else value - plain
    corrected = float(np.clip(plain + shift - bias, 0.0, 1.0))
    likely = _quotients(sides, generator) + shift
    if deviation is not None:
        likely = convolved(likely, deviation, generator)
    low, high = interval(np.clip(likely, 0.0, 1.0))
    return corrected, (min(low, corrected), max(high, corrected))


def _quotients(sides: Sequence[Side], generator: np.random.Generator) -> Floats:
    """Return the confidence distribution of the ratio."""
    mass, won = np.zeros(1), np.zeros(1)
    for side in sides:
        drawn, credit = side.draws()
        order = generator.permutation(drawn.size)
        mass, won = mass + drawn[order], won + credit[order]
    # Without positives the ratio is undefined: half of such draws count as 0, half as 1.
    blank = (np.arange(mass.size) % 2).astype(np.float64)
    np.divide(won, mass, out=blank, where=mass > 0)
    return blank
