"""The examples of the README and the docs run, and use the public names of the packages."""

import ast
import doctest
import importlib
import re
from pathlib import Path

import pytest
from published import published_folder

DOCS = Path(__file__).parents[2] / "docs"
#: An example that needs a folder of published files, and the folder's name.
PUBLISHED = re.compile(r"(<!-- published: (\w+) -->\n```python\n.*?\n```\n)", re.DOTALL)
README = DOCS.parent / "README.md"
PAGES = [README, *sorted(path for path in DOCS.rglob("*.md") if ">>> " in path.read_text())]


def test_the_roles_have_examples():
    assert {path.stem for path in PAGES} >= {"getting-started", "data-scientists"}


def examples(page: Path) -> doctest.DocTest:
    """Return the examples of a page, without those that need published files that are not here."""
    text = page.read_text()
    for block, corpus in PUBLISHED.findall(text):
        if not (published_folder() / corpus).exists():
            text = text.replace(block, "")
    return doctest.DocTestParser().get_doctest(text, {}, page.stem, str(page), 0)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_run(page, monkeypatch):
    monkeypatch.setenv("MODWATCH_DATA", str(published_folder()))
    result = doctest.DocTestRunner().run(examples(page))
    assert result.attempted
    assert result.failed == 0, f"{result.failed} examples of {page.name} fail; see above"


def test_examples_of_published_files_are_left_out_without_them(tmp_path, monkeypatch):
    page = DOCS / "groups.md"
    assert "xhate_stability" in {corpus for _, corpus in PUBLISHED.findall(page.read_text())}
    monkeypatch.setenv("MODWATCH_DATA", str(tmp_path))
    sources = [example.source for example in examples(page).examples]
    assert sources
    assert not any("MODWATCH_DATA" in source for source in sources)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_import_public_names(page):
    lines = re.findall(r"^>>> ((?:from|import) .*)$", page.read_text(), re.MULTILINE)
    for node in ast.parse("\n".join(lines)).body:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("modwatch"):
            public = importlib.import_module(str(node.module)).__all__
            assert {name.name for name in node.names} <= set(public), (
                f"{node.module} in {page.name}"
            )
