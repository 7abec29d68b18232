"""How large a random slice must be for intervals as narrow as wanted.

The window's own labels say how much the slice varies: it is measured again as if the slice had had
c times as many rows, each standing for a c-th, and the width at other sizes follows the power law
between the sizes that were tried. Before there are labels, `labels_for_width` plans from a guess.
"""

import math
from collections.abc import Sequence

import pandas as pd

from modwatch.errors import MetricInputError
from modwatch.metrics import inputs
from modwatch.metrics.estimate import estimates_of
from modwatch.metrics.estimator import Estimate
from modwatch.metrics.intervals import mid_p
from modwatch.metrics.labelled import LabelledDay
from modwatch.metrics.sample import Sample

#: Widths that are planned for unless others are wanted.
WIDTHS = (0.1, 0.05, 0.02)

_TIMES = (1, 2, 4, 8, 16)
_MOST = 10**7


def plan_slice(
    days: Sequence[LabelledDay],
    *,
    alpha: float,
    strategy: str = "uncertainty",
    widths: Sequence[float] = WIDTHS,
    threshold: float = 0.5,
    toxic_share: float = 0.5,
    seed: int = 0,
) -> pd.DataFrame:
    """Return how many slice labels the window needs for each width of a 95 % interval.

    One row a metric and width: `metric`, `width` wanted, `width_now`, `labels_now`, `labels`
    needed in the slice of the whole window (missing when not even sixteen times as many would do,
    as where labels of the top are missing), `share_now` and `share` of the slice in all routed
    comments, were their number to stay. Metrics that are insufficient now are absent.

    Raises:
        MetricInputError: a width outside (0, 1], or a day that does not fit its design.
    """
    wanted = [_width(width) for width in widths]
    found = [
        _widths(
            estimates_of(
                Sample(days, repeat=times),
                alphas=[alpha],
                strategies=[strategy],
                threshold=threshold,
                toxic_share=toxic_share,
                seed=seed,
            )
        )
        for times in _TIMES
    ]
    routed = sum(int(day.sample.sum()) for day in days)
    labels = sum(int(day.count[1:].sum()) for day in days)
    rows = []
    for metric, now in found[0].items():
        tried = [widths.get(metric, math.nan) for widths in found]
        for width in wanted:
            times = _times_for(width, tried)
            needed = None if times is None else math.ceil(labels * times)
            rows.append(
                {
                    "metric": metric,
                    "width": width,
                    "width_now": now,
                    "labels_now": labels,
                    "labels": needed,
                    "share_now": labels / routed,
                    "share": None if needed is None else min(needed / routed, 1.0),
                }
            )
    columns = ["metric", "width", "width_now", "labels_now", "labels", "share_now", "share"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.astype({"labels": "Int64", "share_now": "Float64", "share": "Float64"})


def labels_for_width(rate: float, width: float, *, population: int | None = None) -> int:
    """Return how many labels give a share near `rate` a 95 % interval no wider than `width`.

    A simple random sample, mid-P Clopper-Pearson, of a population that is large unless given.

    Raises:
        MetricInputError: rate outside [0, 1], width outside (0, 1].

    >>> labels_for_width(0.5, 0.1)
    380
    """
    rate, width = inputs.fraction("rate", rate), _width(width)
    low, high = 0, 1
    while high < _MOST and _share_width(rate, high, population) > width:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if _share_width(rate, middle, population) <= width:
            high = middle
        else:
            low = middle
    return high if population is None else min(high, population)


def _width(width: float) -> float:
    if not inputs.fraction("width", width):
        raise MetricInputError("width is 0; no sample is as precise as that")
    return width


def _widths(estimates: Sequence[Estimate]) -> dict[str, float]:
    """Return the width of the interval of every metric that has one."""
    return {
        estimate.metric: estimate.high - estimate.low
        for estimate in estimates
        if estimate.high is not None and estimate.low is not None and estimate.high > estimate.low
    }


def _times_for(width: float, tried: Sequence[float]) -> float | None:
    """Return how many times the rows give the width, between the `tried` widths at `_TIMES`.

    >>> _times_for(0.05, [0.2, 0.1, 0.05, 0.02, 0.01])
    4.0
    """
    if tried[0] <= width:  # fewer would do: widths shrink with the root of the rows
        return (tried[0] / width) ** 2
    for i in range(1, len(tried)):
        if tried[i] <= width:
            slope = math.log(tried[i] / tried[i - 1]) / math.log(_TIMES[i] / _TIMES[i - 1])
            return float(_TIMES[i - 1] * (width / tried[i - 1]) ** (1 / slope))
    return None


def _share_width(rate: float, labels: int, population: int | None) -> float:
    """Return the width of the interval of a share, after `labels` were seen."""
    if population is not None and labels >= population:
        return 0.0
    trials = labels if population is None else labels / (1 - labels / population)
    low, high = mid_p(rate * trials, trials)
    return high - low
