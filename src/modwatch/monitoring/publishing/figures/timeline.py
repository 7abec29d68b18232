"""The timeline chart: every metric over the days, with intervals."""

from collections.abc import Sequence
from datetime import date

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from modwatch.common import charts as style
from modwatch.common.mlflow_client import Rows
from modwatch.monitoring.publishing.keys import (
    DAY_GROUP,
    INTERVAL_GROUP,
    interval_keys,
    metric_title,
)

_COLUMNS = 4

#: Groups whose axes include 0; the axes of estimates fit the intervals.
_WITH_ZERO = ("day/", "drift/", "review/")

#: Groups from top to bottom, the most important first.
_ORDER = ("collaboration", "model", DAY_GROUP, "review", "drift", "day")


#: The key of a metric, and that of the same metric from single days, if any.
_Panel = tuple[str, str | None]


def timeline_figure(rows: Rows) -> Figure:
    """Return every metric over the days, a panel each, with its 95 % interval where it has one.

    Estimates from single days are dots behind the line of the window's estimates.
    """
    panels = _panels({key for row in rows.values() for key in row})
    height = max(-(-len(panels) // _COLUMNS), 1)
    figure = Figure(figsize=(15, 2.1 * height + 0.6), layout="constrained")
    figure.suptitle(
        f"{min(rows)} to {max(rows)}, UTC days; bands and bars are 95 % intervals; "
        "grey dots are single days",
        fontsize=13,
    )
    places = figure.subplots(height, _COLUMNS, squeeze=False, sharex=True).ravel()
    for axes, panel in zip(places, panels, strict=False):
        _draw(axes, panel, rows)
    for axes in places[len(panels) :]:
        axes.axis("off")
    return figure


def _panels(keys: set[str]) -> list[_Panel]:
    """Return one panel per metric; estimates from single days share that of the window, if any."""
    of_the_day = {key.partition("/")[2]: key for key in keys if key.startswith(f"{DAY_GROUP}/")}
    places = {group: place for place, group in enumerate(_ORDER)}
    drawn, beside = [], set[str]()
    for key in sorted(keys, key=lambda key: (places.get(key.partition("/")[0], len(places)), key)):
        group, _, metric = key.partition("/")
        if group == INTERVAL_GROUP or key in beside:
            continue
        day = of_the_day.get(metric) if group != DAY_GROUP else None
        beside.add(day or key)
        drawn.append((key, day))
    return drawn


def _draw(axes: Axes, panel: _Panel, rows: Rows) -> None:
    days, (key, of_the_day) = style.every_day(min(rows), max(rows)), panel
    group, _, metric = key.partition("/")
    if of_the_day is not None:
        value, low, high = _estimate(of_the_day, rows, days)
        axes.vlines(np.arange(len(days)), low, high, color=style.GREY, alpha=0.3, linewidth=1)
        axes.plot(value, color=style.GREY, marker="o", markersize=3, linestyle="none", alpha=0.6)
    value, low, high = _estimate(key, rows, days)
    axes.plot(value, color=style.BLUE, marker="o", markersize=3)
    axes.fill_between(range(len(days)), low, high, color=style.BLUE, alpha=0.2, linewidth=0)
    axes.vlines(np.arange(len(days)), low, high, color=style.BLUE, alpha=0.15, linewidth=1)
    axes.set_title(f"{metric_title(metric)} ({group.replace('_', ' ')})", loc="left", fontsize=10)
    if key.startswith(_WITH_ZERO):
        least, most = (float(end(value, initial=0)) for end in (np.nanmin, np.nanmax))
        axes.set_ylim(1.15 * least, 1.15 * most if most > least else 1)
    ticks = range(0, len(days), -(-len(days) // 5))
    axes.set_xticks(list(ticks), [f"{days[place]:%d %b}" for place in ticks])
    axes.grid(visible=True, color=style.GRID)
    style.plain(axes)


def _estimate(
    key: str, rows: Rows, days: Sequence[date]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return value, low and high (D,) of a metric; NaN where it is unknown."""
    low, high = interval_keys(key)
    of = {name: [rows.get(day, {}).get(name, np.nan) for day in days] for name in (key, low, high)}
    return np.array(of[key]), np.array(of[low]), np.array(of[high])
