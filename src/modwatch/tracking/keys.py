"""The metric keys of a day: few, stable, and grouped by prefix as MLflow's charts are.

    collaboration/  model and moderators together over the trailing window, as deployed
    day/            alerts, volume, and what the checks and the threshold took
    drift/          how far the day is from the days before, and from the first ones
    model/          the model alone over the trailing window; CBPE of the day
    review/         the queue, and how often moderators err
    single_day/     estimates from the day's own labels: far vaguer than the window's
    within_95/      ends of the 95 % intervals of all estimates

`KEYS` lists them all. MLflow sorts the groups by name: what is asked first comes first, and the
intervals come last so that they do not part the rest. Of a day's own estimates only those are keys
for which a day's labels suffice. Everything else (other strategies, other review fractions)
is in tables and figures: MLflow's pages die of thousands of keys.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from modwatch.errors import MetricInputError
from modwatch.lake.schemas import MEASUREMENTS
from modwatch.tracking.facts import DayFacts, DayTables

#: MLflow draws one chart a key; more are not read by anybody.
MAX_KEYS = 60

INTERVAL_GROUP = "within_95"

DAY_GROUP = "single_day"

#: Estimates of the day.
_DAY = ("accuracy", "oc_accuracy", "review_efficiency")

#: Estimates of the window, by the group that each stands in.
_WINDOW = {
    "oc_accuracy": "collaboration",
    "oc_auprc": "collaboration",
    "oc_auroc": "collaboration",
    "review_efficiency": "collaboration",
    "review_effectiveness": "collaboration",
    "accuracy": "model",
    "brier": "model",
    "precision_flagged": "model",
    "prevalence": "model",
    "recall_flagged": "model",
    "moderator_error": "review",
}

_COUNTS = (
    *("day/alerts", "day/comments", "day/flagged_share", "day/quarantined"),
    *("review/completion", "review/labelled", "review/routed"),
)

#: Metric, feature and reference of the rows of `records.DRIFT` that are keys.
_DRIFT = {
    "drift/flagged_share_change": ("flagged_share_change", "flagged", "trailing"),
    "drift/language_jensen_shannon": ("jensen_shannon", "language", "trailing"),
    "drift/score_mean_shift": ("mean_shift", "prob", "trailing"),
    "drift/score_psi": ("psi", "prob", "trailing"),
    "drift/score_psi_fixed": ("psi", "prob", "fixed"),
    "drift/uncertainty_psi": ("psi", "uncertainty", "trailing"),
    "drift/volume_ratio": ("volume_ratio", "comments", "trailing"),
    "model/cbpe_accuracy": ("cbpe_accuracy", "prob", ""),
    "review/age_median_hours": ("queue_age_median_hours", "queue", ""),
    "review/age_oldest_hours": ("queue_age_oldest_hours", "queue", ""),
    "review/waiting": ("queue_waiting", "queue", ""),
}


def interval_keys(key: str) -> tuple[str, str]:
    """Return the keys of the ends of the interval of an estimate.

    >>> interval_keys("model/brier")
    ('within_95/model_brier_low', 'within_95/model_brier_high')
    """
    name = f"{INTERVAL_GROUP}/{key.replace('/', '_')}"
    return f"{name}_low", f"{name}_high"


_ESTIMATES = (
    *(f"{group}/{metric}" for metric, group in _WINDOW.items()),
    *(f"{DAY_GROUP}/{metric}" for metric in _DAY),
)

#: Every key that a day's run or the timeline may have.
KEYS = (
    *_COUNTS,
    *_DRIFT,
    *_ESTIMATES,
    *(end for key in _ESTIMATES for end in interval_keys(key)),
)

_TITLES = {
    "oc_accuracy": "OC-Acc",
    "oc_auroc": "OC-AUROC",
    "oc_auprc": "OC-AUPRC",
    "review_efficiency": "Review Efficiency",
    "review_effectiveness": "Review Effectiveness",
    "calibration_auroc": "Calibration AUROC",
    "calibration_auprc": "Calibration AUPRC",
    "ece": "ECE",
    "brier": "Brier score",
    "auroc": "AUROC",
    "auprc": "AUPRC",
    "accuracy": "Accuracy",
    "precision_flagged": "Precision of flagged",
    "recall_flagged": "Recall of flagged",
    "score_psi": "Score PSI, trailing",
    "score_psi_fixed": "Score PSI, fixed",
    "uncertainty_psi": "Uncertainty PSI, trailing",
    "language_jensen_shannon": "Language Jensen–Shannon",
    "cbpe_accuracy": "CBPE accuracy",
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


def deployed_rows(
    measurements: pd.DataFrame, strategy: str, review_fraction: float
) -> pd.DataFrame:
    """Return the measurements at this strategy and review fraction, or that have none.

    `measurements` has the columns of `records.MEASUREMENTS`; its order is kept.
    """
    alpha = measurements["alpha"]
    at_alpha = alpha.isna() | ((alpha - review_fraction).abs() < 1e-12)
    by = measurements["strategy"]
    return measurements[at_alpha & (by.isna() | (by == strategy))]


def known(measurements: pd.DataFrame) -> "pd.Series[bool]":
    """Return a mask of the rows that hold a number: status ok and a finite value."""
    finite = np.isfinite(measurements["value"].to_numpy(dtype=np.float64))
    mask: pd.Series[bool] = measurements["status"].eq("ok") & finite
    return mask


def day_metrics(tables: DayTables, facts: DayFacts) -> dict[str, float]:
    """Return the metrics of one day by key, all of them `KEYS`; what is insufficient is absent.

    Estimates are as `checked` returns them. The same keys serve the day's run and its point on the
    timeline. The ends of intervals stand under `interval_keys`.

    >>> facts = DayFacts(
    ...     comments=10, quarantined=0, flagged=1, routed=2, labelled=2, model_version="1",
    ...     strategy="uncertainty", review_fraction=0.2, checks="passed")
    >>> row = {"metric": "oc_accuracy", "strategy": "uncertainty", "alpha": 0.2, "value": 0.9,
    ...        "low": 0.8, "high": 1.0, "status": "ok"}
    >>> day_metrics(DayTables(measurements=pd.DataFrame([row])), facts)["single_day/oc_accuracy"]
    0.9
    """
    metrics = _counts(facts)
    for row in _numbers(tables.measurements, facts):
        if row["metric"] in _DAY:
            metrics |= _estimate(f"{DAY_GROUP}/{row['metric']}", row)
    for row in _numbers(tables.window, facts):
        if row["metric"] in _WINDOW:
            metrics |= _estimate(f"{_WINDOW[row['metric']]}/{row['metric']}", row)
    return metrics | _drift(tables.drift)


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
        "day/alerts": len(facts.alerts),
        "day/comments": facts.comments,
        "day/quarantined": facts.quarantined,
        "day/flagged_share": facts.flagged_share,
        "review/routed": facts.routed,
        "review/labelled": facts.labelled,
        "review/completion": facts.completion,
    }
    return {key: float(value) for key, value in counts.items() if value is not None}


def _numbers(measurements: pd.DataFrame, facts: DayFacts) -> Iterator[dict[Hashable, Any]]:
    """Yield the estimates, as deployed, that hold a number."""
    rows = deployed_rows(measurements, facts.strategy, facts.review_fraction)
    yield from rows[known(rows)].to_dict("records")


def _estimate(key: str, row: Mapping[Hashable, Any]) -> dict[str, float]:
    """Return value, low and high of one estimate, by key."""
    low, high = interval_keys(key)
    keys = {key: row["value"], low: row["low"], high: row["high"]}
    return {key: float(value) for key, value in keys.items() if not pd.isna(value)}


def _drift(drift: pd.DataFrame) -> dict[str, float]:
    """Return the figures of the last day of a drift table that are keys."""
    rows = drift[known(drift) & (drift["dt"] == drift["dt"].max())]
    names = zip(rows["metric"], rows["feature"], rows["reference"].fillna(""), strict=True)
    values = dict(zip(names, rows["value"].astype("float64"), strict=True))
    return {key: float(values[name]) for key, name in _DRIFT.items() if name in values}
