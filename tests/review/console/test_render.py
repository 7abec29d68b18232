import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from modwatch.review.console import render

TEMPLATES = Path(render.__file__).parent / "templates"


def source(template: str) -> str:
    """Return the template with those that it includes."""
    text = (TEMPLATES / template).read_text()
    included = re.findall(r'{% include "([\w.]+)"', text)
    return text + "".join(source(item) for item in included)


def given() -> dict[str, set[str]]:
    """Return what the calls of `render` and `render_public` give to each template."""
    names = defaultdict[str, set[str]](set)
    for module in Path(render.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("render"):
                [template] = [
                    a.value for a in node.args if str(getattr(a, "value", 0)).endswith("html")
                ]
                names[template] |= {keyword.arg for keyword in node.keywords}
    return names


GIVEN = given()


@pytest.mark.parametrize("template", sorted(GIVEN))
def test_a_template_shows_what_it_is_given(template):
    assert set(re.findall(r"\bpage\.(?!html)(\w+)", source(template))) == GIVEN[template]


def test_every_page_is_rendered():
    pages = {path.name for path in TEMPLATES.glob("[!_]*.html")} - {"base.html"}
    assert GIVEN.keys() == pages
