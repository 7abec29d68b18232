"""The estimates as deployed, and the metric keys of a day, grouped by prefix as MLflow's charts.

    collaboration_window/  model and moderators together over the trailing window, as deployed
    day/                   alerts, volume, quarantined and flagged comments
    drift/                 the day compared with the days before and with the fixed reference
    model/                 CBPE of a day before the first labels
    model_window/          the model alone over the trailing window
    review/                the queue of the day, and people's error rates over the window
    single_day/            estimates of the day

`KEYS` lists them all. MLflow sorts the groups by name: the most important group comes first. The
95 % intervals have no keys: MLflow would chart their ends as metrics of their own. Everything else
(other strategies, other review fractions) is in tables and figures: with thousands of keys,
MLflow's pages stop responding.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from modwatch.common.errors import MetricInputError
from modwatch.monitoring.publishing.content import DayTables
from modwatch.monitoring.publishing.days import Day, KeyFigure
from modwatch.statistics.live.figures import FIGURES, keys

#: MLflow draws one chart per key; no one reads more.
MAX_KEYS = 60

DAY_GROUP = "single_day"

#: Estimates of the day.
_DAY = keys(of_day=True)

#: Labels that were missing when the review of the day was over; how many of them were followed up
#: and answered; labels of others that came later, which estimates leave out.
FOLLOW_UPS = (
    *("review/missing_dismissed", "review/missing_escalated", "review/missing_skipped"),
    *("review/missing_waiting", "review/follow_ups", "review/follow_ups_answered"),
    "review/late_labels",
)

_COUNTS = (
    *("day/alerts", "day/comments", "day/flagged_share", "day/quarantined"),
    *("review/completion", "review/labelled", "review/routed"),
    *FOLLOW_UPS,
)

#: Metric, feature and reference of the rows of `lake.schemas.DRIFT` that are keys.
DRIFT = {
    "drift/flagged_share_change": ("flagged_share_change", "flagged", "trailing"),
    "drift/language_jensen_shannon": ("jensen_shannon", "language", "trailing"),
    "drift/score_psi": ("psi", "prob", "trailing"),
    "drift/score_psi_fixed": ("psi", "prob", "fixed"),
    "drift/uncertainty_psi": ("psi", "uncertainty", "trailing"),
    "drift/volume_ratio": ("volume_ratio", "comments", "trailing"),
    "model/cbpe_accuracy": ("cbpe_accuracy", "prob", ""),
    "review/age_median_hours": ("queue_age_median_hours", "queue", ""),
    "review/age_oldest_hours": ("queue_age_oldest_hours", "queue", ""),
    "review/undecided": ("queue_waiting", "queue", ""),
}


#: One row of a table of estimates: columns of `lake.schemas.ESTIMATES`.
Row = Mapping[Hashable, Any]


@dataclass(frozen=True, kw_only=True)
class DeployedEstimates:
    """Estimates with a number, at the deployed strategy and review fraction, by metric."""

    day: Mapping[str, Row]
    #: None when there is no window.
    window: Mapping[str, Row] | None
    #: By the design alone: of the day and its window.
    own: Mapping[str, Row]
    window_own: Mapping[str, Row]
    #: The estimates of the day without a number, and how many there are at other settings.
    missing: Sequence[Row]
    missing_elsewhere: int


_ESTIMATES = (
    *(figure.name for figure in FIGURES.values()),
    *(f"{DAY_GROUP}/{metric}" for metric in _DAY),
)

#: Every key that a day's run or the timeline may have.
KEYS = (
    *_COUNTS,
    *DRIFT,
    *_ESTIMATES,
)

#: The keys that are counted, not estimated: they have no interval, and MLflow may draw a line.
COUNTED = (*_COUNTS, *(key for key in DRIFT if key.startswith("review/")))


def known(estimates: pd.DataFrame) -> "pd.Series[bool]":
    """Return a mask of the rows with a number: status ok and a finite value."""
    finite = np.isfinite(estimates["value"].to_numpy(dtype=np.float64))
    mask: pd.Series[bool] = estimates["status"].eq("ok") & finite
    return mask


def deployed_estimates(tables: DayTables, day: Day) -> DeployedEstimates:
    """Return the estimates at the deployed settings; tables are as read from the lake."""

    def deployed(estimates: pd.DataFrame) -> pd.DataFrame:
        alpha, by = estimates["alpha"], estimates["strategy"]
        at_alpha = alpha.isna() | ((alpha - day.review_fraction).abs() < 1e-12)
        return estimates[at_alpha & (by.isna() | (by == day.strategy))]

    def by_metric(estimates: pd.DataFrame) -> dict[str, Row]:
        rows = deployed(estimates[known(estimates)])
        return {row["metric"]: row for row in rows.to_dict("records")}

    unknown = tables.estimates[~known(tables.estimates)]
    missing = deployed(unknown)
    return DeployedEstimates(
        day=by_metric(tables.estimates),
        window=by_metric(tables.window) if len(tables.window) else None,
        own=by_metric(tables.own),
        window_own=by_metric(tables.window_own),
        missing=missing.to_dict("records"),
        missing_elsewhere=len(unknown) - len(missing),
    )


def key_figures(tables: DayTables, day: Day) -> dict[str, KeyFigure]:
    """Return the figures of a day by key, all of them in `KEYS`; insufficient ones are absent."""
    estimates = deployed_estimates(tables, day)
    window = estimates.window or {}
    rows = {
        **{figure.name: window.get(key) for key, figure in FIGURES.items()},
        **{f"{DAY_GROUP}/{metric}": estimates.day.get(metric) for metric in _DAY},
        **_drift(tables.drift),
    }
    return {key: KeyFigure(value=float(value)) for key, value in _counts(day).items()} | {
        key: _figure(key, row) for key, row in rows.items() if row is not None
    }


def _counts(day: Day) -> dict[str, float]:
    counts = {
        "day/alerts": len(day.alerts),
        "day/comments": day.comments,
        "day/quarantined": day.quarantined,
        "day/flagged_share": day.flagged_share,
        "review/routed": day.routed,
        "review/labelled": day.labelled,
        "review/completion": day.completion,
    }
    return {key: value for key, value in counts.items() if value is not None}


def _figure(key: str, row: Row) -> KeyFigure:
    """Return a row with a number as a figure; what is counted has no interval."""
    low, high = float(row["low"]), float(row["high"])
    if key in COUNTED or math.isnan(low) or math.isnan(high):
        return KeyFigure(value=float(row["value"]))
    return KeyFigure(value=float(row["value"]), low=low, high=high)


def _drift(drift: pd.DataFrame) -> dict[str, Row]:
    """Return the rows of a day's drift by key, as far as they have a number."""
    rows = drift[known(drift)]
    floats = rows.astype(dict.fromkeys(("value", "low", "high"), "float64"))
    names = zip(rows["metric"], rows["feature"], rows["reference"].fillna(""), strict=True)
    found = dict(zip(names, floats.to_dict("records"), strict=True))
    return {key: found[name] for key, name in DRIFT.items() if name in found}


def threshold_rows(metric: str, feature: str | None, reference: str | None) -> list[str]:
    """Return the keys of what an alert rule watches; None watches every feature or reference.

    >>> threshold_rows("window_accuracy", None, None), threshold_rows("psi", "prob", None)
    (['model_window/accuracy'], ['drift/score_psi', 'drift/score_psi_fixed'])
    """
    windows = {f"window_{key}": figure.name for key, figure in FIGURES.items()}
    if metric in windows:
        return [windows[metric]]
    return [
        key
        for key, (name, of, against) in DRIFT.items()
        if name == metric and feature in (None, of) and reference in (None, against)
    ]


def check_key_count(keys: Iterable[str]) -> None:
    """Raise MetricInputError if there are more than `MAX_KEYS` distinct keys."""
    count = len(set(keys))
    if count > MAX_KEYS:
        raise MetricInputError(
            f"{count} metric keys for MLflow; at most {MAX_KEYS} are allowed. "
            "Leave the detail in the table of estimates."
        )
