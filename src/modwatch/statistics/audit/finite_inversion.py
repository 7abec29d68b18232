"""The default interval of an audit: test inversion over the finite population that was audited.

Three parts, added by the method of variance estimates recovery (Zou & Donner 2008):

- a cell of which at least half of the comments are labelled, and a side of a single cell: the exact
  interval of the hypergeometric distribution, by inversion of its two one-sided tests (the
  Clopper–Pearson interval of a finite population; Buonaccorsi 1987). Its coverage is never below
  its level, and it assumes nothing about the score;
- the other cells together: `inversion_interval`, with the hidden positives measured against all
  positives of the period, flagged or not;
- cells of which every comment is labelled: known.
"""

import heapq
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft, special, stats

from modwatch.common.errors import MetricInputError
from modwatch.statistics.arguments import Floats, Ints, whole_numbers
from modwatch.statistics.audit.inversion_interval import HIDDEN_SHARE, inversion_interval, pattern
from modwatch.statistics.audit.stratified import WeightedCounts
from modwatch.statistics.intervals import clopper_pearson

#: From this share of labelled comments on, the exact distribution of the estimate is used.
_MUCH = 0.1

#: Part of the error that the limits of the single cells may take.
_FOR_CELLS = 0.1

#: Part of the error that is kept for the estimated pattern of the positives.
_FOR_PATTERN = 0.2

#: Steps of an observed estimate.
_GRID = 512

#: Combinations of the counts of several cells up to which they are added one by one: about as many
#: as take the time of a transform.
_COMBINATIONS = 2048

_STEPS = 24
#: Estimates and rates below this count as this.
_LEAST = 1e-9
#: Relative rate of positives outside the heaviest cell, where that is assumed to have nearly all.
_LITTLE = 1e-3
_ROUNDING = 1e-6

#: Samples for which distributions are computed at once.
_AT_ONCE = 100

#: Above this number of comments, a stratum counts as endless: 1,000 labels of so many differ from
#: draws with replacement by less than rounding.
_ENDLESS = 10**9


def hypergeometric_interval(
    positives: Ints,
    labels: int | Ints,
    population: int | Ints,
    tails: tuple[float, float] = (0.025, 0.025),
) -> tuple[Floats, Floats]:
    """Return the exact ends (…) of the share of positives in a finite population.

    All shares K/N at which neither as many positives as observed, nor as few, have a probability
    below `tails`: with tails of 2.5 % it covers the true share in at least 95 % of samples.
    `positives` (…) in 0…labels, `labels` in 1…population, of all or of each. MetricInputError
    otherwise.

    >>> ends = hypergeometric_interval(np.array(1), 76, 100)
    >>> [round(100 * float(end)) for end in ends]
    [1, 4]
    """
    counts = np.broadcast_arrays(whole_numbers("positives", positives), labels, population)
    seen, drawn, size = counts
    if ((drawn < 1) | (drawn > size) | (seen > drawn)).any():
        raise MetricInputError("There must be no more positives than labels, and some labels.")
    one, where = np.unique([count.ravel() for count in counts], axis=1, return_inverse=True)
    positive, given, of = one
    ends, some = np.empty((2, of.size)), of < _ENDLESS
    ends[:, some] = _exact(positive[some], given[some], of[some], tails)
    ends[:, ~some] = clopper_pearson(positive[~some], given[~some], tails)
    low, high = ends[:, where.ravel()]
    return low.reshape(seen.shape), high.reshape(seen.shape)


def _exact(seen: Ints, labels: Ints, population: Ints, tails: tuple[float, float]) -> Floats:
    """Return the ends (2, k) of the shares."""
    # Few positives are many negatives: the lower end is the upper one of the negatives.
    both = np.stack([labels - seen, seen])
    beyond = np.broadcast_to(np.array(tails)[:, None], both.shape)
    negatives, positives = _most(both, labels, population, beyond)
    return np.stack([population - negatives, positives]) / population


def _most(seen: Ints, labels: Ints, population: Ints, tail: Floats) -> Ints:
    """Return the most positives (…) with which so few are seen with a probability of `tail`."""
    high = population - labels + seen  # the largest that is possible
    low = np.where(tail > 0, seen, high)
    while (low < high).any():
        middle = (low + high + 1) // 2
        likely = stats.hypergeom.cdf(seen, population, middle, labels) >= tail * (1 - 1e-9)
        low, high = np.where(likely, middle, low), np.where(likely, high, middle - 1)
    return np.asarray(low)


