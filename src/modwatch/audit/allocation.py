"""How many labels each stratum gets. All functions return n_h (H,), which sum to `labels`.

`minimum` labels, or its whole population, go to each stratum first; the rest by the rule's share,
never beyond the population: a budget larger than it is spent as far as it goes. Wei et al.,
section 4.4 and appendix A.3.

All raise DesignError for a budget that does not do for the minima, and MetricInputError for arrays
that do not fit.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.audit import checks
from modwatch.errors import DesignError, MetricInputError
from modwatch.metrics.inputs import Floats
from modwatch.routing.design import allocate

Ints = NDArray[np.int64]

#: Share of the labels that `neyman` spreads in proportion to the population, whatever the scores
#: say: what the score cannot see is found by it. Chosen by simulation (docs/auditors.md).
FLOOR = 0.4

#: Labels of a stratum, at least: two are needed to see how it varies.
MINIMUM = 2


def equal(population: ArrayLike, labels: int, *, minimum: int = MINIMUM) -> Ints:
    """Return the same number for each stratum.

    >>> equal([100, 1000], 20).tolist()
    [10, 10]
    """
    sizes = checks.strata_sizes(population)
    return _allocated(np.ones(sizes.size), sizes, labels, minimum)


def proportional(population: ArrayLike, labels: int, *, minimum: int = MINIMUM) -> Ints:
    """Return shares as the population's.

    >>> proportional([100, 900], 20).tolist()
    [2, 18]
    """
    sizes = checks.strata_sizes(population)
    return _allocated(sizes.astype(np.float64), sizes, labels, minimum)


def neyman(
    population: ArrayLike,
    spread: ArrayLike,
    labels: int,
    *,
    floor: float = FLOOR,
    minimum: int = MINIMUM,
) -> Ints:
    """Return shares ∝ N_h × spread_h, a share `floor` of them ∝ N_h instead (the default rule).

    `spread` (H,) is the standard deviation of the label that is expected in each stratum, such as
    √(p(1−p)) of its mean score p.

    >>> neyman([900, 100], [0.1, 0.5], 100, floor=0.0).tolist()
    [65, 35]
    >>> neyman([900, 100], [0.1, 0.5], 100, floor=0.4).tolist()
    [75, 25]
    """
    if not 0 <= floor <= 1:
        raise DesignError(f"the floor of the allocation is {floor}; it must lie in [0, 1]")
    sizes = checks.strata_sizes(population)
    deviation = checks.shares("spread", spread)
    checks.one_a_stratum(sizes.size, spread=deviation)
    even = sizes / sizes.sum()
    wanted = sizes * deviation
    by_score = wanted / wanted.sum() if wanted.any() else even
    return _allocated((1 - floor) * by_score + floor * even, sizes, labels, minimum)


def pilot_spread(pilot: ArrayLike, positives: ArrayLike) -> Floats:
    """Return the standard deviation (H,) that a pilot tells, one positive and one negative added.

    Wei et al., section 4.4 (pseudo-counts).

    >>> pilot_spread([50], [0]).round(4).tolist()
    [0.1373]
    """
    found, drawn = (
        checks.whole_numbers(name, values)
        for name, values in (("positives", positives), ("pilot", pilot))
    )
    _no_more(found, drawn, "positives than labels in the pilot")
    rate = (found + 1) / (drawn + 2)
    return np.asarray(np.sqrt(rate * (1 - rate)))


def pilot(population: ArrayLike, pilot: ArrayLike, positives: ArrayLike, labels: int) -> Ints:
    """Return the paper's allocation after a pilot: total labels n_h ≥ its pilot labels.

    Strata whose optimal share is within the pilot get no more; the others share what is left.

    >>> pilot_labels, found = [50, 50], [0, 25]
    >>> pilot([1000, 1000], pilot_labels, found, 400).tolist()
    [86, 314]
    """
    sizes, first = checks.strata_sizes(population), checks.whole_numbers("pilot", pilot)
    _no_more(first, sizes, "labels in the pilot than comments")
    wanted = sizes * pilot_spread(first, positives)
    return _beyond(wanted, sizes, first, labels)


def optimal(population: ArrayLike, positives: ArrayLike, labels: int) -> Ints:
    """Return the allocation of least variance, all labels being known (Eq. 8): an oracle.

    >>> optimal([1000, 1000], [0, 500], 100).tolist()
    [2, 98]
    """
    sizes, found = checks.strata_sizes(population), checks.whole_numbers("positives", positives)
    _no_more(found, sizes, "positives than comments")
    rate = found / sizes
    spread = np.asarray(sizes * np.sqrt(rate * (1 - rate)), dtype=np.float64)
    return _allocated(spread, sizes, labels, MINIMUM)


def _beyond(wanted: Floats, sizes: Ints, first: Ints, labels: int) -> Ints:
    """Return n_h ≥ first_h that sum to `labels` and are else as near as may be to ∝ wanted."""
    labels = min(checks.budget(labels), int(sizes.sum()))
    if labels < first.sum():
        raise DesignError(
            f"{labels} labels are fewer than the pilot's {int(first.sum())}; spend more, or make "
            "the pilot smaller"
        )
    free, share = np.ones(sizes.size, dtype=bool), np.zeros(sizes.size)
    while free.any():  # each round fixes strata, or it is the last
        left, mass = labels - int(first[~free].sum()), np.where(free, wanted, 0.0)
        share = left * mass / max(float(mass.sum()), np.finfo(float).tiny)
        within = free & (share < first)
        if not within.any():
            break
        free &= ~within
    mass = np.where(free, np.maximum(share - first, 0.0), 0.0)
    return first + allocate(mass, sizes - first, labels - int(first.sum()), minimum=0)


def _no_more(part: Ints, whole: Ints, what: str) -> None:
    """Raise MetricInputError unless part ≤ whole, stratum by stratum."""
    if part.shape != whole.shape or (part > whole).any():
        raise MetricInputError(f"a stratum has more {what}, or the numbers of strata differ")


def _allocated(mass: Floats, sizes: Ints, labels: int, minimum: int) -> Ints:
    """Return the allocation, or say why there is none."""
    if minimum < 0:
        raise DesignError(f"the minimum of a stratum is {minimum}; it must be at least 0")
    least = int(np.minimum(sizes, minimum).sum())
    if checks.budget(labels) < least:
        raise DesignError(
            f"{labels} labels are too few for {sizes.size} strata of at least {minimum}; "
            f"spend {least} or more, or take fewer strata"
        )
    return _beyond(mass, sizes, np.minimum(sizes, minimum), labels)
