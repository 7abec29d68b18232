"""The scores of a day: their distribution beside its references, and their calibration."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from modwatch.common import charts as style
from modwatch.monitoring.publishing.facts import ScoreHistogram

_REFERENCES = {
    "trailing": ("trailing days", style.GREY, "-"),
    "fixed": ("fixed reference", "black", ":"),
}


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
        _shares(scores.counts), scores.edges, fill=True, color=style.BLUE, alpha=0.5, label=label
    )
    for name, counts in scores.references.items():
        title_of, colour, line = _REFERENCES.get(name, (name, style.GREY, "--"))
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
    style.plain(axes)
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
    axes.axvline(threshold, color=style.VERMILLION, linewidth=1.5)
    left = threshold > 0.75  # no room to the right
    axes.text(
        threshold,
        0.72,
        f" flagged above {threshold:.2g} ",
        color=style.VERMILLION,
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
        style.note(upper, "not enough data")
        style.note(lower, "")
        return figure
    upper.plot([0, 1], [0, 1], color=style.GREY, linewidth=1, linestyle=":", label="perfect")
    rows = filled.rename(columns={"positive_rate": "value"})
    look = {"color": style.BLUE, "fmt": "o", "capsize": 3, "label": "observed, 95 % intervals"}
    style.error_bars(upper, predicted, rows, **look)
    upper.legend(loc="lower right", frameon=False)
    upper.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), ylabel="observed share of toxic comments")
    lower.bar(predicted, count, width=0.03, color=style.BLUE)
    for x, labels in zip(predicted, count, strict=True):
        lower.text(x, labels, f"{labels:,.0f}", ha="center", va="bottom", fontsize=8)
    lower.set(
        ylim=(0.5, max(4 * count.max(initial=1), 10)),
        yscale="log",
        ylabel="labels",
        xlabel="predicted probability of toxicity",
    )
    style.plain(upper, lower)
    return figure
