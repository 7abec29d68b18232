"""Allocation of labels to strata. All functions return n_h (H,), which sum to `labels`.

Each stratum first gets `MINIMUM` labels, or its whole population if that is smaller. The rest is
shared by the method, never beyond the population; a budget larger than the population labels all
of it. Wei et al., section 4.4 and appendix A.3.

`neyman` trusts the scores only as far as `safe_minima` allow: whatever the labels turn out to be,
its estimate has at most `worst_case` times the variance of a random sample of as many labels.

All raise DesignError for a budget below the sum of the minima, and MetricInputError for arrays of
the wrong shape or range.
"""

import numpy as np
from numpy.typing import ArrayLike

from modwatch.common.errors import DesignError
from modwatch.statistics.arguments import (
    Floats,
    Ints,
    budget,
    one_per_stratum,
    shares,
    strata_sizes,
)
from modwatch.statistics.sampling import allocate

#: At most how many times the variance of a random sample `neyman` may have, however wrong the
#: scores are. Costs little where they are right: the strata in which positives are likely are small
#: (docs/decisions/audits.md).
WORST_CASE = 1.1

#: Minimum labels of a stratum: a variance estimate needs two.
MINIMUM = 2


def proportional(population: ArrayLike, labels: int) -> Ints:
    """Return numbers in proportion to the population.

    >>> proportional([100, 900], 20).tolist()
    [2, 18]
    """
    sizes = strata_sizes(population)
    return beyond(sizes.astype(np.float64), sizes, _least(sizes, labels), labels)


def neyman(
    population: ArrayLike,
    spread: ArrayLike,
    labels: int,
    *,
    worst_case: float = WORST_CASE,
) -> Ints:
    """Return numbers ∝ N_h × spread_h, but at least `safe_minima` of each stratum (the default).

    `spread` (H,) is the expected standard deviation of the label in each stratum, such as √(p(1−p))
    of its mean score p. Where the labels are too few for the minima of so many strata, the numbers
    are proportional; `design` then uses fewer strata.

    >>> neyman([900, 100], [0.1, 0.5], 100, worst_case=10).tolist()
    [65, 35]
    >>> neyman([900, 100], [0.1, 0.5], 100).tolist()
    [83, 17]
    """
    sizes = strata_sizes(population)
    deviation = shares("spread", spread)
    one_per_stratum(sizes.size, spread=deviation)
    least = _least(sizes, labels)
    safe = np.maximum(safe_minima(sizes, labels, worst_case), least)
    if safe.sum() > min(labels, sizes.sum()):
        return beyond(sizes.astype(np.float64), sizes, least, labels)
    wanted = sizes * deviation if deviation.any() else sizes.astype(np.float64)
    return beyond(wanted, sizes, safe, labels)


def safe_minima(population: ArrayLike, labels: int, worst_case: float = WORST_CASE) -> Ints:
    """Return the fewest labels (H,) of each stratum that keep the promise of `worst_case`.

    With these or more, the stratified estimate of a mean has at most `worst_case` times the
    variance of that of a random sample of `labels` comments, whatever values the comments have;
    with fewer in any stratum, some values break it. In short, n_h ≥ n W_h / worst_case.

    The sum of squares about the mean, (N−1)S², is at least that within the strata, Σ(N_h−1)S_h²,
    and may lie in any one of them. Σ (N_h/N)² S_h² (1/n_h − 1/N_h) ≤ c S² (1/n − 1/N) therefore
    holds always if and only if, stratum by stratum,

        1/n_h ≤ 1/N_h + c (1/n − 1/N) N²/(N−1) (N_h−1)/N_h².

    The sum may exceed `labels` where strata are many and labels few. DesignError for a `worst_case`
    below 1.

    >>> safe_minima([900, 100], 100).tolist()
    [83, 10]
    """
    if not 1 <= worst_case < np.inf:
        raise DesignError(f"The worst case must be a number of at least 1, got {worst_case}.")
    sizes = strata_sizes(population)
    whole = int(sizes.sum())
    if budget(labels) >= whole:
        return sizes
    allowed = worst_case * (1 / max(labels, 1) - 1 / whole) * whole**2 / max(whole - 1, 1)
    most = 1 / sizes + allowed * (sizes - 1) / sizes**2
    # Less a rounding error, so that a whole number stays itself.
    return np.minimum(sizes, np.ceil(1 / most - 1e-9)).astype(np.int64)


def beyond(wanted: Floats, sizes: Ints, first: Ints, labels: int) -> Ints:
    """Return n_h ≥ first_h that sum to `labels`, otherwise as close as possible to ∝ wanted."""
    labels = min(budget(labels), int(sizes.sum()))
    if labels < first.sum():
        raise DesignError(
            f"{labels} labels are fewer than the {int(first.sum())} that are given already; "
            "increase the budget"
        )
    free, share = np.ones(sizes.size, dtype=bool), np.zeros(sizes.size)
    while free.any():  # each round fixes strata, or is the last
        left, mass = labels - int(first[~free].sum()), np.where(free, wanted, 0.0)
        share = left * mass / max(float(mass.sum()), np.finfo(float).tiny)
        within = free & (share < first)
        if not within.any():
            break
        free &= ~within
    mass = np.where(free, np.maximum(share - first, 0.0), 0.0)
    return first + allocate(mass, sizes - first, labels - int(first.sum()), minimum=0)


def _least(sizes: Ints, labels: int) -> Ints:
    """Return the minimum labels (H,) of each stratum; DesignError for a budget below their sum."""
    least = np.minimum(sizes, MINIMUM)
    if budget(labels) < least.sum():
        raise DesignError(
            f"{labels} labels are too few for {sizes.size} strata with at least {MINIMUM} each; "
            f"use {int(least.sum())} or more, or fewer strata"
        )
    return least
