"""Groups of comments: how each differs from all others, with intervals."""

import pandas as pd
from matplotlib.figure import Figure

from modwatch.metrics.significance import SIGNIFICANT
from modwatch.tracking.figures import style

_PANELS = {
    ("day", "mean_uncertainty"): "mean uncertainty p(1−p), day",
    ("day", "flagged_share"): "flagged share, day",
    ("window", "accuracy"): "accuracy, window",
    ("window", "calibration_error"): "mean p − prevalence, window",
}


def group_differences(table: pd.DataFrame, *, title: str) -> Figure:
    """Return the difference of each group from all other comments, a panel a metric.

    `table` has the columns of `lake.schemas.COMMENT_GROUPS`. Coloured intervals are significant
    after correction for the number of comparisons.
    """
    sizes = table[table["scope"] == "day"].drop_duplicates(["attribute", "group"])
    names = sizes[["attribute", "group"]].itertuples(index=False)
    places = {tuple(name): len(sizes) - 1 - place for place, name in enumerate(names)}
    figure = Figure(figsize=(15, 1.8 + 0.34 * max(len(sizes), 3)), layout="constrained")
    figure.suptitle(
        f"{title}: each group less all other comments, with 95 % interval "
        "(coloured: significant, grey: not told from none)",
        fontsize=13,
    )
    shown = {key: label for key, label in _PANELS.items() if (table["scope"] == key[0]).any()}
    panels = figure.subplots(1, len(shown), sharey=True)
    for axes, ((scope, metric), label) in zip(panels, shown.items(), strict=True):
        rows = table[(table["scope"] == scope) & (table["metric"] == metric)]
        rows = rows[rows["difference"].notna()]
        axes.set_title(label, fontsize=11)
        axes.axvline(0, color=style.GREY, linewidth=1, linestyle=style.DEPLOYED)
        axes.grid(visible=True, axis="x", color=style.GRID)
        for row in rows.to_dict("records"):
            place = places.get((row["attribute"], row["group"]))
            if place is None:
                continue
            certain = row["p_holm"] < SIGNIFICANT
            above = row["difference"] > 0
            colour = (style.VERMILLION if above else style.BLUE) if certain else style.GREY
            ends = [row["difference_low"], row["difference_high"]]
            axes.plot(ends, [place, place], color=colour, linewidth=2)
            axes.plot(row["difference"], place, marker="o", color=colour)
        if rows.empty:
            axes.text(
                0.5, 0.5, "not enough labels", ha="center", transform=axes.transAxes,
                color=style.GREY,
            )  # fmt: skip
        style.plain(axes)
    labels = [
        f"{row['attribute']} {style.shortened(str(row['group']))} ({row['comments']:,})"
        for row in sizes.to_dict("records")
    ]
    panels[0].set_yticks(range(len(sizes) - 1, -1, -1), labels)
    return figure
