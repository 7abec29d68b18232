"""The size of drift on one scale, for the chart of the trailing days."""

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from modwatch.common.columns import grouped
from modwatch.monitoring.publishing.keys import known

#: Size from which an effect is noted, by metric. That of PSI is the usual one; a small
#: Jensen–Shannon divergence in bits is about PSI / (8 ln 2).
NOTED = {
    "psi": 0.1,
    "jensen_shannon": 0.02,
    "flagged_share_change": 0.02,
    "missing_share_change": 0.05,
    "quarantined_share_change": 0.02,
    "volume_ratio": math.log(1.5),
}

#: Names of the rows of the drift table.
_NAMES = {
    ("psi", "prob"): "scores",
    ("psi", "uncertainty"): "uncertainty",
    ("flagged_share_change", "flagged"): "flagged share",
    ("volume_ratio", "comments"): "volume",
    ("quarantined_share_change", "quarantined"): "quarantined share",
    ("jensen_shannon", "language"): "language mix",
    ("jensen_shannon", "detected_language"): "detected language mix",
    ("jensen_shannon", "script"): "script mix",
    **{("jensen_shannon", name): f"{name} mix" for name in grouped()},
    ("jensen_shannon", "length"): "length mix",
}

_AGAINST = {"trailing": "trailing days", "fixed": "fixed reference"}


def drift_effects(drift: pd.DataFrame) -> pd.DataFrame:
    """Return the effects of a drift table with a name and a severity ≥ 0, one per row.

    `drift` has the columns of `lake.schemas.DRIFT`. Added are `name`, of feature and reference;
    `severity`, the size over `NOTED`, which is missing where the effect is insufficient. Features
    are in a fixed order.

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
    severity = np.where(known(rows), np.abs(_severity(rows)), np.nan)
    order = {name: place for place, name in enumerate(_NAMES.values())}
    rank = [order.get(str(name).rpartition(", ")[0], len(order)) for name in rows["name"]]
    rows = rows.assign(severity=severity, rank=rank)
    return rows.sort_values(["rank", "name"], kind="stable").drop(columns="rank")


def _name(metric: str, feature: str, reference: str) -> str:
    """Return the name of an effect; empty for a row that is none."""
    mix = f"{feature} mix" if metric == "jensen_shannon" else ""
    name = _NAMES.get((metric, feature), mix)
    if metric == "missing_share_change":
        name = f"{feature} missing"
    return f"{name}, {_AGAINST.get(reference, reference)}" if name else ""


def _severity(rows: pd.DataFrame) -> NDArray[np.float64]:
    """Return the signed size of effects over `NOTED`; NaN where it is missing."""
    size = rows["value"].to_numpy(dtype=np.float64, copy=True)
    ratio = rows["metric"].eq("volume_ratio").to_numpy()
    size[ratio] = np.log(np.maximum(size[ratio], np.finfo(np.float64).tiny))
    return size / rows["metric"].map(NOTED).to_numpy(dtype=np.float64)
