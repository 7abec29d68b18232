"""Draw the pictures of docs/auditors.md from the figures of `audit.py`.

    python benchmarks/audit.py --csv audit.csv
    python benchmarks/audit_curves.py audit.csv [folder, default docs/images]

Of the usual populations, and the planner that has the labels of a random slice. Three SVG files,
without scripts and fonts of their own: how often the 95 % interval holds the share that was missed
and recall, and the labels of the default design over those of others for the same width of the
interval. Colours of Okabe & Ito (darker by day), and a mark of its own for each line.
A figure that more than half of the audits did not give is drawn hollow.
"""

import sys
from collections.abc import Callable
from html import escape
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

STYLE = """
:root { color-scheme: light dark; --page: #fff; --text: #1d2129; --muted: #5a6270; --line: #d5d9e0;
  --band: #e7eaef; --one: #0072b2; --two: #b84a00; --three: #00795a; }
@media (prefers-color-scheme: dark) { :root { --page: #14171c; --text: #e6e8ec; --muted: #a4acb9;
  --line: #363c47; --band: #272c35; --one: #6db8ea; --two: #ff9d5c; --three: #4fd0a8; } }
text { font: 12px system-ui, sans-serif; fill: var(--muted); }
text.head { font-weight: 600; fill: var(--text); }
text.key { font-size: 13px; fill: var(--text); }
.page { fill: var(--page); } .band { fill: var(--band); }
.grid { stroke: var(--line); } .level { stroke: var(--muted); stroke-dasharray: 5 3; }
.floor { --mine: var(--text); }
.one { --mine: var(--one); } .two { --mine: var(--two); } .three { --mine: var(--three); }
.curve { fill: none; stroke: var(--mine); stroke-width: 1.75; }
.floor { stroke: var(--mine); stroke-width: 1.5; stroke-dasharray: 2 2.5; }
.mark { fill: var(--mine); stroke: var(--page); }
.hollow { fill: var(--page); stroke: var(--mine); stroke-width: 1.5; }
"""
WIDTH, LEFT, TOP, PANEL, GAP, HEIGHT, BELOW = 860, 60, 104, (250, 170), 18, 578, 54
COLOURS = ("one", "two", "three")
SCORES = ("sharp", "dull", "miscalibrated")
PREVALENCES = (0.001, 0.005, 0.01, 0.02, 0.04, 0.08)
HIDDEN, LABELS = (0.0, 0.2), (500, 1000, 3000)
SEEN = {0.0: "none hidden", 0.2: "20 % hidden"}
BASELINES = {"pilot": "the paper's pilot", "random": "random sampling", "oracle": "the oracle"}
#: Floors of the labels: baseline, its line, from and to which prevalence, at most how many times.
FLOORS = (
    ("pilot", "one", 0.001, 0.01, 0.6),
    ("pilot", "one", 0.04, 0.04, 0.8),
    ("oracle", "three", 0.001, 0.08, 1.3),
)
TENTH = 0.1


class Picture:
    """Elements of an SVG file, of six panels in two rows."""

    def __init__(self, title: str, described: str) -> None:
        self.elements = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'width="{WIDTH}" height="{HEIGHT}" role="img" aria-labelledby="title described">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="described">{escape(described)}</desc>',
            f"<style>{STYLE}</style>",
            f'<rect class="page" width="{WIDTH}" height="{HEIGHT}" rx="6"/>',
        ]

    def text(self, x: float, y: float, given: str, kind: str = "", anchor: str = "start") -> None:
        self.elements.append(
            f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">'
            f"{escape(given)}</text>"
        )

    def line(self, kind: str, *ends: float) -> None:
        x1, y1, x2, y2 = (f"{end:.1f}" for end in ends)
        self.elements.append(f'<line class="{kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>')

    def curve(self, colour: str, points: list[tuple[float, float]]) -> None:
        """Draw a line through points; its marks come after."""
        through = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.elements.append(f'<polyline class="curve {colour}" points="{through}"/>')

    def mark(self, colour: str, x: float, y: float, kind: str = "mark") -> None:
        """Draw a circle, a square or a triangle, by the line's colour."""
        shape = {
            "one": f'circle cx="{x:.1f}" cy="{y:.1f}" r="4"',
            "two": f'rect x="{x - 3.7:.1f}" y="{y - 3.7:.1f}" width="7.4" height="7.4"',
            "three": f'path d="M{x:.1f} {y - 5:.1f}l4.8 8.4h-9.6z"',
        }[colour]
        self.elements.append(f'<{shape} class="{kind} {colour}"/>')

    def key(self, names: list[str]) -> float:
        """Draw which line is which, and return where it ends."""
        x = float(LEFT)
        for colour, name in zip(COLOURS, names, strict=True):
            self.line(f"curve {colour}", x, 56, x + 26, 56)
            self.mark(colour, x + 13, 56)
            self.text(x + 33, 60.5, name, "key")
            x += 33 + 7.2 * len(name) + 20
        return x

    def svg(self) -> str:
        return "\n".join([*self.elements, "</svg>", ""])


