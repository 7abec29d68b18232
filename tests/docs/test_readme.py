"""The README and docs/paths.md: their names and links exist."""

import importlib
import re
from pathlib import Path

import pytest

from modwatch.audits.workflow import Audit
from modwatch.pipeline import audit, daily

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PATHS = (ROOT / "docs" / "paths.md").read_text()


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 150


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_links_lead_somewhere(link):
    assert (ROOT / link).exists(), f"{link}: mend the README"


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`daily\.(\w+)`", PATHS))))
def test_the_path_names_functions(name):
    assert callable(getattr(daily, name))


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`audit\.(?!py`)(\w+)`", PATHS))))
def test_the_path_of_an_audit_names_functions(name):
    assert callable(getattr(audit, name))


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`Audit\.(\w+)`", PATHS))))
def test_the_path_of_an_audit_names_methods(name):
    assert callable(getattr(Audit, name))


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(review\.[\w.]+)`", PATHS))))
def test_the_path_names_queue_operations(name):
    module, _, function = name.rpartition(".")
    assert callable(getattr(importlib.import_module(f"modwatch.{module}"), function))


@pytest.mark.parametrize(
    ("dag", "task"),
    sorted(set(re.findall(r"`(score_comments|monitor_collaboration)\.(\w+)`", PATHS))),
)
def test_the_path_names_tasks(dag, task):
    assert re.search(rf"task_of\(daily\.{task}\b", (ROOT / "dags" / f"{dag}.py").read_text())
