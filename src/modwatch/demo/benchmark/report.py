"""Renders the results of a benchmark as a self-contained HTML page without the text of a comment.

The page has no scripts. Its Content-Security-Policy allows its style sheet, by its hash, and
embedded pictures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from modwatch.common.html import render_html
from modwatch.demo.benchmark import paper
from modwatch.demo.benchmark.curves import CURVES, pictures
from modwatch.demo.benchmark.evaluation import FINDING_FRACTIONS
from modwatch.statistics.collaboration.collaborative import REVIEW_FRACTIONS

_MARKS = {
    "uncertainty better": "✓",
    "toxicity better": "✗",
    "undecided": "?",
    "equal": "=",
}

#: Smaller differences are written as 0.
_SMALLEST = 0.00005


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
        "curves": [
            (picture, _curve_table(results["curves"], picture.domain, picture.metric))
            for picture in pictures(results["curves"])
        ],
        "differences": _aspect_table(
            [aspect for aspect in results["aspects"] if not aspect["same"]]
        ),
        "same": [aspect for aspect in results["aspects"] if aspect["same"]],
        "interval": _interval_note(len(results["seeds"])),
        "draws": results["draws"],
    }
    return render_html("modwatch.demo.benchmark", "report.html", page=page)


def _facts(results: dict[str, Any]) -> list[tuple[str, str]]:
    titles = {**paper.METHOD_TITLES, **paper.LOSS_TITLES}
    libraries = ", ".join(f"{name} {version}" for name, version in results["libraries"].items())
    return [
        *((name, text) for name, text in results["data"].items()),
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
    lines: list[tuple[str, tuple[Cell, ...]]] = []
    for method in dict.fromkeys(row["method"] for row in chosen):
        of_method = [row for row in chosen if row["method"] == method]
        title = paper.METHOD_TITLES[method]
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


def _curve_table(rows: Sequence[dict[str, Any]], domain: str, metric: str) -> Table:
    chosen = [row for row in rows if (row["domain"], row["metric"]) == (domain, metric)]
    lines = dict.fromkeys((row["loss"], row["method"], row["strategy"]) for row in chosen)
    return Table(
        caption=f"{CURVES[metric][0]} at each review fraction, {paper.DOMAINS[domain].lower()}",
        columns=("Model and strategy", *(f"{alpha:g}" for alpha in REVIEW_FRACTIONS)),
        rows=tuple(
            (
                f"{_model(*key[:2])}, {key[2]}",
                tuple(
                    Cell(text=_number(row["mean"]))
                    for row in chosen
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
