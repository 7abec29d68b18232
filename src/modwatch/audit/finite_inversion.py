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

from dataclasses import replace

import numpy as np
from scipy import signal, special, stats

from modwatch.audit.arguments import Ints, whole_numbers
from modwatch.audit.arguments import tails as valid_tails
from modwatch.audit.inversion_interval import HIDDEN_SHARE, inversion_interval, pattern
from modwatch.audit.stratified import WeightedCounts
from modwatch.errors import MetricInputError
from modwatch.metrics.inputs import Floats

#: From this share of labelled comments on, the exact distribution of the estimate is used.
_MUCH = 0.1

#: Part of the error that the limits of the single cells may take.
_FOR_CELLS = 0.1

#: Part of the error that is kept for the estimated pattern of the positives.
_FOR_PATTERN = 0.2

#: Steps of an estimate, for its exact distribution.
_GRID = 512

_STEPS = 24
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
    positives: Ints, labels: int, population: int, tails: tuple[float, float] = (0.025, 0.025)
) -> tuple[Floats, Floats]:
    """Return the exact ends (…) of the share of positives in a finite population.

    All shares K/N at which neither as many positives as observed, nor as few, have a probability
    below `tails`: with tails of 2.5 % it covers the true share in at least 95 % of samples.
    `positives` (…) in 0…labels, `labels` in 1…population. MetricInputError otherwise, DesignError
    for tails outside [0, 0.5).

    >>> ends = hypergeometric_interval(np.array(1), 76, 100)
    >>> [round(100 * float(end)) for end in ends]
    [1, 4]
    """
    valid_tails(tails)
    seen = whole_numbers("positives", positives)
    if not 1 <= labels <= population or (seen > labels).any():
        raise MetricInputError("There must be no more positives than labels, and some labels.")
    if population >= _ENDLESS:
        return _clopper_pearson(seen, labels, tails)
    one, where = np.unique(seen, return_inverse=True)
    high = _most(one, labels, population, tails[1])
    # Few positives are many negatives: the lower end is the upper one of the negatives.
    low = population - _most(labels - one, labels, population, tails[0])
    ends = np.array([low, high])[:, where.ravel()] / population
    return ends[0].reshape(seen.shape), ends[1].reshape(seen.shape)


def _most(seen: Ints, labels: int, population: int, tail: float) -> Ints:
    """Return the most positives (k,) with which so few are seen with a probability of `tail`."""
    low, high = seen.copy(), population - labels + seen  # the largest that is possible
    if tail <= 0:
        return high
    while (low < high).any():
        middle = (low + high + 1) // 2
        likely = stats.hypergeom.cdf(seen, population, middle, labels) >= tail * (1 - 1e-9)
        low, high = np.where(likely, middle, low), np.where(likely, high, middle - 1)
    return np.asarray(low)


