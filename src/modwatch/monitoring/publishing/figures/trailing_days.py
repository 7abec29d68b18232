"""The trailing days: drift by feature, and the review queue."""

from collections.abc import Hashable, Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from modwatch.common import charts as style
from modwatch.monitoring.publishing.effects import drift_effects
from modwatch.monitoring.publishing.keys import known

_ARROWS = {"higher": "↑", "lower": "↓", "both": "↕"}
_COLOURS = LinearSegmentedColormap.from_list(
    "effect", ["#FFFFFF", "#FBE3B5", style.ORANGE, style.VERMILLION]
)
# The colour scale ends at three times the size from which an effect is noted.
_WORST = 3.0
_MOST_ROWS = 14

_LEGEND = (
    "PSI of scores, Jensen–Shannon divergence of mixes, change of shares, ratio of volumes;\n"
    "bold: noted effect; hatched: too few comments"
)

_ASSUMPTION = (
    "CBPE assumes calibrated probabilities. It uses no labels, so it cannot detect\n"
    "a model that is confidently wrong."
)

_AGES = {
    "queue_age_oldest_hours": ("oldest", style.VERMILLION, "s", "--"),
    "queue_age_median_hours": ("median", style.BLUE, "o", "-"),
}


def drift_strip(drift: pd.DataFrame, measurements: pd.DataFrame, *, title: str) -> Figure:
    """Return effect sizes by feature and day, and below them the accuracy estimated by CBPE.

    `drift` has the columns of `lake.schemas.DRIFT`, for the trailing days; `measurements` are those
    of the last day. Cells show effect size and direction; hatched cells have too few comments.
    """
    days = style.every_day(drift["dt"].min(), drift["dt"].max())
    effects = drift_effects(drift)
    rows = _rows_to_show(effects)
    figure = Figure(figsize=(max(9.0, 3.2 + 0.62 * len(days)), 4.2 + 0.3 * max(len(rows), 3)))
    figure.set_layout_engine("constrained")
    figure.suptitle(f"Drift: {style.counted(days)} to {title}", fontsize=14)
    upper, lower = figure.subplots(2, 1, height_ratios=[max(len(rows), 3), 7])
    _strip(upper, effects, rows, days)
    left_out = effects["name"].nunique() - len(rows)
    legend = _LEGEND + (f"; {left_out} smaller effects are in the table" if left_out else "")
    upper.set_xlabel(legend, fontsize=8.5, color=style.GREY, loc="left")
    _performance(lower, drift, measurements, days)
    return figure


def _rows_to_show(effects: pd.DataFrame) -> list[str]:
    """Return the names of the effects to show, in order; the largest, if there are too many.

    Effects that were never noted, and not compared on half of the days, are left to the table.
    """
    by_name = effects.groupby("name", sort=False)
    worst = by_name["severity"].max().fillna(0.0)
    worst = worst[(worst >= 1) | (2 * by_name["dt"].nunique() >= effects["dt"].nunique())]
    kept = worst.sort_values(ascending=False, kind="stable").index[:_MOST_ROWS]
    return [str(name) for name in worst.index if name in set(kept)]


def _strip(axes: Axes, effects: pd.DataFrame, rows: list[str], days: Sequence[date]) -> None:
    axes.set_title("Effect size and direction", loc="left", fontsize=11)
    if not rows:
        style.note(axes, "no reference days yet")
        return
    places = {day: place for place, day in enumerate(days)}
    heights = {name: height for height, name in enumerate(rows)}
    for cell in effects[effects["name"].isin(rows)].to_dict("records"):
        _cell(axes, places[cell["dt"]], heights[cell["name"]], cell)
    style.day_axis(axes, days)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), [style.shortened(name, 40) for name in rows], fontsize=9)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _cell(axes: Axes, x: int, y: int, cell: Mapping[Hashable, Any]) -> None:
    """Draw one effect: the colour shows severity, the text size and direction."""
    severity = cell["severity"]
    corner = (x - 0.47, y - 0.45)
    box = partial(Rectangle, corner, 0.94, 0.9, linewidth=0.5)
    if np.isnan(severity):
        axes.add_patch(box(facecolor="white", edgecolor="#BFBFBF", hatch="////"))
        return
    colour = _COLOURS(min(severity / _WORST, 1.0))
    axes.add_patch(box(facecolor=colour, edgecolor=style.GRID))
    arrow = _ARROWS.get(cell["direction"], "")
    text = f"{arrow}{_effect(cell['metric'], cell['value'])}"
    weight = "bold" if severity >= 1 else "normal"
    colour = "black" if severity >= 1 else style.GREY
    axes.text(x, y, text, ha="center", va="center", fontsize=7.5, color=colour, weight=weight)


