"""Labelled comments of one or more days, with the weights that let them stand for all comments."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from modwatch.metrics.inputs import Floats
from modwatch.metrics.intervals import PartialTotal
from modwatch.metrics.labelled import LabelledDay
from modwatch.metrics.population import (
    Domain,
    Population,
    Ranks,
    Standing,
    pool_domains,
    pool_standings,
)

Ints = NDArray[np.int64]

#: Part of a domain that may have no label near it; the interval then holds whatever it may be.
TOLERATED = 0.05

#: Labelled rows of a post-stratum, at least; and how many of those there are, at most.
POST_STRATUM, MOST_POST_STRATA = 20, 20

_ROUNDING = 1e-12


class Sample:
    """The m labelled rows of some days, pooled: strata are day × stratum."""

    def __init__(self, days: Sequence[LabelledDay], *, repeat: int = 1) -> None:
        """Pool the days, as if the slice had had `repeat` times as many rows like its own."""
        self.size: int = sum(len(day.prob) for day in days)
        self.routed: int = sum(int(day.sample.sum()) for day in days)
        rows = [day.rows(repeat) for day in days]
        self.prob = _join([day.prob[row] for day, row in zip(days, rows, strict=True)])
        self.label = _join([day.label[row] for day, row in zip(days, rows, strict=True)])
        stratum = [day.stratum[row] for day, row in zip(days, rows, strict=True)]
        #: (m,) whether the row is of the top.
        self.top = _join([part == 0 for part in stratum]).astype(bool)
        self._top = float(sum(int(day.population[0]) for day in days if len(day.population)))
        self._days = [
            Population(day.prob, day.stratum == 0, np.asarray(day.prob[row], np.float64))
            for day, row in zip(days, rows, strict=True)
        ]
        cells, self._missing = _cells(days)
        weight = _join(
            [
                (cell / np.maximum(np.bincount(part, minlength=cell.size), 1))[part]
                for part, cell in zip(stratum, cells, strict=True)
            ]
        )
        #: (m,) post-stratum of each row, and how many comments it stands for: N_h/m_h, made to fit
        #: the known scores.
        self.post_stratum, self.weight = self._calibrated(weight)

    def _calibrated(self, weight: Floats) -> tuple[Ints, Floats]:
        """Return the post-stratum (m,) of each row, and its weight made to fit the stratum."""
        cells, weights = np.zeros(weight.size, np.int64), weight.copy()
        for name, _, inside in self._sides(self.everything()):
            edges = _edges(self.prob[inside])
            cell = np.searchsorted(edges, self.prob[inside])
            counts = (day.between(edges, top=name == "top") for day in self._days)
            known = sum(counts, np.zeros(edges.size + 1))
            weights[inside] *= _calibration(cell, weight[inside], known)
            cells[inside] = 2 * cell + (name == "top")
        return cells, np.maximum(weights, 1.0)

    @property
    def complete(self) -> bool:
        """Whether every comment has a label, so that nothing is left to estimate."""
        return self.label.size == self.size

    def everything(self) -> Domain:
        """Return the whole population."""
        return Domain(part=np.ones(self.prob.size), top=self._top, rest=self.size - self._top)

    def nothing(self) -> Domain:
        """Return the empty domain."""
        return Domain(part=np.zeros(self.prob.size), top=0, rest=0)

    def without(self, domain: Domain) -> Domain:
        """Return the rest of the population."""
        whole = self.everything()
        return Domain(
            part=1 - domain.part, top=whole.top - domain.top, rest=whole.rest - domain.rest
        )

    def flagged(self, threshold: float) -> Domain:
        """Return the comments with prob > threshold."""
        return pool_domains([day.flagged(threshold) for day in self._days])

    def bins(self, value: Callable[[Floats], Floats], bins: int) -> Iterator[tuple[float, Domain]]:
        """Yield each equal bin of value(prob) in [0, 1]: the sum of its values, its comments."""
        days = [day.bins(value, bins) for day in self._days]
        for pieces in zip(*days, strict=True):
            yield sum(piece[0] for piece in pieces), pool_domains([piece[1] for piece in pieces])

    def standing(self, score: Callable[[Floats], Floats]) -> Standing:
        """Return where the rows stand by score(prob) when nothing is reviewed."""
        scores = [np.sort(score(day.prob.astype(np.float64))) for day in self._days]
        ranks = Ranks(scores, score(self.prob))
        standings = [ranks.standing(i, np.ones(day.size)) for i, day in enumerate(scores)]
        return pool_standings(standings, self.prob.size)

    def reviewed(
        self, strategy: str, alphas: Sequence[float], toxic_share: float
    ) -> list[tuple[Domain, Standing]]:
        """Return, for each α, what would be reviewed of each day, and the standing among the rest.

        Each day has its own capacity. The standing is by probability.
        """
        ranks = Ranks([day.prob for day in self._days], self.prob)
        found: list[tuple[list[Domain], list[Standing]]] = [([], []) for _ in alphas]
        for number, day in enumerate(self._days):
            parts = day.reviewed(strategy, alphas, toxic_share)
            for alpha, part, (domains, standings) in zip(alphas, parts, found, strict=True):
                domains.append(day.reviewed_domain(part, alpha))
                standings.append(ranks.standing(number, 1 - part))
        size = self.prob.size
        return [(pool_domains(d), pool_standings(s, size)) for d, s in found]

    def lacks(self, domain: Domain) -> str:
        """Return why totals over the domain cannot be estimated; empty when they can."""
        for name, mass, inside in self._sides(domain):
            if mass <= 0:
                continue
            if self._missing[name]:
                return f"no label in {self._missing[name]}"
            behind = ((self.weight - 1) * domain.part)[inside]
            unseen = self._unseen(mass, domain, inside)
            if unseen > TOLERATED * domain.mass and not behind.any():
                return f"no label stands for the unlabelled among {mass:.6g} comments of the {name}"
        return ""

    def masses(self, domain: Domain) -> Floats:
        """Return how many comments of the domain each row (m,) stands for, itself among them."""
        return np.asarray(domain.part + self._shares(domain)[0])

    def total(
        self, outcome: Floats, domain: Domain, *, reach: Floats | float = 1.0
    ) -> PartialTotal:
        """Return the total of `outcome` (m,) in [0, 1] over a domain; see `lacks` before its value.

        `reach` (m,) is the outcome that a row may have at most. The unseen mass of top and of rest
        is known, so each has its own ratio estimate (Hájek).
        """
        share, unknown = self._shares(domain)
        span = float(share.sum())
        share = share / span if span else share
        # The unseen part is finite and varies too: the textbook (1−f) to the first power.
        finite = np.sqrt(self.weight / np.where(share > 0, self.weight - 1, 1))
        return PartialTotal(
            seen=float(np.dot(outcome, domain.part)),
            span=span,
            event=outcome,
            share=share,
            error=share * finite,
            stratum=self.post_stratum,
            reach=reach,
            unknown=unknown,
            supposed=self._supposed(outcome, domain) if unknown else 0.0,
        )

    def _shares(self, domain: Domain) -> tuple[Floats, float]:
        """Return the unseen mass that each row (m,) stands for, and that which none stands for."""
        behind = (self.weight - 1) * domain.part  # unlabelled comments that a row stands for
        share, unknown = np.zeros(behind.size), 0.0
        for _, mass, inside in self._sides(domain):
            unseen = self._unseen(mass, domain, inside)
            if unseen > 0 and behind[inside].any():
                share[inside] = unseen * behind[inside] / behind[inside].sum()
            elif unseen > 0:
                unknown += unseen
        return share, unknown

    def _sides(self, domain: Domain) -> list[tuple[str, float, NDArray[np.bool_]]]:
        """Return top and rest: name, mass in the domain, and which rows (m,) are of it."""
        return [("top", domain.top, self.top), ("rest", domain.rest, ~self.top)]

    def _supposed(self, outcome: Floats, domain: Domain) -> float:
        """Return the mean outcome of the domain's labelled rows, 0 without any."""
        mass = self.weight * domain.part
        return float(np.dot(mass, outcome) / mass.sum()) if mass.any() else 0.0

    def _unseen(self, mass: float, domain: Domain, inside: NDArray[np.bool_]) -> float:
        """Return the mass of the domain's top or rest that has no label."""
        unseen = mass - float(domain.part[inside].sum())
        return unseen if unseen > _ROUNDING * self.size else 0.0


