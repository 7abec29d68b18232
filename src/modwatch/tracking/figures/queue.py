"""The review queue over the trailing days: completion, open items and their ages."""

from collections.abc import Sequence
from datetime import date

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from modwatch.tracking.figures import style
from modwatch.tracking.keys import known

_AGES = {
    "queue_age_oldest_hours": ("oldest", style.VERMILLION, "s", "--"),
    "queue_age_median_hours": ("median", style.BLUE, "o", "-"),
}


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


def _of(drift: pd.DataFrame, metric: str, days: Sequence[date]) -> NDArray[np.float64]:
    """Return a metric's value (D,) of every day; NaN where it is unknown."""
    rows = drift[drift["metric"].eq(metric) & known(drift)]
    values = dict(zip(rows["dt"], rows["value"], strict=True))
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
