"""The α-curves of the benchmark, as in figures 2 to 4 and 7 to 14 of the paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from modwatch.common import charts as style
from modwatch.demo.benchmark import paper
from modwatch.statistics.collaboration.collaborative import REVIEW_FRACTIONS

#: Title, axis label and the paper's figures (in domain, out of domain) of each metric.
CURVES = {
    "oc_auroc": ("OC-AUROC", "area under the ROC curve", ("figure 2", "figure 3")),
    "oc_auprc": ("OC-AUPRC", "area under the precision-recall curve", ("figure 7", "figure 8")),
    "oc_accuracy": ("OC-Acc", "share decided correctly", ("figure 9", "figure 10")),
    "review_efficiency": (
        "Review Efficiency",
        "model errors per reviewed comment",
        ("figures 4 and 11", "figures 4 and 12"),
    ),
    "review_effectiveness": (
        "Review Effectiveness",
        "share of model errors reviewed",
        ("figure 13", "figure 14"),
    ),
}

#: Colour and marker of each method; strategies differ in their lines.
_METHODS = {
    "deterministic": (style.GREY, "o"),
    "sngp": (style.BLUE, "s"),
    "mc_dropout": (style.ORANGE, "^"),
    "ensemble": (style.GREEN, "D"),
    "sngp_ensemble": (style.VERMILLION, "v"),
}


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure of the report."""

    domain: str
    metric: str
    title: str
    caption: str
    #: SVG as a `data:` URI.
    source: str


def pictures(rows: Sequence[dict[str, Any]]) -> list[Picture]:
    """Return a figure for each environment and metric, a panel a loss, from `summary.curve_rows`.

    Equal rows give equal pictures.
    """
    found = []
    for place, domain in enumerate(paper.DOMAINS):
        for metric, (title, _, sources) in CURVES.items():
            drawn = [row for row in rows if (row["domain"], row["metric"]) == (domain, metric)]
            caption = (
                f"{title} against the review fraction α, {paper.DOMAINS[domain].lower()}; "
                f"{sources[place]} of the paper."
            )
            found.append(
                Picture(
                    domain=domain,
                    metric=metric,
                    title=f"{title}, {paper.DOMAINS[domain].lower()}",
                    caption=caption,
                    source=style.svg_uri(_figure(metric, drawn)),
                )
            )
    return found


def _figure(metric: str, rows: Sequence[dict[str, Any]]) -> Figure:
    losses = [loss for loss in paper.LOSS_TITLES if any(row["loss"] == loss for row in rows)]
    figure = Figure(figsize=(6.2 * max(len(losses), 1), 4.6), layout="constrained")
    panels = figure.subplots(1, len(losses), sharey=True, squeeze=False)[0]
    for axes, loss in zip(panels, losses, strict=True):
        _panel(axes, [row for row in rows if row["loss"] == loss])
        axes.set_title(paper.LOSS_TITLES[loss], loc="left")
    panels[0].set_ylabel(f"{CURVES[metric][0]}: {CURVES[metric][1]}")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def _panel(axes: Axes, rows: Sequence[dict[str, Any]]) -> None:
    for method, (colour, marker) in _METHODS.items():
        for strategy in ("uncertainty", "toxicity"):
            points = [
                (row["alpha"], row["mean"])
                for row in rows
                if (row["method"], row["strategy"]) == (method, strategy)
                and row["mean"] is not None
            ]
            if points:
                look: dict[str, Any] = {
                    "color": colour,
                    "marker": marker,
                    "markersize": 4,
                    "linewidth": 1.3,
                }
                line = style.strategy_style(strategy)[1]
                axes.plot(*zip(*points, strict=True), linestyle=line, alpha=0.85, **look)
        if any(row["method"] == method for row in rows):
            axes.plot([], [], color=colour, marker=marker, label=paper.METHOD_TITLES[method])
    for strategy in ("uncertainty", "toxicity"):
        line = style.strategy_style(strategy)[1]
        axes.plot([], [], color="black", linestyle=line, label=f"review by {strategy}")
    axes.set_xscale("log")
    axes.set_xticks(list(REVIEW_FRACTIONS), [_tick(alpha) for alpha in REVIEW_FRACTIONS])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("review fraction α")
    axes.grid(visible=True, color=style.GRID)
    style.plain(axes)


def _tick(alpha: float) -> str:
    """Return the label of a review fraction; none where there is no room."""
    return "" if alpha == 0.15 else f"{alpha:g}"
