"""Model and moderators together against the review fraction."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from modwatch.tracking.facts import DayFacts
from modwatch.tracking.figures import style
from modwatch.tracking.keys import known, metric_title

_CURVES = ("oc_auroc", "oc_auprc", "oc_accuracy", "review_efficiency", "review_effectiveness")
_AXIS_LABELS = {
    "oc_auroc": "area under the ROC curve",
    "oc_auprc": "area under the precision-recall curve",
    "oc_accuracy": "share decided correctly",
    "review_efficiency": "model errors per reviewed comment",
    "review_effectiveness": "share of model errors caught",
}
# A third strategy would clutter the comparison of the paper; its estimates are in the table.
_STRATEGIES = ("uncertainty", "toxicity")

# With fewer labels, each label moves the estimate by a tenth; such estimates are in the table.
_FEWEST = 10


def collaboration(measurements: pd.DataFrame, facts: DayFacts, *, title: str) -> Figure:
    """Return the collaborative metrics against the review fraction, a panel each.

    Source: Kivlichan et al. (2021), figures 2 and 4. Bands are 95 % intervals. `measurements` has
    the columns of `lake.schemas.MEASUREMENTS`; of its strategies, uncertainty, toxicity and the
    deployed one are drawn.
    """
    drawn = {*_STRATEGIES, facts.strategy}
    measurements = measurements[
        measurements["strategy"].isna() | measurements["strategy"].isin(drawn)
    ]
    figure = Figure(figsize=(14, 8), layout="constrained")
    figure.suptitle(f"Model and moderators together: {title}", fontsize=14)
    panels = figure.subplots(2, 3).ravel()
    for axes, metric in zip(panels, _CURVES, strict=False):
        rows = measurements[(measurements["metric"] == metric) & measurements["alpha"].notna()]
        _curve_panel(axes, metric, rows, facts.review_fraction)
    _key_panel(panels[-1], measurements, facts)
    return figure


def _curve_panel(axes: Axes, metric: str, rows: pd.DataFrame, deployed: float) -> None:
    axes.set_title(metric_title(metric), loc="left", fontweight="bold")
    numbers = rows[known(rows) & (rows["n"] >= _FEWEST)]
    if numbers.empty:
        style.note(axes, "not enough data")
        return
    axes.set_ylabel(_AXIS_LABELS[metric])
    for strategy, curve in numbers.groupby("strategy", sort=False):
        _curve(axes, str(strategy), curve.sort_values("alpha"))
    _fraction_axis(axes, sorted(rows["alpha"].unique()), deployed)
    axes.axvline(deployed, color=style.GREY, linewidth=1, linestyle=style.DEPLOYED)
    missing = len(rows) - len(numbers)
    note_text = f"; {missing} of {len(rows)} points omitted" if missing else " of comments"
    axes.set_xlabel(f"review fraction, %{note_text}")


def _curve(axes: Axes, strategy: str, curve: pd.DataFrame) -> None:
    colour, line, marker = style.strategy_style(strategy)
    x = curve["alpha"].to_numpy(dtype=np.float64) * style.ASIDE.get(strategy, 1.0)
    look = {"color": colour, "linestyle": line, "marker": marker, "markersize": 5, "elinewidth": 1}
    style.error_bars(axes, x, curve, label=strategy, **look)
    axes.fill_between(x, curve["low"], curve["high"], color=colour, alpha=0.08, linewidth=0)


def _fraction_axis(axes: Axes, alphas: list[float], deployed: float) -> None:
    """Draw the review fraction on a log axis with a tick at every estimated fraction."""
    axes.set_xscale("log")
    axes.set_xticks(alphas, _spaced_labels(alphas, deployed), fontsize=9)
    axes.set_xlim(0.85 * alphas[0], 1.18 * alphas[-1])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(visible=True, color=style.GRID)
    axes.spines[["top", "right"]].set_visible(False)


def _spaced_labels(alphas: list[float], deployed: float) -> list[str]:
    """Return the fractions in percent, blank where labels would overlap.

    >>> _spaced_labels([0.1, 0.15, 0.2], 0.15)
    ['', '15', '']
    >>> _spaced_labels([0.01, 0.1, 0.15, 0.2], 0.01)
    ['1', '10', '', '20']
    """
    shown: list[float] = []
    # The deployed one first: of two labels that overlap, the later one is dropped.
    for alpha in sorted(alphas, key=lambda alpha: (abs(alpha - deployed) > 1e-12, -alpha)):
        if all(max(alpha, other) / min(alpha, other) > 1.6 for other in shown):
            shown.append(alpha)
    return [f"{100 * alpha:g}" if alpha in shown else "" for alpha in alphas]


def _key_panel(axes: Axes, measurements: pd.DataFrame, facts: DayFacts) -> None:
    """Draw the legend and the sample sizes in place of a sixth panel."""
    axes.axis("off")
    for strategy in measurements["strategy"].dropna().unique():
        colour, line, marker = style.strategy_style(strategy)
        label = f"review by {strategy}"
        axes.plot([], [], color=colour, linestyle=line, marker=marker, label=label)
    deployed = f"deployed: {facts.strategy}, {100 * facts.review_fraction:g} %"
    axes.plot([], [], color=style.GREY, linestyle=style.DEPLOYED, label=deployed)
    axes.legend(loc="upper left", frameon=False, fontsize=11)
    text = axes.text(0.02, 0.4, _basis(measurements), transform=axes.transAxes, color=style.GREY)
    text.set(va="top", fontsize=10, linespacing=1.5)


def _basis(measurements: pd.DataFrame) -> str:
    numbers = measurements[known(measurements)]
    lines = [
        f"estimates from n = {_span(numbers['n'])} labels",
        f"(effective n = {_span(numbers['effective_n'])})" if len(numbers) else "",
        "bars and bands: 95 % intervals",
        f"points with fewer than {_FEWEST} labels, or not enough data,",
        "are omitted",
    ]
    return "\n".join(line for line in lines if line)


def _span(numbers: pd.Series) -> str:
    """Return minimum and maximum as text.

    >>> _span(pd.Series([3, 1200])), _span(pd.Series([5.2, 5.0])), _span(pd.Series([]))
    ('3 to 1,200', '5', '0')
    """
    ends = [f"{end:,.0f}" for end in (numbers.min(), numbers.max())] if len(numbers) else ["0"]
    return " to ".join(dict.fromkeys(ends))
