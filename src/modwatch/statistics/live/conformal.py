"""Conformal prediction: sets of labels that contain the true one at a stated rate.

Split-conformal prediction for two classes (Vovk et al. 2005; Angelopoulos & Bates 2021), with the
nonconformity score 1 − p(y). Labelled comments of the same stream are the calibration sample. If
some were more likely to be labelled than others, their inverse inclusion probabilities make the
guarantee hold for the stream (weighted exchangeability, Tibshirani et al. 2019).

Each label is calibrated with the comments that have it (label-conditional, Vovk 2012), so that the
sets contain the label of `coverage` of the toxic comments and of `coverage` of the others. Sets
that are calibrated on both labels together hold for all comments as one: where few comments are
toxic, they may miss all of these. Groups are calibrated apart (Mondrian), so that the guarantee
holds in each.

The guarantee is an average over samples of calibration and new comments: P(label in set | label)
≥ `coverage`. It does not hold for a single comment, and assumes labels without errors. Rows of a
sample of days count as toxic with the probability inferred from their labels, and with their
weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats
from modwatch.statistics.live.labelled_day import LabelledDay
from modwatch.statistics.live.sample import Sample

#: Of sums of weights: a p-value of 0.1 is not above 1 − 0.9.
_ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True)
class ConformalPrediction:
    """Prediction sets of n comments."""

    #: (n, 2) p-value in (0, 1] of each label: the share of calibration comments, with that label or
    #: with either, that conform less.
    p_value: Floats
    #: (n, 2) whether the label is in the set.
    contains: NDArray[np.bool_]

    @property
    def size(self) -> NDArray[np.int64]:
        """(n,) labels in each set: 1 is a decision; 2 means that both are possible, 0 neither."""
        return np.asarray(self.contains.sum(axis=1))

    @property
    def review_score(self) -> Floats:
        """(n,) in [0, 3): sets of two labels come first, empty ones next, then the less sure.

        Within sets of a size, the p-value of the less likely label decides.
        """
        first = np.array([1.0, 0.0, 2.0])[self.size]
        return np.asarray(first + self.p_value.min(axis=1) * (1 - 1e-12))


def conformal_prediction(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    new_prob: ArrayLike,
    *,
    coverage: float = 0.9,
    by_label: bool = True,
    sample_weight: ArrayLike | None = None,
    new_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    new_groups: ArrayLike | None = None,
) -> ConformalPrediction:
    """Return prediction sets that contain the label with probability ≥ `coverage`, for each label.

    A label is in the set if its p-value is above 1 − coverage. Equal scores count as conforming
    less, so that ties make sets larger, never smaller. A label that no labelled comment of the
    group has is in all sets.

    Args:
        y_true: (m,) labels 0 or 1 of the calibration comments, which the model was not trained on.
        y_prob: (m,) their probabilities.
        new_prob: (n,) probabilities of the comments to predict.
        coverage: in (0, 1).
        by_label: whether each label is calibrated with the comments that have it; else with all,
            so that the coverage holds for both labels together only.
        sample_weight: (m,) inverse inclusion probabilities; 1 each by default.
        new_weight: (n,) those of the new comments, in the same unit. None, or 0: the largest of the
            calibration comments, which never covers less.
        groups, new_groups: (m,) and (n,) groups that are calibrated apart; None: one group.

    Raises:
        MetricInputError: arguments out of range or of different lengths, a missing group, or only
            one of `groups` and `new_groups`.

    >>> y, p = [0, 0, 0, 0, 1], [0.1, 0.1, 0.2, 0.2, 0.3]
    >>> for by_label in (True, False):
    ...     conformal_prediction(y, p, [0.3], coverage=0.6, by_label=by_label).contains.tolist()
    [[False, True]]
    [[False, False]]
    """
    y, p, w = arguments.rows(y_true, y_prob, sample_weight, None)
    new = arguments.probabilities(new_prob, name="new_prob")
    if not 0 < coverage < 1:
        raise MetricInputError(f"coverage must be between 0 and 1, got {coverage}")
    if (groups is None) != (new_groups is None):
        raise MetricInputError("pass both of groups and new_groups, or none")
    own, others = _codes(
        np.zeros(y.size, np.int8) if groups is None else groups,
        np.zeros(new.size, np.int8) if new_groups is None else new_groups,
    )
    given = (
        None if new_weight is None else arguments.weights(new_weight, new.size, name="new_weight")
    )
    if given is not None:
        arguments.same_length(new_prob=new, new_weight=given)
    arguments.same_length(y_true=y, groups=own)
    arguments.same_length(new_prob=new, new_groups=others)
    p_value = np.ones((new.size, 2))
    score = np.where(y == 1, 1 - p, p)
    for group in np.unique(others):
        rows, wanted = own == group, others == group
        for label, value in enumerate((new, 1 - new)):
            counted = rows & (w > 0) & ((y == label) | (not by_label))
            if counted.any():
                most = w[counted].max()
                mass = most if given is None else np.where(given > 0, given, most)[wanted]
                p_value[wanted, label] = _p_values(score[counted], w[counted], value[wanted], mass)
    return ConformalPrediction(p_value=p_value, contains=p_value > 1 - coverage + _ROUNDING)


def _codes(groups: ArrayLike, new_groups: ArrayLike) -> tuple[Ints, Ints]:
    """Return numbers of the groups (m,) and (n,), the same for the same group."""
    own, others = arguments.names("groups", groups), arguments.names("new_groups", new_groups)
    codes = pd.factorize(np.concatenate([own, others]))[0]
    return codes[: own.size], codes[own.size :]


def _p_values(
    score: Floats,
    weight: Floats,
    new: Floats,
    new_weight: Floats | float,
    own: Floats | float = 0.0,
) -> Floats:
    """Return the p-values (n,): the weight of scores that are as high, the new one's with it.

    `own` is the part of the weight that is of the new comment itself, and does not count.
    """
    order = np.argsort(score)
    above = np.append(np.cumsum(weight[order][::-1])[::-1], 0.0)
    higher = above[np.searchsorted(score[order], new, "left")]
    return np.asarray((higher - own + new_weight) / (above[0] - own + new_weight))


Ints = NDArray[np.integer]

#: Coverage of the sets.
COVERAGE = 0.9

#: Labels of one kind without which it is in every set: 1 of 10 equal ones is 1 − 0.9.
ENOUGH = 9

#: Comments that get sets at once: a day may have millions.
_AT_ONCE = 500_000


def crossed_sets(sample: Sample, toxic: Floats, group: Ints | None = None) -> NDArray[np.bool_]:
    """Return whether either label is in the set (m, 2) of each row, which all others calibrate.

    Each label is calibrated apart, and so are rows of a `group` (m,) where it has enough of them
    (`has_enough_labels`); otherwise the label is calibrated with all groups together.

    >>> from modwatch.statistics import fully_labelled
    >>> sample = Sample([fully_labelled([0, 1] * 40, [0.1, 0.8] * 40)])
    >>> crossed_sets(sample, sample.label)[:2].tolist()
    [[True, False], [False, True]]
    """
    weight, p_value = sample.weight, np.empty((toxic.size, 2))
    enough = None if group is None else has_enough_labels(weight, toxic, group)
    for label, score in enumerate((sample.prob, 1 - sample.prob)):
        mass = weight * (toxic if label else 1 - toxic)
        p_value[:, label] = _p_values(score, mass, score, weight, mass)
        for number in () if enough is None else np.flatnonzero(enough[:, label]):
            rows = group == number
            own = score[rows], mass[rows], score[rows], weight[rows], mass[rows]
            p_value[rows, label] = _p_values(*own)
    return np.asarray(p_value > 1 - COVERAGE + _ROUNDING)


def has_enough_labels(weight: Floats, toxic: Floats, group: Ints) -> NDArray[np.bool_]:
    """Return whether sets of a group's own may leave a label out, by group and label (G, 2), G ≥ 2.

    With fewer than `ENOUGH` effective labels of one kind (Kish), that label is in every set.
    """
    masses = (weight * (1 - toxic), weight * toxic)
    total, squares = (
        np.stack([np.bincount(group, mass**power, minlength=2) for mass in masses], axis=1)
        for power in (1, 2)
    )
    return np.asarray(total**2 >= ENOUGH * np.maximum(squares, _ROUNDING))


def set_review_scores(
    days: Sequence[LabelledDay], sample: Sample, toxic: Floats, groups: Sequence[Ints]
) -> Iterator[Floats]:
    """Yield the conformal review score (N,) of each day.

    Every row of the sample calibrates the sets of its group, for both labels together: review is to
    find wrong decisions, of which sets by label find a fifth as many. `groups` (N,) are those of a
    day's comments. See `modwatch.statistics.live.conformal.ConformalPrediction.review_score`.
    """
    of_rows = [group[day.rows()] for day, group in zip(days, groups, strict=True)]
    codes = np.concatenate([np.empty(0, np.int64), *of_rows])
    weight = np.concatenate([sample.weight * (1 - toxic), sample.weight * toxic])
    # A row has either label, with its share.
    calibration = np.repeat([0, 1], toxic.size), np.tile(sample.prob, 2)
    for day, group in zip(days, groups, strict=True):
        score = np.empty(len(day.prob))
        for start in range(0, score.size, _AT_ONCE):
            rows = slice(start, start + _AT_ONCE)
            found = conformal_prediction(
                *calibration,
                day.prob[rows].astype(np.float64),
                coverage=COVERAGE,
                by_label=False,
                sample_weight=weight,
                groups=np.tile(codes, 2),
                new_groups=group[rows],
            )
            score[rows] = found.review_score
        yield score
