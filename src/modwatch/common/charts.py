"""What all charts are made with: colours, scales, axes, intervals.

Colours are those of Okabe and Ito (2008), which are safe for colour-blind readers; the style sheet
of pages has the same. Functions import matplotlib, which takes a second, and which drawings in SVG
do without.
"""

import base64
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 110

BLUE, VERMILLION, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"
ORANGE, PURPLE = "#E69F00", "#CC79A7"
GRID = "#E5E5E5"

#: Line of what is deployed.
DEPLOYED = (0, (1, 2))

# Strategies are offset, so that their intervals do not overlap.
ASIDE = {"uncertainty": 0.95, "toxicity": 1.05}


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A linear axis of a drawing: `low` is drawn at `start`, `high` at `end`.

    >>> Scale(low=0, high=1, start=80, end=8).at(0.5)
    44.0
    """

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return where a value is drawn, to a hundredth."""
        share = (value - self.low) / (self.high - self.low)
        return round(self.start + (self.end - self.start) * share, 2)

    def ticks(self) -> list[float]:
        """Return three or four round values.

        >>> Scale(low=0, high=1, start=0, end=100).ticks()
        [0.0, 0.5, 1.0]
        """
        span = (self.high - self.low) / 3
        unit = 10.0 ** math.floor(math.log10(span))
        step = next(unit * size for size in (1, 2, 5, 10) if unit * size >= span)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]


def labelled_places(count: int, most: int) -> list[int]:
    """Return which of the places 0 … count − 1 have room for a label, the last one always.

    >>> labelled_places(10, 4)
    [0, 3, 6, 9]
    """
    return [*range(count - 1, -1, -max(-(-count // most), 1))][::-1]


def plain(*panels: "Axes") -> None:
    """Remove the frame, and format counts on log axes with thousands separators."""
    from matplotlib.ticker import FuncFormatter

    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        if axes.get_yscale() == "log":
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def note(axes: "Axes", text: str) -> None:
    """Write a note in the middle of an empty panel, and remove its ticks."""
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes, color=GREY)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_color(GRID)


def error_bars(
    axes: "Axes",
    x: ArrayLike,
    rows: "Mapping[str, Any] | pd.DataFrame | pd.Series[Any]",
    **style: Any,
) -> None:
    """Draw `value` at `x` with the interval from `low` to `high`, if any; each a number or (B,)."""
    value, low, high = (
        np.atleast_1d(np.asarray(rows[name], np.float64)) for name in ("value", "low", "high")
    )
    lengths = np.maximum(np.nan_to_num(np.stack([value - low, high - value])), 0.0)
    axes.errorbar(x, value, yerr=lengths, **style)


def sign_colour(low: float, high: float) -> str:
    """Return the colour of a difference: blue above 0, red below, grey where 0 is possible."""
    return BLUE if low > 0 else VERMILLION if high < 0 else GREY


def interval_rows(
    axes: "Axes",
    rows: Sequence[Sequence[float]],
    *,
    colours: Sequence[str],
    places: Sequence[float] | None = None,
) -> None:
    """Draw horizontal intervals, each (value, low, high), the first one on top.

    `places` are their heights; default: N − 1 … 0.
    """
    heights = range(len(rows) - 1, -1, -1) if places is None else places
    for height, (value, low, high), colour in zip(heights, rows, colours, strict=True):
        axes.plot([low, high], [height, height], color=colour, linewidth=2)
        axes.plot(value, height, marker="o", color=colour)
    axes.grid(visible=True, axis="x", color=GRID)
    plain(axes)


def band(
    axes: "Axes",
    x: ArrayLike,
    ends: tuple[ArrayLike, ArrayLike],
    colour: str,
    *,
    alpha: float = 0.12,
) -> None:
    """Draw the intervals between two ends (N,) at `x` (N,) as a band."""
    axes.fill_between(x, *ends, color=colour, alpha=alpha, linewidth=0)


def log_axis(axes: "Axes", ticks: Sequence[float], labels: Sequence[str]) -> None:
    """Draw a log axis of x with these ticks only, and a grid."""
    from matplotlib.ticker import NullLocator

    axes.set_xscale("log")
    axes.set_xticks(list(ticks), list(labels), fontsize=9)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(visible=True, color=GRID)
    plain(axes)


def shortened(name: str, width: int = 28) -> str:
    """Return the name, with its middle elided if it is longer than `width`.

    >>> shortened("author_id"), shortened("abcdefghij", width=7)
    ('author_id', 'abc…hij')
    """
    if len(name) <= width:
        return name
    half = (width - 1) // 2
    return f"{name[: width - 1 - half]}…{name[-half:]}"


def png(figure: "Figure") -> bytes:
    """Return the figure as PNG, as `savefig` writes it, which draws twice where once is enough."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    buffer = io.BytesIO()
    figure.set_dpi(DPI)
    FigureCanvasAgg(figure).print_png(buffer)  # type: ignore[no-untyped-call]
    return buffer.getvalue()


def svg_uri(figure: "Figure") -> str:
    """Return the figure as SVG in a `data:` URI; equal figures give equal texts."""
    import matplotlib as mpl

    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "modwatch"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode()
