"""Markdown that people read as a page and as text."""

from collections.abc import Sequence


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
