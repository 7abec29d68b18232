"""What has changed: estimates significantly, and the size of drift on one scale."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from modwatch.common.columns import grouped
from modwatch.monitoring.publishing.keys import Row, known
from modwatch.statistics.drift.distance import Effect, share
from modwatch.statistics.drift.profile import RANGES
from modwatch.statistics.live.figures import keys

#: Figures that are compared: those for which a day's labels give useful intervals.
COMPARED = keys(compare=True)

#: Shares of comments, nearly all of them reviewed.
_NEARLY_ALL_SEEN = keys(nearly_all_seen=True)

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
    ("jensen_shannon", "detected_language"): "detected language mix",
    ("jensen_shannon", "script"): "script mix",
    **{("jensen_shannon", name): f"{name} mix" for name in grouped()},
    ("jensen_shannon", "length"): "length mix",
}

_AGAINST = {"trailing": "trailing days", "fixed": "fixed reference"}


@dataclass(frozen=True, kw_only=True)
class Change:
    """A significant change of one metric."""

    metric: str
    before: float
    now: float


def changes(
    now: Mapping[str, Row], before: Mapping[str, Row], *, among: int
) -> tuple[int, list[Change]]:
    """Return how many metrics could be compared, and which of them changed significantly.

    Both sides are estimates by metric, and must not rest on the same labels. The interval of a
    difference is computed from those of its two sides (Zou & Donner 2008, Eq. 9); a change is
    significant if 0 lies outside. `among` is the number of comparisons per day: intervals are
    widened so that a day without any change is reported as such in 95 % of days (Bonferroni).

    >>> def side(value):
    ...     return {"accuracy": {"metric": "accuracy", "n": 9, "value": value,
    ...                          "low": value - .02, "high": value + .02}}
    >>> changes(side(0.9), side(0.95), among=1)
    (1, [Change(metric='accuracy', before=0.95, now=0.9)])
    >>> changes(side(0.9), side(0.925), among=1)
    (1, [])
    """
    wider = float(special.ndtri(1 - 0.025 / among) / special.ndtri(0.975))
    pairs = [
        (now[metric], before[metric])
        for metric in COMPARED
        if _has_interval(now.get(metric)) and _has_interval(before.get(metric))
    ]
    changed = [
        Change(metric=new["metric"], before=old["value"], now=new["value"])
        for new, old in pairs
        if _differ(new, old, wider)
    ]
    return len(pairs), changed


def _has_interval(row: Row | None) -> bool:
    return row is not None and not (math.isnan(row["low"]) or math.isnan(row["high"]))


def _differ(new: Row, old: Row, wider: float) -> bool:
    upper, lower = (new, old) if new["value"] > old["value"] else (old, new)
    noise = math.hypot(upper["value"] - _bounds(upper).low, _bounds(lower).high - lower["value"])
    return bool(upper["value"] - lower["value"] > wider * noise)


def _bounds(row: Row) -> Effect:
    """Return an interval for the same estimate on another day of this size.

    Where every comment was reviewed, the estimate's own interval has no width: the day is known
    exactly, but its three flagged comments say little about the next day. Wilson's is used then.
    """
    low, high = row["low"], row["high"]
    if row["metric"] in _NEARLY_ALL_SEEN and row["n"] > 0:
        another = share(round(row["value"] * row["n"]), int(row["n"]))
        low, high = min(low, another.low), max(high, another.high)
    return Effect(value=row["value"], low=low, high=high)


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
    mix = f"{feature} mix" if metric == "jensen_shannon" and feature not in RANGES else ""
    name = _NAMES.get((metric, feature), mix)
    if metric == "missing_share_change":
        name = f"{feature} missing"
    return f"{name}, {_AGAINST.get(reference, reference)}" if name else ""


def _severity(rows: pd.DataFrame, column: str) -> NDArray[np.float64]:
    """Return the signed size of a column of effects over `NOTED`; NaN where it is missing."""
    size = rows[column].to_numpy(dtype=np.float64, copy=True)
    ratio = rows["metric"].eq("volume_ratio").to_numpy()
    size[ratio] = np.log(np.maximum(size[ratio], np.finfo(np.float64).tiny))
    return size / rows["metric"].map(NOTED).to_numpy(dtype=np.float64)
