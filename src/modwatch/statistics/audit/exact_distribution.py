"""The exact distribution of the estimate of a small sample, whatever the positives of its cells.

The estimate is counted in steps of a part of the observed one: a statistic of its own, a sum of one
hypergeometric distribution for each cell. Cells with few possible counts are added count by count,
the others by the fast Fourier transform, and the last two only as far as the probability needs.
"""

import heapq

import numpy as np
from scipy import fft, special

from modwatch.statistics.arguments import Floats, Ints
from modwatch.statistics.audit.stratified import WeightedCounts

#: Steps of an observed estimate.
_GRID = 512

#: Estimates below this count as this.
_LEAST = 1e-9

#: Combinations of the counts of several cells up to which they are added one by one: about as many
#: as take the time of a transform.
_COMBINATIONS = 2048


class EstimateDistribution:
    """The distribution of the estimates of samples (S,) of the same cells (C,).

    `sizes` (C,) are the comments that the cells represent, at least as many as their labels.

    >>> counts = WeightedCounts(weight=np.array([0.1, 0.1]), labels=np.array([2, 3]),
    ...     positives=np.array([[1, 0]]), score=np.array([0.5, 0.1]), unseen=np.array([0.5, 0.5]))
    >>> distribution = EstimateDistribution(counts, np.array([4, 6]))
    >>> chance = distribution.probability(np.array([[2.0, 0.0]]), np.array([0]), upper=True)
    >>> round(float(chance[0]), 6)  # of none or one, where two of four are positive
    0.833333
    """

    def __init__(self, counts: WeightedCounts, sizes: Ints) -> None:
        step = np.maximum(counts.rate, _LEAST)[:, None] / _GRID
        steps = [
            np.rint(np.arange(labels + 1) * (weight / step)).clip(max=2 * _GRID).astype(np.int64)
            for labels, weight in zip(counts.labels.tolist(), counts.weight.tolist(), strict=True)
        ]
        self._seen = np.sum(
            [
                np.take_along_axis(each, counts.positives[:, cell, None], 1)[:, 0]
                for cell, each in enumerate(steps)
            ],
            axis=0,
        )
        # Sums above the observed estimates are of no interest.
        self._length = int(self._seen.max()) + 1
        steps = [each[:, : int((each < self._length).sum(1).max())] for each in steps]
        most = [each.shape[1] for each in steps]
        self._cell, self._first = np.repeat(np.arange(sizes.size), most), np.cumsum([0, *most])
        self._positives = np.concatenate([np.arange(number) for number in most])
        self._groups = _groups(most)
        self._places = [
            np.minimum(_sums([steps[cell] for cell in group]), self._length)
            for group in self._groups
        ]
        self._log = special.gammaln(np.arange(int(sizes.max()) + 1) + 1.0)
        self._sizes, self._unlabelled = sizes, (sizes - counts.labels)[self._cell]
        log, labels = self._log, counts.labels[self._cell]
        self._constant = log[labels] - log[self._positives] - log[labels - self._positives]
        self._constant -= (log[sizes] - log[sizes - counts.labels])[self._cell]

    def probability(self, positives: Floats, samples: Ints, *, upper: bool) -> Floats:
        """Return the probability (R,) of an estimate no larger, or no smaller, than observed.

        `positives` (R, C) are those of all comments of the cells; between two whole numbers of
        them, a mixture of their distributions. `samples` (R,) are the places of the samples.
        """
        most = self._seen[samples] if upper else self._seen[samples] - 1
        chance = self._chances(positives)
        first, *more = (
            self._sum(group, places[samples], chance)
            for group, places in zip(self._groups, self._places, strict=True)
        )
        length = self._length
        for each in more[:-1]:
            points = fft.next_fast_len(2 * length - 1, real=True)
            both = fft.rfft(first, points) * fft.rfft(each, points)
            first = fft.irfft(both, points)[:, :length]
        left = most[:, None] - np.arange(length)
        within = left >= 0
        if more:
            first = first * np.take_along_axis(more[-1].cumsum(1), np.maximum(left, 0), 1)
        below = np.where(within, first, 0.0).sum(1)
        return np.asarray(below if upper else 1 - below)

    def _sum(self, cells: list[int], places: Ints, chance: Floats) -> Floats:
        """Return the distribution (R, steps) of the part of some cells in the estimate."""
        of_sum = _products([chance[:, self._first[c] : self._first[c + 1]] for c in cells])
        rows, width = len(places), self._length + 1  # the last place is for sums beyond
        at = places + width * np.arange(rows)[:, None]
        counted = np.bincount(at.ravel(), of_sum.ravel(), minlength=rows * width)
        return np.asarray(counted.reshape(rows, width)[:, :-1], dtype=np.float64)

    def _chances(self, positives: Floats) -> Floats:
        """Return the probabilities (R, P) of the counts of all cells, one after the other."""
        whole = np.floor(positives).astype(np.int64)
        more = (positives - whole)[:, self._cell]
        lower, higher = self._hypergeometric(np.stack([whole, np.minimum(whole + 1, self._sizes)]))
        return np.asarray((1 - more) * lower + more * higher)

    def _hypergeometric(self, positives: Ints) -> Floats:
        """Return the probabilities (…, P) of the counts if cells have so many positives (…, C)."""
        log, cell = self._log, self._cell
        of = positives[..., cell]
        missed = of - self._positives
        left = self._unlabelled - missed
        possible = (missed >= 0) & (left >= 0)
        value = self._constant + (log[positives] + log[self._sizes - positives])[..., cell]
        value -= log[np.where(possible, missed, 0)] + log[np.where(possible, left, 0)]
        return np.exp(np.where(possible, value, -np.inf))


def _groups(most: list[int]) -> list[list[int]]:
    """Return groups of cells with at most `_COMBINATIONS` of their numbers of counts."""
    waiting = [(number, [cell]) for cell, number in enumerate(most)]
    heapq.heapify(waiting)
    while len(waiting) > 1:
        (one, cells), (other, more) = heapq.heappop(waiting), heapq.heappop(waiting)
        if one * other > _COMBINATIONS:
            return [cells, more, *(group for _, group in waiting)]
        heapq.heappush(waiting, (one * other, cells + more))
    return [group for _, group in waiting]


def _sums(parts: list[Ints]) -> Ints:
    """Return the sums (R, n₁ n₂ …) of every combination of the columns of (R, n₁), (R, n₂), …"""
    total = parts[0]
    for part in parts[1:]:
        total = (total[:, :, None] + part[:, None]).reshape(len(total), -1)
    return total


def _products(parts: list[Floats]) -> Floats:
    """Return the products (R, n₁ n₂ …) of every combination of the columns."""
    total = parts[0]
    for part in parts[1:]:
        total = (total[:, :, None] * part[:, None]).reshape(len(total), -1)
    return total
