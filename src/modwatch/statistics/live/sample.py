"""Labelled comments of one or more days, weighted to represent all comments."""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from modwatch.statistics.agreement import CONTRADICTED, agreement_beyond_chance
from modwatch.statistics.arguments import Floats, Ints
from modwatch.statistics.intervals import PartialTotal
from modwatch.statistics.label_truth import (
    MINIMUM_CONFIRMED,
    MOVED,
    RATE_BOUNDS,
    ErrorEvidence,
    GivenLabels,
    TrueLabels,
    true_labels,
)
from modwatch.statistics.live.labelled_day import LabelledDay
from modwatch.statistics.live.population import (
    Domain,
    Population,
    Ranking,
    Ranks,
    Review,
    pool_domains,
    pool_ranks,
)
from modwatch.statistics.live.row_weights import row_weights

#: Part of a domain that may have no label near it; the interval then covers every possible value.
TOLERATED = 0.05

#: Minimum number of labelled rows in a post-stratum, and maximum number of post-strata.
POST_STRATUM, MOST_POST_STRATA = 20, 20

_ROUNDING = 1e-12

#: Number of the groups of rows: in the rest, flagged apart from the score, missing at first.
_KINDS = 8

#: At the largest false-negative rate that is believed, so much is inferred for each event shown.
_MOST_SPREAD = 1 / (1 - RATE_BOUNDS[1])


