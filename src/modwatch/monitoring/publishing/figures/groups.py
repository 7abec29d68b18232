"""Groups of comments: how each differs from all others, with intervals."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from modwatch.common import charts as style
from modwatch.statistics.estimate import SIGNIFICANT

_PANELS = {
    ("day", "mean_uncertainty"): "mean uncertainty p(1−p), day",
    ("day", "flagged_share"): "flagged share, day",
    ("window", "accuracy"): "accuracy, window",
    ("window", "calibration_error"): "mean p − prevalence, window",
    ("window", "overturn_rate"): "overturned of the reviewed, window",
    ("window", "set_coverage"): "coverage of sets, window",
}
_MOST_COLUMNS = 3


def group_differences(table: pd.DataFrame, *, title: str) -> Figure:
    """Return the difference of each group from all other comments, a panel a metric.

    `table` has the columns of `lake.schemas.COMMENT_GROUPS`. Coloured intervals are significant
    after correction for the number of comparisons.
    """
    sizes = table[table["scope"] == "day"].drop_duplicates(["attribute", "group"])
    names = sizes[["attribute", "group"]].itertuples(index=False)
    places = {tuple(name): len(sizes) - 1 - place for place, name in enumerate(names)}
    shown = {key: label for key, label in _PANELS.items() if (table["scope"] == key[0]).any()}
    lines = 1 if len(shown) <= _MOST_COLUMNS else 2
    columns = len(shown) // lines
    height = 0.8 + lines * (0.8 + 0.3 * max(len(sizes), 3))
    figure = Figure(figsize=(15, height), layout="constrained")
    figure.suptitle(
        f"{title}: each group less all other comments, with 95 % interval "
        "(coloured: significant, grey: not told from none)",
        fontsize=13,
    )
    panels = figure.subplots(lines, columns, sharey=True, squeeze=False).ravel()
    for axes, ((scope, metric), label) in zip(panels, shown.items(), strict=True):
        axes.set_title(label, fontsize=11)
        _panel(axes, table[(table["scope"] == scope) & (table["metric"] == metric)], places)
    labels = [
        f"{row['attribute']} {style.shortened(str(row['group']))} ({row['comments']:,})"
        for row in sizes.to_dict("records")
    ]
    panels[0].set_yticks(range(len(sizes) - 1, -1, -1), labels)
    return figure


def _panel(axes: Axes, rows: pd.DataFrame, places: Mapping[tuple[str, str], int]) -> None:
    """Draw the differences of one metric, each group in its place."""
    rows = rows[rows["difference"].notna()]
    axes.axvline(0, color=style.GREY, linewidth=1, linestyle=style.DEPLOYED)
    axes.grid(visible=True, axis="x", color=style.GRID)
    for row in rows.to_dict("records"):
        place = places.get((row["attribute"], row["group"]))
        if place is None:
            continue
        certain, above = row["p_holm"] < SIGNIFICANT, row["difference"] > 0
        colour = (style.VERMILLION if above else style.BLUE) if certain else style.GREY
        ends = [row["difference_low"], row["difference_high"]]
        axes.plot(ends, [place, place], color=colour, linewidth=2)
        axes.plot(row["difference"], place, marker="o", color=colour)
    style.plain(axes)
    if rows.empty:
        style.note(axes, "not enough labels")
