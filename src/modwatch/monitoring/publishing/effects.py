"""Effect sizes of drift on one scale, comparable across features."""

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from modwatch.monitoring.publishing.keys import known

#: Size from which an effect is noted, by metric; twice as much is a shift. Those of PSI are the
#: usual ones; a small Jensen–Shannon divergence in bits is about PSI / (8 ln 2).
NOTED = {
    "psi": 0.1,
    "jensen_shannon": 0.02,
    "flagged_share_change": 0.02,
    "missing_share_change": 0.05,
    "quarantined_share_change": 0.02,
    "volume_ratio": math.log(1.5),
}

#: Names of the rows of the drift table. Other metrics of a score are redundant with its PSI.
_NAMES = {
    ("psi", "prob"): "scores",
    ("psi", "uncertainty"): "uncertainty",
    ("flagged_share_change", "flagged"): "flagged share",
    ("volume_ratio", "comments"): "volume",
    ("quarantined_share_change", "quarantined"): "quarantined share",
    ("jensen_shannon", "language"): "language mix",
    ("jensen_shannon", "platform"): "platform mix",
    ("jensen_shannon", "length"): "length mix",
}

_AGAINST = {"trailing": "trailing days", "fixed": "fixed reference"}


def drift_effects(drift: pd.DataFrame) -> pd.DataFrame:
    """Return the effects of a drift table with a name and a severity ≥ 0, one per row.

    `drift` has the columns of `lake.schemas.DRIFT`. Added are `name`, of feature and reference;
    `severity`, the size over `NOTED`, where 1 is noted and 2 is a shift; `bound`, the severity of
    the interval bound nearer to no effect. Both are missing where the effect is insufficient.
    Features are in a fixed order.

    >>> row = {"metric": "volume_ratio", "feature": "comments", "reference": "trailing",
    ...        "value": 1.5, "low": None, "high": None, "status": "ok"}
    >>> drift_effects(pd.DataFrame([row]))[["name", "severity"]].to_numpy().tolist()
    [['volume, trailing days', 1.0]]
    """
    names = [
        _name(str(metric), str(feature), str(reference))
        for metric, feature, reference in drift[["metric", "feature", "reference"]].to_numpy()
    ]
    rows = drift.assign(name=names)[np.array([bool(name) for name in names], np.bool_)]
    severity = np.where(known(rows), _severity(rows, "value"), np.nan)
    low, high = _severity(rows, "low"), _severity(rows, "high")
    # An interval that includes no effect counts as none; without an interval, the value counts.
    nearer = np.where(low * high > 0, np.fmin(np.abs(low), np.abs(high)), 0.0)
    bound = np.where(np.isnan(low) | np.isnan(high), np.abs(severity), nearer)
    order = {name: place for place, name in enumerate(_NAMES.values())}
    rank = [order.get(str(name).rpartition(", ")[0], len(order)) for name in rows["name"]]
    rows = rows.assign(severity=np.abs(severity), bound=np.where(known(rows), bound, np.nan))
    return rows.assign(rank=rank).sort_values(["rank", "name"], kind="stable").drop(columns="rank")


def drift_status(drift: pd.DataFrame) -> tuple[str, str]:
    """Return how far the last day of a drift table has drifted, and the name of the worst effect.

    `none`, `noted`, `shift`, or `unknown` when nothing could be compared. An effect counts by the
    interval bound nearer to no effect, so that noise is not reported as drift.
    """
    effects = drift_effects(drift[drift["dt"] == drift["dt"].max()])
    bound = effects["bound"].to_numpy(dtype=np.float64)
    if not np.isfinite(bound).any():
        return "unknown", ""
    worst = int(np.nanargmax(bound))
    if bound[worst] < 1:
        return "none", ""
    return "shift" if bound[worst] >= 2 else "noted", str(effects["name"].iloc[worst])


def _name(metric: str, feature: str, reference: str) -> str:
    """Return the name of an effect; empty for a row that is none, or is redundant."""
    name = _NAMES.get((metric, feature), "")
    if metric == "missing_share_change":
        name = f"{feature} missing"
    return f"{name}, {_AGAINST.get(reference, reference)}" if name else ""


def _severity(rows: pd.DataFrame, column: str) -> NDArray[np.float64]:
    """Return the signed size of a column of effects over `NOTED`; NaN where it is missing."""
    size = rows[column].to_numpy(dtype=np.float64, copy=True)
    ratio = rows["metric"].eq("volume_ratio").to_numpy()
    size[ratio] = np.log(np.maximum(size[ratio], np.finfo(np.float64).tiny))
    return size / rows["metric"].map(NOTED).to_numpy(dtype=np.float64)
