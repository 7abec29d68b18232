import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from modwatch.review.console import app, render
from modwatch.review.console.render import Page

assert app  # every page is known once the application is

TEMPLATES = Path(render.__file__).parent / "templates"


def source(template: str) -> str:
    """Return the template with those that it includes."""
    text = (TEMPLATES / template).read_text()
    included = re.findall(r'{% include "([\w.]+)"', text)
    return text + "".join(source(item) for item in included)


def records(base: type[Page]) -> Iterator[type[Page]]:
    for subclass in base.__subclasses__():
        if "template" in vars(subclass):
            yield subclass
        yield from records(subclass)


@pytest.mark.parametrize("record", list(records(Page)), ids=lambda record: record.__name__)
def test_a_template_shows_what_its_record_holds(record):
    shown = set(re.findall(r"\bpage\.(\w+)", source(record.template)))
    held = {field.name for field in fields(record)}  # type: ignore[arg-type]
    made = {name for name in dir(record) if not name.startswith("_")} - held - {"template"}
    assert shown <= held | made
    if not made:  # otherwise a field may be there for what is made of it
        assert shown == held
