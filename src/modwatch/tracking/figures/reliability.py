"""The reliability diagram: observed against predicted probability."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from modwatch.tracking.figures import style


def reliability(bins: pd.DataFrame, *, title: str) -> Figure:
    """Return the reliability diagram, with the number of labels per bin.

    Source: Kivlichan et al. (2021), appendix C. `bins` is described at `DayTables.reliability`;
    bins without labels or without an estimate are omitted. Points are not joined: a bin with one
    label would draw a peak.
    """
    filled = bins[(bins["count"] > 0) & bins["positive_rate"].notna()]
    predicted, count = (filled[name].to_numpy(dtype=np.float64) for name in ("mean_prob", "count"))
    figure = Figure(figsize=(6.5, 7), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    upper.set_title(
        f"Calibration: {title}\n{bins['count'].sum():,.0f} labelled comments", loc="left"
    )
    if filled.empty:
        style.note(upper, "not enough data")
        style.note(lower, "")
        return figure
    upper.plot([0, 1], [0, 1], color=style.GREY, linewidth=1, linestyle=":", label="perfect")
    rows = filled.rename(columns={"positive_rate": "value"})
    look = {"color": style.BLUE, "fmt": "o", "capsize": 3, "label": "observed, 95 % intervals"}
    style.error_bars(upper, predicted, rows, **look)
    upper.legend(loc="lower right", frameon=False)
    upper.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), ylabel="observed share of toxic comments")
    lower.bar(predicted, count, width=0.03, color=style.BLUE)
    for x, labels in zip(predicted, count, strict=True):
        lower.text(x, labels, f"{labels:,.0f}", ha="center", va="bottom", fontsize=8)
    lower.set(
        ylim=(0.5, max(4 * count.max(initial=1), 10)),
        yscale="log",
        ylabel="labels",
        xlabel="predicted probability of toxicity",
    )
    style.plain(upper, lower)
    return figure
