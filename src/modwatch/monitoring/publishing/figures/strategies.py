"""Review strategies compared: against the review fraction, and against what review costs."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from modwatch.common import charts as style
from modwatch.monitoring.publishing.facts import DayFacts
from modwatch.monitoring.publishing.keys import known, metric_title

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

_PANELS = {
    "oc_accuracy": "share of all comments decided correctly",
    "review_efficiency": "model errors per reviewed comment",
}


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
    alphas = sorted(rows["alpha"].unique())
    _log_axis(axes, alphas, _spaced_labels(alphas, deployed))
    axes.set_xlim(0.85 * alphas[0], 1.18 * alphas[-1])
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


def _log_axis(axes: Axes, ticks: list[float], labels: list[str]) -> None:
    """Draw a log axis of x with these ticks only."""
    axes.set_xscale("log")
    axes.set_xticks(ticks, labels, fontsize=9)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(visible=True, color=style.GRID)
    style.plain(axes)


def _with_room(places: Iterable[float]) -> list[float]:
    """Return the places on a log axis for whose labels there is room; the first ones win."""
    shown: list[float] = []
    for place in places:
        if all(max(place, other) / min(place, other) > 1.6 for other in shown):
            shown.append(place)
    return shown


def _spaced_labels(alphas: list[float], deployed: float) -> list[str]:
    """Return the fractions in percent, blank where labels would overlap; the deployed one first.

    >>> _spaced_labels([0.1, 0.15, 0.2], 0.15)
    ['', '15', '']
    >>> _spaced_labels([0.01, 0.1, 0.15, 0.2], 0.01)
    ['1', '10', '', '20']
    """
    shown = _with_room(sorted(alphas, key=lambda alpha: (abs(alpha - deployed) > 1e-12, -alpha)))
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
            _cost_curve(axes, str(strategy), metric, curve.sort_values("alpha"), cost)
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


def _cost_curve(axes: Axes, strategy: str, metric: str, curve: pd.DataFrame, cost: str) -> None:
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
    costs = table.drop_duplicates("alpha").sort_values("alpha", ascending=False)
    deployed = table.loc[table["deployed"], "alpha"]
    costs = pd.concat([costs[costs["alpha"].isin(deployed)], costs]).drop_duplicates(cost)
    alphas = dict(costs.loc[costs[cost] > 0, [cost, "alpha"]].astype(float).to_numpy().tolist())
    shown = _with_room(alphas)
    _log_axis(axes, shown, [f"{_short(x)}\n{100 * alphas[x]:g} %" for x in shown])
    axes.set_xlabel(f"{label}  (below: review fraction)")


def _short(number: float) -> str:
    """Return a cost with two significant digits, or whole.

    >>> _short(0.0642), _short(1.25), _short(144.4)
    ('0.064', '1.2', '144')
    """
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"