def finite_inversion(
    counts: WeightedCounts,
    *,
    tails: tuple[float, float] = (0.025, 0.025),
    hidden_share: float = HIDDEN_SHARE,
    found: float | Floats = 0.0,
) -> tuple[Floats, Floats]:
    """Return the lower and the upper end (…) of the share of positives on one side.

    `hidden_share` of all positives may look like negatives to the score: those of this side and
    those that the other side `found` (…), in positives for each comment of this side.
    MetricInputError for a hidden share outside [0, 1].

    >>> counts = WeightedCounts(weight=np.array([1 / 76]), labels=np.array([76]),
    ...     positives=np.array([1]), score=np.array([0.02]), unseen=np.array([0.24]))
    >>> [round(float(end), 4) for end in finite_inversion(counts)]
    [0.01, 0.04]
    """
    if counts.labels.size == 1:
        labels = int(counts.labels[0])
        population = _comments(counts)[0] if counts.unseen[0] < 1 else _ENDLESS
        return hypergeometric_interval(counts.positives[..., 0], labels, int(population), tails)
    mass = counts.weight * counts.labels
    if mass @ counts.unseen <= 1 - _MUCH:
        return _of_few_comments(counts, tails)
    # Where the positives are is estimated from the same labels: a part of the error is for that.
    smaller = (tails[0] * (1 - _FOR_PATTERN), tails[1] * (1 - _FOR_PATTERN))
    return inversion_interval(counts, tails=smaller, hidden_share=hidden_share, found=found)


def _comments(counts: WeightedCounts) -> Ints:
    """Return the comments (C,) that the cells represent, n / f."""
    return np.maximum(np.rint(counts.labels / (1 - counts.unseen)), counts.labels).astype(np.int64)


def _of_few_comments(counts: WeightedCounts, tails: tuple[float, float]) -> tuple[Floats, Floats]:
    """Return the ends (…) by the exact distribution of the estimate."""
    repetitions = counts.positives.shape[:-1]
    every = counts.positives.reshape(-1, counts.labels.size)
    one, where = np.unique(every, axis=0, return_inverse=True)
    ends = np.empty((2, len(one)))
    for first in range(0, len(one), _AT_ONCE):
        part = replace(counts, positives=one[first : first + _AT_ONCE])
        samples = {tail: _Samples(part, tail) for tail in {*tails}}
        for number, tail in enumerate(tails):
            ends[number, first : first + _AT_ONCE] = samples[tail].end(upper=number == 1)
    low, high = ends[:, where.ravel()]
    return low.reshape(repetitions), high.reshape(repetitions)


class _Samples:
    """Samples (S,) of few comments, each under assumptions on where the positives are.

    A row for each assumption and sample: the positives are in the cells as observed, evenly, half
    of each; nearly all in the cell of the largest weight; the negatives as observed, or nearly all
    of them in that cell. No cell has fewer or more than its own labels make possible (Berger & Boos
    1994).
    """

    def __init__(self, counts: WeightedCounts, tail: float) -> None:
        self._size, self._mass = _comments(counts), counts.weight * counts.labels
        self._tail = (1 - _FOR_CELLS) * tail
        self._estimate = EstimateDistribution(counts, self._size)
        shapes = _shapes(counts)
        self._shape = np.concatenate([shape for _, shape in shapes])
        self._mirrored = np.repeat([mirrored for mirrored, _ in shapes], len(counts.positives))
        self._assumptions, self._samples = len(shapes), len(counts.positives)
        beyond = _FOR_CELLS * tail / self._size.size
        limits = hypergeometric_interval(
            counts.positives, counts.labels, self._size, (beyond, beyond)
        )
        self._fewest, self._most = (
            np.tile(np.rint(limit * self._size), (len(shapes), 1)) for limit in limits
        )

    def end(self, *, upper: bool) -> Floats:
        """Return the largest (or smallest) share (S,) under which the estimate is likely enough."""
        if self._tail > 0:
            end = self._furthest(upper=upper)
        else:
            end = self._whole(self._most if upper else self._fewest, upper=upper)
        return np.asarray(self._largest(end) * (1 if upper else -1) / self._size.sum())

    def _furthest(self, *, upper: bool) -> Floats:
        """Return the ends (S R,), of which the largest of each sample is exact: see `_whole`.

        By bisection, on a logarithmic scale from hardly any positives (or negatives) to as many as
        possible. A row is left alone as soon as it cannot be beyond all others of its sample.
        """
        least = np.full(len(self._shape), np.log(_LEAST))
        most = -np.log(np.maximum(self._shape.min(-1), _LEAST))
        rising = self._mirrored != upper
        likely, unlikely = np.where(rising, least, most), np.where(rising, most, least)
        every = np.arange(len(rising))
        inner, outer = (
            self._whole(self._positives(scale, every), upper=upper) for scale in (likely, unlikely)
        )
        for _ in range(_STEPS):
            rows = np.flatnonzero(outer > np.tile(self._largest(inner), self._assumptions))
            if not rows.size:
                break
            middle = (likely[rows] + unlikely[rows]) / 2
            positives = self._positives(middle, rows)
            chance = self._estimate.probability(positives, rows % self._samples, upper=upper)
            end, enough = self._whole(positives, upper=upper), chance >= self._tail
            likely[rows[enough]], inner[rows[enough]] = middle[enough], end[enough]
            unlikely[rows[~enough]], outer[rows[~enough]] = middle[~enough], end[~enough]
        return outer

    def _largest(self, ends: Floats) -> Floats:
        """Return the largest end (S,) under all assumptions."""
        return np.asarray(ends.reshape(self._assumptions, -1).max(0))

    def _whole(self, positives: Floats, *, upper: bool) -> Floats:
        """Return the share (R,) in whole comments, away from the estimate; negative for `lower`."""
        sign = 1 if upper else -1
        share = positives / self._size @ self._mass
        return np.asarray(np.ceil(sign * self._size.sum() * share - _ROUNDING))

    def _positives(self, factor: Floats, rows: Ints) -> Floats:
        """Return the positives (R, C) of the cells, as many as their labels leave possible."""
        wanted = np.exp(factor)[:, None] * self._shape[rows] * self._size
        wanted = np.where(self._mirrored[rows, None], self._size - wanted, wanted)
        return np.asarray(np.clip(wanted, self._fewest[rows], self._most[rows]))


