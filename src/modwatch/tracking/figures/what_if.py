"""The what-if chart: outcomes of other review capacities and strategies."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from modwatch.tracking.figures import style
from modwatch.tracking.keys import metric_title

_PANELS = {
    "oc_accuracy": "share of all comments decided correctly",
    "review_efficiency": "model errors per reviewed comment",
}


def what_if(table: pd.DataFrame, *, title: str) -> Figure:
    """Return OC-Acc and Review Efficiency against moderator hours per day, with 95 % bands.

    `table` has the columns of `metrics.what_if.COLUMNS`. The deployed setting is marked. If
    the time per decision is unknown, the axis shows comments per day instead of hours.
    """
    figure = Figure(figsize=(13, 6), layout="constrained")
    figure.suptitle(f"What-if analysis from {title}", fontsize=14)
    hours = bool(table["hours_per_day"].notna().any())
    cost = "hours_per_day" if hours else "comments_per_day"
    for axes, (metric, label) in zip(figure.subplots(1, 2), _PANELS.items(), strict=True):
        axes.set_title(metric_title(metric), loc="left", fontweight="bold")
        rows = table[table[metric].notna() & (table[cost] > 0)]
        if rows.empty:
            style.note(axes, "not enough data")
            continue
        axes.set_ylabel(label)
        for strategy, curve in rows.groupby("strategy", sort=False):
            _curve(axes, str(strategy), metric, curve.sort_values("alpha"), cost)
        _cost_axis(axes, table, cost, "moderator hours per day" if hours else "comments per day")
        _deployed(axes, table, cost, metric)
    # The same lines in both panels, unless one of them is empty.
    lines = {
        label: line
        for axes in figure.axes
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    if lines:
        figure.legend(
            list(lines.values()), list(lines), loc="outside lower center", ncols=4, frameon=False
        )
    return figure


def _curve(axes: Axes, strategy: str, metric: str, curve: pd.DataFrame, cost: str) -> None:
    colour, line, marker = style.strategy_style(strategy)
    x, value, low, high = (
        curve[name].to_numpy(dtype=np.float64, na_value=np.nan)
        for name in (cost, metric, f"{metric}_low", f"{metric}_high")
    )
    axes.fill_between(x, low, high, color=colour, alpha=0.12, linewidth=0)
    axes.plot(x, value, color=colour, linestyle=line, marker=marker, markersize=4, label=strategy)


def _deployed(axes: Axes, table: pd.DataFrame, cost: str, metric: str) -> None:
    """Mark the deployed setting, with its interval."""
    rows = table[table["deployed"] & table[cost].notna()]
    if rows.empty:
        return
    row = rows.iloc[0]
    axes.axvline(row[cost], color=style.GREY, linewidth=1, linestyle=style.DEPLOYED, zorder=0)
    label = f"deployed: {row['strategy']}, {100 * row['alpha']:g} %"
    if pd.isna(row[metric]):
        axes.plot([], [], color=style.GREY, linestyle=style.DEPLOYED, label=label)
        return
    estimate = {"value": row[metric], "low": row[f"{metric}_low"], "high": row[f"{metric}_high"]}
    style.error_bars(
        axes, [row[cost]], estimate, color="black", fmt="*", markersize=15, label=label
    )


def _cost_axis(axes: Axes, table: pd.DataFrame, cost: str, label: str) -> None:
    """Draw costs on a log axis, with a tick at each review fraction for which there is room."""
    axes.set_xscale("log")
    costs = table.drop_duplicates("alpha").sort_values("alpha", ascending=False)
    deployed = table.loc[table["deployed"], "alpha"]
    costs = pd.concat([costs[costs["alpha"].isin(deployed)], costs])
    shown: dict[float, str] = {}
    for row in costs[costs[cost] > 0].to_dict("records"):
        x = float(row[cost])
        if all(max(x, other) / min(x, other) > 1.6 for other in shown):
            shown[x] = f"{_short(x)}\n{100 * row['alpha']:g} %"
    axes.set_xticks(list(shown), list(shown.values()), fontsize=9)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(f"{label}  (below: review fraction)")
    axes.grid(visible=True, color=style.GRID)
    style.plain(axes)


def _short(number: float) -> str:
    """Return a cost with two significant digits, or whole.

    >>> _short(0.0642), _short(1.25), _short(144.4)
    ('0.064', '1.2', '144')
    """
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"
