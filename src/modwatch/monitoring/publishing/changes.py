"""Significant changes between two sets of estimates."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from scipy import special

from modwatch.monitoring.publishing.keys import Row
from modwatch.statistics.drift.distance import Effect, share

#: Metrics that are compared: those for which a day's labels give useful intervals.
COMPARED = (
    *("oc_accuracy", "review_efficiency", "review_effectiveness"),
    *("accuracy", "prevalence", "precision_flagged", "recall_flagged", "brier"),
)

#: Shares of comments of which nearly all have been reviewed.
_NEARLY_ALL_SEEN = ("precision_flagged", "review_efficiency")


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
