"""The Delta tables that pages and DAGs name exist, and each table has a place on the paths."""

import ast
import re
from itertools import chain
from pathlib import Path

from modwatch.data.lake.schemas import TABLES

ROOT = Path(__file__).parents[2]
PATHS = (ROOT / "docs" / "paths.md").read_text("utf-8")
#: What the tables of DAGs name besides: an experiment, an asset, a task.
OTHERS = {"training", "modwatch_scored_day", "verify_log"}


def of_paths():
    for part in re.findall(r"Delta tables? ((?:`\w+`(?:, )?)+)", PATHS):
        yield from re.findall(r"`(\w+)`", part)


def of_dags():
    """Yield what the rows of tasks read and write; names of files have a dot."""
    for path in (ROOT / "dags").glob("*.py"):
        for line in (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").splitlines():
            if line.startswith("| `"):
                yield from re.findall(r"`(\w+)`", line.split("|", 2)[2])


def test_the_tables_that_are_named_exist():
    named = {*of_paths(), *of_dags()}
    assert len(named) > 25
    assert named - OTHERS - TABLES.keys() == set()


def test_every_table_has_a_place():
    named = {*chain(of_paths(), of_dags())}
    assert TABLES.keys() - named == set()
