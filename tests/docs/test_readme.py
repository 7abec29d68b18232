"""The README: its table of settings is the settings', its names and links exist."""

import importlib
import re
from pathlib import Path

import pytest

from modwatch.audits.audit import Audit
from modwatch.pipeline import audit, daily
from modwatch.settings import settings_table

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_the_configuration_table_is_what_the_command_prints() -> None:
    assert settings_table() in README, "replace the table by the output of `modwatch settings`"


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_links_lead_somewhere(link: str) -> None:
    assert (ROOT / link).exists(), f"{link}: mend the README"


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`daily\.(\w+)`", README))))
def test_the_path_names_functions(name: str) -> None:
    assert callable(getattr(daily, name))


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`audit\.(?!py`)(\w+)`", README))))
def test_the_path_of_an_audit_names_functions(name: str) -> None:
    assert callable(getattr(audit, name))


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`Audit\.(\w+)`", README))))
def test_the_path_of_an_audit_names_methods(name: str) -> None:
    assert callable(getattr(Audit, name))


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(review\.[\w.]+)`", README))))
def test_the_path_names_queue_operations(name: str) -> None:
    module, _, function = name.rpartition(".")
    assert callable(getattr(importlib.import_module(f"modwatch.{module}"), function))


@pytest.mark.parametrize(
    ("dag", "task"),
    sorted(set(re.findall(r"`(score_comments|monitor_collaboration)\.(\w+)`", README))),
)
def test_the_path_names_tasks(dag: str, task: str) -> None:
    assert re.search(rf"task_of\(daily\.{task}\b", (ROOT / "dags" / f"{dag}.py").read_text())
