"""Charts that compare: review strategies, champion and challenger, groups of comments."""

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from modwatch.common import charts
from modwatch.monitoring.publishing.days import Day
from modwatch.monitoring.publishing.keys import known
from modwatch.statistics.collaboration.review_strategies import style
from modwatch.statistics.estimate import SIGNIFICANT
from modwatch.statistics.live.figures import FIGURES, keys, title_of

#: Figures that depend on the review fraction, a panel each: the areas first.
_CURVES = sorted(keys(curve=True), key=lambda key: FIGURES[key].areas is None)
#: Of the what-if analysis.
_OUTCOMES = [key for key in keys(outcome=True) if FIGURES[key].headline or key not in _CURVES]
# A third strategy would clutter the comparison of the paper; its estimates are in the table.
_STRATEGIES = ("uncertainty", "toxicity")

# With fewer labels, each label moves the estimate by a tenth; such estimates are in the table.
_FEWEST = 10

_GROUP_PANELS = {
    ("day", "mean_uncertainty"): "mean uncertainty p(1−p), day",
    ("day", "flagged_share"): "flagged share, day",
    ("window", "accuracy"): "accuracy, window",
    ("window", "calibration_error"): "mean p − prevalence, window",
    ("window", "overturn_rate"): "overturned of the reviewed, window",
    ("window", "set_coverage_toxic"): "toxic in their 90 % set, window",
    ("window", "set_coverage_harmless"): "harmless in their 90 % set, window",
}
_MOST_COLUMNS = 3


def collaboration(estimates: pd.DataFrame, day: Day, *, title: str) -> Figure:
    """Return the collaborative metrics against the review fraction, a panel each.

    Source: Kivlichan et al. (2021), figures 2 and 4. Bands are 95 % intervals. `estimates` has
    the columns of `lake.schemas.ESTIMATES`; of its strategies, uncertainty, toxicity and the
    deployed one are drawn.
    """
    drawn = {*_STRATEGIES, day.strategy}
    estimates = estimates[estimates["strategy"].isna() | estimates["strategy"].isin(drawn)]
    figure = Figure(figsize=(14, 8), layout="constrained")
    figure.suptitle(f"Model and moderators together: {title}", fontsize=14)
    panels = figure.subplots(2, 3).ravel()
    for axes, metric in zip(panels, _CURVES, strict=False):
        rows = estimates[(estimates["metric"] == metric) & estimates["alpha"].notna()]
        _curve_panel(axes, metric, rows, day.review_fraction)
    _key_panel(panels[-1], estimates, day)
    return figure


def _curve_panel(axes: Axes, metric: str, rows: pd.DataFrame, deployed: float) -> None:
    axes.set_title(title_of(metric), loc="left", fontweight="bold")
    numbers = rows[known(rows) & (rows["n"] >= _FEWEST)]
    if numbers.empty:
        charts.note(axes, "not enough data")
        return
    axes.set_ylabel(FIGURES[metric].meaning)
    for strategy, curve in numbers.groupby("strategy", sort=False):
        _curve(axes, str(strategy), curve.sort_values("alpha"))
    alphas = sorted(rows["alpha"].unique())
    charts.log_axis(axes, alphas, _spaced_labels(alphas, deployed))
    axes.set_xlim(0.85 * alphas[0], 1.18 * alphas[-1])
    axes.axvline(deployed, color=charts.GREY, linewidth=1, linestyle=charts.DEPLOYED)
    missing = len(rows) - len(numbers)
    note_text = f"; {missing} of {len(rows)} points omitted" if missing else " of comments"
    axes.set_xlabel(f"review fraction, %{note_text}")


def _curve(axes: Axes, strategy: str, curve: pd.DataFrame) -> None:
    colour, line, marker = style(strategy)
    x = curve["alpha"].to_numpy(dtype=np.float64) * charts.ASIDE.get(strategy, 1.0)
    look = {"color": colour, "linestyle": line, "marker": marker, "markersize": 5, "elinewidth": 1}
    charts.error_bars(axes, x, curve, label=strategy, **look)
    charts.band(axes, x, (curve["low"], curve["high"]), colour, alpha=0.08)


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


