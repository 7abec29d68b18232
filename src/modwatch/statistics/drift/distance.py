"""How far two populations lie apart, as effect sizes that do not depend on how much was seen.

Two samples of one population differ by chance, the more the smaller they are. So each estimate is
freed of the part that chance adds on average, and comes with a 95 % interval of the noise that
remains. Comments are taken to be drawn independently; threads and storms make real days vary more.

Counts are of n rows of the day and m rows of the reference over the same bins. Neither is empty:
whoever has nothing to compare asks for no distance.
"""

import math
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


@dataclass(frozen=True, kw_only=True)
class Effect:
    """An effect size with its 95 % interval of sampling noise."""

    value: float
    low: float
    high: float
    #: `higher`, `lower` or `both`; None where there is none, or noise hides it.
    direction: str | None = None


def population_stability_index(counts: ArrayLike, reference: ArrayLike) -> Effect:
    """Return PSI ≥ 0 of two histograms (B,): 0 is alike, above 0.2 is commonly called a shift.

    Σ (p − q)·ln(p/q), in nats, the symmetrised divergence of Jeffreys (1946), after `SMOOTHING` of
    each side is spread evenly. Chance adds (B−1)(1/n + 1/m) to samples of one population (Yurdakul
    & Naranjo 2020); its estimate, by the second derivatives, is taken off. Raises MetricInputError
    unless both are counts of the same bins with something in them.

    >>> population_stability_index([500, 500], [50, 50]).value
    0.0
    >>> round(population_stability_index([9000, 1000], [5000, 5000]).value, 2)
    0.85
    """
    p, q, n, m = _shares(counts, reference)
    kept = 1 - SMOOTHING
    a, b = (kept * share + SMOOTHING / share.size for share in (p, q))
    log = np.log(a / b)
    return _divergence(
        float(np.dot(a - b, log)),
        slopes=(kept * (log + 1 - b / a), kept * (1 - a / b - log)),
        noise=(kept**2 * (1 / a + b / a**2) * p, kept**2 * (1 / b + a / b**2) * q),
        shares=(p, q),
        sizes=(n, m),
    )


def jensen_shannon(counts: ArrayLike, reference: ArrayLike) -> Effect:
    """Return the Jensen–Shannon divergence (not its root) in bits of two histograms (B,).

    In [0, 1]: 0 is alike, 1 is nothing in common (Lin 1991). What chance adds, about
    (B−1)(1/n + 1/m)/(8 ln 2), is taken off. Raises as `population_stability_index`.

    >>> jensen_shannon([10, 0], [0, 10])
    Effect(value=1.0, low=1.0, high=1.0, direction=None)
    """
    p, q, n, m = _shares(counts, reference)
    middle = p + q
    a, b = (special.xlogy(share > 0, _over(2 * share, middle)) / math.log(2) for share in (p, q))
    # The second derivative by p is q/(p(p+q)) / (2 ln 2); times p it is finite in an empty bin.
    bend = (p > 0) * (q > 0) / (2 * math.log(2))
    effect = _divergence(
        float(np.dot(p, a) + np.dot(q, b)) / 2,
        slopes=(a / 2, b / 2),
        noise=(bend * _over(q, middle), bend * _over(p, middle)),
        shares=(p, q),
        sizes=(n, m),
    )
    return Effect(value=min(effect.value, 1.0), low=effect.low, high=min(effect.high, 1.0))


def mean_shift(counts: ArrayLike, reference: ArrayLike, *, width: float) -> Effect:
    """Return by how much the day's mean lies above the reference's; below 0: scores fell.

    Bins (B,) are equal, `width` wide, and count at their middle: the shift is off by at most
    `width`, and by far less where scores spread smoothly over a bin. Welch's interval.

    >>> mean_shift([0, 4], [4, 0], width=0.5)
    Effect(value=0.5, low=0.5, high=0.5, direction='higher')
    """
    p, q, n, m = _shares(counts, reference)
    middle = np.linspace(width / 2, (p.size - 0.5) * width, p.size)
    value = float(np.dot(p - q, middle))
    error = math.sqrt(_variance(middle, p, n) + _variance(middle, q, m))
    return _signed(value, value - _Z * error, value + _Z * error)


