"""How well probabilities and uncertainties tell what will go wrong (Kivlichan et al., section 3).

Arguments are those of `modwatch.metrics.classification`. An undefined result is None; inputs that
do not fit raise MetricInputError.
"""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from modwatch.errors import MetricInputError
from modwatch.metrics import classification, inputs
from modwatch.metrics.inputs import Floats
from modwatch.metrics.ranking import Interpolation, mean, share


def calibration_auroc(
    label: ArrayLike,
    prob: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    threshold: float = 0.5,
    label_threshold: float | None = None,
) -> float | None:
    """Return in [0, 1] how well uncertainty p(1−p) ranks wrong decisions above right ones.

    0.5 is chance. None unless some decisions are wrong and some right. Section 3, figure 1.

    >>> calibration_auroc([1, 0, 0], [0.4, 0.3, 0.1])
    1.0
    """
    wrong, uncertainty = _errors(label, prob, threshold, label_threshold)
    return classification.auroc(wrong, uncertainty, weight=weight)


def calibration_auprc(
    label: ArrayLike,
    prob: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    threshold: float = 0.5,
    interpolation: Interpolation = "davis-goadrich",
    label_threshold: float | None = None,
) -> float | None:
    """Return in [0, 1] the area under Review Efficiency against Review Effectiveness.

    Chance is the error rate. None without wrong decisions. Appendix A.2.

    >>> calibration_auprc([1, 0, 0], [0.4, 0.3, 0.1])
    1.0
    """
    wrong, uncertainty = _errors(label, prob, threshold, label_threshold)
    return classification.auprc(wrong, uncertainty, weight=weight, interpolation=interpolation)


def brier_score(
    label: ArrayLike,
    prob: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    label_threshold: float | None = None,
) -> float | None:
    """Return the mean of (y − p)² in [0, 1]; 0 is perfect. None without rows.

    >>> brier_score([1, 0], [0.5, 0.0])
    0.125
    """
    y, p, w = inputs.rows(label, prob, weight, label_threshold)
    return mean((y - p) ** 2, w)


def expected_calibration_error(
    label: ArrayLike,
    prob: ArrayLike,
    *,
    bins: int = 15,
    weight: ArrayLike | None = None,
    label_threshold: float | None = None,
) -> float | None:
    """Return the mean over rows in [0, 1] of |confidence − accuracy| of their bin; 0 is perfect.

    Confidence is max(p, 1−p) in the decision 1[p > ½]; `bins` equal bins divide [0, 1], each
    closed at its upper end, so that those under ½ stay empty. Eq. 3, appendix A.1.

    >>> expected_calibration_error([1, 0], [0.75, 0.75])
    0.25
    """
    y, p, w = inputs.rows(label, prob, weight, label_threshold)
    gap = np.maximum(p, 1 - p) - (~classification.wrong(y, p, 0.5))
    in_bin = bin_of(np.maximum(p, 1 - p), bins)
    gaps = np.bincount(in_bin, weights=w * gap, minlength=bins)
    return share(float(np.abs(gaps).sum()), float(w.sum()))


def reliability_curve(
    label: ArrayLike,
    prob: ArrayLike,
    *,
    bins: int = 15,
    weight: ArrayLike | None = None,
    label_threshold: float | None = None,
) -> pd.DataFrame:
    """Return one row a bin of p: `lower`, `upper`, `mean_prob`, `positive_rate`, `weight`, `count`.

    On the diagonal mean_prob = positive_rate the model is calibrated. Means are nullable floats,
    missing in a bin without weight; bins are closed at their upper end. Appendix C.

    >>> reliability_curve([1, 0], [0.75, 1.0], bins=2)["positive_rate"].tolist()
    [<NA>, 0.5]
    """
    y, p, w = inputs.rows(label, prob, weight, label_threshold)
    in_bin = bin_of(p, bins)
    sums = {
        name: np.bincount(in_bin, weights=values, minlength=bins)
        for name, values in (("prob", w * p), ("label", w * y), ("weight", w))
    }
    edges = np.linspace(0, 1, bins + 1)
    filled = np.where(sums["weight"] > 0, sums["weight"], np.nan)
    return pd.DataFrame(
        {
            "lower": edges[:-1],
            "upper": edges[1:],
            "mean_prob": pd.array(sums["prob"] / filled, dtype="Float64"),
            "positive_rate": pd.array(sums["label"] / filled, dtype="Float64"),
            "weight": sums["weight"],
            "count": np.bincount(in_bin, minlength=bins),
        }
    )


def bin_of(values: Floats, bins: int) -> NDArray[np.intp]:
    """Return the index (n,) of the equal bin of [0, 1], closed above, that holds each value.

    >>> bin_of(np.array([0.0, 0.5, 0.51, 1.0]), 2).tolist()
    [0, 0, 1, 1]
    """
    if bins < 1:
        raise MetricInputError(f"bins is {bins}; it must be at least 1")
    edges = np.linspace(0, 1, bins + 1)
    return np.searchsorted(edges[1:-1], values, side="left")


def _errors(
    label: ArrayLike, prob: ArrayLike, threshold: float, label_threshold: float | None
) -> tuple[Floats, Floats]:
    """Return, for each row (n,), whether the decision is wrong, and its uncertainty."""
    y, p, _ = inputs.rows(label, prob, None, label_threshold)
    return classification.wrong(y, p, threshold).astype(np.float64), p * (1 - p)
