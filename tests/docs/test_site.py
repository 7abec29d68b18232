"""The documentation site: it builds without warnings, follows the code and loads nothing."""

import doctest
import importlib
import importlib.util
import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

from modwatch.audits.dsa.findings import RULES
from modwatch.common import errors
from modwatch.review.policy.tree import load_policy
from modwatch.settings import Settings
from modwatch.statistics.collaboration.review_strategies import REVIEW_SCORES
from modwatch.statistics.live.figures import FIGURES

ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("site_hooks", ROOT / ".ci" / "site.py")
hooks = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(hooks)


@pytest.fixture(scope="module")
def site(tmp_path_factory, services):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


def words(site: Path, page: str) -> str:
    """Return the text of a page."""
    return unescape(re.sub(r"<[^>]+>", "", (site / page).read_text()))


@pytest.mark.parametrize(
    ("page", "package"),
    [
        ("metrics", "modwatch.statistics"),
        ("disagreement", "modwatch.statistics.disagreement"),
        ("divergence", "modwatch.statistics.divergence"),
        ("audit", "modwatch.statistics.audit"),
        ("audit", "modwatch.audits"),
        ("routing", "modwatch.routing"),
    ],
)
def test_the_reference_has_every_public_name(site, page, package):
    anchors = re.findall(r'id="([^"]+)"', (site / "api" / f"{page}.html").read_text())
    public = importlib.import_module(package).__all__
    missing = [name for name in public if f"{package}.{name}" not in anchors]
    assert not missing, f"docs/api/{page}.md lacks {missing}"


def test_the_reference_has_every_error(site):
    anchors = re.findall(r'id="([^"]+)"', (site / "api" / "errors.html").read_text())
    named = {name for name, item in vars(errors).items() if isinstance(item, type)}
    assert {f"modwatch.common.errors.{name}" for name in named} <= set(anchors)


def test_the_settings_page_has_every_setting_once(site):
    names = re.findall(r"<td><code>(MODWATCH_\w+)", (site / "settings.html").read_text())
    expected = {f"MODWATCH_{name.upper()}" for name in Settings.model_fields.keys() - {"source"}}
    assert {name: names.count(name) for name in expected} == dict.fromkeys(expected, 1)
    assert names.count("MODWATCH_SOURCE__KIND") == 1


@pytest.mark.parametrize(
    ("page", "rows"),
    [
        ("metrics", FIGURES),
        ("metrics", REVIEW_SCORES),
        ("dsa", RULES),
        ("policy", [node.code for node in load_policy().nodes]),
    ],
)
def test_a_page_has_a_row_for_each_entry_of_a_registry(site, page, rows):
    text = (site / f"{page}.html").read_text()
    assert [key for key in rows if not re.search(rf"<td>.*\b{key}</code>", text)] == []


def test_the_command_page_has_every_command(site):
    text = words(site, "cli.html")
    for name in ("console", "queue verify-log", "audit validate-dsa", "airflow dags-folder"):
        assert f"Usage: modwatch {name} " in text


def test_the_navigation_has_every_decision(site):
    page = (site / "index.html").read_text()
    names = {path.stem for path in (ROOT / "docs" / "decisions").glob("*.md")} - {"README"}
    assert names
    assert [name for name in names if f"decisions/{name}.html" not in page] == []


@pytest.mark.parametrize(
    ("html", "problem"),
    [
        ('<a href="none.html">x</a>', "links to none.html, which does not exist"),
        ('<a href="other.html#none">x</a>', "links to other.html#none, which has no such heading"),
        ('<a href="#none">x</a>', "links to #none, which has no such heading"),
        ('<img src="images/none.png">', "links to images/none.png, which does not exist"),
        ('<script src="https://cdn.example/x.js"></script>', "loads https://cdn.example/x.js"),
        ('<script src="//cdn.example/x.js"></script>', "loads //cdn.example/x.js"),
        ('<link rel="stylesheet" href="https://fonts.example/f">', "loads https://fonts.example/f"),
        ("<style>@import 'https://fonts.example/f';</style>", "loads https://fonts.example/f"),
        ("<style>a { background: url(//cdn.example/x) }</style>", "loads //cdn.example/x"),
    ],
)
def test_a_broken_link_or_foreign_resource_is_found(tmp_path, html, problem):
    (tmp_path / "other.html").write_text('<h1 id="here">Here</h1>')
    (tmp_path / "page.html").write_text(html)
    [found] = hooks.problems(tmp_path)
    assert found.startswith(f"page.html {problem}")


def test_a_sound_page_has_no_problem(tmp_path):
    (tmp_path / "other.html").write_text('<h1 id="here">Here</h1>')
    links = ("other.html", "other.html#here", "#top", "https://example.org/paper", "mailto:a@b.org")
    text = "".join(f'<a href="{link}">x</a>' for link in links)
    (tmp_path / "page.html").write_text(f'<p id="top">{text}</p><img src="data:image/png;base64,">')
    assert hooks.problems(tmp_path) == []


def test_a_stylesheet_that_loads_a_font_is_found(tmp_path):
    (tmp_path / "a.css").write_text("@font-face { src: url('https://fonts.example/f.woff2') }")
    [found] = hooks.problems(tmp_path)
    assert found == "a.css loads https://fonts.example/f.woff2 from another host"


def test_examples_and_comments_of_the_sources_become_markdown():
    spec = importlib.util.spec_from_file_location("docstrings", ROOT / ".ci" / "docstrings.py")
    docstrings = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(docstrings)
    assert doctest.testmod(docstrings) == (0, 2)