def _clopper_pearson(seen: Ints, labels: int, tails: tuple[float, float]) -> tuple[Floats, Floats]:
    low = special.betaincinv(np.maximum(seen, 1), labels - seen + 1, tails[0])
    high = special.betaincinv(seen + 1, np.maximum(labels - seen, 1), 1 - tails[1])
    return (
        np.asarray(np.where((seen > 0) & (tails[0] > 0), low, 0.0), dtype=np.float64),
        np.asarray(np.where((seen < labels) & (tails[1] > 0), high, 1.0), dtype=np.float64),
    )


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
    DesignError for tails outside [0, 0.5), MetricInputError for a hidden share outside [0, 1].

    >>> counts = WeightedCounts(weight=np.array([1 / 76]), labels=np.array([76]),
    ...     positives=np.array([1]), score=np.array([0.02]), unseen=np.array([0.24]))
    >>> [round(float(end), 4) for end in finite_inversion(counts)]
    [0.01, 0.04]
    """
    valid_tails(tails)
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
        ends[0, first : first + _AT_ONCE] = _Sample(part, tails[0]).end(upper=False)
        ends[1, first : first + _AT_ONCE] = _Sample(part, tails[1]).end(upper=True)
    low, high = ends[:, where.ravel()]
    return low.reshape(repetitions), high.reshape(repetitions)


class _Sample:
    """Samples of few comments, and the exact distribution of the estimate of each.

    A row for each sample and each assumption on where the positives are, S × R in all: in the
    cells as observed, evenly, half of each; nearly all in the cell of the largest weight; the
    negatives as observed, or nearly all of them in that cell. No cell has fewer or more than its
    own labels make possible (Berger & Boos 1994).
    """

    def __init__(self, counts: WeightedCounts, tail: float) -> None:
        self._size, self._labels = _comments(counts), counts.labels.tolist()
        self._mass = counts.weight * counts.labels
        self._tail = (1 - _FOR_CELLS) * tail
        shapes = _shapes(counts)
        self._shape = np.concatenate([shape for _, shape in shapes])
        self._mirrored = np.repeat([mirrored for mirrored, _ in shapes], len(counts.positives))
        self._assumptions = len(shapes)
        limits = self._limits(counts.positives, _FOR_CELLS * tail / self._size.size)
        self._fewest, self._most = (np.tile(each, (len(shapes), 1)) for each in limits)
        # The estimate in steps: a statistic of its own, whose distribution is exact.
        step = np.maximum(counts.rate, _LEAST)[:, None] / _GRID
        steps = [
            np.rint(np.arange(labels + 1) * (weight / step)).clip(max=2 * _GRID).astype(np.int64)
            for labels, weight in zip(self._labels, counts.weight.tolist(), strict=True)
        ]
        seen = sum(
            np.take_along_axis(each, counts.positives[:, cell, None], 1)
            for cell, each in enumerate(steps)
        )
        self._steps = [np.tile(each, (len(shapes), 1)) for each in steps]
        self._seen = np.tile(seen, (len(shapes), 1))
        self._log = special.gammaln(np.arange(int(self._size.max()) + 1) + 1.0)

    def end(self, *, upper: bool) -> Floats:
        """Return the largest (or smallest) share (R,) under which the estimate is likely enough."""
        most: Floats = (self._most if upper else self._fewest).astype(np.float64)
        if self._tail > 0:
            most = self._furthest(upper=upper)
        comments = self._size.sum()
        end = comments * (most / self._size @ self._mass)
        whole = np.ceil(end - _ROUNDING) if upper else np.floor(end + _ROUNDING)
        ends = (whole / comments).reshape(self._assumptions, -1)
        return np.asarray(ends.max(0) if upper else ends.min(0))

    def _limits(self, positives: Ints, tail: float) -> tuple[Ints, Ints]:
        """Return the fewest and the most positives (R, C) of each cell, by its labels alone."""
        ends = [
            hypergeometric_interval(seen, labels, size, (tail, tail))
            for seen, labels, size in zip(
                positives.T, self._labels, self._size.tolist(), strict=True
            )
        ]
        low, high = np.moveaxis(np.array(ends), 0, -1) * self._size
        return np.rint(low).astype(np.int64), np.rint(high).astype(np.int64)

    def _furthest(self, *, upper: bool) -> Floats:
        """Return the most (or fewest) positives (S R, C) under which the estimate is likely."""
        # On a logarithmic scale, from hardly any positives (or negatives) to as many as possible.
        low = np.full(len(self._shape), np.log(_LEAST))
        high = -np.log(np.maximum(self._shape.min(-1), _LEAST))
        rising = self._mirrored != upper
        for _ in range(_STEPS):
            middle = (low + high) / 2
            likely = self._probability(self._positives(middle), upper=upper) >= self._tail
            raised = likely == rising
            low, high = np.where(raised, middle, low), np.where(raised, high, middle)
        return self._positives(np.where(rising, high, low))

    def _positives(self, factor: Floats) -> Floats:
        """Return the positives (S R, C) of the cells, as many as their labels leave possible."""
        wanted = np.exp(factor)[:, None] * self._shape * self._size
        wanted = np.where(self._mirrored[:, None], self._size - wanted, wanted)
        return np.asarray(np.clip(wanted, self._fewest, self._most))

    def _probability(self, positives: Floats, *, upper: bool) -> Floats:
        """Return the probability (S R,) of an estimate no larger, or no smaller, than observed."""
        chance = self._distribution(0, positives[:, 0])
        for cell in range(1, self._size.size):
            more = self._distribution(cell, positives[:, cell])
            # Sums above the observed estimate are of no interest.
            chance = signal.fftconvolve(chance, more, axes=1)[:, : chance.shape[1]]
        at = np.arange(chance.shape[1])
        if upper:
            return np.asarray(np.where(at <= self._seen, chance, 0).sum(-1))
        return np.asarray(1 - np.where(at < self._seen, chance, 0).sum(-1))

    def _distribution(self, cell: int, positives: Floats) -> Floats:
        """Return the distribution (S R, steps) of a cell's part of the estimate, up to the largest.

        Between two whole numbers of positives, a mixture of their distributions.
        """
        whole = np.floor(positives).astype(np.int64)
        more = (positives - whole)[:, None]
        chance = (1 - more) * self._hypergeometric(cell, whole)
        chance += more * self._hypergeometric(cell, np.minimum(whole + 1, self._size[cell]))
        steps, length = self._steps[cell], int(self._seen.max()) + 1
        inside = steps < length
        place = steps + length * np.arange(len(positives))[:, None]
        counted = np.bincount(place[inside], chance[inside], minlength=length * len(positives))
        return np.asarray(counted.reshape(len(positives), length), dtype=np.float64)

    def _hypergeometric(self, cell: int, positives: Ints) -> Floats:
        """Return the probabilities (S R, n + 1) of 0 to n positives among the labels of a cell."""
        size, labels, log = int(self._size[cell]), self._labels[cell], self._log
        seen = np.arange(labels + 1)
        of = positives[:, None]
        possible = (seen <= of) & (labels - seen <= size - of)
        missed, rest = np.where(possible, of - seen, 0), np.where(possible, labels - seen, 0)
        left = np.where(possible, size - of - rest, 0)
        whole = log[size] - log[labels] - log[size - labels]
        value = log[of] - log[seen] - log[missed] + log[size - of] - log[rest] - log[left] - whole
        return np.exp(np.where(possible, value, -np.inf))


def _shapes(counts: WeightedCounts) -> list[tuple[bool, Floats]]:
    """Return whether it is of the negatives, and the relative rate (R, C), of each assumption."""
    negatives = replace(counts, positives=counts.labels - counts.positives, score=1 - counts.score)
    seen = pattern(counts)
    heaviest = np.where(np.arange(counts.weight.size) == counts.weight.argmax(), 1.0, _LITTLE)
    heavy = np.broadcast_to(heaviest, seen.shape)
    of_positives = (seen, (seen + 1) / 2, np.ones_like(seen), heavy)
    return [(False, each) for each in of_positives] + [(True, pattern(negatives)), (True, heavy)]
