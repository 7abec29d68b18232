"""Classification metrics of the model alone.

Arguments are described in `modwatch.statistics`: labels `y_true` ∈ {0, 1}, probabilities `y_prob`;
the model's decision is 1 where y_prob > threshold. Undefined metrics are None. Invalid arguments
raise MetricInputError.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.statistics import inputs
from modwatch.statistics.collaboration.ranking import (
    Interpolation,
    Sweep,
    check_interpolation,
    mean,
)
from modwatch.statistics.inputs import Floats


def accuracy(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    threshold: float = 0.5,
    label_threshold: float | None = None,
) -> float | None:
    """Return the fraction in [0, 1] of correct decisions; None without samples.

    >>> accuracy([1, 0], [0.9, 0.6])
    0.5
    """
    y, p, w = inputs.rows(y_true, y_prob, sample_weight, label_threshold)
    return mean((~wrong(y, p, threshold)).astype(np.float64), w)


def prevalence(
    y_true: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    label_threshold: float | None = None,
) -> float | None:
    """Return the fraction in [0, 1] of positive labels; None without samples.

    >>> prevalence([1, 0, 0, 0])
    0.25
    """
    y = inputs.labels(y_true, label_threshold)
    w = inputs.weights(sample_weight, y.size)
    inputs.same_length(y_true=y, sample_weight=w)
    return mean(y, w)


def recall(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    threshold: float = 0.5,
    label_threshold: float | None = None,
) -> float | None:
    """Return the fraction in [0, 1] of positives that are flagged; None without positives.

    >>> recall([1, 1, 0], [0.9, 0.2, 0.8])
    0.5
    """
    y, p, w = inputs.rows(y_true, y_prob, sample_weight, label_threshold)
    return mean(flagged(p, threshold).astype(np.float64), w * y)


def precision(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    threshold: float = 0.5,
    label_threshold: float | None = None,
) -> float | None:
    """Return the fraction in [0, 1] of flagged samples that are positive; None if none is flagged.

    >>> precision([1, 1, 0], [0.9, 0.2, 0.8])
    0.5
    """
    y, p, w = inputs.rows(y_true, y_prob, sample_weight, label_threshold)
    return mean(y, w * flagged(p, threshold))


def auroc(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    label_threshold: float | None = None,
) -> float | None:
    """Return the area under the ROC curve in [0, 1]; 0.5 is chance. None with one class only.

    Ties count half, as in `sklearn.metrics.roc_auc_score`.

    >>> auroc([1, 0, 1, 0], [0.9, 0.5, 0.5, 0.1])
    0.875
    """
    y, p, w = inputs.rows(y_true, y_prob, sample_weight, label_threshold)
    return Sweep(y, p).curve(w, np.zeros(w.size)).auroc()


def auprc(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    interpolation: Interpolation = "davis-goadrich",
    label_threshold: float | None = None,
) -> float | None:
    """Return the area under the precision-recall curve in [0, 1]; None without positives.

    Interpolated as in Davis & Goadrich (2006), section 3; `interpolation="step"` gives
    `sklearn.metrics.average_precision_score`. Chance is the prevalence.

    >>> auprc([1, 0], [0.5, 0.5])
    0.5
    """
    check_interpolation(interpolation)
    y, p, w = inputs.rows(y_true, y_prob, sample_weight, label_threshold)
    return Sweep(y, p).curve(w, np.zeros(w.size)).auprc(interpolation)


def flagged(prob: Floats, threshold: float) -> NDArray[np.bool_]:
    """Return the decisions (n,): whether prob > threshold.

    >>> flagged(np.array([0.5, 0.6]), 0.5).tolist()
    [False, True]
    """
    return prob > inputs.fraction("threshold", threshold)


def wrong(label: Floats, prob: Floats, threshold: float) -> NDArray[np.bool_]:
    """Return whether each decision (n,) differs from its label, 0 or 1.

    >>> wrong(np.array([1.0, 0.0]), np.array([0.5, 0.5]), 0.5).tolist()
    [True, False]
    """
    differs: NDArray[np.bool_] = flagged(prob, threshold) != (label == 1)
    return differs
