"""The charts of groups of comments over the days, in an experiment of their own."""

import math
import re
from collections.abc import Hashable, Mapping, Sequence, Set
from datetime import date
from typing import Any

import pandas as pd

from modwatch.common.mlflow_client import Rows
from modwatch.monitoring.publishing.keys import MAX_KEYS, interval_keys
from modwatch.statistics.live.group_estimates import GAP

#: The experiment of all runs about groups.
GROUP_EXPERIMENT = "modwatch-groups"

_VALUE = ("value", "low", "high")
_DIFFERENCE = ("difference", "difference_low", "difference_high")

#: Prefix of the keys of a figure, by scope, metric and columns: a value, and the ends of its
#: interval. The mean uncertainty is exact for the day, so that its key has no ends.
_CHARTS = {
    "uncertainty": ("day", "mean_uncertainty", ("value",)),
    "uncertainty_difference": ("day", "mean_uncertainty", _DIFFERENCE),
    "accuracy": ("window", "accuracy", _VALUE),
}

#: Attributes whose gap in the coverage of prediction sets has a chart, with both ends.
_GAPS = ("platform", "language", "identity")

#: Groups with charts.
_MOST_GROUPS = (MAX_KEYS - 3 * len(_GAPS)) // sum(len(each[2]) for each in _CHARTS.values())


def group_points(table: pd.DataFrame) -> Rows:
    """Return the values of the largest groups by day and key.

    Keys are `uncertainty/ATTRIBUTE_GROUP`, the mean of p(1−p) of the day,
    `uncertainty_difference/ATTRIBUTE_GROUP`, that mean less the one of all other comments, and
    `accuracy/ATTRIBUTE_GROUP`, of the window; the ends of intervals are at `interval_keys`. Seven
    groups have keys, which are those with the most comments over all days. `set_coverage_gap/`
    ATTRIBUTE is the gap in the coverage of prediction sets between the groups of an attribute.

    Args:
        table: rows of any days, columns of `lake.schemas.COMMENT_GROUPS`.
    """
    rows = table[table["status"] == "ok"]
    scored = rows[rows["metric"] == "mean_uncertainty"]
    sizes = scored.groupby(["attribute", "group"])["comments"].sum()
    largest = set(sizes.sort_values(ascending=False, kind="stable").index[:_MOST_GROUPS])
    points: dict[date, dict[str, float]] = {}
    for row in rows.sort_values(["dt", "attribute", "group"]).to_dict("records"):
        if found := _points(row, largest):
            points.setdefault(row["dt"], {}).update(found)
    return points


def _points(row: Mapping[Hashable, Any], largest: Set[tuple[str, str]]) -> dict[str, float]:
    """Return the figures of a row by key; none of a smaller group."""
    figure, attribute, group = (row["scope"], row["metric"]), row["attribute"], row["group"]
    found: dict[str, float] = {}
    if row["metric"] == GAP and attribute in _GAPS:
        found |= _estimate(row, f"{GAP}/{attribute}", _VALUE)
    for prefix, (scope, metric, columns) in _CHARTS.items():
        if figure == (scope, metric) and (attribute, group) in largest:
            found |= _estimate(row, f"{prefix}/{_name(attribute)}_{_name(group)}", columns)
    return found


def _estimate(row: Mapping[Hashable, Any], key: str, columns: Sequence[str]) -> dict[str, float]:
    """Return the columns by key: a value alone, or with both ends of its interval."""
    values = zip((key, *interval_keys(key)), columns, strict=False)
    points = {name: float(row[column]) for name, column in values}
    return {name: value for name, value in points.items() if not math.isnan(value)}


def _name(text: str) -> str:
    """Return the text as a part of a key, without characters that MLflow refuses."""
    return re.sub(r"[^\w.\-]", "_", text)