class Panel:
    """One of six panels: where its values lie in the picture."""

    def __init__(self, picture: Picture, row: int, column: int, scale: Callable[[float], float]):
        self.picture, self.scale, self.row, self.column = picture, scale, row, column
        self.left = LEFT + column * (PANEL[0] + GAP)
        self.top = TOP + row * (PANEL[1] + BELOW)
        self.right, self.bottom = self.left + PANEL[0], self.top + PANEL[1]

    def x(self, prevalence: float) -> float:
        low, high = np.log(PREVALENCES[0]), np.log(PREVALENCES[-1])
        return self.left + 14 + (PANEL[0] - 28) * float((np.log(prevalence) - low) / (high - low))

    def y(self, value: float) -> float:
        """Return where a value lies; at the edge when it is beyond."""
        return self.bottom - PANEL[1] * float(np.clip(self.scale(value), 0, 1))

    def axes(self, head: str, ticks: dict[float, str], band: tuple[float, float] | None) -> None:
        """Draw heading, band, grid and the numbers at the axes."""
        draw = self.picture
        draw.text(self.left, self.top - 9, head, "head")
        if band:
            top = self.y(band[1])
            draw.elements.append(
                f'<rect class="band" x="{self.left}" y="{top:.1f}" width="{PANEL[0]}" '
                f'height="{self.y(band[0]) - top:.1f}"/>'
            )
        for value, name in ticks.items():
            draw.line("grid", self.left, self.y(value), self.right, self.y(value))
            if self.column == 0:
                draw.text(self.left - 8, self.y(value) + 4, name, anchor="end")
        for prevalence in PREVALENCES:
            x, name = self.x(prevalence), f"{100 * prevalence:g}"
            draw.text(x, self.bottom + 17, name, anchor="middle")

    def points(self, colour: str, values: "pd.Series[float]", given: "pd.Series[bool]") -> None:
        """Draw a line of values by prevalence; marks only, hollow, where few audits gave any."""
        there = values.dropna()
        solid = there[given[there.index]]
        if len(solid) > 1:
            self.picture.curve(colour, [(self.x(p), self.y(v)) for p, v in solid.items()])
        for prevalence, value in there.items():
            kind = "mark" if given[prevalence] else "hollow"
            self.picture.mark(colour, self.x(prevalence), self.y(value), kind)
            if self.scale(value) < 0:
                position = self.x(prevalence) + 8, self.y(value) - 3
                self.picture.text(*position, f"{100 * value:.0f} %")


def part(table: pd.DataFrame, **at: object) -> pd.DataFrame:
    """Return the cells at some values, by prevalence."""
    for name, value in at.items():
        table = table[table[name] == value]
    return table.set_index("prevalence").sort_index()


