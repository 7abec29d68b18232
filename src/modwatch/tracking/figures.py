"""The figures of a day, for people who decide from them.

Every figure says which day and model it shows, and draws intervals; what has not enough data is
absent, with a note.

matplotlib is used through its objects: no global state, no window system.
"""

from datetime import date

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from modwatch.tracking.facts import DayFacts, DayPictures, ScoreHistogram
from modwatch.tracking.keys import known, metric_title
from modwatch.tracking.style import ASIDE, BLUE, GREY, VERMILLION, plain, strategy_style

_CURVES = ("oc_auroc", "oc_auprc", "oc_accuracy", "review_efficiency", "review_effectiveness")
_AXIS_LABELS = {
    "oc_auroc": "area under the ROC curve",
    "oc_auprc": "area under the precision-recall curve",
    "oc_accuracy": "share decided correctly",
    "review_efficiency": "model errors per reviewed comment",
    "review_effectiveness": "share of model errors caught",
}


def day_figures(
    day: date, measurements: pd.DataFrame, facts: DayFacts, pictures: DayPictures
) -> dict[str, Figure]:
    """Return the figures of a day by name; those without data to draw from are left out."""
    title = f"{day}, model {facts.model_version}"
    figures = {"collaboration": collaboration(measurements, facts, title=title)}
    if pictures.reliability is not None:
        figures["reliability"] = reliability(pictures.reliability, title=title)
    if pictures.scores is not None:
        figures["scores"] = score_histogram(pictures.scores, title=title)
    return figures


def collaboration(measurements: pd.DataFrame, facts: DayFacts, *, title: str) -> Figure:
    """Return the collaborative metrics against the review fraction, a panel each.

    Source: Kivlichan et al. (2021), figures 2 and 4. Bands are 95 % intervals. `measurements` has
    the columns of `records.MEASUREMENTS`.
    """
    figure = Figure(figsize=(13, 7.5), layout="constrained")
    figure.suptitle(f"Model and moderators together: {title}", fontsize=14)
    panels = figure.subplots(2, 3).ravel()
    for axes, metric in zip(panels, _CURVES, strict=False):
        rows = measurements[(measurements["metric"] == metric) & measurements["alpha"].notna()]
        _curve_panel(axes, metric, rows, facts.review_fraction)
    _key_panel(panels[-1], measurements, facts)
    return figure


def _curve_panel(axes: Axes, metric: str, rows: pd.DataFrame, deployed: float) -> None:
    axes.set_title(metric_title(metric), loc="left", fontweight="bold")
    axes.set_ylabel(_AXIS_LABELS[metric])
    numbers = rows[known(rows)]
    if numbers.empty:
        _note(axes, "not enough data")
        return
    for strategy, curve in numbers.groupby("strategy", sort=False):
        _curve(axes, str(strategy), curve.sort_values("alpha"))
    _fraction_axis(axes, sorted(rows["alpha"].unique()))
    axes.axvline(deployed, color=GREY, linewidth=1, linestyle=(0, (1, 2)))
    missing = len(rows) - len(numbers)
    if missing:
        axes.text(
            0.98,
            0.02,
            f"{missing} of {len(rows)} points: not enough data",
            ha="right",
            va="bottom",
            transform=axes.transAxes,
            color=GREY,
            fontsize=8,
        )


def _curve(axes: Axes, strategy: str, curve: pd.DataFrame) -> None:
    colour, line, marker = strategy_style(strategy)
    alpha, value, low, high = (
        curve[name].to_numpy(dtype=np.float64) for name in ("alpha", "value", "low", "high")
    )
    x = alpha * ASIDE.get(strategy, 1.0)
    axes.errorbar(
        x,
        value,
        yerr=_distances(value, low, high),
        color=colour,
        linestyle=line,
        marker=marker,
        markersize=5,
        elinewidth=1,
        capsize=2,
        label=strategy,
    )
    axes.fill_between(x, low, high, color=colour, alpha=0.08, linewidth=0)


def _fraction_axis(axes: Axes, alphas: list[float]) -> None:
    """Draw the review fraction on a log axis with a tick at every fraction that was estimated."""
    axes.set_xscale("log")
    axes.set_xticks(alphas, _spaced_labels(alphas), fontsize=9)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("review fraction, % of comments")
    axes.grid(visible=True, color="#E5E5E5")
    axes.spines[["top", "right"]].set_visible(False)


def _spaced_labels(alphas: list[float]) -> list[str]:
    """Return the fractions in percent; one that would touch its right neighbour is blank.

    >>> _spaced_labels([0.1, 0.15, 0.2])
    ['10', '', '20']
    """
    following = [*alphas[1:], np.inf]
    return [
        f"{100 * alpha:g}" if after / alpha > 1.4 else ""
        for alpha, after in zip(alphas, following, strict=True)
    ]


