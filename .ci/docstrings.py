"""What the documentation takes from the sources beside plain docstrings: examples and comments."""

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)


class Conventions(griffe.Extension):
    """Shows examples as blocks of code, and `#:` comments as descriptions of attributes."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence the examples of one docstring: Markdown would take them for quotations."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)

    def on_attribute(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Describe an attribute by the comment above it."""
        if attr.docstring is None and attr.lineno and attr.parent:
            text = comment_above(attr.module.lines_collection[attr.filepath], attr.lineno)
            if text:
                attr.docstring = griffe.Docstring(text, parent=attr)


def fenced(text: str) -> str:
    r"""Return a docstring with its examples fenced.

    >>> fenced("One.\n\n>>> 1 + 1\n2\n\nTwo.").splitlines()[2:-2]
    ['```pycon', '>>> 1 + 1', '2', '```']
    """
    return _EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)


def comment_above(lines: list[str], number: int) -> str:
    """Return the `#:` comment above line `number`, which counts from 1.

    >>> comment_above(["#: Share", "#: of a day.", "share: float"], 3)
    'Share of a day.'
    """
    found: list[str] = []
    for line in reversed(lines[: number - 1]):
        if not line.strip().startswith("#:"):
            break
        found.insert(0, line.strip().removeprefix("#:").strip())
    return " ".join(found)
