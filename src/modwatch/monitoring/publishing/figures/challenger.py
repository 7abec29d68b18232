"""The challenger beside the champion: paired differences with their intervals."""

import pandas as pd
from matplotlib.figure import Figure

from modwatch.common import charts as style
from modwatch.monitoring.publishing.keys import metric_title


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
        style.note(axes, "not enough data")
        return figure
    places = range(len(rows) - 1, -1, -1)
    value, low, high = (rows[name].to_numpy(dtype=float) for name in ("value", "low", "high"))
    colours = [
        style.BLUE if least > 0 else style.VERMILLION if most < 0 else style.GREY
        for least, most in zip(low, high, strict=True)
    ]
    for place, middle, least, most, colour in zip(places, value, low, high, colours, strict=True):
        axes.plot([least, most], [place, place], color=colour, linewidth=2)
        axes.plot(middle, place, marker="o", color=colour)
    axes.set_yticks(list(places), [metric_title(str(name)) for name in rows["metric"]])
    axes.axvline(0, color=style.GREY, linewidth=1, linestyle=style.DEPLOYED)
    axes.set_xlabel("challenger less champion, with 95 % interval (blue: better, red: worse)")
    axes.grid(visible=True, axis="x", color=style.GRID)
    style.plain(axes)
    return figure
