"""Metrics of the model alone: classification and calibration (Kivlichan et al. 2021, section 3).

Arguments are described in `modwatch.statistics`: labels `y_true` ∈ {0, 1}, probabilities `y_prob`;
the model's decision is 1 where y_prob > threshold. Undefined metrics are None. Invalid arguments
raise MetricInputError.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats
from modwatch.statistics.collaboration.ranking import (
    Interpolation,
    Sweep,
    check_interpolation,
    mean,
    share,
)
from modwatch.statistics.decisions import is_flagged


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
    y, p, w = arguments.rows(y_true, y_prob, sample_weight, label_threshold)
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
    y = arguments.labels(y_true, label_threshold)
    w = arguments.weights(sample_weight, y.size)
    arguments.same_length(y_true=y, sample_weight=w)
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
    y, p, w = arguments.rows(y_true, y_prob, sample_weight, label_threshold)
    return mean(_flagged(p, threshold).astype(np.float64), w * y)


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
    y, p, w = arguments.rows(y_true, y_prob, sample_weight, label_threshold)
    return mean(y, w * _flagged(p, threshold))


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
    y, p, w = arguments.rows(y_true, y_prob, sample_weight, label_threshold)
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
    y, p, w = arguments.rows(y_true, y_prob, sample_weight, label_threshold)
    return Sweep(y, p).curve(w, np.zeros(w.size)).auprc(interpolation)


def wrong(label: Floats, prob: Floats, threshold: float) -> NDArray[np.bool_]:
    """Return whether each decision (n,) differs from its label, 0 or 1."""
    return np.asarray(_flagged(prob, threshold) != (label == 1))


def calibration_auroc(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    threshold: float = 0.5,
    label_threshold: float | None = None,
) -> float | None:
    """Return the AUROC in [0, 1] of uncertainty p(1−p) as a predictor of errors.

    0.5 is chance, 1 ranks every error above every correct decision. None without errors or without
    correct decisions. Section 3, figure 1.

    >>> calibration_auroc([1, 0, 0], [0.4, 0.3, 0.1])
    1.0
    """
    wrong, uncertainty = _errors(y_true, y_prob, threshold, label_threshold)
    return auroc(wrong, uncertainty, sample_weight=sample_weight)


def calibration_auprc(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    threshold: float = 0.5,
    interpolation: Interpolation = "davis-goadrich",
    label_threshold: float | None = None,
) -> float | None:
    """Return the area in [0, 1] under Review Efficiency against Review Effectiveness.

    Chance is the error rate. None without errors. Appendix A.2.

    >>> calibration_auprc([1, 0, 0], [0.4, 0.3, 0.1])
    1.0
    """
    wrong, uncertainty = _errors(y_true, y_prob, threshold, label_threshold)
    return auprc(wrong, uncertainty, sample_weight=sample_weight, interpolation=interpolation)


def brier_score(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    label_threshold: float | None = None,
) -> float | None:
    """Return the mean of (y − p)² in [0, 1]; 0 is perfect. None without samples.

    >>> brier_score([1, 0], [0.5, 0.0])
    0.125
    """
    y, p, w = arguments.rows(y_true, y_prob, sample_weight, label_threshold)
    return mean((y - p) ** 2, w)


def expected_calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = 15,
    sample_weight: ArrayLike | None = None,
    label_threshold: float | None = None,
) -> float | None:
    """Return the mean gap in [0, 1] between confidence and accuracy over bins; 0 is perfect.

    Bins are weighted by their samples. Confidence is max(p, 1−p) in the decision 1[p > ½]; `n_bins`
    equal bins divide [0, 1], each closed at its upper end, so those below ½ are empty. None without
    samples. Eq. 3, appendix A.1.

    >>> expected_calibration_error([1, 0], [0.75, 0.75])
    0.25
    """
    y, p, w = arguments.rows(y_true, y_prob, sample_weight, label_threshold)
    gap = np.maximum(p, 1 - p) - (~wrong(y, p, 0.5))
    in_bin = bin_of(np.maximum(p, 1 - p), n_bins)
    gaps = np.bincount(in_bin, weights=w * gap, minlength=n_bins)
    return share(float(np.abs(gaps).sum()), float(w.sum()))


def reliability_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = 15,
    sample_weight: ArrayLike | None = None,
    label_threshold: float | None = None,
) -> pd.DataFrame:
    """Return one row per bin of y_prob, as `sklearn.calibration.calibration_curve` with weights.

    Columns: `lower`, `upper`, `mean_prob`, `positive_rate`, `weight`, `count`. A calibrated model
    has mean_prob = positive_rate. Means are nullable floats, missing in a bin without weight; bins
    are closed at their upper end. `count` are rows with a weight. Appendix C.

    >>> reliability_curve([1, 0], [0.75, 1.0], n_bins=2)["positive_rate"].tolist()
    [<NA>, 0.5]
    """
    y, p, w = arguments.rows(y_true, y_prob, sample_weight, label_threshold)
    in_bin = bin_of(p, n_bins)
    sums = {
        name: np.bincount(in_bin, weights=values, minlength=n_bins)
        for name, values in (("prob", w * p), ("label", w * y), ("weight", w))
    }
    edges = np.linspace(0, 1, n_bins + 1)
    filled = np.where(sums["weight"] > 0, sums["weight"], np.nan)
    return pd.DataFrame(
        {
            "lower": edges[:-1],
            "upper": edges[1:],
            "mean_prob": pd.array(sums["prob"] / filled, dtype="Float64"),
            "positive_rate": pd.array(sums["label"] / filled, dtype="Float64"),
            "weight": sums["weight"],
            "count": np.bincount(in_bin[w > 0], minlength=n_bins),
        }
    )


def bin_of(values: Floats, n_bins: int) -> NDArray[np.intp]:
    """Return the index (n,) of the equal bin of [0, 1], closed above, that contains each value.

    Ends and values are compared as float32, as decisions are.
    """
    if n_bins < 1:
        raise MetricInputError(f"n_bins must be at least 1, got {n_bins}")
    edges = np.linspace(0, 1, n_bins + 1)
    return np.searchsorted(edges[1:-1].astype(np.float32), values.astype(np.float32), side="left")


def _flagged(prob: Floats, threshold: float) -> NDArray[np.bool_]:
    return is_flagged(prob, arguments.fraction("threshold", threshold))


def _errors(
    y_true: ArrayLike, y_prob: ArrayLike, threshold: float, label_threshold: float | None
) -> tuple[Floats, Floats]:
    """Return whether each decision (n,) is wrong, and its uncertainty (n,)."""
    y, p, _ = arguments.rows(y_true, y_prob, None, label_threshold)
    return wrong(y, p, threshold).astype(np.float64), p * (1 - p)
