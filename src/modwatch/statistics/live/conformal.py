"""Conformal prediction: sets of labels that contain the true one at a stated rate.

Split-conformal prediction for two classes (Vovk et al. 2005; Angelopoulos & Bates 2021), with the
nonconformity score 1 − p(y). Labelled comments of the same stream are the calibration sample. If
some were more likely to be labelled than others, their inverse inclusion probabilities make the
guarantee hold for the stream (weighted exchangeability, Tibshirani et al. 2019).

Each label is calibrated with the comments that have it (label-conditional, Vovk 2012), so that the
sets contain the label of `coverage` of the toxic comments and of `coverage` of the others. Sets
that are calibrated on both labels together hold for all comments as one: where few comments are
toxic, they may miss all of these. Of a group of comments the sets hold as often only if the scores
mean the same there: `group_estimates` has the coverage of each.

The guarantee is an average over samples of calibration and new comments: P(label in set | label)
≥ `coverage`. It does not hold for a single comment, and assumes labels without errors. Rows of a
sample of days count as toxic with the probability inferred from their labels, and with their
weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats
from modwatch.statistics.live.sample import Sample

#: Of sums of weights: a p-value of 0.1 is not above 1 − 0.9.
_ROUNDING = 1e-12

#: Coverage of the sets.
COVERAGE = 0.9


@dataclass(frozen=True, kw_only=True)
class ConformalPrediction:
    """Prediction sets of n comments."""

    #: (n, 2) p-value in (0, 1] of each label: the share of calibration comments with that label
    #: that conform less.
    p_value: Floats
    #: (n, 2) whether the label is in the set.
    contains: NDArray[np.bool_]

    @property
    def size(self) -> NDArray[np.int64]:
        """(n,) labels in each set: 1 is a decision; 2 means that both are possible, 0 neither."""
        return np.asarray(self.contains.sum(axis=1))


def conformal_prediction(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    new_prob: ArrayLike,
    *,
    coverage: float = COVERAGE,
    sample_weight: ArrayLike | None = None,
    new_weight: ArrayLike | None = None,
) -> ConformalPrediction:
    """Return prediction sets that contain the label with probability ≥ `coverage`, for each label.

    A label is in the set if its p-value is above 1 − coverage. Equal scores count as conforming
    less, so that ties make sets larger, never smaller. A label that no labelled comment has is in
    all sets.

    Args:
        y_true: (m,) labels 0 or 1 of the calibration comments, which the model was not trained on.
        y_prob: (m,) their probabilities.
        new_prob: (n,) probabilities of the comments to predict.
        coverage: in (0, 1).
        sample_weight: (m,) inverse inclusion probabilities; 1 each by default.
        new_weight: (n,) those of the new comments, in the same unit. None, or 0: the largest of the
            calibration comments, which never covers less.

    Raises:
        MetricInputError: arguments out of range or of different lengths.

    >>> y, p = [0, 0, 0, 0, 1], [0.1, 0.1, 0.2, 0.2, 0.3]
    >>> conformal_prediction(y, p, [0.3], coverage=0.6).contains.tolist()
    [[False, True]]
    """
    y, p, w = arguments.rows(y_true, y_prob, sample_weight, None)
    new = arguments.probabilities(new_prob, name="new_prob")
    if not 0 < coverage < 1:
        raise MetricInputError(f"coverage must be between 0 and 1, got {coverage}")
    given = np.zeros(new.size)
    if new_weight is not None:
        given = arguments.weights(new_weight, new.size, name="new_weight")
        arguments.same_length(new_prob=new, new_weight=given)
    p_value = np.ones((new.size, 2))
    score = np.where(y == 1, 1 - p, p)
    for label, value in enumerate((new, 1 - new)):
        counted = (w > 0) & (y == label)
        if counted.any():
            mass = np.where(given > 0, given, w[counted].max())
            p_value[:, label] = _p_values(score[counted], w[counted], value, mass)
    return ConformalPrediction(p_value=p_value, contains=p_value > 1 - coverage + _ROUNDING)


def crossed_sets(sample: Sample, toxic: Floats) -> NDArray[np.bool_]:
    """Return whether either label is in the set (m, 2) of each row, which all others calibrate.

    >>> from modwatch.statistics import fully_labelled
    >>> sample = Sample([fully_labelled([0, 1] * 40, [0.1, 0.8] * 40)])
    >>> crossed_sets(sample, sample.label)[:2].tolist()
    [[True, False], [False, True]]
    """
    weight, p_value = sample.weight, np.empty((toxic.size, 2))
    for label, score in enumerate((sample.prob, 1 - sample.prob)):
        mass = weight * (toxic if label else 1 - toxic)
        p_value[:, label] = _p_values(score, mass, score, weight, mass)
    return np.asarray(p_value > 1 - COVERAGE + _ROUNDING)


def _p_values(
    score: Floats, weight: Floats, new: Floats, new_weight: Floats, own: Floats | float = 0.0
) -> Floats:
    """Return the p-values (n,): the weight of scores that are as high, the new one's with it.

    `own` is the part of the weight that is of the new comment itself, and does not count.
    """
    order = np.argsort(score)
    above = np.append(np.cumsum(weight[order][::-1])[::-1], 0.0)
    higher = above[np.searchsorted(score[order], new, "left")]
    return np.asarray((higher - own + new_weight) / (above[0] - own + new_weight))
