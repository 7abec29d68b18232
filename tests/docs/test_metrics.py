"""The pages on metrics: their names exist, and no metric is left out."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

from modwatch.statistics.collaboration.review_strategies import REVIEW_SCORES
from modwatch.statistics.live.figures import FIGURES

DOCS = Path(__file__).parents[2] / "docs"
#: The page that explains each package.
PAGES = {
    "modwatch.statistics": "metrics.md",
    "modwatch.statistics.disagreement": "groups.md",
    "modwatch.statistics.divergence": "groups.md",
}
TEXT = {page: (DOCS / page).read_text() for page in PAGES.values()}
NAMES = {page: set(re.findall(r"`(modwatch\.[\w.]+)`", text)) for page, text in TEXT.items()}


@pytest.mark.parametrize("name", sorted(set().union(*NAMES.values())))
def test_name_exists(name):
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), f"{name}: mend the page"


@pytest.mark.parametrize("package", PAGES)
def test_every_public_function_is_explained(package):
    module = importlib.import_module(package)
    functions = {
        f"{package}.{name}" for name in module.__all__ if inspect.isfunction(getattr(module, name))
    }
    assert not functions - NAMES[PAGES[package]], f"explain them in docs/{PAGES[package]}"


@pytest.mark.parametrize("page", TEXT)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#:]+)\)", TEXT[page]):
        assert (DOCS / link).exists(), f"{link}: mend docs/{page}"


def in_markdown(*rows: tuple[str, ...]) -> str:
    """Return a table, the first row its heads."""
    escaped = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    escaped.insert(1, ["---"] * len(rows[0]))
    return "\n".join(f"| {' | '.join(row)} |" for row in escaped)


def table_of_figures() -> str:
    rows = []
    for figure in FIGURES.values():
        low, high = (f"{end:g}".replace("inf", "∞") for end in figure.range)
        groups = (figure.group, *(("single_day",) if figure.of_day else ()))
        names = ", ".join(f"`{group}/{figure.key}`" for group in groups)
        rows.append((figure.title, names, f"{low} to {high}", figure.better or "–", figure.meaning))
    return in_markdown(("figure", "key in MLflow", "range", "better", "meaning"), *rows)


def table_of_review_scores() -> str:
    rows = []
    for score in REVIEW_SCORES.values():
        needed = ", ".join(f"`{name}`" for name in score.needs) or "–"
        ties = f"`{score.ties}`" if score.ties else "chance"
        rows.append((f"`{score.name}`", score.meaning, score.serves, needed, ties))
    return in_markdown(("strategy", "score", "serves", "columns", "ties"), *rows)


@pytest.mark.parametrize("table", [table_of_figures, table_of_review_scores])
def test_the_tables_are_those_of_the_registries(table):
    assert table() in TEXT["metrics.md"], f"replace it in docs/metrics.md by\n{table()}"