def _key_panel(axes: Axes, estimates: pd.DataFrame, day: Day) -> None:
    """Draw the legend and the sample sizes in place of a sixth panel."""
    axes.axis("off")
    for strategy in estimates["strategy"].dropna().unique():
        colour, line, marker = style(strategy)
        label = f"review by {strategy}"
        axes.plot([], [], color=colour, linestyle=line, marker=marker, label=label)
    deployed = f"deployed: {day.strategy}, {100 * day.review_fraction:g} %"
    axes.plot([], [], color=charts.GREY, linestyle=charts.DEPLOYED, label=deployed)
    axes.legend(loc="upper left", frameon=False, fontsize=11)
    text = axes.text(0.02, 0.4, _basis(estimates), transform=axes.transAxes, color=charts.GREY)
    text.set(va="top", fontsize=10, linespacing=1.5)


def _basis(estimates: pd.DataFrame) -> str:
    numbers = estimates[known(estimates)]
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
    """Return OC-Acc, Review Efficiency and cost against moderator hours a day, with 95 % bands.

    `table` has the columns of `what_if.COLUMNS`. The deployed setting is marked. If
    the time per decision is unknown, the axis shows comments per day instead of hours.
    """
    figure = Figure(figsize=(18, 6), layout="constrained")
    figure.suptitle(f"What-if analysis from {title}", fontsize=14)
    hours = bool(table["hours_per_day"].notna().any())
    cost = "hours_per_day" if hours else "comments_per_day"
    for axes, metric in zip(figure.subplots(1, 3), _OUTCOMES, strict=True):
        axes.set_title(title_of(metric), loc="left", fontweight="bold")
        rows = table[table[metric].notna() & (table[cost] > 0)]
        if rows.empty:
            charts.note(axes, "not enough data")
            continue
        axes.set_ylabel(FIGURES[metric].meaning)
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
            list(lines.values()), list(lines), loc="outside lower center", ncols=6, frameon=False
        )
    return figure


def _cost_curve(axes: Axes, strategy: str, metric: str, curve: pd.DataFrame, cost: str) -> None:
    colour, line, marker = style(strategy)
    x, value, low, high = (
        curve[name].to_numpy(dtype=np.float64, na_value=np.nan)
        for name in (cost, metric, f"{metric}_low", f"{metric}_high")
    )
    charts.band(axes, x, (low, high), colour)
    axes.plot(x, value, color=colour, linestyle=line, marker=marker, markersize=4, label=strategy)


def _deployed(axes: Axes, table: pd.DataFrame, cost: str, metric: str) -> None:
    rows = table[table["deployed"] & table[cost].notna()]
    if rows.empty:
        return
    row = rows.iloc[0]
    axes.axvline(row[cost], color=charts.GREY, linewidth=1, linestyle=charts.DEPLOYED, zorder=0)
    label = f"deployed: {row['strategy']}, {100 * row['alpha']:g} %"
    if pd.isna(row[metric]):
        axes.plot([], [], color=charts.GREY, linestyle=charts.DEPLOYED, label=label)
        return
    estimate = {"value": row[metric], "low": row[f"{metric}_low"], "high": row[f"{metric}_high"]}
    charts.error_bars(
        axes, [row[cost]], estimate, color="black", fmt="*", markersize=15, label=label
    )


def _cost_axis(axes: Axes, table: pd.DataFrame, cost: str, label: str) -> None:
    """Draw costs on a log axis, with a tick at each review fraction for which there is room."""
    costs = table.drop_duplicates("alpha").sort_values("alpha", ascending=False)
    deployed = table.loc[table["deployed"], "alpha"]
    costs = pd.concat([costs[costs["alpha"].isin(deployed)], costs]).drop_duplicates(cost)
    alphas = dict(costs.loc[costs[cost] > 0, [cost, "alpha"]].astype(float).to_numpy().tolist())
    shown = _with_room(alphas)
    charts.log_axis(axes, shown, [f"{_short(x)}\n{100 * alphas[x]:g} %" for x in shown])
    axes.set_xlabel(f"{label}  (below: review fraction)")


