"""The drift strip: which day, which feature, which way, how much."""

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

from modwatch.tracking.effects import drift_effects
from modwatch.tracking.keys import known
from modwatch.tracking.style import (
    BLUE,
    GREY,
    GRID,
    ORANGE,
    VERMILLION,
    counted,
    day_axis,
    distances,
    every_day,
    note,
    plain,
    shortened,
)

_ARROWS = {"higher": "↑", "lower": "↓", "both": "↕"}
_COLOURS = LinearSegmentedColormap.from_list("effect", ["#FFFFFF", "#FBE3B5", ORANGE, VERMILLION])
# Three times what is first noted is as bad as a colour can tell.
_WORST = 3.0
_MOST_ROWS = 14

_LEGEND = (
    "PSI of scores, Jensen–Shannon of mixes, change of shares, ratio of volumes;\n"
    "bold: worth a look; hatched: too few comments"
)

_ASSUMPTION = (
    "CBPE supposes that probabilities are calibrated and that the same words still mean the same:\n"
    "it sees no label, so it cannot see a model that is confidently wrong."
)


def drift_strip(drift: pd.DataFrame, measurements: pd.DataFrame, *, title: str) -> Figure:
    """Return effect sizes by feature and day, and the accuracy that CBPE expects, below.

    `drift` has the columns of `records.DRIFT`, for the trailing days; `measurements` are of the
    last of them. Cells show the effect size and its direction; hatched ones had too few comments.
    """
    days = every_day(drift["dt"].min(), drift["dt"].max())
    effects = drift_effects(drift)
    rows = _rows_to_show(effects)
    figure = Figure(figsize=(max(9.0, 3.2 + 0.62 * len(days)), 4.2 + 0.3 * max(len(rows), 3)))
    figure.set_layout_engine("constrained")
    figure.suptitle(f"Drift: {counted(days)} to {title}", fontsize=14)
    upper, lower = figure.subplots(2, 1, height_ratios=[max(len(rows), 3), 7])
    _strip(upper, effects, rows, days)
    left_out = effects["name"].nunique() - len(rows)
    words = _LEGEND + (f"; {left_out} quieter rows are in the table" if left_out else "")
    upper.set_xlabel(words, fontsize=8.5, color=GREY, loc="left")
    _performance(lower, drift, measurements, days)
    return figure


def _rows_to_show(effects: pd.DataFrame) -> list[str]:
    """Return the names of the effects to show, in order: the worst ones, if there are too many."""
    worst = effects.groupby("name", sort=False)["severity"].max().fillna(0.0)
    kept = worst.sort_values(ascending=False, kind="stable").index[:_MOST_ROWS]
    return [str(name) for name in worst.index if name in set(kept)]


def _strip(axes: Axes, effects: pd.DataFrame, rows: list[str], days: Sequence[date]) -> None:
    axes.set_title("Effect size and direction", loc="left", fontsize=11)
    if not rows:
        note(axes, "nothing to compare with yet")
        return
    places = {day: place for place, day in enumerate(days)}
    heights = {name: height for height, name in enumerate(rows)}
    for cell in effects[effects["name"].isin(rows)].to_dict("records"):
        _cell(axes, places[cell["dt"]], heights[cell["name"]], cell)
    day_axis(axes, days)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), [shortened(name, 40) for name in rows], fontsize=9)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _cell(axes: Axes, x: int, y: int, cell: Mapping[Hashable, Any]) -> None:
    """Draw one effect: its colour says how bad, its words how much and which way."""
    severity = cell["severity"]
    corner = (x - 0.47, y - 0.45)
    box = partial(Rectangle, corner, 0.94, 0.9, linewidth=0.5)
    if np.isnan(severity):
        axes.add_patch(box(facecolor="white", edgecolor="#BFBFBF", hatch="////"))
        return
    colour = _COLOURS(min(severity / _WORST, 1.0))
    axes.add_patch(box(facecolor=colour, edgecolor=GRID))
    arrow = _ARROWS.get(cell["direction"], "")
    words = f"{arrow}{_effect(cell['metric'], cell['value'])}"
    weight = "bold" if severity >= 1 else "normal"
    colour = "black" if severity >= 1 else GREY
    axes.text(x, y, words, ha="center", va="center", fontsize=7.5, color=colour, weight=weight)


def _effect(metric: str, value: float) -> str:
    """Return an effect size as short as it can be read.

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
    """Draw the accuracy that CBPE expects of each day, and the last day's by its labels."""
    axes.set_title("Accuracy of the model alone", loc="left", fontsize=11)
    expected = drift[drift["metric"].eq("cbpe_accuracy") & known(drift)].set_index("dt")
    seen = measurements[measurements["metric"].eq("accuracy") & known(measurements)]
    if expected.empty and seen.empty:
        note(axes, "not enough data")
        return
    if len(expected):
        value, low, high = (
            expected[name].reindex(list(days)).to_numpy(dtype=np.float64)
            for name in ("value", "low", "high")
        )
        axes.plot(value, color=BLUE, marker="o", markersize=4, label="expected by CBPE")
        axes.fill_between(range(len(days)), low, high, color=BLUE, alpha=0.15, linewidth=0)
    if len(seen):
        _seen(axes, len(days) - 1, seen.iloc[0])
    axes.set_xlabel(_ASSUMPTION, fontsize=8.5, color=GREY, loc="left")
    axes.grid(visible=True, axis="y", color=GRID)
    axes.margins(y=0.15)
    axes.legend(loc="lower left", frameon=False, fontsize=9)
    day_axis(axes, days)
    plain(axes)


def _seen(axes: Axes, place: int, row: "pd.Series[Any]") -> None:
    """Draw what the labels of the last day say."""
    value, low, high = (np.array([row[name]], np.float64) for name in ("value", "low", "high"))
    axes.errorbar(
        [place + 0.15],
        value,
        yerr=distances(value, low, high),
        color="black",
        marker="D",
        markersize=5,
        linestyle="none",
        label="estimated from labels, 95 % interval",
    )
