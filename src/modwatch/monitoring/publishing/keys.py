"""The estimates as deployed, and the metric keys of a day, grouped by prefix as MLflow's charts.

    collaboration/  model and moderators together over the trailing window, as deployed
    day/            alerts, volume, quarantined and flagged comments
    drift/          the day compared with the days before and with the fixed reference
    model/          the model alone over the trailing window; CBPE of the day
    review/         the queue and people's error rates
    single_day/     estimates from the day's own labels, with wider intervals than the window's

`KEYS` lists them all. MLflow sorts the groups by name: the most important group comes first. The
95 % intervals are no keys, but in a tag of the run (`INTERVALS_TAG`): MLflow would chart their ends
as metrics of their own. Of a day's own estimates, only those are keys for which a day's labels
suffice. Everything else (other strategies, other review fractions) is in tables and figures: with
thousands of keys, MLflow's pages stop responding.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from modwatch.common.errors import MetricInputError
from modwatch.data.lake.schemas import MEASUREMENTS
from modwatch.monitoring.publishing.facts import DayFacts, DayTables

#: MLflow draws one chart per key; nobody reads more.
MAX_KEYS = 60

INTERVAL_GROUP = "within_95"

#: The tag of a day's run with the intervals of its estimates, as JSON; MLflow hides `mlflow.` tags.
INTERVALS_TAG = "mlflow.modwatch.intervals"

#: The tag with the labels behind the estimates of the day, by key, as JSON.
LABELS_TAG = "mlflow.modwatch.labels"

#: The tag with the rules of its alerts, by severity, for the timeline.
RULES_TAG = "mlflow.modwatch.rules"

DAY_GROUP = "single_day"

#: Estimates of the day.
_DAY = ("accuracy", "oc_accuracy", "review_efficiency")

#: Estimates of the window and their groups.
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
}

#: Estimates of the window about the labels, in the group `review`, without keys for intervals.
_PEOPLE = ("annotator_false_negative_rate", "annotator_false_positive_rate", "overturned")

_COUNTS = (
    *("day/alerts", "day/comments", "day/flagged_share", "day/quarantined"),
    *("review/completion", "review/labelled", "review/routed"),
)

#: Metric, feature and reference of the rows of `lake.schemas.DRIFT` that are keys.
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


#: One row of a table of estimates: columns of `lake.schemas.MEASUREMENTS`.
Row = Mapping[Hashable, Any]

#: The ends of a 95 % interval.
Interval = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class DeployedEstimates:
    """Estimates with a number, at the deployed strategy and review fraction, by metric."""

    day: Mapping[str, Row]
    #: None when there is no window.
    window: Mapping[str, Row] | None
    day_before: Mapping[str, Row]
    window_before: Mapping[str, Row]
    #: The estimates of the day without a number, and how many there are at other settings.
    missing: Sequence[Row]
    missing_elsewhere: int


def interval_keys(key: str) -> tuple[str, str]:
    """Return the keys of the bounds of an estimate's interval.

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
    *(f"review/{metric}" for metric in _PEOPLE),
)

#: The keys that are counted, not estimated: they have no interval, and MLflow may draw a line.
COUNTED = (*_COUNTS, *(key for key in _DRIFT if key.startswith("review/")))

_TITLES = {
    "oc_accuracy": "OC-Acc",
    "oc_auroc": "OC-AUROC",
    "oc_auprc": "OC-AUPRC",
    "oc_average_precision": "OC-AUPRC",
    "mean_delta": "Mean δ",
    "review_efficiency": "Review Efficiency",
    "review_effectiveness": "Review Effectiveness",
    "calibration_auroc": "Calibration AUROC",
    "calibration_auprc": "Calibration AUPRC",
    "ece": "ECE",
    "brier": "Brier score",
    "auroc": "AUROC",
    "auprc": "AUPRC",
    "accuracy": "Accuracy",
    "annotator_false_positive_rate": "Moderators' false-positive rate",
    "annotator_false_negative_rate": "Moderators' false-negative rate",
    "overturned": "Confirmed labels overturned",
    "precision_flagged": "Precision of flagged",
    "recall_flagged": "Recall of flagged",
    "score_psi": "Score PSI, trailing",
    "score_psi_fixed": "Score PSI, fixed",
    "uncertainty_psi": "Uncertainty PSI, trailing",
    "language_jensen_shannon": "Language Jensen–Shannon",
    "cbpe_accuracy": "CBPE accuracy",
}


def metric_title(metric: str) -> str:
    """Return the display name of a metric.

    >>> metric_title("oc_auroc"), metric_title("queue_age")
    ('OC-AUROC', 'Queue age')
    """
    return _TITLES.get(metric, metric.replace("_", " ").capitalize())


