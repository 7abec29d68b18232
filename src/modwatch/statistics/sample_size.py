"""How many labels a given precision requires, before there are any.

`labels_for_width` is for the interval of a proportion, `required_labels` for a standard error of
ε p / z, so that the interval of the prevalence p is p (1 ± ε) (Wei et al., section 4.5). Once there
are labels, `modwatch.routing.label_plan.plan_labels` plans from how much they vary.
"""

import math
from bisect import bisect_left

from scipy import special

from modwatch.common.errors import DesignError, MetricInputError
from modwatch.statistics import arguments
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
    if not 0 < prevalence <= 1:
        raise DesignError(f"Expected prevalence must be in (0, 1], got {prevalence}.")
    if not 0 < relative_error < math.inf:
        raise DesignError(f"Relative error must be a finite number above 0, got {relative_error}.")
    if not 0 < confidence < 1:
        raise DesignError(f"Confidence must be in (0, 1), got {confidence}.")
    error = relative_error * prevalence / float(special.ndtri((1 + confidence) / 2))
    # Rounded before ceil, so that floating-point noise does not add a label.
    return max(1, math.ceil(round(prevalence * (1 - prevalence) / error**2, 9)))
