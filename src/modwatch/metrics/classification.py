"""Metrics of the model alone, as plain weighted functions.

`label` y ∈ {0, 1} (soft labels in [0, 1] only with a `label_threshold`: those above it are 1),
`prob` p, decision f = 1[p > threshold], `weight` ≥ 0 (whole weights repeat rows). An undefined
result is None; inputs that do not fit raise MetricInputError.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.metrics import inputs
from modwatch.metrics.inputs import Floats
from modwatch.metrics.ranking import Interpolation, Sweep, check_interpolation, mean


def accuracy(
    label: ArrayLike,
    prob: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    threshold: float = 0.5,
    label_threshold: float | None = None,
) -> float | None:
    """Return the share in [0, 1] of right decisions.

    >>> accuracy([1, 0], [0.9, 0.6])
    0.5
    """
    y, p, w = inputs.rows(label, prob, weight, label_threshold)
    return mean((~wrong(y, p, threshold)).astype(np.float64), w)


def prevalence(
    label: ArrayLike, *, weight: ArrayLike | None = None, label_threshold: float | None = None
) -> float | None:
    """Return the share in [0, 1] of positive labels.

    >>> prevalence([1, 0, 0, 0])
    0.25
    """
    y = inputs.labels(label, label_threshold)
    w = inputs.weights(weight, y.size)
    inputs.same_length(label=y, weight=w)
    return mean(y, w)


def recall(
    label: ArrayLike,
    prob: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    threshold: float = 0.5,
    label_threshold: float | None = None,
) -> float | None:
    """Return the share in [0, 1] of positives that is flagged; None without positives.

    >>> recall([1, 1, 0], [0.9, 0.2, 0.8])
    0.5
    """
    y, p, w = inputs.rows(label, prob, weight, label_threshold)
    return mean(flagged(p, threshold).astype(np.float64), w * y)


def precision(
    label: ArrayLike,
    prob: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    threshold: float = 0.5,
    label_threshold: float | None = None,
) -> float | None:
    """Return the share in [0, 1] of flagged rows that is positive; None when none is flagged.

    >>> precision([1, 1, 0], [0.9, 0.2, 0.8])
    0.5
    """
    y, p, w = inputs.rows(label, prob, weight, label_threshold)
    return mean(y, w * flagged(p, threshold))


def auroc(
    label: ArrayLike,
    prob: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    label_threshold: float | None = None,
) -> float | None:
    """Return the area under the ROC curve in [0, 1], ties counting half; None with one class.

    >>> auroc([1, 0, 1, 0], [0.9, 0.5, 0.5, 0.1])
    0.875
    """
    y, p, w = inputs.rows(label, prob, weight, label_threshold)
    return Sweep(y, p).curve(w, np.zeros(w.size)).auroc()


def auprc(
    label: ArrayLike,
    prob: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    interpolation: Interpolation = "davis-goadrich",
    label_threshold: float | None = None,
) -> float | None:
    """Return the area under the precision-recall curve in [0, 1]; None without positives.

    Interpolated as in Davis & Goadrich (2006); `step` gives average precision.

    >>> auprc([1, 0], [0.5, 0.5])
    0.5
    """
    check_interpolation(interpolation)
    y, p, w = inputs.rows(label, prob, weight, label_threshold)
    return Sweep(y, p).curve(w, np.zeros(w.size)).auprc(interpolation)


def flagged(prob: Floats, threshold: float) -> NDArray[np.bool_]:
    """Return the decision f (n,): whether p > threshold.

    >>> flagged(np.array([0.5, 0.6]), 0.5).tolist()
    [False, True]
    """
    return prob > inputs.fraction("threshold", threshold)


def wrong(label: Floats, prob: Floats, threshold: float) -> NDArray[np.bool_]:
    """Return whether the decision differs from the label (n,) of 0 and 1.

    >>> wrong(np.array([1.0, 0.0]), np.array([0.5, 0.5]), 0.5).tolist()
    [True, False]
    """
    differs: NDArray[np.bool_] = flagged(prob, threshold) != (label == 1)
    return differs
