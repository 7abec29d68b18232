"""Allocation of labels to strata. All functions return n_h (H,), which sum to `labels`.

Each stratum first gets `minimum` labels, or its whole population if that is smaller. The rest is
shared by the method, never beyond the population; a budget larger than the population labels all
of it. Wei et al., section 4.4 and appendix A.3.

All raise DesignError for a budget below the sum of the minima, and MetricInputError for arrays of
the wrong shape or range.
"""

import numpy as np
from numpy.typing import ArrayLike

from modwatch.audit.arguments import (
    Ints,
    budget,
    one_per_stratum,
    shares,
    strata_sizes,
    whole_numbers,
)
from modwatch.errors import DesignError, MetricInputError
from modwatch.metrics.inputs import Floats
from modwatch.routing.design import allocate

#: Share of the labels that `neyman` allocates in proportion to the population, regardless of the
#: scores, to find positives that the score does not detect. Chosen by simulation
#: (docs/auditors.md).
FLOOR = 0.4

#: Minimum labels of a stratum: a variance estimate needs two.
MINIMUM = 2


def equal(population: ArrayLike, labels: int, *, minimum: int = MINIMUM) -> Ints:
    """Return an equal number for each stratum.

    >>> equal([100, 1000], 20).tolist()
    [10, 10]
    """
    sizes = strata_sizes(population)
    return _allocated(np.ones(sizes.size), sizes, labels, minimum)


def proportional(population: ArrayLike, labels: int, *, minimum: int = MINIMUM) -> Ints:
    """Return numbers in proportion to the population.

    >>> proportional([100, 900], 20).tolist()
    [2, 18]
    """
    sizes = strata_sizes(population)
    return _allocated(sizes.astype(np.float64), sizes, labels, minimum)


def neyman(
    population: ArrayLike,
    spread: ArrayLike,
    labels: int,
    *,
    floor: float = FLOOR,
    minimum: int = MINIMUM,
) -> Ints:
    """Return numbers ∝ N_h × spread_h, a share `floor` of them ∝ N_h instead (the default).

    `spread` (H,) is the expected standard deviation of the label in each stratum, such as √(p(1−p))
    of its mean score p.

    >>> neyman([900, 100], [0.1, 0.5], 100, floor=0.0).tolist()
    [65, 35]
    >>> neyman([900, 100], [0.1, 0.5], 100, floor=0.4).tolist()
    [75, 25]
    """
    if not 0 <= floor <= 1:
        raise DesignError(f"Floor of the allocation must be in [0, 1], got {floor}.")
    sizes = strata_sizes(population)
    deviation = shares("spread", spread)
    one_per_stratum(sizes.size, spread=deviation)
    even = sizes / sizes.sum()
    wanted = sizes * deviation
    by_score = wanted / wanted.sum() if wanted.any() else even
    return _allocated((1 - floor) * by_score + floor * even, sizes, labels, minimum)


def pilot_spread(pilot: ArrayLike, positives: ArrayLike) -> Floats:
    """Return the standard deviation (H,) in a pilot, one positive and one negative added.

    Wei et al., section 4.4 (pseudo-counts).

    >>> pilot_spread([50], [0]).round(4).tolist()
    [0.1373]
    """
    positive, drawn = whole_numbers("positives", positives), whole_numbers("pilot", pilot)
    _at_most(positive, drawn, "positives than labels in the pilot")
    rate = (positive + 1) / (drawn + 2)
    return np.asarray(np.sqrt(rate * (1 - rate)))


def pilot(population: ArrayLike, pilot: ArrayLike, positives: ArrayLike, labels: int) -> Ints:
    """Return the paper's allocation after a pilot: total labels n_h ≥ its pilot labels.

    Strata whose optimal share is within the pilot get no more; the others share the rest.

    >>> pilot([1000, 1000], [50, 50], [0, 25], 400).tolist()
    [86, 314]
    """
    sizes, first = strata_sizes(population), whole_numbers("pilot", pilot)
    _at_most(first, sizes, "labels in the pilot than comments")
    wanted = sizes * pilot_spread(first, positives)
    return _beyond(wanted, sizes, first, labels)


def optimal(population: ArrayLike, positives: ArrayLike, labels: int) -> Ints:
    """Return the allocation of least variance when all labels are known (Eq. 8): the oracle.

    >>> optimal([1000, 1000], [0, 500], 100).tolist()
    [2, 98]
    """
    sizes, positive = strata_sizes(population), whole_numbers("positives", positives)
    _at_most(positive, sizes, "positives than comments")
    rate = positive / sizes
    spread = np.asarray(sizes * np.sqrt(rate * (1 - rate)), dtype=np.float64)
    return _allocated(spread, sizes, labels, MINIMUM)


def _beyond(wanted: Floats, sizes: Ints, first: Ints, labels: int) -> Ints:
    """Return n_h ≥ first_h that sum to `labels`, otherwise as close as possible to ∝ wanted."""
    labels = min(budget(labels), int(sizes.sum()))
    if labels < first.sum():
        raise DesignError(
            f"{labels} labels are fewer than the {int(first.sum())} of the pilot; increase the "
            "budget or reduce the pilot"
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


def _at_most(part: Ints, whole: Ints, what: str) -> None:
    """Raise MetricInputError unless part ≤ whole, stratum by stratum."""
    if part.shape != whole.shape or (part > whole).any():
        raise MetricInputError(f"A stratum has more {what}, or the numbers of strata differ.")


def _allocated(mass: Floats, sizes: Ints, labels: int, minimum: int) -> Ints:
    """Return the allocation; DesignError when the budget is below the minima."""
    if minimum < 0:
        raise DesignError(f"Minimum per stratum must be at least 0, got {minimum}.")
    least = int(np.minimum(sizes, minimum).sum())
    if budget(labels) < least:
        raise DesignError(
            f"{labels} labels are too few for {sizes.size} strata with at least {minimum} each; "
            f"use {least} or more, or fewer strata"
        )
    return _beyond(mass, sizes, np.minimum(sizes, minimum), labels)