def _key_panel(axes: Axes, measurements: pd.DataFrame, facts: DayFacts) -> None:
    """Draw the legend and what the curves rest on, in the place of a sixth panel."""
    axes.axis("off")
    for strategy in measurements["strategy"].dropna().unique():
        colour, line, marker = strategy_style(strategy)
        axes.plot(
            [], [], color=colour, linestyle=line, marker=marker, label=f"review by {strategy}"
        )
    axes.plot(
        [],
        [],
        color=GREY,
        linestyle=(0, (1, 2)),
        label=f"deployed: {facts.strategy}, {100 * facts.review_fraction:g} %",
    )
    axes.legend(loc="upper left", frameon=False, fontsize=11)
    axes.text(
        0.02,
        0.4,
        _basis(measurements, facts),
        transform=axes.transAxes,
        va="top",
        fontsize=10,
        color=GREY,
        linespacing=1.5,
    )


def _basis(measurements: pd.DataFrame, facts: DayFacts) -> str:
    numbers = measurements[known(measurements)]
    lines = [
        f"{facts.comments:,} comments, {facts.routed:,} routed, {facts.labelled:,} labelled",
        f"an estimate rests on n = {_span(numbers['n'])} labels",
        f"(effective n = {_span(numbers['effective_n'])})" if len(numbers) else "",
        "bars and bands are 95 % intervals",
        "what has not enough data is absent",
    ]
    return "\n".join(line for line in lines if line)


def _span(numbers: pd.Series) -> str:
    """Return least and greatest in words.

    >>> _span(pd.Series([3, 1200])), _span(pd.Series([5.2, 5.0])), _span(pd.Series([]))
    ('3 to 1,200', '5', '0')
    """
    ends = [f"{end:,.0f}" for end in (numbers.min(), numbers.max())] if len(numbers) else ["0"]
    return " to ".join(dict.fromkeys(ends))


def reliability(bins: pd.DataFrame, *, title: str) -> Figure:
    """Return the reliability diagram: observed against predicted, with the labels behind it.

    Source: Kivlichan et al. (2021), appendix C. `bins` is described at `DayPictures.reliability`.
    """
    filled = bins[bins["count"] > 0]
    predicted, observed, count = (
        filled[name].to_numpy(dtype=np.float64) for name in ("mean_prob", "positive_rate", "count")
    )
    figure = Figure(figsize=(6.5, 7), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    upper.set_title(f"Calibration: {title}\n{count.sum():,.0f} labelled comments", loc="left")
    upper.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=":", label="perfect")
    bars = _bars(filled, observed)
    label = "observed" if bars is None else "observed, 95 % intervals"
    upper.errorbar(predicted, observed, yerr=bars, color=BLUE, marker="o", capsize=3, label=label)
    upper.legend(loc="upper left", frameon=False)
    upper.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), ylabel="observed share of toxic comments")
    lower.bar(predicted, count, width=0.03, color=BLUE)
    for x, labels in zip(predicted, count, strict=True):
        lower.text(x, labels, f"{labels:,.0f}", ha="center", va="bottom", fontsize=8)
    lower.set(
        ylim=(0.5, 4 * count.max(initial=1)),
        yscale="log",
        ylabel="labels",
        xlabel="predicted probability of toxicity",
    )
    plain(upper, lower)
    return figure


def _bars(bins: pd.DataFrame, observed: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return (2, B) distances of the interval's ends from the observed share, or None."""
    if not {"low", "high"} <= set(bins.columns):
        return None
    low, high = (bins[name].to_numpy(dtype=np.float64) for name in ("low", "high"))
    return _distances(observed, low, high)


def _distances(
    value: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return (2, B): how far an interval reaches below and above; 0 where there is none."""
    return np.maximum(np.nan_to_num(np.stack([value - low, high - value])), 0.0)


def score_histogram(scores: ScoreHistogram, *, title: str) -> Figure:
    """Return how the day's comments spread over the predicted probability, on a log scale."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    total = int(scores.counts.sum())
    axes.set_title(f"Scores: {title}\n{total:,} comments", loc="left")
    axes.stairs(scores.counts, scores.edges, fill=True, color=BLUE, alpha=0.6)
    axes.axvline(scores.threshold, color=VERMILLION, linewidth=1.5)
    axes.text(
        scores.threshold,
        0.98,
        f" flagged above {scores.threshold:.2g}",
        color=VERMILLION,
        transform=axes.get_xaxis_transform(),
        va="top",
    )
    axes.set(
        xlim=(0, 1),
        yscale="log",
        ylim=(0.5, 2 * max(scores.counts.max(initial=1), 1)),
        xlabel="predicted probability of toxicity",
        ylabel="comments (log scale)",
    )
    plain(axes)
    return figure


def _note(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes, color=GREY)
    axes.set(xticks=[], yticks=[])