def _effect(metric: str, value: float) -> str:
    """Return an effect size in a few characters.

    >>> _effect("psi", 0.123), _effect("volume_ratio", 1.52), _effect("flagged_share_change", -0.02)
    ('.12', '×1.5', '−2.0%')
    """
    if metric == "volume_ratio":
        return f"×{value:.1f}"
    if metric.endswith("_change"):
        return f"{round(100 * value, 1) + 0.0:+.1f}%".replace("-", "−")
    return f"{value:.2f}".removeprefix("0")


def _performance(
    axes: Axes, drift: pd.DataFrame, measurements: pd.DataFrame, days: Sequence[date]
) -> None:
    """Draw the CBPE estimate of every day, and the last day's estimate from its labels."""
    axes.set_title("Accuracy of the model alone", loc="left", fontsize=11)
    value, low, high = (
        _of(drift, "cbpe_accuracy", days, column) for column in ("value", "low", "high")
    )
    expected = not np.isnan(value).all()
    seen = measurements[measurements["metric"].eq("accuracy") & known(measurements)]
    if not expected and seen.empty:
        style.note(axes, "not enough data")
        return
    if expected:
        axes.plot(value, color=style.BLUE, marker="o", markersize=4, label="estimated by CBPE")
        axes.fill_between(range(len(days)), low, high, color=style.BLUE, alpha=0.15, linewidth=0)
    if len(seen):
        label = "estimated from labels, 95 % interval"
        place = [len(days) - 1 + 0.15]
        style.error_bars(
            axes, place, seen.iloc[0], color="black", fmt="D", markersize=5, label=label
        )
    axes.set_xlabel(_ASSUMPTION, fontsize=8.5, color=style.GREY, loc="left")
    axes.grid(visible=True, axis="y", color=style.GRID)
    axes.margins(y=0.15)
    axes.legend(loc="lower left", frameon=False, fontsize=9)
    style.day_axis(axes, days)
    style.plain(axes)


def queue_health(drift: pd.DataFrame, *, title: str) -> Figure:
    """Return completion, open items and their ages by day; `drift` is as `lake.schemas.DRIFT`."""
    days = style.every_day(drift["dt"].min(), drift["dt"].max())
    figure = Figure(figsize=(8, 7), layout="constrained")
    figure.suptitle(f"Review queue: {style.counted(days)} to {title}", fontsize=14)
    top, middle, bottom = figure.subplots(3, 1)
    _bars(top, "Completion: decided / queued, %", 100 * _of(drift, "queue_completion", days))
    top.set_ylim(0, 112)
    _bars(middle, "Open items", _of(drift, "queue_waiting", days))
    _ages(bottom, {name: _of(drift, name, days) for name in _AGES})
    for axes in (top, middle, bottom):
        style.day_axis(axes, days)
        style.plain(axes)
    return figure


def _of(
    drift: pd.DataFrame, metric: str, days: Sequence[date], column: str = "value"
) -> NDArray[np.float64]:
    """Return a metric's value (D,) of every day, or an end of its interval; NaN where unknown."""
    rows = drift[drift["metric"].eq(metric) & known(drift)]
    values = dict(zip(rows["dt"], rows[column], strict=True))
    return np.array([values.get(day, np.nan) for day in days], np.float64)


def _bars(axes: Axes, title: str, values: NDArray[np.float64]) -> None:
    axes.set_title(title, loc="left", fontsize=11)
    if np.isnan(values).all():
        style.note(axes, "unknown")
        return
    axes.bar(range(values.size), np.nan_to_num(values), color=style.BLUE, width=0.7)
    axes.set_ylim(0, max(1.2 * float(np.nanmax(values)), 1.0))
    small = 9 if values.size <= 16 else 6
    for place in np.flatnonzero(~np.isnan(values)).tolist():
        text = f"{values[place]:,.0f}"
        axes.text(place, values[place], text, ha="center", va="bottom", fontsize=small)


def _ages(axes: Axes, ages: dict[str, NDArray[np.float64]]) -> None:
    axes.set_title("Age of open items, hours", loc="left", fontsize=11)
    if all(np.isnan(values).all() for values in ages.values()):
        style.note(axes, "no open items, or unknown")
        return
    highest = 1.0
    for name, values in ages.items():
        label, colour, marker, line = _AGES[name]
        axes.plot(values, color=colour, marker=marker, linestyle=line, label=label)
        highest = max(highest, float(np.nanmax(values, initial=0)))
    axes.axhline(24, color=style.GREY, linewidth=1, linestyle=":", label="one day")
    axes.set_ylim(0, max(1.25 * highest, 26))
    axes.grid(visible=True, axis="y", color=style.GRID)
    axes.legend(loc="upper left", ncols=3, frameon=False, fontsize=9)
