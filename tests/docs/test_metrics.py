"""The page on metrics: its names exist, and no metric is left out."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

from modwatch import metrics

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
NAMES = sorted(set(re.findall(r"`(modwatch\.[\w.]+)`", PAGE)))


@pytest.mark.parametrize("name", NAMES)
def test_name_exists(name: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), f"{name}: mend docs/metrics.md"


def test_every_public_function_is_explained() -> None:
    functions = {
        f"modwatch.metrics.{name}"
        for name in metrics.__all__
        if inspect.isfunction(getattr(metrics, name))
    }
    assert not functions - set(NAMES), "explain them in docs/metrics.md"


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", PAGE):
        assert (Path(__file__).parents[2] / "docs" / link).exists(), f"{link}: mend docs/metrics.md"
