"""Labelled comments of one or more days, with the weights that let them stand for all comments."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modwatch.errors import MetricInputError
from modwatch.metrics import inputs
from modwatch.metrics.calibration import bin_of
from modwatch.metrics.collaborative import review_scores
from modwatch.metrics.inputs import Floats
from modwatch.metrics.intervals import PartialTotal
from modwatch.metrics.ranking import reviews, slots

Ints = NDArray[np.int64]

#: Part of a domain that may have no label near it; the interval then holds whatever it may be.
TOLERATED = 0.05

_ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True)
class LabelledDay:
    """A day's whole population of N comments, of which a designed sample has labels.

    The design is stratified: n_h of N_h comments of stratum h were routed; stratum 0 is the top,
    routed whole. Labels may be missing; within a stratum they are taken to be missing at random.
    """

    #: (N,) in [0, 1]: the score of every comment.
    prob: NDArray[np.floating]
    #: (N,) stratum of every routed comment. Others may hold −1; only whether a comment is of
    #: stratum 0 must be true for all.
    stratum: NDArray[np.integer]
    #: (N,) 0 or 1 where labelled; anything elsewhere.
    label: NDArray[np.generic]
    #: (N,) whether the label is there.
    labelled: NDArray[np.bool_]
    #: (H,) N_h of every stratum of the design, from stratum 0.
    population: NDArray[np.integer]
    #: (H,) n_h of every stratum.
    sample: NDArray[np.integer]

    def __post_init__(self) -> None:
        inputs.probabilities(self.prob)
        size = inputs.same_length(
            prob=self.prob, stratum=self.stratum, label=self.label, labelled=self.labelled
        )
        inputs.same_length(population=self.population, sample=self.sample)
        inputs.labels(self.label[self.labelled])
        if int(self.population.sum()) != size:
            raise MetricInputError(
                f"the design counts {int(self.population.sum())} comments and {size} have scores; "
                "route the day again after scoring"
            )
        self._check_strata()

    def _check_strata(self) -> None:
        seen = self.stratum[self.labelled]
        if seen.size and (seen.min() < 0 or seen.max() >= len(self.population)):
            raise MetricInputError("a labelled comment is of no stratum; pass its routed stratum")
        if (self.sample > self.population).any() or (self.count > self.sample).any():
            raise MetricInputError("a stratum has more labels than sample, or sample than comments")
        if int((self.stratum == 0).sum()) != int(self.population[:1].sum()):
            raise MetricInputError(
                "stratum 0 is not as large as its design; pass it for the whole top"
            )

    @property
    def count(self) -> Ints:
        """(H,) labelled comments of each stratum."""
        seen = self.stratum[self.labelled]
        return np.bincount(seen, minlength=len(self.population)).astype(np.int64)


def fully_labelled(prob: Floats, label: NDArray[np.generic]) -> LabelledDay:
    """Return a day on which everything was reviewed, as in replayed research data.

    >>> fully_labelled(np.array([0.5]), np.array([1])).population.tolist()
    [1]
    """
    size = np.array([len(prob)])
    return LabelledDay(
        prob=prob,
        stratum=np.zeros(len(prob), dtype=np.int64),
        label=label,
        labelled=np.ones(len(prob), dtype=bool),
        population=size,
        sample=size,
    )


@dataclass(frozen=True, kw_only=True)
class Domain:
    """A part of the population of which the mass is known: the reviewed, the flagged, …"""

    #: (m,) part in [0, 1] of each labelled row that belongs to it.
    part: Floats
    #: Its mass in the top, and in the rest.
    top: float
    rest: float

    @property
    def mass(self) -> float:
        """Its mass in the population.

        >>> Domain(part=np.ones(1), top=1, rest=2).mass
        3
        """
        return self.top + self.rest


class Sample:
    """The m labelled rows of some days, pooled: strata are day × stratum."""

    def __init__(self, days: Sequence[LabelledDay]) -> None:
        self._days = days
        self.size: int = sum(len(day.prob) for day in days)
        self.routed: int = sum(int(day.sample.sum()) for day in days)
        self.prob = _join([day.prob[day.labelled] for day in days])
        self.label = _join([day.label[day.labelled] for day in days])
        self.top = _join([day.stratum[day.labelled] == 0 for day in days]).astype(bool)
        cells, self._missing = _cells(days)
        #: (m,) N_h/m_h: how many comments each row stands for.
        self.weight = _join(
            [
                (cell / np.maximum(day.count, 1))[day.stratum[day.labelled]]
                for day, cell in zip(days, cells, strict=True)
            ]
        )

    @property
    def complete(self) -> bool:
        """Whether every comment has a label, so that nothing is left to estimate."""
        return self.label.size == self.size

    def everything(self) -> Domain:
        """Return the whole population."""
        top = float(sum(int(day.population[0]) for day in self._days if len(day.population)))
        return Domain(part=np.ones(self.prob.size), top=top, rest=self.size - top)

    def flagged(self, threshold: float) -> Domain:
        """Return the comments with prob > threshold."""
        return _pool([_flagged(day, threshold) for day in self._days])

    def by_confidence(self, bins: int) -> Iterator[tuple[float, Domain]]:
        """Yield the comments in equal bins of confidence max(p, 1−p), with their confidence."""
        days = [_by_confidence(day, bins) for day in self._days]
        for pieces in zip(*days, strict=True):
            yield sum(piece[0] for piece in pieces), _pool([piece[1] for piece in pieces])

    def reviewed(self, strategy: str, alphas: Sequence[float], toxic_share: float) -> list[Domain]:
        """Return, for each α, what the strategy would have had reviewed on each day."""
        days = [_reviewed(day, strategy, alphas, toxic_share) for day in self._days]
        return [_pool([day[i] for day in days]) for i in range(len(alphas))]

    def without(self, domain: Domain) -> Domain:
        """Return the rest of the population."""
        whole = self.everything()
        return Domain(
            part=1 - domain.part, top=whole.top - domain.top, rest=whole.rest - domain.rest
        )

    def lacks(self, domain: Domain) -> str:
        """Return why totals over the domain cannot be estimated; empty when they can."""
        for name, mass, inside in (("top", domain.top, self.top), ("rest", domain.rest, ~self.top)):
            if mass <= 0:
                continue
            if self._missing[name]:
                return f"no label in {self._missing[name]}"
            behind = ((self.weight - 1) * domain.part)[inside]
            unseen = self._unseen(mass, domain, inside)
            if unseen > TOLERATED * domain.mass and not behind.any():
                return f"no label stands for the unlabelled among {mass:.6g} comments of the {name}"
        return ""

    def total(
        self, outcome: Floats, domain: Domain, *, reach: Floats | float = 1.0
    ) -> PartialTotal:
        """Return the total of `outcome` (m,) in [0, 1] over a domain; see `lacks` before its value.

        The unseen mass of top and of rest is known, so each has its own ratio estimate (Hájek).
        """
        behind = (self.weight - 1) * domain.part  # unlabelled comments that a row stands for
        share, unknown = np.zeros(behind.size), 0.0
        for mass, inside in ((domain.top, self.top), (domain.rest, ~self.top)):
            unseen = self._unseen(mass, domain, inside)
            if unseen > 0 and behind[inside].any():
                share[inside] = unseen * behind[inside] / behind[inside].sum()
            elif unseen > 0:
                unknown += unseen
        span = float(share.sum())
        share = share / span if span else share
        # The unseen part is finite and varies too: the textbook (1−f) to the first power.
        finite = np.sqrt(self.weight / np.where(share > 0, self.weight - 1, 1))
        seen = float(np.dot(outcome, domain.part))
        return PartialTotal(
            seen=seen,
            span=span,
            event=outcome,
            share=share,
            error=share * finite,
            reach=reach,
            unknown=unknown,
            supposed=self._supposed(outcome, domain) if unknown else 0.0,
        )

    def _supposed(self, outcome: Floats, domain: Domain) -> float:
        """Return the mean outcome of the domain's labelled rows, 0 without any."""
        mass = self.weight * domain.part
        return float(np.dot(mass, outcome) / mass.sum()) if mass.any() else 0.0

    def _unseen(self, mass: float, domain: Domain, inside: NDArray[np.bool_]) -> float:
        """Return the mass of the domain's top or rest that has no label."""
        unseen = mass - float(domain.part[inside].sum())
        return unseen if unseen > _ROUNDING * self.size else 0.0


