"""The figure of the timeline: every metric over the days, with intervals."""

from datetime import date

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from modwatch.tracking.keys import INTERVAL_GROUP, metric_title
from modwatch.tracking.points import Rows
from modwatch.tracking.style import BLUE, plain


def timeline_figure(rows: Rows) -> Figure:
    """Return every metric over the days, a panel each, with its 95 % interval where it has one."""
    keys = sorted({key for row in rows.values() for key in row})
    keys = [key for key in keys if not key.startswith(INTERVAL_GROUP)]
    height = -(-len(keys) // 3)
    figure = Figure(figsize=(13, 2.2 * height + 0.6), layout="constrained")
    figure.suptitle(f"{min(rows)} to {max(rows)}, UTC days; bands are 95 % intervals", fontsize=13)
    panels = figure.subplots(height, 3, squeeze=False, sharex=True).ravel()
    for axes, key in zip(panels, keys, strict=False):
        _timeline_panel(axes, key, rows)
    for axes in panels[len(keys) :]:
        axes.axis("off")
    return figure


def _timeline_panel(axes: Axes, key: str, rows: Rows) -> None:
    group, _, metric = key.partition("/")
    days = _every_day(min(rows), max(rows))
    low, value, high = (
        np.array([rows.get(day, {}).get(name, np.nan) for day in days.tolist()])
        for name in (f"{INTERVAL_GROUP}/{metric}_low", key, f"{INTERVAL_GROUP}/{metric}_high")
    )
    axes.plot(days, value, color=BLUE, marker="o", markersize=3)
    axes.fill_between(days, low, high, color=BLUE, alpha=0.2, linewidth=0)
    axes.vlines(days, low, high, color=BLUE, alpha=0.15, linewidth=1)
    axes.set_title(f"{metric_title(metric)} ({group})", loc="left", fontsize=10)
    if group in ("day", "review"):
        axes.set_ylim(bottom=0)
    ticks = days[:: -(-len(days) // 6)]
    axes.set_xticks(ticks, [f"{day:%d %b}" for day in ticks.tolist()])
    axes.grid(visible=True, color="#E5E5E5")
    plain(axes)


def _every_day(first: date, last: date) -> NDArray[np.datetime64]:
    """Return all days from first to last: a day that is not known is a gap, not a line."""
    return np.arange(np.datetime64(first), np.datetime64(last) + 1)
