"""Shares of positives, when how many there are is itself estimated: recall, effectiveness, areas.

Each positive has a credit in [0, 1]; the share is their mean credit. What one more positive would
do to it is its influence: those that raise the share and those that lower it are counted apart,
since their numbers vary independently, and each count has the interval of `metrics.intervals`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from modwatch.metrics.inputs import Floats
from modwatch.metrics.intervals import PartialTotal, interval


@dataclass(frozen=True, kw_only=True)
class Side:
    """Positives of which one more would move the share the same way."""

    #: Total of the influence of the side's positives, each in [0, 1].
    total: PartialTotal
    #: (m,) credit of each row, were it positive.
    credit: Floats
    #: (m,) mass of positives of the side that was seen.
    seen: Floats

    @property
    def _unseen(self) -> Floats:
        """(m,) estimated mass of positives of the side that was not seen."""
        return self.total.span * self.total.share * (self.total.event > 0)

    @property
    def masses(self) -> tuple[float, float]:
        """Mass of positives not seen, and of the credit they have."""
        return float(self._unseen.sum()), float(np.dot(self._unseen, self.credit))

    @property
    def known(self) -> tuple[float, float]:
        """Mass of positives seen, and of the credit they have."""
        return float(self.seen.sum()), float(np.dot(self.seen, self.credit))

    @property
    def relative_variance(self) -> float:
        """Variance of the influence not seen, over its square; 0 when none is estimated."""
        estimated = self.total.value - self.total.seen
        return self.total.variance / estimated**2 if estimated > 0 else 0.0

    def draws(self) -> tuple[Floats, Floats]:
        """Return the confidence distribution of the mass of positives, and of their credit.

        More positives than were seen are in part like those, in part like any row of the side:
        the one event more that intervals suppose may be anywhere.
        """
        unseen = self.total.confidence() - self.total.seen
        (sure, sure_won), (whole, won) = self.known, self.masses
        estimated = self.total.value - self.total.seen
        like, one = unseen, np.zeros(unseen.size)
        if self.total.span <= 0:  # no row stands for it: each comment may be positive or not
            like, one = one, unseen
        elif self.total.one_more > 0:
            part = self.total.one_more / (estimated + self.total.one_more)
            one = np.where(unseen > estimated, part * unseen, 0.0)
            like = unseen - one
        times = like / estimated if estimated > 0 else np.zeros(unseen.size)
        mass, credit = self._typical()
        return sure + times * whole + one * mass, sure_won + times * won + one * mass * credit

    def _typical(self) -> tuple[float, float]:
        """Return mass per influence and credit of a positive in the place of any row."""
        if self.total.span <= 0:
            return 1.0, float(self.credit.mean()) if self.credit.size else 0.0
        reach = np.broadcast_to(self.total.reach, self.credit.shape)
        place = self.total.share * reach
        influence = float(np.dot(place, reach))
        if influence <= 0:
            return 0.0, 0.0
        return float(place.sum()) / influence, float(np.dot(place, self.credit) / place.sum())


def mean_credit(
    sides: Sequence[Side], generator: np.random.Generator, *, value: float | None = None
) -> tuple[float, tuple[float, float]] | None:
    """Return the mean credit of all positives, with its 95 % interval; None without positives.

    The quotient of two estimates is biased when few were seen; the result is free of that to the
    second order. `value` is the mean where credits say only how it changes.
    """
    parts = [(side.known, side.masses, side.relative_variance) for side in sides]
    mass = sum(known[0] + masses[0] for known, masses, _ in parts)
    if mass <= 0:
        return None
    plain = sum(known[1] + masses[1] for known, masses, _ in parts) / mass
    # Second derivative of the share in each side's mass, times half the mass's variance.
    bias = sum(
        -whole * (won - plain * whole) / mass**2 * variance for _, (whole, won), variance in parts
    )
    shift = 0.0 if value is None else value - plain
    corrected = float(np.clip(plain + shift - bias, 0.0, 1.0))
    low, high = interval(np.clip(_quotients(sides, generator) + shift, 0.0, 1.0))
    return corrected, (min(low, corrected), max(high, corrected))


def _quotients(sides: Sequence[Side], generator: np.random.Generator) -> Floats:
    """Return the confidence distribution of the share."""
    mass, won = np.zeros(1), np.zeros(1)
    for side in sides:
        drawn, credit = side.draws()
        order = generator.permutation(drawn.size)
        mass, won = mass + drawn[order], won + credit[order]
    # No positive at all says nothing about their share: half of such draws count as 0, half as 1.
    blank = (np.arange(mass.size) % 2).astype(np.float64)
    np.divide(won, mass, out=blank, where=mass > 0)
    return blank
