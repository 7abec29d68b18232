"""How every figure looks: colours, resolution, bare axes.

Colours are those of Okabe and Ito (2008), which colour-blind readers tell apart; a strategy has
the same colour, line and marker everywhere.
"""

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

DPI = 110

BLUE, VERMILLION, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"

#: Colour, line and marker of a review strategy.
_STRATEGIES = {
    "uncertainty": (BLUE, "-", "o"),
    "toxicity": (VERMILLION, "--", "s"),
    "hybrid": (GREEN, "-.", "^"),
}
_OTHER_STRATEGY = (GREY, ":", "D")
# Strategies stand a little aside of each other, so that their intervals can be told apart.
ASIDE = {"uncertainty": 0.97, "toxicity": 1.03}


def strategy_style(strategy: str) -> tuple[str, str, str]:
    """Return colour, line and marker of a review strategy."""
    return _STRATEGIES.get(strategy, _OTHER_STRATEGY)


def plain(*panels: Axes) -> None:
    """Take away what carries no data, and write counts as people do."""
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        if axes.get_yscale() == "log":
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
