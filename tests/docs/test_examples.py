"""The examples of the documentation run, and use the public names of the packages."""

import ast
import doctest
import importlib
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if ">>> " in path.read_text())


def test_the_roles_have_examples() -> None:
    assert {path.stem for path in PAGES} >= {"getting-started", "data-scientists"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_run(page: Path) -> None:
    result = doctest.testfile(str(page), module_relative=False)
    assert result.attempted
    assert result.failed == 0, f"{result.failed} examples of {page.name} fail; see above"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_import_public_names(page: Path) -> None:
    lines = re.findall(r"^>>> ((?:from|import) .*)$", page.read_text(), re.MULTILINE)
    for node in ast.parse("\n".join(lines)).body:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("modwatch"):
            public = importlib.import_module(str(node.module)).__all__
            assert {name.name for name in node.names} <= set(public), (
                f"{node.module} in {page.name}"
            )
