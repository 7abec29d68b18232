"""Sample sizes before there are labels: how many give a proportion an interval of a given width.

Once there are labels, `modwatch.routing.plan_labels` plans from how much they vary.
"""

from bisect import bisect_left

from modwatch.common.errors import MetricInputError
from modwatch.statistics import inputs
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
    rate, width = inputs.fraction("rate", rate), positive_width(width)
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
    if not inputs.fraction("width", width):
        raise MetricInputError("width must be in (0, 1], got 0")
    return width


def _share_width(rate: float, labels: int, population: int | None) -> float:
    """Return the width of the interval of a proportion from `labels`."""
    if population is not None and labels >= population:
        return 0.0
    trials = labels if population is None else labels / (1 - labels / population)
    low, high = mid_p(rate * trials, trials)
    return high - low
