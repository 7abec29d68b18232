"""The figures of one model on the comments of one environment, by the metrics of the project."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modwatch import statistics as metrics
from modwatch.statistics.arguments import Floats
from modwatch.statistics.collaboration.collaborative import REVIEW_FRACTIONS

#: The metrics of the tables, by the names of `paper.METRIC_TITLES`.
TABLE_METRICS = {
    "auroc": metrics.auroc,
    "auprc": metrics.auprc,
    "accuracy": metrics.accuracy,
    "ece": metrics.expected_calibration_error,
    "brier": metrics.brier_score,
    "calibration_auroc": metrics.calibration_auroc,
    "calibration_auprc": metrics.calibration_auprc,
}

#: Review fractions at which the paper's finding is tested.
FINDING_FRACTIONS = tuple(alpha for alpha in REVIEW_FRACTIONS if alpha >= 0.01)

STRATEGIES = ("uncertainty", "toxicity")

#: Bootstrap samples of the comments, and their seed: the same samples for every model.
DRAWS, _BOOTSTRAP_SEED = 200, 0


def curve_rows(label: Floats, prob: Floats, weight: Floats) -> list[dict[str, Any]]:
    """Return the α-curves: a row for each strategy and review fraction, None where undefined."""
    curve = metrics.collaboration_curve(
        label, prob, sample_weight=weight, review_fractions=REVIEW_FRACTIONS, strategies=STRATEGIES
    )
    found = curve.astype(object).where(curve.notna(), None)
    return [{str(key): value for key, value in row.items()} for row in found.to_dict("records")]


def advantage(
    label: Floats, prob: Floats, weight: Floats, fractions: Sequence[float] = FINDING_FRACTIONS
) -> Floats:
    """Return the OC-AUROC of uncertainty less that of toxicity (A,), at A review fractions.

    NaN where there is one class only.

    >>> y, p = np.array([1.0, 0.0, 0.0, 1.0]), np.array([0.2, 0.1, 0.3, 0.9])
    >>> advantage(y, p, np.ones(4), [0.25]).tolist()
    [0.25]
    """
    curve = metrics.collaboration_curve(
        label, prob, sample_weight=weight, review_fractions=fractions, strategies=STRATEGIES
    )
    area = {
        str(strategy): rows["oc_auroc"].to_numpy(dtype=np.float64, na_value=np.nan)
        for strategy, rows in curve.groupby("strategy")
    }
    return np.asarray(area["uncertainty"] - area["toxicity"])


def advantage_draws(label: Floats, prob: Floats, weight: Floats, draws: int) -> Floats:
    """Return `advantage` (draws, A) of bootstrap samples of the comments.

    Samples depend on the number of comments only, so that differences between models on the same
    comments are paired.
    """
    rng = np.random.default_rng(_BOOTSTRAP_SEED)
    n = len(label)
    counts = (rng.multinomial(n, np.full(n, 1 / n)) for _ in range(draws))
    return np.array([advantage(label, prob, weight * count) for count in counts])


def evaluated(label: NDArray[np.int8], prob: Floats, weight: Floats) -> dict[str, Any]:
    """Return all figures of one model on n comments, as JSON values."""
    y = label.astype(np.float64)

    def table(prob: Floats) -> dict[str, float | None]:
        """Return the metrics at the decision threshold 0.5."""
        return {
            name: metric(y, prob, sample_weight=weight) for name, metric in TABLE_METRICS.items()
        }

    return {
        "table": table(prob),
        # Of a model that flags nothing.
        "nothing": table(np.zeros(y.size)),
        "curve": curve_rows(y, prob, weight),
    }
