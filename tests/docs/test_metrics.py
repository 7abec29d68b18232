"""The pages on metrics: their names exist, and no metric is left out."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

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
