"""The default interval of an audit: inverts a test that allows for positives the score misses.

Positives that the score rates as harmless are rarely drawn, and weigh heavily when one is. The
usual intervals (Korn–Graubard, logit) ignore that possibility where no such positive was
drawn, and miss the true value in up to a quarter of audits. This interval inverts a test instead: a
share θ belongs to the interval unless the estimate would be that small (or large) with a mid-P
probability under 2.5 %. For the upper end, any part of the positives up to `hidden_share` may be
spread evenly over all comments, as far as the labels allow; the rest follows the observed labels,
and the score where there were few. The interval is valid as long as the score misses at most
`hidden_share` of the positives.
"""

import numpy as np
from scipy import special, stats

from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats
from modwatch.statistics.audit.stratified import WeightedCounts

#: Share of the positives that the score may not detect.
HIDDEN_SHARE = 0.3

#: Weight of the scores in `pattern`, in positives: decides where few were drawn.
_PRIOR_POSITIVES = 1.0

#: A hidden share is rejected when it makes the labels of the heaviest cells less likely than this.
_POSSIBLE = 0.002

#: Cells whose weight exceeds this part of the largest are counted exactly.
_HEAVY = 0.5

_STEPS = 32

#: Smallest upper end; a cell whose relative rate is lower stays at 0.
_LEAST = 1e-12


def pattern(counts: WeightedCounts) -> Floats:
    """Return the relative rate (…, C) of positives in each cell, with weighted mean 1.

    As observed, with one more positive spread in proportion to the scores.
    """
    expected = counts.labels * counts.score
    total = expected.sum()
    expected = expected / total if total > 0 else counts.labels / counts.labels.sum()
    rate = (counts.positives + _PRIOR_POSITIVES * expected) / counts.labels
    mean = rate @ (counts.weight * counts.labels)
    return np.asarray(rate / mean[..., None])


def inversion_interval(
    counts: WeightedCounts,
    *,
    tails: tuple[float, float] = (0.025, 0.025),
    hidden_share: float = HIDDEN_SHARE,
    found: float | Floats = 0.0,
) -> tuple[Floats, Floats]:
    """Return the lower and upper end (…) of the interval; `tails` are the probabilities beyond.

    `hidden_share` refers to the positives of these cells and those `found` (…) elsewhere, in
    positives for each comment of these cells.
    A tail of 0 gives the smallest or largest possible share: 0 or 1, except for cells of which
    every comment is labelled.
    MetricInputError for a hidden share outside [0, 1].

    >>> counts = WeightedCounts(weight=np.array([0.002]), labels=np.array([500]),
    ...     positives=np.array([10]), score=np.array([0.02]), unseen=np.array([1.0]))
    >>> [round(float(end), 4) for end in inversion_interval(counts)]
    [0.0102, 0.0354]
    """
    arguments.fraction("the hidden share", hidden_share)
    certain = counts.unseen <= 0
    known = np.asarray(counts.positives[..., certain] @ counts.weight[certain])
    mass = float((counts.weight * counts.labels)[~certain].sum())
    if mass <= 0:
        return np.clip(known, 0, 1), np.clip(known, 0, 1)
    part = counts.part(~certain)
    low = _lower(part, tails[0]) if tails[0] > 0 else np.zeros(part.rate.shape)
    high = np.ones(part.rate.shape)
    if tails[1] > 0:
        high = _upper(part, tails[1], hidden_share, np.asarray(found) / mass)
    return np.clip(known + mass * low, 0, 1), np.clip(known + mass * high, 0, 1)


def _lower(counts: WeightedCounts, tail: float) -> Floats:
    """Return the smallest share under which the estimate is not too large."""
    shape = pattern(counts)
    low, high = np.zeros(counts.rate.shape), counts.rate.copy()
    for _ in range(_STEPS):
        middle = (low + high) / 2
        likely = 1 - _below(counts, middle[..., None] * shape) >= tail
        low, high = np.where(likely, low, middle), np.where(likely, middle, high)
    return _share(counts, low[..., None] * shape)


def _upper(counts: WeightedCounts, tail: float, hidden_share: float, found: Floats) -> Floats:
    """Return the largest share, over hidden shares, under which the estimate is not too small."""
    visible = pattern(counts)
    # All hidden shares (h, 1…) at once.
    most = np.array(sorted({0.0, hidden_share / 2, hidden_share}))
    most = most.reshape(-1, *(1 for _ in counts.rate.shape))
    # Factors of the shape, on a logarithmic scale, up to a rate of 1 in every cell.
    shape = (1 - most[..., None]) * visible + most[..., None]
    high = -np.log(np.where(shape > _LEAST, shape, 1.0).min(-1))
    low = np.broadcast_to(np.log(np.maximum(counts.rate, _LEAST)), high.shape)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        rates = _rates(np.exp(middle), visible, most, found)
        likely = _below(counts, rates) >= tail
        likely &= (most == 0) | _possible(counts, rates)
        low, high = np.where(likely, middle, low), np.where(likely, high, middle)
    shares = _share(counts, _rates(np.exp(high), visible, most, found))
    return np.asarray(np.maximum(counts.rate, shares.max(0)))


