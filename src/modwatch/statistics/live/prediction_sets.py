"""Prediction sets from the labels of a sample: of its own rows, and of all comments of its days.

The rows count as toxic with the probability that their labels tell, and with their weights.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from modwatch.statistics.inputs import Floats
from modwatch.statistics.live.conformal import ConformalPrediction, conformal_prediction
from modwatch.statistics.live.labelled_day import LabelledDay
from modwatch.statistics.live.sample import Sample

Ints = NDArray[np.integer]

#: Coverage of the sets.
COVERAGE = 0.9

#: Comments that get sets at once: a day may have millions.
_AT_ONCE = 500_000


def crossed_sets(
    sample: Sample, toxic: Floats, group: Ints | None = None, *, seed: int = 0
) -> NDArray[np.bool_]:
    """Return whether either label is in the set (m, 2) of each row.

    A random half of the rows calibrates the sets of the other half, and the other way round, so
    that no row tells of its own set. Rows of a `group` (m,) are calibrated apart.

    >>> from modwatch.statistics import fully_labelled
    >>> sample = Sample([fully_labelled([0, 1] * 40, [0.1, 0.8] * 40)])
    >>> crossed_sets(sample, sample.label)[:2].tolist()
    [[True, False], [False, True]]
    """
    codes = np.zeros(toxic.size, np.int64) if group is None else group
    half = _halves(2 * codes + sample.top, sample.prob, np.random.default_rng(seed))
    contains = np.empty((toxic.size, 2), np.bool_)
    for new in (half, ~half):
        found = _predicted(
            toxic[~new], sample.prob[~new], sample.weight[~new], codes[~new],
            sample.prob[new], sample.weight[new], codes[new],
        )  # fmt: skip
        contains[new] = found.contains
    return contains


def set_review_scores(
    days: Sequence[LabelledDay], sample: Sample, toxic: Floats, groups: Sequence[Ints]
) -> Iterator[Floats]:
    """Yield the conformal review score (N,) of each day, by ascending probability.

    Every row of the sample calibrates the sets of its group; `groups` (N,) are those of a day's
    comments. See `modwatch.statistics.live.conformal.ConformalPrediction.review_score`.
    """
    of_rows = [group[day.rows()] for day, group in zip(days, groups, strict=True)]
    codes = np.concatenate([np.empty(0, np.int64), *of_rows])
    for day, group in zip(days, groups, strict=True):
        order = np.argsort(day.prob, kind="stable")
        score = np.empty(order.size)
        for start in range(0, order.size, _AT_ONCE):
            rows = order[start : start + _AT_ONCE]
            prob = day.prob[rows].astype(np.float64)
            found = _predicted(toxic, sample.prob, sample.weight, codes, prob, None, group[rows])
            score[start : start + rows.size] = found.review_score
        yield score


def _predicted(
    toxic: Floats,
    prob: Floats,
    weight: Floats,
    group: Ints,
    new_prob: Floats,
    new_weight: Floats | None,
    new_group: Ints,
) -> ConformalPrediction:
    """Return the sets of new comments; each calibration row has either label, with its share."""
    return conformal_prediction(
        np.repeat([0, 1], toxic.size),
        np.tile(prob, 2),
        new_prob,
        coverage=COVERAGE,
        sample_weight=np.concatenate([weight * (1 - toxic), weight * toxic]),
        new_weight=new_weight,
        groups=np.tile(group, 2),
        new_groups=new_group,
    )


def _halves(stratum: Ints, prob: Floats, generator: np.random.Generator) -> NDArray[np.bool_]:
    """Return a random half (m,) of the rows: one of every two neighbours by score in a stratum.

    >>> half = _halves(np.zeros(4, int), np.array([0.1, 0.8, 0.2, 0.9]), np.random.default_rng(0))
    >>> bool(half[0]) + bool(half[2]), bool(half[1]) + bool(half[3])
    (1, 1)
    """
    order = np.lexsort([prob, stratum])
    first = generator.random((order.size + 1) // 2) < 0.5
    half = np.empty(order.size, np.bool_)
    half[order] = np.stack([first, ~first], axis=1).ravel()[: order.size]
    return half
