"""The page on metrics: its names exist, and no metric is left out."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

from modwatch.metrics import calibration, classification, collaborative

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
NAMES = sorted(set(re.findall(r"`(modwatch\.[\w.]+)`", PAGE)))
HELPERS = {"bin_of", "flagged", "wrong"}


@pytest.mark.parametrize("name", NAMES)
def test_name_exists(name: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), f"{name}: mend docs/metrics.md"


@pytest.mark.parametrize("module", [calibration, classification, collaborative])
def test_every_metric_is_explained(module) -> None:
    metrics = {
        f"{module.__name__}.{name}"
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__
        and not name.startswith("_")
        and name not in HELPERS
    }
    assert not metrics - set(NAMES), "explain them in docs/metrics.md"


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", PAGE):
        assert (Path(__file__).parents[2] / "docs" / link).exists(), f"{link}: mend docs/metrics.md"
