"""The charts of a day.

Every chart names its day and model and draws intervals; an estimate without enough data is omitted
or hatched, with a note. matplotlib is used through its objects: no global state, no display.
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from modwatch.common import charts
from modwatch.monitoring.publishing.comparisons import (
    collaboration,
    differences,
    group_differences,
    what_if,
)
from modwatch.monitoring.publishing.content import DayTables, ScoreHistogram
from modwatch.monitoring.publishing.days import Day

_REFERENCES = {
    "trailing": ("trailing days", charts.GREY, "-"),
    "fixed": ("fixed reference", "black", ":"),
}


def day_figures(tables: DayTables, day: Day) -> dict[str, Figure]:
    """Return the figures of a day by name; those without data are left out."""
    title = f"{day.day}, model {day.model_version or 'unknown'}"
    window = f"{day.pooled_days} of the {day.window_days} days to {title}"
    figures = {"collaboration": collaboration(tables.estimates, day, title=title)}
    if len(tables.window):
        figures["collaboration_window"] = collaboration(tables.window, day, title=window)
    if tables.reliability is not None:
        figures["reliability"] = reliability(tables.reliability, title=window)
    if tables.scores is not None:
        figures["scores"] = score_histogram(tables.scores, title=title)
    if tables.what_if is not None and len(tables.what_if):
        figures["what_if"] = what_if(tables.what_if, title=window)
    if tables.challenger is not None and len(tables.challenger):
        first = tables.challenger.iloc[0]
        compared = f"Challenger {first['challenger_version']} and champion {day.model_version}"
        title_of = f"{compared}: {first['days']} days to {day.day}"
        figures["challenger"] = differences(tables.challenger, title=title_of)
    groups = tables.comment_groups
    if groups is not None and (groups["scope"] == "day").any():
        figures["comment_groups"] = group_differences(groups, title=title)
    return figures


def score_histogram(scores: ScoreHistogram, *, title: str) -> Figure:
    """Return the shares of comments by predicted probability, of the day and its references.

    Shares are on a log scale: without drift, the day overlaps with references of any size.
    """
    figure = Figure(figsize=(9, 4.8), layout="constrained")
    axes = figure.subplots()
    axes.set_title(f"Scores: {title}", loc="left")
    total = int(scores.counts.sum())
    label = f"this day ({total:,} comments)"
    axes.stairs(
        _shares(scores.counts), scores.edges, fill=True, color=charts.BLUE, alpha=0.5, label=label
    )
    for name, counts in scores.references.items():
        title_of, colour, line = _REFERENCES.get(name, (name, charts.GREY, "--"))
        label = f"{title_of} ({int(counts.sum()):,})"
        shares = _shares(counts)
        axes.stairs(shares, scores.edges, color=colour, linestyle=line, linewidth=1.5, label=label)
    if scores.threshold is not None:
        _threshold(axes, scores.threshold)
    axes.set(
        xlim=(0, 1),
        yscale="log",
        ylim=_limits(scores),
        xlabel="predicted probability of toxicity",
        ylabel="share of comments (log scale)",
    )
    axes.legend(loc="upper right", frameon=False)
    charts.plain(axes)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    return figure


def _shares(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    return counts / max(int(counts.sum()), 1)


def _limits(scores: ScoreHistogram) -> tuple[float, float]:
    """Return the axis limits: from half a comment of the largest sample to above the peak."""
    every = [scores.counts, *scores.references.values()]
    most = max(1, *(int(counts.sum()) for counts in every))
    peak = max(float(_shares(counts).max(initial=0)) for counts in every)
    return 0.5 / most, 3 * max(peak, 1 / most)


def _threshold(axes: Axes, threshold: float) -> None:
    axes.axvline(threshold, color=charts.VERMILLION, linewidth=1.5)
    left = threshold > 0.75  # no room to the right
    axes.text(
        threshold,
        0.72,
        f" flagged above {threshold:.2g} ",
        color=charts.VERMILLION,
        transform=axes.get_xaxis_transform(),
        va="top",
        ha="right" if left else "left",
    )


def reliability(bins: pd.DataFrame, *, title: str) -> Figure:
    """Return the reliability diagram, with the number of labels per bin.

    Source: Kivlichan et al. (2021), appendix C. `bins` is described at `DayTables.reliability`;
    bins without labels or without an estimate are omitted. Points are not joined: a bin with one
    label would draw a peak.
    """
    filled = bins[(bins["count"] > 0) & bins["positive_rate"].notna()]
    predicted, count = (filled[name].to_numpy(dtype=np.float64) for name in ("mean_prob", "count"))
    figure = Figure(figsize=(6.5, 7), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    upper.set_title(
        f"Calibration: {title}\n{bins['count'].sum():,.0f} labelled comments", loc="left"
    )
    if filled.empty:
        charts.note(upper, "not enough data")
        charts.note(lower, "")
        return figure
    upper.plot([0, 1], [0, 1], color=charts.GREY, linewidth=1, linestyle=":", label="perfect")
    rows = filled.rename(columns={"positive_rate": "value"})
    look = {"color": charts.BLUE, "fmt": "o", "capsize": 3, "label": "observed, 95 % intervals"}
    charts.error_bars(upper, predicted, rows, **look)
    upper.legend(loc="lower right", frameon=False)
    upper.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), ylabel="observed share of toxic comments")
    lower.bar(predicted, count, width=0.03, color=charts.BLUE)
    for x, labels in zip(predicted, count, strict=True):
        lower.text(x, labels, f"{labels:,.0f}", ha="center", va="bottom", fontsize=8)
    lower.set(
        ylim=(0.5, max(4 * count.max(initial=1), 10)),
        yscale="log",
        ylabel="labels",
        xlabel="predicted probability of toxicity",
    )
    charts.plain(upper, lower)
    return figure
