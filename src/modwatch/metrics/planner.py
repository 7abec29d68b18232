"""How large a random slice must be for intervals as narrow as wanted.

The window's own labels say how much the slice varies: it is measured again as if the slice had had
c times as many rows, each standing for a c-th, but for a whole comment at least. The width at other
sizes follows the power law between the sizes that were tried. Before there are labels,
`labels_for_width` plans from a guess.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pandas as pd

from modwatch.errors import MetricInputError
from modwatch.metrics import inputs
from modwatch.metrics.estimate import estimates_of
from modwatch.metrics.intervals import mid_p
from modwatch.metrics.labelled import LabelledDay
from modwatch.metrics.sample import Sample

#: Widths that are planned for unless others are wanted.
WIDTHS = (0.1, 0.05, 0.02)

_TIMES = (1, 2, 4, 8, 16)
_MOST = 10**9


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
    or as many as there are comments, as where labels of the top are missing), `share_now` and
    `share` of the slice in all routed comments, were their number to stay. Metrics that are
    insufficient now, or known exactly, are absent.

    Raises:
        MetricInputError: a width outside (0, 1], or a day that does not fit its design.
    """
    wanted = [_width(width) for width in widths]
    ask = {
        "alphas": [alpha],
        "strategies": [strategy],
        "threshold": threshold,
        "toxic_share": toxic_share,
        "seed": seed,
    }
    tried = [_trial(Sample(days, repeat=times), ask) for times in _TIMES]
    routed = sum(int(day.sample.sum()) for day in days)
    rows = [
        {
            "metric": metric,
            "width": width,
            "width_now": now,
            "labels_now": tried[0].labels,
            "labels": needed,
            "share_now": tried[0].labels / routed,
            "share": None if needed is None else min(needed / routed, 1.0),
        }
        for metric, now in tried[0].widths.items()
        if now > 0
        for width in wanted
        for needed in [_labels_for(width, [each.of(metric) for each in tried])]
    ]
    columns = ["metric", "width", "width_now", "labels_now", "labels", "share_now", "share"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.astype({"labels": "Int64", "share_now": "Float64", "share": "Float64"})


def labels_for_width(rate: float, width: float, *, population: int | None = None) -> int:
    """Return how many labels give a share near `rate` a 95 % interval no wider than `width`.

    A simple random sample, mid-P Clopper-Pearson, of a population that is large unless given.

    Raises:
        MetricInputError: rate outside [0, 1], width outside (0, 1] or one that takes more than 10⁹
            labels.

    >>> labels_for_width(0.5, 0.1)
    380
    """
    rate, width = inputs.fraction("rate", rate), _width(width)
    low, high = 0, 1
    while _share_width(rate, high, population) > width:
        low, high = high, 2 * high
        if high > _MOST:
            raise MetricInputError(
                f"a width of {width:g} takes more than {_MOST} labels; ask for a wider interval"
            )
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


@dataclass(frozen=True, kw_only=True)
class _Trial:
    """How wide intervals are with a slice of so many labels."""

    labels: int
    #: By metric; those that are insufficient are absent.
    widths: dict[str, float]

    def of(self, metric: str) -> tuple[int, float]:
        """Return the labels and the width of the metric, NaN without one."""
        return self.labels, self.widths.get(metric, math.nan)


def _trial(sample: Sample, ask: dict[str, Any]) -> _Trial:
    """Return the widths of every interval of a sample."""
    widths = {
        estimate.metric: estimate.high - estimate.low
        for estimate in estimates_of(sample, **ask)
        if estimate.high is not None and estimate.low is not None
    }
    return _Trial(labels=int((~sample.top).sum()), widths=widths)


def _labels_for(width: float, tried: Sequence[tuple[int, float]]) -> int | None:
    """Return how many labels give the width, between those tried: pairs of labels and width.

    >>> _labels_for(0.05, [(10, 0.2), (20, 0.1), (40, 0.05), (80, 0.02), (160, 0.01)])
    40
    """
    known = [(labels, found) for labels, found in tried if not math.isnan(found)]
    labels, now = known[0]
    if now <= width:  # fewer would do: widths shrink with the root of the rows
        return math.ceil(labels * (now / width) ** 2)
    for (fewer, wide), (more, narrow) in pairwise(known):
        if not narrow:  # every comment has a label
            return more
        if narrow <= width:
            power = math.log(more / fewer) / math.log(narrow / wide)
            return math.ceil(fewer * math.pow(width / wide, power))
    return None


def _share_width(rate: float, labels: int, population: int | None) -> float:
    """Return the width of the interval of a share, after `labels` were seen."""
    if population is not None and labels >= population:
        return 0.0
    trials = labels if population is None else labels / (1 - labels / population)
    low, high = mid_p(rate * trials, trials)
    return high - low
