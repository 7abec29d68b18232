"""The profile of a scorer as a page, with the roofline of its encoder."""

import numpy as np
from matplotlib.figure import Figure

from modwatch.common import charts as style
from modwatch.common.html import render_html
from modwatch.models.scoring.profiling import STAGES, ScorerProfile


def profile_page(found: ScorerProfile) -> str:
    """Return the page, which opens from disk."""
    total = sum(found.stages.values())
    return render_html(
        "modwatch.models.scoring",
        "profile.html",
        styled="modwatch.common",
        lines=found.lines(),
        stages=[(name, found.stages[name], found.stages[name] / total) for name in STAGES],
        picture=roofline(found),
        found=found,
    )


def roofline(found: ScorerProfile) -> str:
    """Return the picture as a `data:` URI (Williams, Waterman & Patterson 2009)."""
    ridge = found.peak / found.bandwidth
    low, high = min(ridge, found.intensity) / 8, max(ridge, found.intensity) * 8
    intensity = np.geomspace(low, high, 200)
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.subplots()
    roof = np.minimum(found.peak, intensity * found.bandwidth) / 1e9
    axes.plot(intensity, roof, color=style.GREY, label="roof: bandwidth, then matrix products")
    points = (
        ("encoder", found.operations / found.stages["encoder"], style.BLUE, "o"),
        ("from strings to scores", found.operations / found.seconds, style.VERMILLION, "s"),
    )
    for name, rate, colour, marker in points:
        label = f"{name}: {rate / 1e9:,.1f} GFLOP/s, {rate / found.roof:.0%} of the roof"
        axes.plot(found.intensity, rate / 1e9, marker, color=colour, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("operations a byte")
    axes.set_ylabel("GFLOP/s")
    axes.grid(visible=True, color=style.GRID)
    axes.legend(loc="lower right", frameon=False)
    style.plain(axes)
    return style.svg_uri(figure)
