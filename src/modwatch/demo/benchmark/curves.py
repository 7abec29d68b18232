"""The α-curves of the benchmark, as in figures 2 to 4 and 7 to 14 of the paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from modwatch.common import charts
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
    "deterministic": (charts.GREY, "o"),
    "sngp": (charts.BLUE, "s"),
    "mc_dropout": (charts.ORANGE, "^"),
    "ensemble": (charts.GREEN, "D"),
    "sngp_ensemble": (charts.VERMILLION, "v"),
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
                    source=charts.svg_uri(_figure(metric, drawn)),
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
                line = charts.strategy_style(strategy)[1]
                axes.plot(*zip(*points, strict=True), linestyle=line, alpha=0.85, **look)
        if any(row["method"] == method for row in rows):
            axes.plot([], [], color=colour, marker=marker, label=paper.METHOD_TITLES[method])
    for strategy in ("uncertainty", "toxicity"):
        line = charts.strategy_style(strategy)[1]
        axes.plot([], [], color="black", linestyle=line, label=f"review by {strategy}")
    # No label where there is no room.
    labels = ["" if alpha == 0.15 else f"{alpha:g}" for alpha in REVIEW_FRACTIONS]
    charts.log_axis(axes, REVIEW_FRACTIONS, labels)
    axes.set_xlabel("review fraction α")
