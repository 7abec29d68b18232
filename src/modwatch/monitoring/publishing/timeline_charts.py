"""What the timeline shows besides the figures of days: drift of features, groups of comments."""

from collections.abc import Mapping, Sequence
from datetime import date

import pandas as pd

from modwatch.common.columns import grouped
from modwatch.data.lake.delta import Lake
from modwatch.monitoring.publishing.days import KeyFigure
from modwatch.monitoring.publishing.keys import DRIFT
from modwatch.statistics.live.group_estimates import GAP, IDENTITY

#: Figures by title, and day.
Charts = Mapping[str, Mapping[date, KeyFigure]]

_VALUE = ("value", "low", "high")
_DIFFERENCE = ("difference", "difference_low", "difference_high")

#: The title of a metric of drift, about a feature.
_DRIFT = {
    "psi": "PSI of {}",
    "jensen_shannon": "{} mix, Jensen–Shannon",
    "flagged_share_change": "{} share, change",
    "missing_share_change": "{} missing, change",
    "quarantined_share_change": "{} share, change",
}
_AGAINST = {"trailing": "trailing days", "fixed": "fixed reference"}

#: What is shown of a group, by title: scope, metric, and the columns of the figure. The mean
#: uncertainty of a day is exact, and its interval is about other days.
_OF_GROUPS = {
    "mean uncertainty": ("day", "mean_uncertainty", ("value",)),
    "mean uncertainty less all others": ("day", "mean_uncertainty", _DIFFERENCE),
    "accuracy, window": ("window", "accuracy", _VALUE),
}
#: Groups that are shown: those with the most comments over all days.
_MOST_GROUPS = 7


def read_charts(lake: Lake) -> dict[str, Charts]:
    """Return the charts below those of the figures of days, by heading."""
    drift, groups = (
        lake.table(name, lake.days(name)).to_pandas() for name in ("drift", "comment_groups")
    )
    return {"Drift": drift_charts(drift), "Groups of comments": group_charts(groups)}


def drift_charts(table: pd.DataFrame) -> Charts:
    """Return the features that differed from a reference on any day by more than chance.

    Those that are figures of days, too, are left out.

    Args:
        table: rows of any days, columns of `lake.schemas.DRIFT`.
    """
    rows = table[(table["status"] == "ok") & table["metric"].isin(_DRIFT)].sort_values("dt")
    found: dict[str, Mapping[date, KeyFigure]] = {}
    for name, of_name in rows.groupby(["metric", "feature", "reference"]):
        metric, feature, reference = map(str, name)
        differs = (of_name["low"] > 0) | (of_name["high"] < 0)
        if differs.any() and (metric, feature, reference) not in DRIFT.values():
            title = _DRIFT[metric].format(feature.replace("_", " "))
            found[f"{title} ({_AGAINST[reference]})"] = _by_day(of_name, _VALUE)
    return found


def group_charts(table: pd.DataFrame) -> Charts:
    """Return the figures of the largest groups, and the gap in the coverage of prediction sets.

    Args:
        table: rows of any days, columns of `lake.schemas.COMMENT_GROUPS`.
    """
    rows = table[table["status"] == "ok"].sort_values(["dt", "attribute", "group"])
    sized = rows[rows["metric"] == "mean_uncertainty"].groupby(["attribute", "group"])["comments"]
    sizes = sized.sum().sort_values(ascending=False, kind="stable")
    found: dict[str, dict[date, KeyFigure]] = {}
    for attribute, group in sorted(sizes.index[:_MOST_GROUPS]):
        mine = rows[(rows["attribute"] == attribute) & (rows["group"] == group)]
        for title, (scope, metric, columns) in _OF_GROUPS.items():
            chosen = mine[(mine["scope"] == scope) & (mine["metric"] == metric)]
            found[f"{attribute} {group}: {title}"] = _by_day(chosen, columns)
    for attribute in (*grouped(), IDENTITY):
        chosen = rows[(rows["metric"] == GAP) & (rows["attribute"] == attribute)]
        found[f"{attribute}: gap in the coverage of prediction sets"] = _by_day(chosen, _VALUE)
    return {title: figures for title, figures in found.items() if figures}


def _by_day(rows: pd.DataFrame, columns: Sequence[str]) -> dict[date, KeyFigure]:
    """Return a value alone, or with both ends of its interval, by day."""
    whole = rows[["dt", *columns]].dropna().to_dict("records")
    return {
        row["dt"]: KeyFigure(
            **{name: float(row[column]) for name, column in zip(_VALUE, columns, strict=False)}
        )
        for row in whole
    }
