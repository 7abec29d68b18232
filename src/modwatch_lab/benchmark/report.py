"""Renders the results of a benchmark as a self-contained HTML page without the text of a comment.

The page has no scripts. Its Content-Security-Policy allows its style sheet, by its hash, and
embedded pictures: the α-curves, as in figures 2 to 4 and 7 to 14 of the paper.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from modwatch.common import charts
from modwatch.common.html import render_html
from modwatch.statistics.collaboration.collaborative import REVIEW_FRACTIONS
from modwatch.statistics.collaboration.review_strategies import style
from modwatch_lab.benchmark import paper, summary
from modwatch_lab.benchmark.evaluation import FINDING_FRACTIONS

_MARKS = {
    "uncertainty better": "✓",
    "toxicity better": "✗",
    "undecided": "?",
    "equal": "=",
}

#: Smaller differences are written as 0.
_SMALLEST = 0.00005


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
class Cell:
    """A cell of a table."""

    text: str
    #: Smaller text below, such as an interval.
    below: str = ""
    #: Style: good, bad, open, published, or none.
    kind: str = ""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table: headings of the columns, and rows with their heading."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]


def render_report(results: dict[str, Any]) -> str:
    """Return the report as HTML; equal results (of `cotomod.results_of`) give equal pages."""
    domains = [
        {
            "title": title,
            "tables": [
                _metric_table(results["table"], domain, loss)
                for loss in paper.LOSS_TITLES
                if loss in results["losses"]
            ],
            "finding": _finding_table(results["finding"], domain),
            "exceptions": _exceptions(results["finding"], domain),
        }
        for domain, title in paper.DOMAINS.items()
    ]
    page = {
        "answers": results["sentences"],
        "facts": _facts(results),
        "domains": domains,
        "curves": list(_curves(results["curves"], summary.idle_models(results["table"]))),
        "differences": _aspect_table(
            [aspect for aspect in results["aspects"] if not aspect["same"]]
        ),
        "same": [aspect for aspect in results["aspects"] if aspect["same"]],
        "interval": _interval_note(len(results["seeds"])),
        "draws": results["draws"],
    }
    return render_html("modwatch_lab.benchmark", "report.html", page=page)


def _facts(results: dict[str, Any]) -> list[tuple[str, str]]:
    titles = {**paper.METHOD_TITLES, **paper.LOSS_TITLES}
    libraries = ", ".join(f"{name} {version}" for name, version in results["libraries"].items())
    return [
        *results["data"].items(),
        ("Methods", ", ".join(titles[name] for name in results["methods"])),
        ("Losses", ", ".join(titles[name] for name in results["losses"])),
        ("Seeds", ", ".join(map(str, results["seeds"]))),
        ("Networks trained", f"{results['networks']:,}"),
        ("Libraries", libraries),
        ("Data, SHA-256", results["data_sha256"]),
    ]


def _interval_note(seeds: int) -> str:
    if seeds == 1:
        return "One seed: no intervals over seeds."
    return (
        f"Means over {seeds} seeds with 95 % Student-t intervals over the seeds. They cover what "
        "changes from one training run to the next on the same comments, and not the choice of "
        "the tested comments."
    )


def _metric_table(rows: Sequence[dict[str, Any]], domain: str, loss: str) -> Table:
    chosen = [row for row in rows if (row["domain"], row["loss"]) == (domain, loss)]
    nothing = {row["metric"]: Cell(text=_number(row["nothing"])) for row in chosen}
    lines: list[tuple[str, tuple[Cell, ...]]] = [("Flags nothing", tuple(nothing.values()))]
    idle = summary.idle_models(chosen)
    for method in dict.fromkeys(row["method"] for row in chosen):
        of_method = [row for row in chosen if row["method"] == method]
        title = paper.METHOD_TITLES[method]
        if (domain, loss, method) in idle:
            title += ", flags next to nothing"
        ours = tuple(
            Cell(text=_number(row["mean"]), below=_ends(row["low"], row["high"]))
            for row in of_method
        )
        theirs = tuple(Cell(text=f"{row['paper']:.4f}", kind="published") for row in of_method)
        lines += [(title, ours), (f"{title}, paper", theirs)]
    return Table(
        caption=f"{paper.LOSS_TITLES[loss]}, {paper.DOMAINS[domain].lower()}; below each, the "
        f"paper’s figures ({paper.TABLES[domain]})",
        columns=("Method", *paper.METRIC_TITLES.values()),
        rows=tuple(lines),
    )


def _finding_table(rows: Sequence[dict[str, Any]], domain: str) -> Table:
    chosen = [row for row in rows if row["domain"] == domain]
    models = dict.fromkeys((row["loss"], row["method"]) for row in chosen)
    lines = []
    for loss, method in models:
        cells = tuple(
            Cell(
                text=f"{_MARKS[row['verdict']]} {_signed(row['mean'])}",
                below=_ends(row["comments_low"], row["comments_high"]),
                kind={"uncertainty better": "good", "toxicity better": "bad"}.get(
                    row["verdict"], "open"
                ),
            )
            for row in chosen
            if (row["loss"], row["method"]) == (loss, method)
        )
        lines.append((_model(loss, method), cells))
    return Table(
        caption="OC-AUROC reviewing by uncertainty less that by toxicity, "
        f"{paper.DOMAINS[domain].lower()}, with 95 % intervals by paired bootstrap of the comments",
        columns=("Model", *(f"α = {alpha:g}" for alpha in FINDING_FRACTIONS)),
        rows=tuple(lines),
    )


def _exceptions(rows: Sequence[dict[str, Any]], domain: str) -> Table:
    """Return the comparisons in which uncertainty is not better, and why."""
    lines = [
        (
            f"{_model(row['loss'], row['method'])}, α = {row['alpha']:g}",
            (
                Cell(text=row["verdict"]),
                Cell(text=_signed(row["mean"]), below=_ends(row["low"], row["high"])),
                Cell(text=row["why"]),
            ),
        )
        for row in rows
        if row["domain"] == domain and row["verdict"] != "uncertainty better"
    ]
    return Table(
        caption=f"Where uncertainty is not better, {paper.DOMAINS[domain].lower()}, with the "
        "interval over the seeds, and why",
        columns=("Model and review fraction", "Verdict", "Difference", "What is reviewed"),
        rows=tuple(lines),
    )


def _curve_table(rows: Sequence[dict[str, Any]], caption: str) -> Table:
    lines = dict.fromkeys((row["loss"], row["method"], row["strategy"]) for row in rows)
    return Table(
        caption=caption,
        columns=("Model and strategy", *(f"{alpha:g}" for alpha in REVIEW_FRACTIONS)),
        rows=tuple(
            (
                f"{_model(*key[:2])}, {key[2]}",
                tuple(
                    Cell(text=_number(row["mean"]))
                    for row in rows
                    if (row["loss"], row["method"], row["strategy"]) == key
                ),
            )
            for key in lines
        ),
    )


def _aspect_table(aspects: Sequence[dict[str, Any]]) -> Table:
    return Table(
        caption="What differs from the paper",
        columns=("Aspect", "Paper", "Here"),
        rows=tuple(
            (aspect["name"], (Cell(text=aspect["paper"]), Cell(text=aspect["here"])))
            for aspect in aspects
        ),
    )


def _model(loss: str, method: str) -> str:
    return f"{paper.METHOD_TITLES[method]}, {paper.LOSS_TITLES[loss].lower()}"


def _number(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.4f}"


def _signed(value: float | None) -> str:
    """Return a difference as text.

    >>> _signed(-0.01), _signed(0.00001)
    ('−0.0100', '0.0000')
    """
    if value is None:
        return "not defined"
    return f"{value:+.4f}".replace("-", "−") if abs(value) >= _SMALLEST else "0.0000"


def _ends(low: float | None, high: float | None) -> str:
    """Return an interval as text.

    >>> _ends(0.1, 0.2), _ends(None, None)
    ('0.1000 to 0.2000', '')
    """
    if low is None or high is None:
        return ""
    return f"{low:.4f} to {high:.4f}".replace("-", "−")


def _curves(
    rows: Sequence[dict[str, Any]], idle: set[tuple[str, str, str]]
) -> Iterator[dict[str, Any]]:
    """Yield title, caption, picture (SVG as a `data:` URI) and table of each α-curve.

    For each environment and metric, from `summary.curve_rows`; equal rows give equal pictures.
    Review Efficiency is without the `idle_models`.
    """
    for place, (domain, environment) in enumerate(paper.DOMAINS.items()):
        for metric, (title, _, sources) in CURVES.items():
            drawn = [row for row in rows if (row["domain"], row["metric"]) == (domain, metric)]
            without = ""
            if metric == "review_efficiency":
                names = [_model(*model) for of, *model in sorted(idle) if of == domain]
                if names:
                    without = f" Without {', '.join(names)}: if next to nothing is flagged, every "
                    without += "toxic comment is an error that a review finds."
                drawn = [
                    row | {"mean": None} if (domain, row["loss"], row["method"]) in idle else row
                    for row in drawn
                ]
            yield {
                "title": f"{title}, {environment.lower()}",
                "caption": f"{title} against the review fraction α, {environment.lower()}; "
                f"{sources[place]} of the paper.{without}",
                "source": charts.svg_uri(_figure(metric, drawn)),
                "table": _curve_table(
                    drawn, f"{title} at each review fraction, {environment.lower()}"
                ),
            }


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
                line = style(strategy)[1]
                look: dict[str, Any] = {"color": colour, "linestyle": line, "marker": marker}
                look |= {"markersize": 4, "linewidth": 1.3, "alpha": 0.85}
                axes.plot(*zip(*points, strict=True), **look)
        if any(row["method"] == method for row in rows):
            axes.plot([], [], color=colour, marker=marker, label=paper.METHOD_TITLES[method])
    for strategy in ("uncertainty", "toxicity"):
        line = style(strategy)[1]
        axes.plot([], [], color="black", linestyle=line, label=f"review by {strategy}")
    # No label where there is no room.
    labels = ["" if alpha == 0.15 else f"{alpha:g}" for alpha in REVIEW_FRACTIONS]
    charts.log_axis(axes, REVIEW_FRACTIONS, labels)
    axes.set_xlabel("review fraction α")