def _flagged(day: LabelledDay, threshold: float) -> Domain:
    """Return the flagged comments of a day."""
    flagged = np.asarray(day.prob, np.float64) > threshold
    top = float((flagged & (day.stratum == 0)).sum())
    part = flagged[day.labelled].astype(np.float64)
    return Domain(part=part, top=top, rest=float(flagged.sum()) - top)


def _by_confidence(day: LabelledDay, bins: int) -> list[tuple[float, Domain]]:
    """Return each bin of confidence of a day: the confidence it sums to, and its comments."""
    confidence = np.abs(np.asarray(day.prob, np.float64) - 0.5) + 0.5
    within, in_top = bin_of(confidence, bins), day.stratum == 0
    sums = np.bincount(within, weights=confidence, minlength=bins)
    top = np.bincount(within[in_top], minlength=bins)
    rest = np.bincount(within, minlength=bins) - top
    seen = within[day.labelled]
    return [
        (
            float(sums[i]),
            Domain(part=(seen == i).astype(np.float64), top=float(top[i]), rest=float(rest[i])),
        )
        for i in range(bins)
    ]


def _reviewed(
    day: LabelledDay, strategy: str, alphas: Sequence[float], toxic_share: float
) -> list[Domain]:
    """Return what the strategy would have had reviewed of a day, for each α."""
    score = review_scores(day.prob, strategy, toxic_share=toxic_share)
    in_top, seen = score[day.stratum == 0], score[day.labelled]
    domains = []
    for alpha, cut in zip(alphas, reviews(score, alphas, np.ones(score.size)), strict=True):
        top = float(cut.reviewed(in_top).sum())
        rest = max(slots(alpha, score.size) - top, 0.0)
        domains.append(Domain(part=cut.reviewed(seen), top=top, rest=rest))
    return domains


def _pool(domains: Sequence[Domain]) -> Domain:
    """Return the domain of several days."""
    return Domain(
        part=_join([domain.part for domain in domains]),
        top=sum(domain.top for domain in domains),
        rest=sum(domain.rest for domain in domains),
    )


def _join(parts: Sequence[NDArray[np.generic]]) -> Floats:
    """Return the arrays in a row, as floats."""
    return np.concatenate([np.empty(0), *parts]).astype(np.float64)


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