def _rates(share: Floats, visible: Floats, most: Floats, found: Floats) -> Floats:
    """Return the rates (…, C) at a share, `most` (…) of all positives being spread evenly."""
    hidden = np.minimum(most * (1 + found / share), 1)[..., None]
    return np.asarray(share[..., None] * ((1 - hidden) * visible + hidden))


def _share(counts: WeightedCounts, rates: Floats) -> Floats:
    """Return the share (…) at rates (…, C), each capped at 1."""
    return np.asarray(np.minimum(rates, 1) @ (counts.weight * counts.labels))


def _possible(counts: WeightedCounts, rates: Floats) -> np.ndarray:
    """Return whether (…) as few positives as observed in the heaviest cells are likely enough."""
    heavy = _heavy(counts)
    labels = counts.labels[heavy].sum()
    expected = (counts.labels * np.minimum(rates, 1))[..., heavy].sum(-1)
    positives = counts.positives[..., heavy].sum(-1)
    chance = np.minimum(expected / labels, 1)
    return np.asarray(stats.binom.cdf(positives, labels, chance) >= _POSSIBLE)


def _heavy(counts: WeightedCounts) -> np.ndarray:
    return np.asarray(counts.weight > _HEAVY * counts.weight.max())


def _below(counts: WeightedCounts, rates: Floats) -> Floats:
    """Return the mid-P probability (…) of an estimate no larger than the observed, at rates (…, C).

    Positives of the heavy cells follow a binomial distribution; the sum of the others a gamma
    distribution of the same mean and variance, with a point mass at 0.
    """
    rates = np.where(rates < _LEAST**2, 0.0, np.minimum(rates, 1 - 1e-9))
    heavy = _heavy(counts)
    if heavy.all():
        return _binomial_below(counts, rates)
    mean, variance = _moments(counts, rates, ~heavy)
    none = np.exp((counts.labels * np.log1p(-rates))[..., ~heavy].sum(-1))
    labels, rate, weight = _one_by_one(counts, rates, heavy)
    positives = np.arange(_most(rate, labels) + 1)
    left = counts.rate[..., None] - weight[..., None] * positives
    tiny = 1e-12
    light = special.gammainc(
        (mean**2 / np.maximum(variance, 1e-300))[..., None],
        np.maximum(left, 0) * (mean / np.maximum(variance, 1e-300))[..., None],
    )
    light = np.maximum(light, none[..., None])
    light = np.where(np.abs(left) <= tiny, none[..., None] / 2, np.where(left > 0, light, 0.0))
    chance = stats.binom.pmf(positives, labels, rate[..., None])
    return np.asarray((chance * light).sum(-1))


def _one_by_one(
    counts: WeightedCounts, rates: Floats, heavy: np.ndarray
) -> tuple[int, Floats, Floats]:
    """Return the heavy cells merged into one: labels, rate and weight of a positive."""
    labels = counts.labels[heavy]
    expected = labels * rates[..., heavy]
    total = np.maximum(expected.sum(-1), 1e-300)
    weight = (expected @ counts.weight[heavy]) / total
    unseen = float(np.average(counts.unseen[heavy], weights=labels))
    effective = max(round(float(labels.sum()) / unseen), 1)
    return effective, expected.sum(-1) / labels.sum(), weight * labels.sum() / effective


def _moments(counts: WeightedCounts, rates: Floats, cells: np.ndarray) -> tuple[Floats, Floats]:
    """Return mean and variance (…) of the contribution of some cells to the estimate."""
    weight, labels = counts.weight[cells], counts.labels[cells]
    rate = rates[..., cells]
    mean = rate @ (weight * labels)
    variance = (rate * (1 - rate)) @ (weight**2 * labels * counts.unseen[cells])
    return np.asarray(mean), np.asarray(variance)


def _most(rate: Floats, labels: int) -> int:
    """Return the largest number of positives with a relevant probability."""
    mean = float(np.max(rate)) * labels
    return int(min(labels, np.ceil(mean + 8 * np.sqrt(mean) + 12)))


def _binomial_below(counts: WeightedCounts, rates: Floats) -> Floats:
    """Return the same for cells of similar weight, whose count is binomial."""
    everywhere = np.ones(counts.labels.size, dtype=bool)
    mean, variance = _moments(counts, rates, everywhere)
    trials = np.maximum(mean * (1 - mean) / np.maximum(variance, 1e-300), 1.0)
    positives = counts.rate * trials
    beyond = np.where(
        positives > 0,
        special.betainc(np.maximum(positives, 1e-12), trials - positives + 1, mean),
        1,
    )
    beyond_one = special.betainc(positives + 1, np.maximum(trials - positives, 1e-12), mean)
    return np.asarray(1 - (beyond + beyond_one) / 2)
