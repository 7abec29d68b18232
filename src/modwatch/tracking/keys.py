"""The metric keys of a day: few, stable, and grouped by prefix as MLflow's charts are.

    collaboration/      model and moderators together, as deployed (strategy, review fraction)
    day/                volume and what the checks and the threshold took
    model/              the model alone
    review/             the queue
    sampling_interval/  ends of the 95 % intervals of collaboration/ and model/

MLflow sorts the groups by name; the intervals come last so that they do not part the rest.
Everything else (other strategies, other review fractions) is in tables and figures: MLflow's
pages die of thousands of keys.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from modwatch.errors import MetricInputError
from modwatch.records import MEASUREMENTS
from modwatch.tracking.facts import DayFacts

#: MLflow draws one chart a key; more are not read by anybody.
MAX_KEYS = 60

INTERVAL_GROUP = "sampling_interval"

_TITLES = {
    "oc_accuracy": "OC-Acc",
    "oc_auroc": "OC-AUROC",
    "oc_auprc": "OC-AUPRC",
    "review_efficiency": "Review Efficiency",
    "review_effectiveness": "Review Effectiveness",
    "calibration_auroc": "Calibration AUROC",
    "calibration_auprc": "Calibration AUPRC",
    "expected_calibration_error": "ECE",
    "ece": "ECE",
    "brier_score": "Brier score",
    "brier": "Brier score",
    "auroc": "AUROC",
    "auprc": "AUPRC",
    "accuracy": "Accuracy",
}


def metric_title(metric: str) -> str:
    """Return the field's name of a metric.

    >>> metric_title("oc_auroc"), metric_title("queue_age")
    ('OC-AUROC', 'Queue age')
    """
    return _TITLES.get(metric, metric.replace("_", " ").capitalize())


def checked(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return the measurements with plain floats (unknown is NaN), whatever they came from.

    Raises:
        MetricInputError: a column of `records.MEASUREMENTS` is missing.
    """
    missing = [name for name in MEASUREMENTS.names if name not in measurements.columns]
    if missing:
        raise MetricInputError(
            f"The measurements lack the columns {missing}; hand over the table of the lake whole."
        )
    floats = ["alpha", "value", "low", "high", "effective_n"]
    numbers = measurements[floats].apply(pd.to_numeric).astype("float64")
    return measurements.assign(**{name: numbers[name] for name in floats})


def deployed_rows(measurements: pd.DataFrame, facts: DayFacts) -> pd.DataFrame:
    """Return the measurements at the deployed strategy and review fraction, or that have none.

    `measurements` has the columns of `records.MEASUREMENTS`; its order is kept.
    """
    alpha = measurements["alpha"]
    at_alpha = alpha.isna() | ((alpha - facts.review_fraction).abs() < 1e-12)
    strategy = measurements["strategy"]
    return measurements[at_alpha & (strategy.isna() | (strategy == facts.strategy))]


def known(measurements: pd.DataFrame) -> "pd.Series[bool]":
    """Return a mask of the rows that hold a number: status ok and a finite value."""
    finite = np.isfinite(measurements["value"].to_numpy(dtype=np.float64))
    mask: pd.Series[bool] = measurements["status"].eq("ok") & finite
    return mask


def day_metrics(measurements: pd.DataFrame, facts: DayFacts) -> dict[str, float]:
    """Return the metrics of one day by key, at most `MAX_KEYS`; what is insufficient is absent.

    `measurements` are as `checked` returns them; of their columns, those of the example are read.
    The same keys serve the day's run and its point on the timeline. Intervals come as
    `sampling_interval/…_low` and `sampling_interval/…_high`.

    Raises:
        MetricInputError: the measurements make more than `MAX_KEYS` keys.

    >>> facts = DayFacts(
    ...     comments=10, quarantined=0, flagged=1, routed=2, labelled=2, model_version="1",
    ...     strategy="uncertainty", review_fraction=0.2, checks="passed")
    >>> row = {"metric": "oc_auroc", "strategy": "uncertainty", "alpha": 0.2, "value": 0.9,
    ...        "low": 0.8, "high": 1.0, "status": "ok"}
    >>> day_metrics(pd.DataFrame([row]), facts)["collaboration/oc_auroc"]
    0.9
    """
    keys = _counts(facts)
    rows = deployed_rows(measurements, facts)
    rows = rows[rows["metric"] != "completion"]  # stands under review/
    for row in rows[known(rows)].to_dict("records"):
        keys.update(_estimate(row))
    check_key_count(keys)
    return keys


def check_key_count(keys: Iterable[str]) -> None:
    """Refuse more than `MAX_KEYS` distinct keys, with a `MetricInputError`."""
    count = len(set(keys))
    if count > MAX_KEYS:
        raise MetricInputError(
            f"{count} metric keys for MLflow, at most {MAX_KEYS} are charted well; "
            "leave the detail in the measurements table."
        )


def _counts(facts: DayFacts) -> dict[str, float]:
    counts = {
        "day/comments": facts.comments,
        "day/quarantined": facts.quarantined,
        "day/flagged_share": facts.flagged_share,
        "review/routed": facts.routed,
        "review/labelled": facts.labelled,
        "review/completion": facts.completion,
    }
    return {key: float(value) for key, value in counts.items() if value is not None}


def _estimate(row: Mapping[Hashable, Any]) -> dict[str, float]:
    """Return value, low and high of one measurement, by key."""
    group = "model" if pd.isna(row["alpha"]) else "collaboration"
    metric = row["metric"]
    keys = {
        f"{group}/{metric}": row["value"],
        f"{INTERVAL_GROUP}/{metric}_low": row["low"],
        f"{INTERVAL_GROUP}/{metric}_high": row["high"],
    }
    return {key: float(value) for key, value in keys.items() if not pd.isna(value)}