def _join(parts: Sequence[NDArray[np.generic]]) -> Floats:
    """Return the arrays in a row, as floats."""
    return np.concatenate([np.empty(0), *parts]).astype(np.float64)


def _edges(prob: Floats) -> Floats:
    """Return the probabilities that part the rows (m,) into post-strata of enough rows each."""
    rising = np.sort(prob)
    sides = [rising[rising <= 0.5], rising[rising > 0.5]]
    if min(side.size for side in sides) < POST_STRATUM:
        sides = [rising]
    cuts = list[float]()
    for side in sides:
        parts = min(max(side.size // POST_STRATUM, 1), MOST_POST_STRATA)
        at = np.arange(1, parts) * side.size // parts
        cuts.extend((side[at - 1] + side[at]) / 2)
    return np.unique(np.array([*cuts, *([] if len(sides) == 1 else [0.5])]))


def _calibration(cell: Ints, weight: Floats, known: Floats) -> Floats:
    """Return the factor (m,) that brings each cell's weights to its known number of comments."""
    given = np.bincount(cell, weights=weight, minlength=known.size)
    factor = np.divide(known, given, out=np.ones(known.size), where=given > 0)
    return np.asarray(factor[cell])


def _cells(days: Sequence[LabelledDay]) -> tuple[list[Floats], dict[str, str]]:
    """Return the comments that the labels of each day's strata stand for, and what has no label.

    In a window, a stratum of the rest without labels goes to the same stratum of the nearest day
    that has some, provided that its own day's rest was looked at at all.
    """
    counts = [day.count for day in days]
    cells = [day.population.astype(np.float64) for day in days]
    lacking = {"top": "", "rest": ""}
    for number, (day, count) in enumerate(zip(days, counts, strict=True)):
        for stratum in np.flatnonzero((day.population > 0) & (count == 0)):
            near = _nearest(counts, number, int(stratum)) if stratum and count[1:].any() else None
            if near is not None:
                cells[near][stratum] += day.population[stratum]
                continue
            name = "rest" if stratum else "top"
            told = f"day {number + 1}, stratum {stratum} of {day.population[stratum]} comments"
            lacking[name] = lacking[name] or told
    return cells, lacking


def _nearest(counts: Sequence[Ints], number: int, stratum: int) -> int | None:
    """Return the day nearest to `number` that has labels in the stratum."""
    having = [i for i, count in enumerate(counts) if stratum < count.size and count[stratum]]
    return min(having, key=lambda day: (abs(day - number), day), default=None)