def _short(number: float) -> str:
    """Return a cost with two significant digits, or whole.

    >>> _short(0.0642), _short(1.25), _short(144.4)
    ('0.064', '1.2', '144')
    """
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def differences(table: pd.DataFrame, *, title: str) -> Figure:
    """Return the difference of each metric, the challenger's less the champion's.

    `table` has the columns of `lake.schemas.CHALLENGER`. Right of 0 the challenger is better; an
    interval that contains 0 shows no difference.
    """
    rows = table[table["champion"].notna() & table["challenger"].notna() & table["low"].notna()]
    figure = Figure(figsize=(10, 1.6 + 0.5 * max(len(rows), 2)), layout="constrained")
    figure.suptitle(title, fontsize=13)
    axes = figure.subplots()
    if rows.empty:
        charts.note(axes, "not enough data")
        return figure
    ends = rows[["value", "low", "high"]].to_numpy(dtype=float).tolist()
    colours = [charts.sign_colour(low, high) for _, low, high in ends]
    charts.interval_rows(axes, ends, colours=colours)
    places = range(len(rows) - 1, -1, -1)
    axes.set_yticks(places, [title_of(str(name)) for name in rows["metric"]])
    axes.axvline(0, color=charts.GREY, linewidth=1, linestyle=charts.DEPLOYED)
    axes.set_xlabel("challenger less champion, with 95 % interval (blue: better, red: worse)")
    return figure


def group_differences(table: pd.DataFrame, *, title: str) -> Figure:
    """Return the difference of each group from all other comments, a panel a metric.

    `table` has the columns of `lake.schemas.COMMENT_GROUPS`. Coloured intervals are significant
    after correction for the number of comparisons.
    """
    sizes = table[table["scope"] == "day"].drop_duplicates(["attribute", "group"])
    names = sizes[["attribute", "group"]].itertuples(index=False)
    places = {tuple(name): len(sizes) - 1 - place for place, name in enumerate(names)}
    shown = {key: label for key, label in _GROUP_PANELS.items() if (table["scope"] == key[0]).any()}
    lines = 1 if len(shown) <= _MOST_COLUMNS else 2
    columns = math.ceil(len(shown) / lines)
    height = 0.8 + lines * (0.8 + 0.3 * max(len(sizes), 3))
    figure = Figure(figsize=(15, height), layout="constrained")
    figure.suptitle(
        f"{title}: each group less all other comments, with 95 % interval "
        "(coloured: significant, grey: not significant)",
        fontsize=13,
    )
    panels = figure.subplots(lines, columns, sharey=True, squeeze=False).ravel()
    for axes in panels[len(shown) :]:
        axes.axis("off")
    for axes, ((scope, metric), label) in zip(panels, shown.items(), strict=False):
        axes.set_title(label, fontsize=11)
        _panel(axes, table[(table["scope"] == scope) & (table["metric"] == metric)], places)
    labels = [
        f"{row['attribute']} {charts.shortened(str(row['group']))} ({row['comments']:,})"
        for row in sizes.to_dict("records")
    ]
    panels[0].set_yticks(range(len(sizes) - 1, -1, -1), labels)
    return figure


def _panel(axes: Axes, rows: pd.DataFrame, places: Mapping[tuple[str, str], int]) -> None:
    """Draw the differences of one metric, each group in its place."""
    rows = rows[rows["difference"].notna()]
    axes.axvline(0, color=charts.GREY, linewidth=1, linestyle=charts.DEPLOYED)
    drawn = [
        (places[row["attribute"], row["group"]], row)
        for row in rows.to_dict("records")
        if (row["attribute"], row["group"]) in places
    ]
    columns = ("difference", "difference_low", "difference_high")
    charts.interval_rows(
        axes,
        [[row[name] for name in columns] for _, row in drawn],
        colours=[_group_colour(row) for _, row in drawn],
        places=[place for place, _ in drawn],
    )
    if rows.empty:
        charts.note(axes, "not enough labels")


def _group_colour(row: Mapping[Hashable, Any]) -> str:
    if row["p_holm"] >= SIGNIFICANT:
        return charts.GREY
    return charts.VERMILLION if row["difference"] > 0 else charts.BLUE
