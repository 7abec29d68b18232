"""Markdown that people read as a page and as text."""

import re
from collections.abc import Sequence


def markdown_text(text: str) -> str:
    """Return `text` so that Markdown shows it as it is: names in it are no links and no tags.

    >>> print(markdown_text("platform=[a](b), <i>, 8.0 %"))
    platform=\\[a\\](b), \\<i\\>, 8.0 %
    """
    return re.sub(r"([\\`*_\[\]<>#|~])", r"\\\1", " ".join(text.split()))


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with aligned columns.

    >>> print(markdown_table(["day", "n"], [["Monday", "1"]]))
    | day    | n |
    | ------ | - |
    | Monday | 1 |
    """
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        return f"| {' | '.join(padded)} |"

    return "\n".join([line(heads), line(["-" * width for width in widths]), *map(line, rows)])