def _shapes(counts: WeightedCounts) -> list[tuple[bool, Floats]]:
    """Return whether it is of the negatives, and the relative rate (R, C), of each assumption."""
    negatives = replace(counts, positives=counts.labels - counts.positives, score=1 - counts.score)
    seen = pattern(counts)
    heaviest = np.where(np.arange(counts.weight.size) == counts.weight.argmax(), 1.0, _LITTLE)
    heavy = np.broadcast_to(heaviest, seen.shape)
    of_positives = (seen, (seen + 1) / 2, np.ones_like(seen), heavy)
    return [(False, rates) for rates in of_positives] + [(True, pattern(negatives)), (True, heavy)]


class EstimateDistribution:
    """The exact distribution of the estimates of samples (S,) of the same cells (C,).

    The estimate is counted in steps of a part of the observed one: a statistic of its own, a sum of
    one hypergeometric distribution for each cell. Cells with few possible counts are added count by
    count, the others by the fast Fourier transform, and the last two only as far as the probability
    needs. `sizes` (C,) are the comments that the cells represent, at least as many as their labels.

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
                np.take_along_axis(of_cell, counts.positives[:, cell, None], 1)[:, 0]
                for cell, of_cell in enumerate(steps)
            ],
            axis=0,
        )
        # Sums above the observed estimates are of no interest.
        self._length = int(self._seen.max()) + 1
        steps = [of_cell[:, : int((of_cell < self._length).sum(1).max())] for of_cell in steps]
        most = [of_cell.shape[1] for of_cell in steps]
        self._cell, self._first = np.repeat(np.arange(sizes.size), most), np.cumsum([0, *most])
        self._positives = np.concatenate([np.arange(number) for number in most])
        self._groups = _groups(most)
        self._places = [
            np.minimum(_combined(np.add, [steps[cell] for cell in group]), self._length)
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
        for other in more[:-1]:
            points = fft.next_fast_len(2 * length - 1, real=True)
            both = fft.rfft(first, points) * fft.rfft(other, points)
            first = fft.irfft(both, points)[:, :length]
        left = most[:, None] - np.arange(length)
        within = left >= 0
        if more:
            first = first * np.take_along_axis(more[-1].cumsum(1), np.maximum(left, 0), 1)
        below = np.where(within, first, 0.0).sum(1)
        return np.asarray(below if upper else 1 - below)

    def _sum(self, cells: list[int], places: Ints, chance: Floats) -> Floats:
        """Return the distribution (R, steps) of the part of some cells in the estimate."""
        parts = [chance[:, self._first[cell] : self._first[cell + 1]] for cell in cells]
        of_sum = _combined(np.multiply, parts)
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


def _combined(join: np.ufunc, parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Return `join` (R, n₁ n₂ …) of every combination of the columns of (R, n₁), (R, n₂), …"""
    total = parts[0]
    for part in parts[1:]:
        total = join(total[:, :, None], part[:, None]).reshape(len(total), -1)
    return total
