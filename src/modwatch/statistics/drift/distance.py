"""How far two populations lie apart, as effect sizes that do not depend on how much was seen.

Two samples of one population differ by chance, the more the smaller they are and the more bins
there are. So each estimate is freed of the part that chance adds on average, and comes with a 95 %
interval of the noise that remains. Comments are taken to be drawn independently; threads and storms
make real days vary more.

Intervals are those of samples to which a few rows are added (`_ADDED`): where few rows are all
alike, others have not been seen yet.

Counts are of n rows of the day and m rows of the reference over the same bins. Neither is empty:
whoever has nothing to compare asks for no distance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats
from modwatch.statistics.intervals import NORMAL_QUANTILE as _Z
from modwatch.statistics.intervals import difference_interval, wilson

#: Part of either population that PSI spreads evenly over the bins. A fixed part, not a fixed count:
#: with half a count in each empty bin, PSI of populations that do not overlap grows with ln n.
SMOOTHING = 0.01

#: Rows that intervals add to each side, half of them by the shares of both sides together, half
#: evenly, so that no bin is empty. For two bins these are those of Agresti & Caffo (2000).
_ADDED = 2.0

#: Standard deviations to either side of its mean in which a count is summed over, and the steps.
_REACH, _STEPS = 8.0, 128


@dataclass(frozen=True, kw_only=True)
class Effect:
    """An effect size with its 95 % interval of sampling noise."""

    value: float
    low: float
    high: float


def population_stability_index(counts: ArrayLike, reference: ArrayLike) -> Effect:
    """Return PSI ≥ 0 of two histograms (B,): 0 is alike, above 0.2 is commonly called a shift.

    Σ (p − q)·ln(p/q), in nats, the symmetrised divergence of Jeffreys (1946), after `SMOOTHING` of
    each side is spread evenly. What chance adds to samples of one population (see `_divergence`),
    about (B−1)(1/n + 1/m) where no bin has few rows (Yurdakul & Naranjo 2020), is taken off. Raises
    MetricInputError unless both are counts of the same bins with something in them.

    >>> population_stability_index([500, 500], [50, 50]).value
    0.0
    >>> round(population_stability_index([9000, 1000], [5000, 5000]).value, 2)
    0.85
    """
    pair = _Pair.from_counts(counts, reference)

    def smooth(share: Floats) -> Floats:
        return (1 - SMOOTHING) * share + SMOOTHING / pair.day.size

    def term(p: Floats, q: Floats) -> Floats:
        return (smooth(p) - smooth(q)) * np.log(smooth(p) / smooth(q))

    def slope(p: Floats, q: Floats) -> Floats:
        ratio = smooth(p) / smooth(q)
        return (1 - SMOOTHING) * (np.log(ratio) + 1 - 1 / ratio)

    return _divergence(pair, term, slope, one=1.0, most=math.inf)


def jensen_shannon(counts: ArrayLike, reference: ArrayLike) -> Effect:
    """Return the Jensen–Shannon divergence (not its root) in bits of two histograms (B,).

    In [0, 1]: 0 is alike, 1 is nothing in common (Lin 1991). What chance adds (see `_divergence`),
    about (B−1)(1/n + 1/m)/(8 ln 2) where no bin has few rows, is taken off. Raises as
    `population_stability_index`.

    >>> apart = jensen_shannon([10, 0], [0, 10])
    >>> [round(end, 2) for end in (apart.low, apart.value, apart.high)]
    [0.15, 1.0, 1.0]
    """

    def term(p: Floats, q: Floats) -> Floats:
        return (special.rel_entr(p, (p + q) / 2) + special.rel_entr(q, (p + q) / 2)) / math.log(4)

    def slope(p: Floats, q: Floats) -> Floats:
        return np.log2(2 * p / (p + q)) / 2

    pair = _Pair.from_counts(counts, reference)
    return _divergence(pair, term, slope, one=1 / (8 * math.log(2)), most=1.0)


def share(part: int, whole: int) -> Effect:
    """Return part/whole in [0, 1] with the score interval of Wilson (1927); `whole` above 0."""
    if not 0 <= part <= whole or whole == 0:
        raise MetricInputError(f"{part} of {whole} is no share; count the part within the whole")
    low, high = wilson(part, whole)
    return Effect(value=part / whole, low=low, high=high)


def share_change(part: int, whole: int, reference_part: int, reference_whole: int) -> Effect:
    """Return by how much a share lies above the reference's, in [−1, 1].

    Interval: Newcombe (1998), method 10.
    """
    day, before = share(part, whole), share(reference_part, reference_whole)
    sides = ((mean.value, mean.low, mean.high) for mean in (day, before))
    value, low, high = difference_interval(*sides)
    return Effect(value=value, low=low, high=high)


@dataclass(frozen=True, kw_only=True)
class _Pair:
    """Two histograms over the same bins."""

    #: (B,) rows of the day, and of both sides together.
    day: Floats
    total: Floats
    #: Rows of either side, n and m.
    sizes: tuple[float, float]

    @classmethod
    def from_counts(cls, counts: ArrayLike, reference: ArrayLike) -> _Pair:
        """Return the pair; MetricInputError unless both are counts with something in them."""
        given = {"counts": counts, "reference": reference}
        day, before = (arguments.whole_numbers(*side).astype(np.float64) for side in given.items())
        arguments.same_length(counts=day, reference=before)
        for name, side in (("counts", day), ("reference", before)):
            if side.ndim != 1 or not side.any():
                raise MetricInputError(
                    f"{name} must be counts of bins, some above 0; leave empty days out"
                )
        return cls(day=day, total=day + before, sizes=(float(day.sum()), float(before.sum())))

    def shares(self, rows: float = 0.0) -> tuple[Floats, Floats]:
        """Return the shares (B,) of either side with `rows` added."""
        return self.divided(self.day, self.total, rows)

    def divided(self, day: Floats, total: Floats, rows: float) -> tuple[Floats, Floats]:
        """Return the shares (…) of bins with `total` rows of which the day has these."""
        n, m = self.sizes
        added = rows / 2 * (total / (n + m) + 1 / self.day.size)
        return (day + added) / (n + rows), (total - day + added) / (m + rows)

    def error(self, scores: tuple[Floats, Floats], rows: float) -> float:
        """Return the standard error of the sum of the means of a score (B,) of either side."""
        means = zip(self.shares(rows), scores, self.sizes, strict=True)
        return math.sqrt(sum(np.dot(p, (s - np.dot(p, s)) ** 2) / n for p, s, n in means))


def _divergence(
    pair: _Pair,
    term: Callable[[Floats, Floats], Floats],
    slope: Callable[[Floats, Floats], Floats],
    *,
    one: float,
    most: float,
) -> Effect:
    """Return a divergence Σ term(p, q) ≤ `most` of shares, freed of what chance adds.

    That is its mean where the rows of both sides are dealt out to them at random, as of one
    population; in shares of `most`, like the adjusted mutual information of Vinh, Epps & Bailey
    (2010), so that nothing in common stays so. It is exact, also where most bins have few rows. It
    is a little too much where the share of such bins rose, too little where it fell.

    `slope` is the derivative of the term by p; by q it is slope(q, p), since terms are symmetric.
    The noise is that of dealing out, with its skewness (Cornish & Fisher 1938), or that of the
    slopes where it is larger. Slopes of bins with few rows are mostly noise: one row a bin is
    added. Above, both noises add up, and what they may hide: a divergence grows with the square of
    z standard errors, and (z + 1.96)² has 1.96² more. In one category chance adds
    `one`·(1/n + 1/m).
    """
    n, m = pair.sizes
    one *= 1 / n + 1 / m
    (found, chance, *_), (nearer, chance_near, variance, third) = (
        (float(term(*pair.shares(rows)).sum()), *_dealt_out(pair, term, rows))
        for rows in (0.0, _ADDED)
    )
    rows = max(pair.day.size, _ADDED)
    p, q = pair.shares(rows)
    error = pair.error((slope(p, q), slope(q, p)), rows)
    noise = max(math.sqrt(variance), math.sqrt(2) * one)
    value = max(found - chance, 0.0)
    skewness = min(max(third / noise**3, 0.0), 3.0)
    below = max(noise * (_Z + (_Z**2 - 1) / 6 * skewness), _Z * error)
    low = min(value, nearer - chance_near - below)
    high = value + _Z * math.hypot(noise, error) + _Z**2 * one
    # Where no category has two rows, chance is all there is.
    scale = 1 / max(1 - chance / most, 1e-9)
    low, value, high = (min(max(end * scale, 0.0), most) for end in (low, value, high))
    return Effect(value=value, low=low, high=high)


def _dealt_out(
    pair: _Pair, term: Callable[[Floats, Floats], Floats], rows: float
) -> tuple[float, float, float]:
    """Return mean, and 2nd and 3rd central moment, of Σ term(p, q) of rows dealt out at random.

    Of the t rows of a bin, a come to the day with the hypergeometric distribution; then `rows` are
    added to each side. The mean is exact. So are the moments, but for the dependence of bins, which
    is small where they are many; where a spreads widely, every k-th is summed over.
    """
    n, m = pair.sizes
    total, times = np.unique(pair.total, return_counts=True)
    mean = total * n / (n + m)
    reach = _REACH * np.sqrt(mean * m / (n + m)) + 1
    first = np.floor(np.maximum(mean - reach, np.maximum(total - m, 0)))
    last = np.ceil(np.minimum(mean + reach, np.minimum(total, n)))
    step = np.maximum(np.ceil((last - first) / _STEPS), 1)
    day = first + step * np.arange(((last - first) // step).max() + 1)[:, None]  # (K, T)
    inside = day <= last
    day = np.where(inside, day, first)
    parts = day, total - day, n - day, m - total + day
    log = np.where(inside, -sum(special.gammaln(part + 1) for part in parts), -np.inf)
    weight = np.exp(log - log.max(axis=0))
    weight *= times / weight.sum(axis=0)
    terms = term(*pair.divided(day, total, rows))
    means = (weight * terms).sum(axis=0) / times
    second, third = (float((weight * (terms - means) ** power).sum()) for power in (2, 3))
    return float(np.dot(times, means)), second, third