def checked(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return the measurements with plain floats (missing is NaN).

    Raises:
        MetricInputError: a column of `lake.schemas.MEASUREMENTS` is missing.
    """
    missing = [name for name in MEASUREMENTS.names if name not in measurements.columns]
    if missing:
        raise MetricInputError(
            f"The measurements lack the columns {missing}; pass the table as read from the lake."
        )
    floats = ["alpha", "value", "low", "high", "effective_n"]
    numbers = measurements[floats].apply(pd.to_numeric).astype("float64")
    return measurements.assign(**{name: numbers[name] for name in floats})


def deployed_rows(
    measurements: pd.DataFrame, strategy: str, review_fraction: float
) -> pd.DataFrame:
    """Return the measurements at this strategy and review fraction, or that have none."""
    alpha = measurements["alpha"]
    at_alpha = alpha.isna() | ((alpha - review_fraction).abs() < 1e-12)
    by = measurements["strategy"]
    return measurements[at_alpha & (by.isna() | (by == strategy))]


def known(measurements: pd.DataFrame) -> "pd.Series[bool]":
    """Return a mask of the rows with a number: status ok and a finite value."""
    finite = np.isfinite(measurements["value"].to_numpy(dtype=np.float64))
    mask: pd.Series[bool] = measurements["status"].eq("ok") & finite
    return mask


def checked_tables(tables: DayTables) -> DayTables:
    """Return the tables, each table of estimates `checked`."""
    return replace(
        tables,
        measurements=checked(tables.measurements),
        window=checked(tables.window),
        day_before=checked(tables.day_before),
        window_before=checked(tables.window_before),
    )


def deployed_estimates(tables: DayTables, facts: DayFacts) -> DeployedEstimates:
    """Return the estimates at the deployed settings; the tables are as `checked_tables` returns."""

    def by_metric(measurements: pd.DataFrame) -> dict[str, Row]:
        rows = deployed_rows(measurements, facts.strategy, facts.review_fraction)
        return {row["metric"]: row for row in rows[known(rows)].to_dict("records")}

    day = tables.measurements[~known(tables.measurements)]
    missing = deployed_rows(day, facts.strategy, facts.review_fraction)
    return DeployedEstimates(
        day=by_metric(tables.measurements),
        window=by_metric(tables.window) if len(tables.window) else None,
        day_before=by_metric(tables.day_before),
        window_before=by_metric(tables.window_before),
        missing=missing.to_dict("records"),
        missing_elsewhere=len(day) - len(missing),
    )


def day_metrics(
    estimates: DeployedEstimates, drift: pd.DataFrame, facts: DayFacts
) -> dict[str, float]:
    """Return the metrics of one day by key, all of them in `KEYS`; insufficient ones are absent.

    The same keys serve the day's run and its point on the timeline.
    """
    metrics = _counts(facts)
    for metric in _DAY:
        metrics |= _value(f"{DAY_GROUP}/{metric}", estimates.day.get(metric))
    for metric, group in _WINDOW.items():
        metrics |= _value(f"{group}/{metric}", (estimates.window or {}).get(metric))
    for metric in _PEOPLE:
        metrics |= _value(f"review/{metric}", (estimates.window or {}).get(metric))
    return metrics | {key: value for key, (value, _, _) in _drift(drift).items()}


def day_intervals(estimates: DeployedEstimates, drift: pd.DataFrame) -> dict[str, Interval]:
    """Return the 95 % intervals of `day_metrics` by key; a value without an interval is absent."""
    window = estimates.window or {}
    rows = {
        **{f"{DAY_GROUP}/{metric}": estimates.day.get(metric) for metric in _DAY},
        **{f"{group}/{metric}": window.get(metric) for metric, group in _WINDOW.items()},
        **{f"review/{metric}": window.get(metric) for metric in _PEOPLE},
    }
    ends = {key: (float(row["low"]), float(row["high"])) for key, row in rows.items() if row}
    ends |= {key: (low, high) for key, (_, low, high) in _drift(drift).items()}
    return {
        key: both
        for key, both in ends.items()
        if key not in COUNTED and not any(map(math.isnan, both))
    }


def day_labels(estimates: DeployedEstimates) -> dict[str, float]:
    """Return by key the labels of equal weight that an estimate of the day is worth, at least 1."""
    rows = {f"{DAY_GROUP}/{metric}": estimates.day.get(metric) for metric in _DAY}
    return {key: max(float(row["effective_n"]), 1.0) for key, row in rows.items() if row}


def threshold_rows(metric: str, feature: str | None, reference: str | None) -> list[str]:
    """Return the keys of what an alert rule watches; None watches every feature or reference.

    >>> threshold_rows("window_accuracy", None, None), threshold_rows("psi", "prob", None)
    (['model/accuracy'], ['drift/score_psi', 'drift/score_psi_fixed'])
    """
    windows = {f"window_{name}": f"{group}/{name}" for name, group in _WINDOW.items()}
    if metric in windows:
        return [windows[metric]]
    return [
        key
        for key, (name, of, against) in _DRIFT.items()
        if name == metric and feature in (None, of) and reference in (None, against)
    ]


def check_key_count(keys: Iterable[str]) -> None:
    """Raise MetricInputError if there are more than `MAX_KEYS` distinct keys."""
    count = len(set(keys))
    if count > MAX_KEYS:
        raise MetricInputError(
            f"{count} metric keys for MLflow; at most {MAX_KEYS} are allowed. "
            "Leave the detail in the measurements table."
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


def _value(key: str, row: Row | None) -> dict[str, float]:
    """Return the value of one estimate by key, if it has one."""
    return {} if row is None or math.isnan(row["value"]) else {key: float(row["value"])}


def _drift(drift: pd.DataFrame) -> dict[str, tuple[float, float, float]]:
    """Return value, low and high of the metrics of the last day of a drift table, by key."""
    rows = drift[known(drift) & (drift["dt"] == drift["dt"].max())]
    names = zip(rows["metric"], rows["feature"], rows["reference"].fillna(""), strict=True)
    columns = rows[["value", "low", "high"]].astype("float64").itertuples(index=False, name=None)
    values = dict(zip(names, columns, strict=True))
    return {key: values[name] for key, name in _DRIFT.items() if name in values}
