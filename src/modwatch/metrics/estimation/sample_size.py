"""Sample sizes: how many labels of the random slice give intervals of a given width.

The labels of the window show how much the slice varies: the window is estimated again as if the
slice had c times as many rows, each representing a c-th, but at least one comment. Widths at other
sizes are interpolated by a power law. Before there are labels, `labels_for_width` plans from an
assumed rate.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pandas as pd

from modwatch.errors import MetricInputError
from modwatch.metrics import inputs
from modwatch.metrics.estimation.labelled_day import LabelledDay
from modwatch.metrics.estimation.measure import sample_estimates
from modwatch.metrics.estimation.sample import Sample
from modwatch.metrics.intervals import mid_p

#: Default widths of the 95 % interval.
WIDTHS = (0.1, 0.05, 0.02)

_TIMES = (1, 2, 4, 8, 16)
_MOST = 10**9


def plan_slice(
    days: Sequence[LabelledDay],
    *,
    review_fraction: float,
    strategy: str = "uncertainty",
    widths: Sequence[float] = WIDTHS,
    threshold: float = 0.5,
    toxic_share: float = 0.5,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the number of slice labels that the window requires for each width of a 95 % interval.

    One row per metric and width: `metric`, `width`; `width_now`, `labels_now`; `labels` required in
    the slice of the whole window, missing if neither sixteen times as many nor all comments suffice
    (as when labels of the top are missing); `share_now` and `share` of the slice in the same number
    of routed comments. Metrics that are insufficient, or known exactly, are absent.

    Args:
        days: the labelled days of the window.
        review_fraction: the deployed one, in [0, 1].
        strategy: the deployed one.
        widths: of 95 % intervals, in (0, 1].
        threshold, toxic_share, seed: as in `measure_days`.

    Raises:
        MetricInputError: an argument out of range.
    """
    wanted = [_width(width) for width in widths]
    trials = [
        _trial(
            Sample(days, repeat=times),
            review_fractions=[review_fraction],
            strategies=[strategy],
            threshold=threshold,
            toxic_share=toxic_share,
            seed=seed,
        )
        for times in _TIMES
    ]
    labels_now, widths_now = trials[0]
    routed = sum(int(day.sample.sum()) for day in days)
    rows = [
        {
            "metric": metric,
            "width": width,
            "width_now": now,
            "labels_now": labels_now,
            "labels": needed,
            "share_now": labels_now / routed,
            "share": None if needed is None else min(needed / routed, 1.0),
        }
        for metric, now in widths_now.items()
        if now > 0
        for width in wanted
        for needed in [
            _labels_for(width, [(labels, known.get(metric, math.nan)) for labels, known in trials])
        ]
    ]
    columns = ["metric", "width", "width_now", "labels_now", "labels", "share_now", "share"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.astype({"labels": "Int64", "share_now": "Float64", "share": "Float64"})


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
    rate, width = inputs.fraction("rate", rate), _width(width)
    labels = 1 + bisect_left(
        range(1, _MOST + 1), True, key=lambda size: _share_width(rate, size, population) <= width
    )
    if labels > _MOST:
        raise MetricInputError(
            f"a width of {width:g} requires more than {_MOST} labels; pass a larger width"
        )
    return labels if population is None else min(labels, population)


def _width(width: float) -> float:
    if not inputs.fraction("width", width):
        raise MetricInputError("width must be in (0, 1], got 0")
    return width


def _trial(sample: Sample, **options: Any) -> tuple[int, dict[str, float]]:
    """Return the slice labels of a sample, and the width of every interval by metric."""
    widths = {
        estimate.metric: estimate.high - estimate.low
        for estimate in sample_estimates(
            sample, sample.true_labels(seed=options["seed"]), **options
        )
        if estimate.high is not None and estimate.low is not None
    }
    return int((~sample.top).sum()), widths


def _labels_for(width: float, trials: Sequence[tuple[int, float]]) -> int | None:
    """Return the labels that give the width, interpolated from pairs of labels and width.

    >>> _labels_for(0.05, [(10, 0.2), (20, 0.1), (40, 0.05), (80, 0.02), (160, 0.01)])
    40
    """
    known = [trial for trial in trials if not math.isnan(trial[1])]
    labels, now = known[0]
    if now <= width:  # fewer suffice: widths shrink with the root of the rows
        return math.ceil(labels * (now / width) ** 2)
    for (fewer, wide), (more, narrow) in pairwise(known):
        if not narrow:  # every comment has a label
            return more
        if narrow <= width:
            power = math.log(more / fewer) / math.log(narrow / wide)
            return math.ceil(fewer * math.pow(width / wide, power))
    return None


def _share_width(rate: float, labels: int, population: int | None) -> float:
    """Return the width of the interval of a proportion from `labels`."""
    if population is not None and labels >= population:
        return 0.0
    trials = labels if population is None else labels / (1 - labels / population)
    low, high = mid_p(rate * trials, trials)
    return high - low
