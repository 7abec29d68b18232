"""Ratios of a weighted sample with an estimated denominator: recall, and areas under curves.

Each positive has a credit in [0, 1]; the ratio is their mean credit. The influence of a positive is
the effect of one more in its place. Positives that raise the ratio and those that lower it are
counted separately, since their numbers vary independently.

Each area is the mean credit of the positives: the share of negatives below (ROC), or the mean
precision over the recall that the positive adds (precision-recall). The scores of all comments are
known, and so is the rank of a positive among them: negatives are all comments less the positives,
and the areas depend on the estimated positives alone. With all labels known they are exact.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from modwatch.statistics.arguments import Floats
from modwatch.statistics.collaboration.ranking import davis_goadrich
from modwatch.statistics.intervals import PartialTotal, convolved, interval
from modwatch.statistics.live.population import Domain, Ranks
from modwatch.statistics.live.sample import Sample


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


#: A value with its interval.
Area = tuple[float, tuple[float, float]]


#: Returns a sample of the error of a statistic, given its derivative (m,) in the positives, and the
#: positives (m,) that it is a mean of.
Deviations = Callable[[Floats, Floats], Floats]


class Areas:
    """The areas of one score (m,) against one label (m,) of a sample."""

    def __init__(
        self,
        sample: Sample,
        positive: Floats,
        score: Floats,
        *,
        seed: int,
        deviations: Deviations | None = None,
        evident: Floats | None = None,
    ) -> None:
        """`positive` are probabilities if labels are uncertain; `deviations` their errors."""
        self._sample = sample
        self._evident = evident
        self._positive = positive
        self._deviations = deviations
        self._rows = _Rows(score)
        self._seed = seed

    def at(self, reviewed: Domain, ranks: Ranks) -> tuple[Area, Area] | None:
        """Return AUROC and AUPRC with reviewed comments always correct; None with one class only.

        `ranks` are by the score, among the comments outside `reviewed`.
        """
        found = self._worths(reviewed, ranks)
        if found is None:
            return None
        roc, precision, positives = found
        kept = self._sample.without(reviewed)
        areas = (self._area(worth, positives, reviewed, kept) for worth in (roc, precision))
        one, other = areas
        return (one, other) if one and other else None

    def mean(self, credit: Floats, *, deviation: Floats | None) -> Area | None:
        """Return the mean of a credit (m,) in [0, 1] over the positives; None without any.

        `deviation` is a sample of the error of the mean that the credits themselves cause.
        """
        everything = self._sample.everything()
        mass = self._positive * self._sample.represented
        positives = float(mass.sum())
        if positives <= 0:
            return None
        area = float(np.dot(mass, credit)) / positives
        worth = _Worth(area=area, influence=credit - area, sure_influence=0.0)
        nothing = self._sample.without(everything)
        return self._area(worth, positives, nothing, everything, deviation)

    def effects(self, reviewed: Domain, ranks: Ranks) -> tuple[Floats, Floats] | None:
        """Return the effect (m,) of one more positive in place of each row on AUROC and AUPRC.

        None with one class only.
        """
        found = self._worths(reviewed, ranks)
        if found is None:
            return None
        *worths, positives = found
        one, other = (
            (reviewed.part * worth.sure_influence + (1 - reviewed.part) * worth.influence)
            / positives
            for worth in worths
        )
        return one, other

    def _worths(self, reviewed: Domain, ranks: Ranks) -> "tuple[_Worth, _Worth, float] | None":
        """Return both areas with their influences, and the number of positives."""
        kept = self._sample.without(reviewed)
        mass = self._sample.masses(kept)
        sure = float(np.dot(self._positive, self._sample.masses(reviewed)))
        true, false = (
            self._rows.ordered(mass * side) for side in (self._positive, 1 - self._positive)
        )
        spread = _Spread(true=true, false=false, sure=sure)
        if not 0 < spread.positives < self._sample.size:
            return None
        roc, precision = _roc(spread, ranks, reviewed.mass), _precision(spread, self._rows)
        return roc, precision, spread.positives

    def _area(
        self,
        worth: "_Worth",
        positives: float,
        reviewed: Domain,
        kept: Domain,
        deviation: Floats | None = None,
    ) -> Area | None:
        """Return the mean credit of all `positives`; that of reviewed ones is 1."""
        # To first order only the influence of a positive matters, not its own credit.
        ones = np.ones(worth.influence.size)
        credit = worth.area + worth.influence
        sides = [
            self._side(reviewed, ones * (worth.area + worth.sure_influence), ones),
            self._side(kept, credit, np.maximum(worth.influence, 0)),
            self._side(kept, credit, np.maximum(-worth.influence, 0)),
        ]
        neutral = (worth.influence == 0).astype(np.float64)
        if neutral.any():  # all of them if scores are constant
            sides.append(self._side(kept, credit, neutral))
        if self._deviations:
            effect = self._sample.masses(kept) * worth.influence
            effect = effect + self._sample.masses(reviewed) * worth.sure_influence
            of_labels = self._deviations(effect / positives, self._sample.represented)
            if deviation is not None:
                of_labels = convolved(of_labels, deviation, np.random.default_rng(self._seed))
            deviation = of_labels
        generator = np.random.default_rng(self._seed)
        return mean_credit(sides, generator, value=worth.area, deviation=deviation)

    def _side(self, domain: Domain, credit: Floats, pull: Floats) -> Side:
        """Return the positives of the domain with a `pull` (m,) on the area."""
        reach = pull / max(float(pull.max(initial=0.0)), np.finfo(np.float64).tiny)
        return Side(
            total=self._sample.total(
                self._positive * reach,
                domain,
                reach=reach,
                evident=None if self._evident is None else self._evident * reach,
            ),
            positive=self._positive * (reach > 0),
            credit=credit,
            seen=self._positive * self._sample.observed(domain) * (reach > 0),
        )


@dataclass(frozen=True, kw_only=True)
class _Ordered:
    """A mass by score; arrays are (m,)."""

    #: Comments that each row represents.
    mass: Floats
    above: Floats
    below: Floats
    tied: Floats


class _Rows:
    """The rows (m,) by ascending score."""

    def __init__(self, score: Floats) -> None:
        self._order = np.argsort(score, kind="stable")
        rising = score[self._order]
        self._left, self._right = (np.searchsorted(rising, score, end) for end in ("left", "right"))

    def ordered(self, mass: Floats) -> _Ordered:
        """Return the mass (m,) above, below and tied with each row."""
        total = np.append(0.0, np.cumsum(mass[self._order]))
        below = total[self._left]
        tied = total[self._right] - below
        above = np.maximum(float(mass.sum()) - below - tied, 0.0)
        return _Ordered(mass=mass, above=above, below=below, tied=tied)


@dataclass(frozen=True, kw_only=True)
class _Spread:
    """Distribution of unreviewed positives and negatives over the score."""

    true: _Ordered
    false: _Ordered
    #: Reviewed positives: they rank above all others.
    sure: float

    @property
    def positives(self) -> float:
        """All positives."""
        return self.sure + float(self.true.mass.sum())

    def mean(self, credit: Floats) -> float:
        """Return the mean credit of the positives; 1 for the reviewed."""
        return (self.sure + float(np.dot(self.true.mass, credit))) / self.positives


@dataclass(frozen=True, kw_only=True)
class _Worth:
    """An area, and the effect of one more positive on it."""

    #: In [0, 1].
    area: float
    #: (m,) derivative of the area in the mass of such positives, times all positives.
    influence: Floats
    #: The same for a reviewed positive.
    sure_influence: float


def _roc(spread: _Spread, ranks: Ranks, reviewed: float) -> _Worth:
    """Return the share of negatives below each row: the comments below, less positives."""
    true = spread.true
    # A row represents many comments around it, but only so many have exactly its score.
    tied = np.minimum(true.tied, ranks.tied)
    negatives = reviewed + ranks.total - spread.positives
    lower = np.maximum(ranks.below - true.below, 0.0) + (ranks.tied - tied) / 2
    credit = np.clip((max(reviewed - spread.sure, 0.0) + lower) / negatives, 0.0, 1.0)
    # One more positive is one negative less below reviewed positives and those above it.
    lost = (spread.sure + true.above + tied / 2) / negatives
    area, grown = spread.mean(credit), 1 - spread.positives / negatives
    return _Worth(
        area=area,
        influence=credit - lost - area * grown,
        sure_influence=(1 - area) * grown,
    )


def _precision(spread: _Spread, rows: _Rows) -> _Worth:
    """Return the mean precision over the recall that each row adds."""
    true = spread.sure + spread.true.above
    alone = spread.true.tied <= 0  # no positive at this score: the precision just above it
    gain = np.where(alone, 1.0, spread.true.tied)
    inside = np.where(alone, 0.0, spread.false.tied)
    gained = davis_goadrich(gain, true, spread.false.above, inside)
    credit = np.clip(gained / gain, 0.0, 1.0)
    # One more positive also makes every lower threshold more precise.
    flagged = np.maximum(true + spread.false.above + (gain + inside) / 2, 1.0)
    step = rows.ordered(spread.true.mass / flagged)
    area = spread.mean(credit)
    return _Worth(
        area=area,
        influence=credit + step.below + step.tied / 2 - area,
        sure_influence=1 + float(np.dot(step.mass, 1 - credit)) - area,
    )
