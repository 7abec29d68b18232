"""All comments of a day, labelled or not: every quantity that follows from the known scores.

These are the masses of domains (the flagged, the reviewed at any α) and the rank of a comment among
all others. Each total that need not be estimated makes the estimates more precise.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from modwatch.statistics.arguments import Floats
from modwatch.statistics.collaboration.model_metrics import bin_of
from modwatch.statistics.collaboration.ranking import reviews, slots
from modwatch.statistics.decisions import is_flagged
from modwatch.statistics.live.labelled_day import LabelledDay

Ints = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Domain:
    """A part of the population with known mass: the reviewed, the flagged, …"""

    #: (m,) part in [0, 1] of each row in the domain.
    part: Floats
    #: Mass in the top, and in the rest.
    top: float
    rest: float

    @property
    def mass(self) -> float:
        """Mass in the population."""
        return self.top + self.rest


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """The rank of m labelled rows, by one score, among the unreviewed comments."""

    #: (m,) unreviewed comments with a lower score.
    below: Floats
    #: (m,) unreviewed comments with the same score, possibly the row itself.
    tied: Floats
    #: All unreviewed comments.
    total: float


@dataclass(frozen=True, kw_only=True)
class Review:
    """What is reviewed at one review fraction."""

    domain: Domain
    #: By probability among the unreviewed comments.
    ranks: Ranks
    #: The unreviewed comments, each with what its decision costs if it is wrong, as a share of the
    #: `most` that one costs.
    at_stake: Domain
    most: float


class Population:
    """The N comments of one day by ascending probability, and its labelled rows among them."""

    def __init__(self, day: LabelledDay, rows: Ints, stands: Ints | None = None) -> None:
        """`rows` (m,) are positions of comments.

        `stands` (N,) is the position of the comment that stands for each one, so that a part of a
        domain is the mean over these; None: each stands for itself.
        """
        self.day = day
        #: (N,) positions of the comments by ascending probability.
        self.order: Ints = np.argsort(day.prob, kind="stable")
        order = self.order
        #: (N,) ascending; in the given precision, since a day may have millions.
        self.prob = np.asarray(day.prob)[order]
        self._in_top = (day.stratum == 0)[order]
        self._flagged = None if day.flagged is None else day.flagged[order]
        place = np.empty(order.size, np.intp)
        place[order] = np.arange(order.size)
        self._rows: Ints = place[rows]
        self._stands = None if stands is None else place[stands[order]]

    @property
    def size(self) -> int:
        """N."""
        return int(self.prob.size)

    def between(self, edges: Floats, *, top: bool) -> Floats:
        """Return how many comments of the top, or of the rest, are in each interval of prob.

        Intervals are closed above: the first ends at edges[0], the last starts after edges[-1].
        """
        within = np.searchsorted(edges, self.prob[self._in_top == top])
        return np.bincount(within, minlength=edges.size + 1).astype(np.float64)

    def domain(self, part: Floats) -> Domain:
        """Return the domain with the `part` (N,) of each comment, by ascending probability."""
        top = float(part[self._in_top].sum())
        rest = float(part.sum()) - top
        if self._stands is not None:
            sums, counts = np.bincount(self._stands, part), np.bincount(self._stands)
            return Domain(part=(sums / np.maximum(counts, 1))[self._rows], top=top, rest=rest)
        return Domain(part=part[self._rows], top=top, rest=rest)

    def flagged(self, threshold: float) -> Domain:
        """Return the flagged comments: as decided, or those with prob > threshold."""
        if self._flagged is not None:
            return self.domain(self._flagged.astype(np.float64))
        return self.domain(is_flagged(self.prob, threshold).astype(np.float64))

    def bins(self, value: Callable[[Floats], Floats], bins: int) -> list[tuple[float, Domain]]:
        """Return each equal bin of value(prob) in [0, 1]: the sum of its values, its comments."""
        values = value(self.prob.astype(np.float64))
        within = bin_of(values, bins)
        sums = np.bincount(within, weights=values, minlength=bins)
        return [
            (float(sums[i]), self.domain((within == i).astype(np.float64))) for i in range(bins)
        ]

    def reviewed(self, score: Floats, alphas: Sequence[float]) -> Iterator[Floats]:
        """Yield, for each α, the part (N,) of each comment that is reviewed by a score (N,).

        Both are by ascending probability.
        """
        for cut in reviews(score, alphas, np.ones(score.size)):
            yield cut.reviewed(score)

    def reviewed_domain(self, part: Floats, alpha: float) -> Domain:
        """Return the domain of the reviewed comments at α; its mass is an integer."""
        domain = self.domain(part)
        rest = max(slots(alpha, self.size) - domain.top, 0.0)
        return Domain(part=domain.part, top=domain.top, rest=rest)


class Ranking:
    """Positions of the m labelled rows of a window by a score of all its comments."""

    def __init__(self, scores: Sequence[NDArray[np.floating]], row: Floats) -> None:
        """`scores` of the comments, one ascending array per day; `row` (m,) those of the rows."""
        order = np.argsort(row, kind="stable")
        self._left = [_places(score, row, order, "left") for score in scores]
        self._right = [_places(score, row, order, "right") for score in scores]

    def ranks(self, day: int, kept: Floats) -> Ranks:
        """Return the ranks of the rows on one day; `kept` (N,) is the unreviewed part."""
        mass = np.append(0.0, np.cumsum(kept))
        below = mass[self._left[day]]
        return Ranks(below=below, tied=mass[self._right[day]] - below, total=float(mass[-1]))


def _places(
    score: NDArray[np.floating], row: Floats, order: Ints, side: Literal["left", "right"]
) -> Ints:
    """Return the position of each row (m,); searching in ascending order is many times faster."""
    places = np.empty(row.size, np.intp)
    places[order] = np.searchsorted(score, row[order].astype(score.dtype), side)
    return places


def pool_domains(domains: Sequence[Domain]) -> Domain:
    """Return the domain of several days, whose labelled rows are concatenated."""
    return Domain(
        part=np.concatenate([np.empty(0), *(domain.part for domain in domains)]),
        top=sum(domain.top for domain in domains),
        rest=sum(domain.rest for domain in domains),
    )


def pool_ranks(ranks: Sequence[Ranks], size: int) -> Ranks:
    """Return the ranks of `size` rows among the comments of several days."""
    return Ranks(
        below=sum((rank.below for rank in ranks), np.zeros(size)),
        tied=sum((rank.tied for rank in ranks), np.zeros(size)),
        total=sum(rank.total for rank in ranks),
    )
