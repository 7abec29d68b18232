"""Metrics of models, moderators and both together.

    >>> from modwatch.statistics import collaboration_curve, oc_auroc
    >>> oc_auroc([1, 0, 1], [0.9, 0.5, 0.1], [0.09, 0.25, 0.09], review_fraction=0)
    0.5

Functions by topic; `docs/metrics.md` explains each metric:

    model alone           accuracy, auprc, auroc, precision, prevalence, recall
    calibration           brier_score, calibration_auprc, calibration_auroc,
                          expected_calibration_error, reliability_curve
    collaboration         collaboration_curve, oc_accuracy, oc_auprc, oc_auroc, remaining_cost,
                          review_effectiveness, review_efficiency, review_scores
    partly labelled days  fully_labelled, measure_days, reliability_estimates, what_if_table
    prediction sets       conformal_prediction
    no labels             expected_performance
    agreement             cohen_kappa, krippendorff_alpha, observed_agreement,
                          observed_disagreement
    annotator error       true_labels
    distances             jensen_shannon, population_stability_index

Parameters that the metrics share. Columns may be lists, numpy arrays, pandas or polars Series, or
Arrow arrays.

    y_true            (n,) labels: 0 or 1, or with `label_threshold` soft labels in [0, 1]
    y_prob            (n,) probabilities of label 1, in [0, 1]
    y_score           (n,) review scores: the highest are reviewed first; by default those of the
                      strategy `uncertainty`, see `review_scores`
    review_fraction   α in [0, 1]: 0 reviews nothing, 1 everything
    sample_weight     (n,) ≥ 0, such as 1/inclusion probability; an integer weight repeats its
                      sample; 1 each by default
    threshold         in [0, 1]: the model's decision is 1 where y_prob > threshold, both compared
                      as float32, in which scores are stored
    label_threshold   in [0, 1): soft labels above it are 1, others 0

Metrics are floats, or None if undefined. Estimates with an interval are `Estimate` objects or rows
of a DataFrame; if the data are insufficient they have a reason and no value. Invalid arguments
raise `modwatch.common.errors.MetricInputError`, a ValueError.
"""

from modwatch.statistics.agreement import (
    cohen_kappa,
    krippendorff_alpha,
    observed_agreement,
    observed_disagreement,
)
from modwatch.statistics.collaboration.collaborative import (
    REVIEW_FRACTIONS,
    collaboration_curve,
    oc_accuracy,
    oc_auprc,
    oc_auroc,
    remaining_cost,
    review_effectiveness,
    review_efficiency,
)
from modwatch.statistics.collaboration.model_metrics import (
    accuracy,
    auprc,
    auroc,
    brier_score,
    calibration_auprc,
    calibration_auroc,
    expected_calibration_error,
    precision,
    prevalence,
    recall,
    reliability_curve,
)
from modwatch.statistics.collaboration.review_strategies import STRATEGIES, review_scores
from modwatch.statistics.collaboration.what_if import what_if_table
from modwatch.statistics.drift.cbpe import expected_performance
from modwatch.statistics.drift.distance import (
    jensen_shannon,
    population_stability_index,
)
from modwatch.statistics.estimate import Estimate
from modwatch.statistics.label_truth import ErrorEvidence, GivenLabels, TrueLabels, true_labels
from modwatch.statistics.live.conformal import (
    ConformalPrediction,
    conformal_prediction,
)
from modwatch.statistics.live.labelled_day import Confirmations, LabelledDay, fully_labelled
from modwatch.statistics.live.measure import measure_days, reliability_estimates

__all__ = [
    "REVIEW_FRACTIONS", "STRATEGIES", "Confirmations",
    "ConformalPrediction", "ErrorEvidence", "Estimate", "GivenLabels", "LabelledDay",
    "TrueLabels", "accuracy", "auprc", "auroc",
    "brier_score", "calibration_auprc", "calibration_auroc", "cohen_kappa", "collaboration_curve",
    "conformal_prediction", "expected_calibration_error",
    "expected_performance", "fully_labelled", "jensen_shannon", "krippendorff_alpha",
    "measure_days", "observed_agreement", "observed_disagreement",
    "oc_accuracy", "oc_auprc", "oc_auroc", "population_stability_index",
    "precision", "prevalence", "recall", "reliability_curve", "reliability_estimates",
    "remaining_cost", "review_effectiveness", "review_efficiency", "review_scores", "true_labels",
    "what_if_table",
]  # fmt: skip
