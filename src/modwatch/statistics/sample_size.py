"""How many labels a given precision requires, before there are any.

`labels_for_width` is for the interval of a proportion. The other functions are for an audit with a
standard error of ε p / z, so that the interval of the prevalence p is p (1 ± ε) (Wei et al.,
section 4.5, appendices A.4 and A.5). Once there are labels,
`modwatch.routing.label_plan.plan_labels` plans from how much they vary.
"""

import math
from bisect import bisect_left

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from modwatch.common.errors import DesignError, MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats, one_per_stratum, shares, strata_sizes
from modwatch.statistics.intervals import mid_p

_MOST = 10**9


def labels_for_width(rate: float, width: float, *, population: int | None = None) -> int:
    """Return the labels that give a proportion near `rate` a 95 % interval of at most `width`.

    For a simple random sample and the mid-P Clopper–Pearson interval.

    Args:
        rate: in [0, 1].
        width: in (0, 1].
        population: number of comments; infinite by default.

    Raises:
        MetricInputError: an argument out of range, or a width that requires more than 10⁹ labels.

    >>> labels_for_width(0.5, 0.1)
    380
    """
    rate, width = arguments.fraction("rate", rate), positive_width(width)
    if population is not None:
        population = int(arguments.whole_numbers("population", [population])[0])
    labels = 1 + bisect_left(
        range(1, _MOST + 1), True, key=lambda size: _share_width(rate, size, population) <= width
    )
    if labels > _MOST:
        raise MetricInputError(
            f"a width of {width:g} requires more than {_MOST} labels; pass a larger width"
        )
    return labels if population is None else min(labels, population)


def positive_width(width: float) -> float:
    """Return the width of an interval, in (0, 1]; raise MetricInputError for any other."""
    if not arguments.fraction("width", width):
        raise MetricInputError("width must be in (0, 1], got 0")
    return width


def _share_width(rate: float, labels: int, population: int | None) -> float:
    """Return the width of the interval of a proportion from `labels`."""
    if population is not None and labels >= population:
        return 0.0
    trials = labels if population is None else labels / (1 - labels / population)
    low, high = mid_p(rate * trials, trials)
    return high - low


#: Of standard errors; smaller ones require more than 10^11 labels.
_FINEST = 1e-12

#: Speed of the paper's annotators (appendix D).
LABELS_AN_HOUR = 600


def required_labels(
    prevalence: float, *, relative_error: float = 0.2, confidence: float = 0.95
) -> int:
    """Return how many labels a random sample needs: ⌈(1−p)/p × (z/ε)²⌉ (Eq. 9, Table 2).

    `prevalence` in (0, 1], `relative_error` ε > 0, `confidence` in (0, 1); DesignError otherwise.

    >>> required_labels(0.059), required_labels(0.001, relative_error=0.05)
    (1532, 1535047)
    """
    error = _standard_error(prevalence, relative_error, confidence)
    # Rounded before ceil, so that floating-point noise does not add a label.
    return max(1, math.ceil(round(prevalence * (1 - prevalence) / error / error, 9)))


def required_labels_stratified(
    population: ArrayLike,
    rate: ArrayLike,
    share: ArrayLike,
    *,
    relative_error: float = 0.2,
    confidence: float = 0.95,
) -> int:
    """Return how many labels a stratified sample needs, of which share_h in stratum h.

    `population` N_h, `rate` p_h in [0, 1] as expected, `share` > 0 summing to 1, each (H,). Eq. 11
    is the case of share 1/H, Eq. 13 of ∝ N_h √(p_h(1−p_h)). No finite-population correction.
    Raises DesignError or MetricInputError for invalid arguments.

    >>> half = [0.5, 0.5]
    >>> required_labels_stratified([500, 500], [0.1, 0.1], half), required_labels(0.1)
    (865, 865)
    """
    sizes, rates = _strata(population, rate)
    parts = shares("share", share)
    one_per_stratum(sizes.size, share=parts)
    if not (parts > 0).all() or abs(parts.sum() - 1) > 1e-9:
        raise DesignError("Shares of the strata must be positive and sum to 1.")
    weight = sizes / sizes.sum()
    error = _standard_error(float(weight @ rates), relative_error, confidence)
    variance = float((weight**2 * rates * (1 - rates) / parts).sum())  # times the labels
    return max(1, math.ceil(round(variance / error / error, 9)))


def optimal_shares(population: ArrayLike, rate: ArrayLike) -> Floats:
    """Return the shares (H,) of labels of least variance (Eq. 8).

    DesignError where no stratum varies: every allocation is equally good.

    >>> optimal_shares([900, 100], [0.01, 0.5]).round(3).tolist()
    [0.642, 0.358]
    """
    sizes, rates = _strata(population, rate)
    mass = sizes * np.sqrt(rates * (1 - rates))
    if not mass.any():
        raise DesignError("No stratum varies; every allocation is equally good.")
    return np.asarray(mass / mass.sum())


def _strata(population: ArrayLike, rate: ArrayLike) -> tuple[Floats, Floats]:
    """Return N_h and p_h (H,), validated."""
    sizes, rates = strata_sizes(population), shares("rate", rate)
    one_per_stratum(sizes.size, rate=rates)
    return sizes.astype(np.float64), rates


def _standard_error(prevalence: float, relative_error: float, confidence: float) -> float:
    """Return the target standard error."""
    if not 0 < prevalence <= 1:
        raise DesignError(f"Expected prevalence must be in (0, 1], got {prevalence}.")
    if not 0 < relative_error < math.inf:
        raise DesignError(f"Relative error must be a finite number above 0, got {relative_error}.")
    quantile = float(special.ndtri((1 + confidence) / 2)) if 0 < confidence < 1 else 0.0
    if not quantile:  # also of numbers so near 0 that half of them is nothing beside ½
        raise DesignError(f"Confidence must be in (0, 1), got {confidence}.")
    error = relative_error * prevalence / quantile
    if error < _FINEST:
        raise DesignError(f"a prevalence of {prevalence:g} requires more labels than there are")
    return error
