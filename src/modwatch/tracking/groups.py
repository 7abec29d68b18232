"""The charts of groups of comments over the days, in an experiment of their own."""

import re
from datetime import date

import pandas as pd

from modwatch.metrics.significance import SIGNIFICANT
from modwatch.tracking.client import Rows
from modwatch.tracking.keys import MAX_KEYS, interval_keys

#: The experiment of all runs about groups.
GROUP_EXPERIMENT = "modwatch-groups"

#: Prefix of the keys of a metric, by scope and metric.
_CHARTS = {("day", "mean_uncertainty"): "uncertainty", ("window", "accuracy"): "accuracy"}

#: Groups with charts: each has two metrics with both ends of their intervals.
_MOST_GROUPS = MAX_KEYS // (3 * len(_CHARTS))


def group_points(table: pd.DataFrame) -> Rows:
    """Return the values of the largest groups by day and key.

    Keys are `uncertainty/ATTRIBUTE_GROUP`, the mean of p(1−p) of the day, and
    `accuracy/ATTRIBUTE_GROUP`, of the window; the ends of their intervals are at `interval_keys`.
    Ten groups have keys, which are those with the most comments over all days.

    Args:
        table: rows of any days, columns of `lake.schemas.COMMENT_GROUPS`.
    """
    rows = table[table["status"] == "ok"]
    scored = rows[rows["metric"] == "mean_uncertainty"]
    sizes = scored.groupby(["attribute", "group"])["comments"].sum()
    largest = set(sizes.sort_values(ascending=False, kind="stable").index[:_MOST_GROUPS])
    points: dict[date, dict[str, float]] = {}
    for row in rows.sort_values(["dt", "attribute", "group"]).to_dict("records"):
        prefix = _CHARTS.get((row["scope"], row["metric"]))
        if prefix is None or (row["attribute"], row["group"]) not in largest:
            continue
        key = f"{prefix}/{_name(row['attribute'])}_{_name(row['group'])}"
        values = zip(
            (key, *interval_keys(key)), (row["value"], row["low"], row["high"]), strict=True
        )
        points.setdefault(row["dt"], {}).update({name: float(value) for name, value in values})
    return points


def _name(text: str) -> str:
    """Return the text as a part of a key, without characters that MLflow refuses."""
    return re.sub(r"[^\w.\-]", "_", text)


def describe_groups(table: pd.DataFrame) -> str:
    """Return the significant differences of the groups of a day in one line of Markdown.

    >>> describe_groups(pd.DataFrame(columns=["metric", "status", "p_holm", "group"]))
    'Groups of comments: none is large enough to compare.'
    """
    known = table[table["metric"].isin(_COMPARED) & (table["status"] == "ok")]
    if known.empty:
        return "Groups of comments: none is large enough to compare."
    groups = known[["attribute", "group"]].drop_duplicates()
    told = []
    for metric, name in _COMPARED.items():
        of_metric = known[known["metric"] == metric]
        if of_metric.empty:  # groups are not compared by labels every day
            continue
        rows = of_metric[of_metric["p_holm"] < SIGNIFICANT]
        rows = rows.reindex(rows["difference"].abs().sort_values(ascending=False).index)
        listed = [
            f"{row['attribute']} {row['group']} {row['difference']:+.3f} "
            f"({row['difference_low']:+.3f} to {row['difference_high']:+.3f})"
            for row in rows.head(_MOST_TOLD).to_dict("records")
        ]
        more = [f"{len(rows) - _MOST_TOLD} more"] if len(rows) > _MOST_TOLD else []
        told.append(f"{name} {', '.join([*listed, *more]) or 'none'}")
    return (
        f"{len(groups)} groups of comments, each less all others, significant differences only: "
        f"{'; '.join(told)}."
    )


_COMPARED = {"mean_uncertainty": "uncertainty", "accuracy": "accuracy (window)"}
_MOST_TOLD = 3
