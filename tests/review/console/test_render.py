import re
from dataclasses import fields
from pathlib import Path

import pytest

from modwatch.review.console import render as module
from modwatch.review.console.render import ErrorPage, LoginPage, ReviewPage

TEMPLATES = Path(module.__file__).parent / "templates"


@pytest.mark.parametrize(
    ("record", "template"),
    [(LoginPage, "login.html"), (ReviewPage, "review.html"), (ErrorPage, "error.html")],
)
def test_a_template_shows_what_its_record_holds(record: type, template: str) -> None:
    shown = set(re.findall(r"page\.(\w+)", (TEMPLATES / template).read_text()))
    assert shown == {field.name for field in fields(record)}
