"""How well model and moderators do together: pure functions to floats."""

from modwatch.metrics.calibration import brier_score, expected_calibration_error
from modwatch.metrics.collaborative import (
    collaboration_curve,
    oc_accuracy,
    oc_auprc,
    oc_auroc,
    review_effectiveness,
    review_efficiency,
    review_scores,
)

__all__ = [
    "brier_score",
    "collaboration_curve",
    "expected_calibration_error",
    "oc_accuracy",
    "oc_auprc",
    "oc_auroc",
    "review_effectiveness",
    "review_efficiency",
    "review_scores",
]