def coverage(table: pd.DataFrame, metric: str, name: str) -> str:
    """Return the picture of coverage by prevalence."""
    solid = table.loc[table[f"{metric}_given"] >= 0.5, f"{metric}_coverage"]
    least = min(0.9, np.floor(solid.min() * 50) / 50)
    repetitions = int(table["repetitions"].iloc[0])
    error = 2 * np.sqrt(0.95 * 0.05 / repetitions)
    picture = Picture(
        f"How often the 95 % interval holds {name}",
        f"Six panels, by labels and by the part of positives hidden from the score. {len(solid)} "
        f"of {len(table)} cells give a figure in half of their audits or more; the interval holds "
        f"the truth in {100 * solid.min():.1f} to {100 * solid.max():.1f} % of those audits. "
        "The wanted band is 94 to 99 %.",
    )
    picture.text(LEFT, 27, f"How often the 95 % interval holds {name}, %", "key head")
    x = picture.key([f"{score} score" for score in SCORES])
    picture.mark("one", x + 6, 56, "hollow")
    picture.text(x + 16, 60.5, "fewer than half of the audits give a figure", "key")
    ticks = {number / 100: f"{number}" for number in range(round(least * 100), 101, 2)}
    for (row, hidden), (column, labels) in product(enumerate(HIDDEN), enumerate(LABELS)):
        panel = Panel(picture, row, column, lambda value: (value - least) / (1.0 - least))
        panel.axes(f"{labels:,} labels, {SEEN[hidden]}", ticks, (0.94, 0.99))
        picture.line("level", panel.left, panel.y(0.95), panel.right, panel.y(0.95))
        for colour, score in zip(COLOURS, SCORES, strict=True):
            cells = part(table, score=score, hidden=hidden, labels=labels)
            panel.points(colour, cells[f"{metric}_coverage"], cells[f"{metric}_given"] >= 0.5)
    result = f"{repetitions:,} audits a point, ±{100 * error:.1f} points (two standard errors)."
    foot(picture, f"Band: 94 to 99 %, wanted. Dashed: 95 %. {result}")
    return picture.svg()


def labels_needed(table: pd.DataFrame) -> str:
    """Return the picture of the default's labels over those of the baselines."""
    thousand = table[(table["labels"] == 1000) & (table["prevalence_given"] >= 0.5)]
    medians = [
        f"{name} {thousand[f'width_{baseline}'].median():.2f}"
        for baseline, name in BASELINES.items()
    ]
    picture = Picture(
        "Labels of the default design for the same width of the interval, over those of others",
        "Six panels, by score and by the part of positives hidden from it; 1,000 labels. Below 1 "
        "the default needs fewer labels than the paper's pilot, random sampling or the oracle. "
        f"Medians of the cells with figures: {', '.join(medians)}.",
    )
    head = "Labels of the default for an interval as wide, as a multiple of those of …"
    picture.text(LEFT, 27, head, "key head")
    x = picture.key(list(BASELINES.values()))
    picture.line("floor", x, 56, x + 26, 56)
    picture.text(x + 33, 60.5, "at most, as wanted", "key")
    ticks = {value: f"{value:g} ×" for value in (TENTH, 0.2, 0.4, 0.6, 1.0, 1.5)}
    least, most = np.log(0.08), np.log(1.8)
    for (row, hidden), (column, score) in product(enumerate(HIDDEN), enumerate(SCORES)):
        panel = Panel(picture, row, column, lambda v: (np.log(v) - least) / (most - least))
        panel.axes(f"{score.capitalize()} score, {SEEN[hidden]}", ticks, None)
        picture.line("level", panel.left, panel.y(1), panel.right, panel.y(1))
        for _, colour, start, end, floor in FLOORS:
            ends = panel.x(start) - 13, panel.y(floor), panel.x(end) + 13, panel.y(floor)
            picture.line(f"floor {colour}", *ends)
        cells = part(table, score=score, hidden=hidden, labels=1000)
        for colour, baseline in zip(COLOURS, BASELINES, strict=True):
            panel.points(colour, cells[f"width_{baseline}"], cells["prevalence_given"] >= 0.5)
    result = "1,000 labels of the default. Hollow: fewer than half of its audits give a figure."
    foot(picture, f"Below 1 × the default needs fewer. {result}")
    return picture.svg()


def foot(picture: Picture, given: str) -> None:
    """Write what the axes and panels are, and a remark."""
    across = (
        "Across: positives among the unflagged, %. Hidden: positives that the score cannot see."
    )
    picture.text(LEFT, HEIGHT - 34, across)
    picture.text(LEFT, HEIGHT - 14, given)


def main(file: Path, folder: Path) -> None:
    """Write the three pictures."""
    every = pd.read_csv(file)
    table = every[(every["planner"] == "slice") & every["hidden"].notna()]
    pictures = {
        "audit-coverage.svg": coverage(table, "prevalence", "the share that was missed"),
        "audit-coverage-recall.svg": coverage(table, "recall", "recall"),
        "audit-labels.svg": labels_needed(table),
    }
    for name, svg in pictures.items():
        (folder / name).write_text(svg, encoding="utf-8")
        print(folder / name)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(*sys.argv[2:] or ["docs/images"]))