def wasserstein(counts: ArrayLike, reference: ArrayLike, *, width: float) -> Effect:
    """Return Wasserstein-1 ≥ 0: how far scores moved on average, in the scores' own unit.

    ∫|F − G| over equal bins (B,), `width` wide; binning moves it by at most `width`. Two samples
    of one population lie ∫√(2/π · (F(1−F)/n + G(1−G)/m)) apart on average; that is taken off in
    quadrature, since it is lost in a larger shift. The direction is `both` when less than three
    quarters of the way goes up, and less than three quarters down.

    >>> moved = wasserstein([0, 0, 1000], [1000, 0, 0], width=0.1)
    >>> round(moved.value, 9), moved.direction
    (0.2, 'higher')
    """
    p, q, n, m = _shares(counts, reference)
    below, below_reference = np.cumsum(p)[:-1], np.cumsum(q)[:-1]
    rise = width * (below_reference - below)  # its sum is the shift of the mean
    variance = below * (1 - below) / n + below_reference * (1 - below_reference) / m
    chance = width * float(np.sqrt(2 / math.pi * np.maximum(variance, 0)).sum())
    up, down = float(rise[rise > 0].sum()), float(-rise[rise < 0].sum())
    value = math.sqrt(max((up + down) ** 2 - chance**2, 0.0))
    # By duality the distance is the difference of the means of this function of the score.
    potential = width * np.append(0.0, np.cumsum(np.sign(rise)))
    error = math.sqrt(_variance(potential, p, n) + _variance(potential, q, m))
    margin = _Z * max(error, chance)
    low, way = max(value - margin, 0.0), "both"
    if abs(up - down) > (up + down) / 2:
        way = "higher" if up > down else "lower"
    return Effect(value=value, low=low, high=value + margin, direction=way if low else None)


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
    return _signed(*difference_interval(*sides))


def _signed(value: float, low: float, high: float) -> Effect:
    """Return a difference with its direction."""
    way = "higher" if low > 0 else "lower" if high < 0 else None
    return Effect(value=value, low=low, high=high, direction=way)


def _divergence(
    value: float,
    *,
    slopes: tuple[Floats, Floats],
    noise: tuple[Floats, Floats],
    shares: tuple[Floats, Floats],
    sizes: tuple[float, float],
) -> Effect:
    """Return a divergence freed of what chance adds, by its Taylor series around the shares.

    `slopes` are its first derivatives by the shares; `noise` its second, times the share. Chance
    then adds ½Σ noise·(1−p)/n on average. That part is spread like a χ² of B−1 degrees of freedom,
    whose variance is 2/(B−1) times its squared mean.
    """
    chance, variance = 0.0, 0.0
    for slope, bend, side, size in zip(slopes, noise, shares, sizes, strict=True):
        chance += float(np.dot(bend, 1 - side)) / size / 2
        variance += _variance(slope, side, size)
    freedom = max(int((shares[0] + shares[1] > 0).sum()) - 1, 1)
    margin = _Z * math.sqrt(variance + chance**2 * 2 / freedom)
    low, value = max(value - chance - margin, 0.0), max(value - chance, 0.0)
    return Effect(value=value, low=low, high=value + margin)


def _variance(score: Floats, shares: Floats, size: float) -> float:
    """Return the variance of the mean of a score (B,) over `size` rows in these shares."""
    mean = float(np.dot(shares, score))
    return float(np.dot(shares, (score - mean) ** 2)) / size


def _shares(counts: ArrayLike, reference: ArrayLike) -> tuple[Floats, Floats, float, float]:
    """Return both histograms as shares (B,), and their sizes."""
    day, before = arguments.column("counts", counts), arguments.column("reference", reference)
    arguments.same_length(counts=day, reference=before)
    for name, column in (("counts", day), ("reference", before)):
        if not column.size or column.min() < 0 or column.sum() <= 0:
            raise MetricInputError(f"{name} must be counts ≥ 0, some above 0; leave empty days out")
    n, m = float(day.sum()), float(before.sum())
    return day / n, before / m, n, m


def _over(part: Floats, whole: Floats) -> Floats:
    """Return part/whole, 1 where the whole is 0."""
    return np.divide(part, whole, out=np.ones_like(whole), where=whole > 0)
