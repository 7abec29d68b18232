"""Metrics of the model alone, as plain weighted functions.

`label` y ∈ {0, 1}, `prob` p, decision f = 1[p > threshold], `weight` ≥ 0 (whole weights repeat
rows). An undefined result is None; inputs that do not fit raise MetricInputError.
"""

import numpy as np
from numpy.typing import ArrayLike

from modwatch.metrics import inputs
from modwatch.metrics.ranking import Interpolation, Sweep, check_interpolation, quotient


def accuracy(
    label: ArrayLike, prob: ArrayLike, *, weight: ArrayLike | None = None, threshold: float = 0.5
) -> float | None:
    """Return the share in [0, 1] of right decisions.

    >>> accuracy([1, 0], [0.9, 0.6])
    0.5
    """
    y, p, w = inputs.rows(label, prob, weight)
    right = (p > inputs.fraction("threshold", threshold)) == (y == 1)
    return quotient(float(w[right].sum()), float(w.sum()))


def prevalence(label: ArrayLike, *, weight: ArrayLike | None = None) -> float | None:
    """Return the share in [0, 1] of positive labels.

    >>> prevalence([1, 0, 0, 0])
    0.25
    """
    y = inputs.labels(label)
    w = inputs.weights(weight, y.size)
    inputs.same_length(label=y, weight=w)
    return quotient(float((w * y).sum()), float(w.sum()))


def recall(
    label: ArrayLike, prob: ArrayLike, *, weight: ArrayLike | None = None, threshold: float = 0.5
) -> float | None:
    """Return the share in [0, 1] of positives that is flagged; None without positives.

    >>> recall([1, 1, 0], [0.9, 0.2, 0.8])
    0.5
    """
    y, p, w = inputs.rows(label, prob, weight)
    flagged = p > inputs.fraction("threshold", threshold)
    return quotient(float((w * y)[flagged].sum()), float((w * y).sum()))


def precision(
    label: ArrayLike, prob: ArrayLike, *, weight: ArrayLike | None = None, threshold: float = 0.5
) -> float | None:
    """Return the share in [0, 1] of flagged rows that is positive; None when none is flagged.

    >>> precision([1, 1, 0], [0.9, 0.2, 0.8])
    0.5
    """
    y, p, w = inputs.rows(label, prob, weight)
    flagged = p > inputs.fraction("threshold", threshold)
    return quotient(float((w * y)[flagged].sum()), float(w[flagged].sum()))


def auroc(label: ArrayLike, prob: ArrayLike, *, weight: ArrayLike | None = None) -> float | None:
    """Return the area under the ROC curve in [0, 1], ties counting half; None with one class.

    >>> auroc([1, 0, 1, 0], [0.9, 0.5, 0.5, 0.1])
    0.875
    """
    y, p, w = inputs.rows(label, prob, weight)
    return Sweep(y, p).curve(w, np.zeros(w.size)).auroc()


def auprc(
    label: ArrayLike,
    prob: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    interpolation: Interpolation = "davis-goadrich",
) -> float | None:
    """Return the area under the precision-recall curve in [0, 1]; None without positives.

    Interpolated as in Davis & Goadrich (2006); `step` gives average precision.

    >>> auprc([1, 0], [0.5, 0.5])
    0.5
    """
    check_interpolation(interpolation)
    y, p, w = inputs.rows(label, prob, weight)
    return Sweep(y, p).curve(w, np.zeros(w.size)).auprc(interpolation)