class Sample:
    """The m labelled rows of some days, pooled; strata are day × stratum."""

    def __init__(self, days: Sequence[LabelledDay], *, repeat: int = 1) -> None:
        """Pool the days, as if the slice had `repeat` times as many rows."""
        self.size: int = sum(len(day.prob) for day in days)
        #: Routed comments, but for those with a label that is left out.
        self.routed: int = sum(int(day.sample.sum()) - day.late for day in days)
        self._repeat = repeat
        found = self._rows(days)
        rows = [row for row, _ in found]
        self.prob = _join([day.prob[row] for day, row in zip(days, rows, strict=True)])
        self.label = _join([day.label[row] for day, row in zip(days, rows, strict=True)])
        names = set.intersection(*(set(day.columns) for day in days)) if days else set()
        #: (m,) further columns of the model, as far as all days have them.
        self.columns = {
            name: _join([day.columns[name][row] for day, row in zip(days, rows, strict=True)])
            for name in sorted(names)
        }
        stratum = [day.stratum[row] for day, row in zip(days, rows, strict=True)]
        #: (m,) whether the row is in the top.
        self.top = _join([part == 0 for part in stratum]).astype(bool)
        #: Whether labels may be wrong.
        self.fallible = any(day.confirmations is not None for day in days)
        given = [day.given(row) for day, row in zip(days, rows, strict=True)]
        self._given, self._toxic = (
            _join([pair[part] for pair in given]).astype(np.int64) for part in (0, 1)
        )
        self._top = float(sum(int(day.population[0]) for day in days if len(day.population)))
        self._days = [
            Population(day, row, stands) for day, (row, stands) in zip(days, found, strict=True)
        ]
        #: (m,) whether the row is flagged; None where that follows from its score.
        self._decided: Ints | None = None
        if any(_decided_apart(day) for day in days):
            decided = [day.decisions(0.5)[row] for day, row in zip(days, rows, strict=True)]
            self._decided = _join(decided).astype(np.int64)
        weight, followed, self._missing = self._weights(days, rows)
        #: (m,) whether the row is a follow-up; None where there are none.
        self._followed = followed.astype(np.int64) if followed.any() else None
        #: (m,) post-stratum of each row, and the number of comments it represents: N_h/m_h,
        #: calibrated to the known scores.
        self.post_stratum, self.weight = self._calibrated(weight)

    def _rows(self, days: Sequence[LabelledDay]) -> list[tuple[Ints, Ints | None]]:
        """Return the positions of the rows of each day, and which ones stand for all comments."""
        return [(day.rows(self._repeat), None) for day in days]

    def _weights(
        self, days: Sequence[LabelledDay], rows: Sequence[Ints]
    ) -> tuple[Floats, NDArray[np.bool_], dict[str, str]]:
        """Return the weight of each row (m,), whether it is a follow-up, and where none is."""
        return row_weights(days, rows)

    def _calibrated(self, weight: Floats) -> tuple[Ints, Floats]:
        """Return post-stratum and weight (m,): the row, and unlabelled ones, known by score."""
        cells, behind = np.zeros(weight.size, np.int64), np.maximum(weight - 1, 0.0)
        for name, _, inside in self._sides(self.everything()):
            edges = _edges(self.prob[inside & (behind > 0)])
            cell = np.searchsorted(edges, self.prob[inside])
            counts = (day.between(edges, top=name == "top") for day in self._days)
            unseen = sum(counts, -np.bincount(cell, minlength=edges.size + 1).astype(np.float64))
            behind[inside] *= _calibration(cell, behind[inside], np.maximum(unseen, 0.0))
            cells[inside] = 2 * cell + (name == "top")
        return cells, 1 + behind

    def true_labels(
        self,
        known: ErrorEvidence | None = None,
        *,
        seed: int,
        part: Ints | None = None,
        history: GivenLabels | None = None,
        moved: tuple[float, float] = MOVED,
    ) -> TrueLabels | None:
        """Return the posterior of the true labels; None if the labels are the true ones.

        `part` (m,) from 0 divides top and rest further, into groups that differ at the same score.
        Follow-ups, and decisions that do not follow from the scores, do so, too.
        """
        if not self.fallible or not self._given.any():
            return None
        labels = self.given
        kinds = [labels.group + (0 if part is None else _KINDS * part)]
        if history is not None:
            kinds.append(history.group)
        _, group = np.unique(np.concatenate(kinds), return_inverse=True)
        labels = replace(labels, group=group[: self.label.size])
        if history is not None:
            history = replace(history, group=group[self.label.size :])
        return true_labels(labels, known, history=history, moved=moved, seed=seed)

    @property
    def given(self) -> GivenLabels:
        """The labels of the rows (m,), in groups: rest, flagged apart, missing, of one bit each."""
        kinds = (~self.top).astype(np.int64)
        for bit, further in ((2, self._decided), (4, self._followed)):
            if further is not None:
                kinds = kinds + bit * further
        return GivenLabels(prob=self.prob, group=kinds, given=self._given, toxic=self._toxic)

    def relabelled(self, first: Ints, given: Ints, toxic: Ints) -> "Sample":
        """Return the sample with other, imperfect labels.

        `first` (m,) is the first label of each row, `given` (m,) the number of its labels, at least
        1, and `toxic` (m,) how many of them are toxic.
        """
        other = copy(self)
        other.label, other._given, other._toxic = first.astype(np.float64), given, toxic
        other.fallible = True
        other.__dict__.pop("contradicted", None)
        return other

    def given_labels(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which rows (m,) have a toxic label, and which a label that is not."""
        return self._toxic > 0, self._toxic < self._given

    @property
    def further_labels(self) -> int:
        """Number of labels in addition to the first ones."""
        return int((self._given - 1).sum())

    def confirmations(self) -> tuple[int, int]:
        """Return how many rows have several labels, and of how many most contradict the first."""
        confirmed = self._given > 1
        first = np.where(self.label == 1, self._toxic, self._given - self._toxic)
        return int(confirmed.sum()), int((confirmed & (2 * first < self._given)).sum())

    @cached_property
    def contradicted(self) -> str:
        """Which first labels further people contradict more than chance would; empty if none.

        Then no error rate explains them.
        """
        confirmed = self._given > 1
        first = self.label.astype(np.int64)
        # The second label differs wherever not all are alike: a third one is given for that reason.
        alike = (self._toxic == 0) | (self._toxic == self._given)
        second = np.where(alike, first, 1 - first)
        for name, part in (("top", self.top), ("random slice", ~self.top)):
            here = part & confirmed
            beyond = agreement_beyond_chance(0 * first[here], first[here], second[here])
            if here.sum() >= MINIMUM_CONFIRMED and beyond is not None and beyond < CONTRADICTED:
                return name
        return ""

    @property
    def complete(self) -> bool:
        """Whether every comment has a label, so nothing has to be estimated."""
        return self.label.size == self.size

    def everything(self) -> Domain:
        """Return the whole population."""
        return Domain(part=np.ones(self.prob.size), top=self._top, rest=self.size - self._top)

    def reviewed_top(self) -> Domain:
        """Return the comments that were routed as the top, all of them."""
        return Domain(part=self.top.astype(np.float64), top=self._top, rest=0.0)

    @cached_property
    def represented(self) -> Floats:
        """(m,) how many of all comments each row represents, including itself."""
        return self.masses(self.everything())

    def without(self, domain: Domain) -> Domain:
        """Return the rest of the population."""
        whole = self.everything()
        return Domain(
            part=1 - domain.part, top=whole.top - domain.top, rest=whole.rest - domain.rest
        )

    def flagged(self, threshold: float) -> Domain:
        """Return the flagged comments: as decided, or those with prob > threshold."""
        return pool_domains([day.flagged(threshold) for day in self._days])

    def bins(self, value: Callable[[Floats], Floats], bins: int) -> Iterator[tuple[float, Domain]]:
        """Yield the sum of values and the domain of each equal bin of value(prob) in [0, 1]."""
        days = [day.bins(value, bins) for day in self._days]
        for pieces in zip(*days, strict=True):
            yield sum(piece[0] for piece in pieces), pool_domains([piece[1] for piece in pieces])

    def ranks(self, score: Callable[[Floats], Floats]) -> Ranks:
        """Return the ranks of the rows by score(prob) when nothing is reviewed."""
        return self.ranks_of(self.prob, score)

    def ranks_of(self, prob: Floats, score: Callable[[Floats], Floats] = np.asarray) -> Ranks:
        """Return the ranks of comments with these probabilities (k,) among the population."""
        scores = [np.sort(score(day.prob.astype(np.float64))) for day in self._days]
        ranking = Ranking(scores, score(prob))
        ranks = [ranking.ranks(i, np.ones(day.size)) for i, day in enumerate(scores)]
        return pool_ranks(ranks, prob.size)

    def reviewed(self, strategy: str, alphas: Sequence[float], *, threshold: float) -> list[Review]:
        """Return the review by a strategy at each α; each day has its own capacity.

        `threshold` makes the decisions where there are none.
        """
        stakes = [day.day.stakes(threshold) for day in self._days]
        most = max((float(of_day.max(initial=0.0)) for of_day in stakes), default=0.0) or 1.0
        ranking = Ranking([day.prob for day in self._days], self.prob)
        pools: list[tuple[list[Domain], list[Domain], list[Ranks]]]
        pools = [([], [], []) for _ in alphas]
        for number, (day, stake) in enumerate(zip(self._days, stakes, strict=True)):
            score = day.day.review_scores(strategy, threshold=threshold)
            parts, shares = day.reviewed(score[day.order], alphas), stake[day.order] / most
            for alpha, part, (domains, at_stake, ranks) in zip(alphas, parts, pools, strict=True):
                domains.append(day.reviewed_domain(part, alpha))
                at_stake.append(day.domain((1 - part) * shares))
                ranks.append(ranking.ranks(number, 1 - part))
        size = self.prob.size
        return [
            Review(
                domain=pool_domains(domains),
                ranks=pool_ranks(ranks, size),
                at_stake=pool_domains(at_stake),
                most=most,
            )
            for domains, at_stake, ranks in pools
        ]

    def lacks(self, domain: Domain) -> str:
        """Return why totals over the domain cannot be estimated; empty if they can."""
        if self.contradicted:
            return f"confirmations contradict the first labels of the {self.contradicted}"
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

    def observed(self, domain: Domain) -> Floats:
        """Return how many comments of the domain are known from each row (m,): itself."""
        return domain.part

    def masses(self, domain: Domain) -> Floats:
        """Return how many comments of the domain each row (m,) represents, including itself."""
        return np.asarray(domain.part + self._shares(domain)[0])

    def total(
        self,
        outcome: Floats,
        domain: Domain,
        *,
        reach: Floats | float = 1.0,
        evident: Floats | None = None,
    ) -> PartialTotal:
        """Return the total of `outcome` (m,) in [0, 1] over a domain; check `lacks` first.

        `reach` (m,) is the maximum outcome of each row; `evident` (m,) the part of the outcome that
        a label shows, while the rest is inferred and varies with it. The unlabelled mass of top and
        of rest is known, so each has its own ratio estimate (Hájek).
        """
        share, unknown = self._shares(domain)
        span = float(share.sum())
        share = share / span if span else share
        # The unlabelled part is finite and varies too: the textbook (1−f) to the first power.
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
            spread=1.0 if evident is None else _spread(share * outcome, share * evident),
        )

    def _shares(self, domain: Domain) -> tuple[Floats, float]:
        """Return the unlabelled mass that each row (m,) represents, and that which none does."""
        behind = (self.weight - 1) * domain.part  # unlabelled comments that a row represents
        share, unknown = np.zeros(behind.size), 0.0
        for _, mass, inside in self._sides(domain):
            unseen = self._unseen(mass, domain, inside)
            if unseen > 0 and behind[inside].any():
                share[inside] = unseen * behind[inside] / behind[inside].sum()
            elif unseen > 0:
                unknown += unseen
        return share, unknown

    def _sides(self, domain: Domain) -> list[tuple[str, float, NDArray[np.bool_]]]:
        """Return top and rest: name, mass in the domain, and which rows (m,) are in it."""
        return [("top", domain.top, self.top), ("rest", domain.rest, ~self.top)]

    def _supposed(self, outcome: Floats, domain: Domain) -> float:
        """Return the mean outcome of the domain's labelled rows; 0 without any."""
        mass = self.weight * domain.part
        return float(np.dot(mass, outcome) / mass.sum()) if mass.any() else 0.0

    def _unseen(self, mass: float, domain: Domain, inside: NDArray[np.bool_]) -> float:
        """Return the mass of the domain's top or rest that has no label."""
        unseen = mass - float(domain.part[inside].sum())
        return unseen if unseen > _ROUNDING * self.size else 0.0


def _decided_apart(day: LabelledDay) -> bool:
    """Return whether no threshold of the score gives the decisions of a day."""
    if day.flagged is None or day.flagged.all() or not day.flagged.any():
        return False
    return bool(day.prob[~day.flagged].max() >= day.prob[day.flagged].min())


def _spread(whole: Floats, evident: Floats) -> float:
    """Return how much more a total varies than its evident part."""
    shown = float(evident.sum())
    return min(max(float(whole.sum()) / shown, 1.0), _MOST_SPREAD) if shown > 0 else 1.0


def _join(parts: Sequence[NDArray[np.generic]]) -> Floats:
    """Return the arrays concatenated, as floats."""
    return np.concatenate([np.empty(0), *parts]).astype(np.float64)


def _edges(prob: Floats) -> Floats:
    """Return the probabilities that divide the rows (m,) into post-strata of sufficient size."""
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
    """Return the factor (m,) that scales each cell's weights to its known number of comments."""
    given = np.bincount(cell, weights=weight, minlength=known.size)
    factor = np.divide(known, given, out=np.ones(known.size), where=given > 0)
    return np.asarray(factor[cell])
