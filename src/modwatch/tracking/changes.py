"""What changed between two tables of estimates, beyond what sampling noise explains."""

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from scipy import special

from modwatch.metrics.distance import Effect, share
from modwatch.tracking.facts import DayFacts
from modwatch.tracking.keys import deployed_rows, known

#: Metrics that are compared: what the day's labels can tell with intervals worth comparing.
COMPARED = (
    *("oc_accuracy", "review_efficiency", "review_effectiveness"),
    *("accuracy", "prevalence", "precision_flagged", "recall_flagged", "brier"),
)

#: Shares of comments nearly all of which people have seen.
_NEARLY_ALL_SEEN = ("precision_flagged", "review_efficiency")


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change of one metric that is larger than its noise."""

    metric: str
    before: float
    now: float


def changes(
    now: pd.DataFrame, before: pd.DataFrame, facts: DayFacts, *, among: int
) -> tuple[int, list[Change]]:
    """Return how many metrics could be compared, and which of them changed beyond noise.

    Both tables have the columns of `records.MEASUREMENTS` and must not rest on the same labels. The
    interval of a difference comes from those of its two sides (Zou & Donner 2008, Eq. 9); a change
    is called one when 0 lies outside. `among` is how many such questions are asked of a day: the
    intervals are widened so that a day without change stays without in 95 % of days (Bonferroni).

    >>> def table(value):
    ...     return pd.DataFrame([{"metric": "accuracy", "strategy": None, "alpha": None,
    ...         "value": value, "low": value - .02, "high": value + .02, "status": "ok"}])
    >>> facts = DayFacts(comments=9, quarantined=0, flagged=0, routed=0, labelled=0,
    ...     checks="passed", model_version="1", strategy="uncertainty", review_fraction=0.1)
    >>> changes(table(0.9), table(0.95), facts, among=1)
    (1, [Change(metric='accuracy', before=0.95, now=0.9)])
    >>> changes(table(0.9), table(0.925), facts, among=1)
    (1, [])
    """
    wider = float(special.ndtri(1 - 0.025 / among) / special.ndtri(0.975))
    pairs = list(_pairs(now, before, facts))
    changed = [
        Change(metric=new["metric"], before=old["value"], now=new["value"])
        for new, old in pairs
        if _differ(new, old, wider)
    ]
    return len(pairs), changed


def _pairs(
    now: pd.DataFrame, before: pd.DataFrame, facts: DayFacts
) -> Iterator[tuple[Mapping[Hashable, Any], Mapping[Hashable, Any]]]:
    """Yield the estimates of the compared metrics that both tables have, with intervals."""
    sides = [deployed_rows(table, facts.strategy, facts.review_fraction) for table in (now, before)]
    new, old = (
        {
            row["metric"]: row
            for row in side[known(side)].dropna(subset=["low", "high"]).to_dict("records")
        }
        for side in sides
    )
    yield from (
        (new[metric], old[metric]) for metric in COMPARED if {metric} <= new.keys() & old.keys()
    )


def _differ(new: Mapping[Hashable, Any], old: Mapping[Hashable, Any], wider: float) -> bool:
    upper, lower = (new, old) if new["value"] > old["value"] else (old, new)
    noise = math.hypot(upper["value"] - _bounds(upper).low, _bounds(lower).high - lower["value"])
    return bool(upper["value"] - lower["value"] > wider * noise)


def _bounds(row: Mapping[Hashable, Any]) -> Effect:
    """Return an interval of what the estimate would be on another day such as this one.

    Where every comment was reviewed the estimate's own has no width: the day itself holds no doubt,
    but its three flagged comments say little of the next day's. Wilson's then stands in.
    """
    low, high = row["low"], row["high"]
    if row["metric"] in _NEARLY_ALL_SEEN and row["n"] > 0:
        another = share(round(row["value"] * row["n"]), int(row["n"]))
        low, high = min(low, another.low), max(high, another.high)
    return Effect(value=row["value"], low=low, high=high)
