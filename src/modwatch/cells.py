"""Cells of CSV files, escaped so that spreadsheets do not run them as formulas."""

import re

from modwatch.text import CONTROLS, INVISIBLE, VARIATION_SELECTORS

#: Beginnings that a spreadsheet may run as a formula, also after leading whitespace, quotation
#: marks and invisible characters, which it may drop; and the apostrophe, to make it reversible.
_RISKY = re.compile(
    rf"[\t\r\n']|[\s{CONTROLS}{INVISIBLE}{VARIATION_SELECTORS}\"'`´‘’‚‛“”„«»]*[=+\-@＝＋－−＠﹢﹣﹦﹫]"
)


def neutral(cell: str | None) -> str | None:
    """Return `cell` escaped, so that no spreadsheet runs it as a formula; inverse of `original`.

    Text that begins with `= + - @`, a tab or a line break, also after whitespace, quotation marks
    and invisible characters, gets a leading apostrophe, and so does text that begins with one.
    Other text is unchanged.

    >>> neutral("=1+1"), neutral("  -2"), neutral("'s"), neutral("fine = fine")
    ("'=1+1", "'  -2", "''s", 'fine = fine')
    """
    return f"'{cell}" if cell and _RISKY.match(cell) else cell


def original(cell: str) -> str:
    """Return a cell of the CSV unescaped: without its leading apostrophe.

    >>> original("'=1+1"), original("fine")
    ('=1+1', 'fine')
    """
    return cell.removeprefix("'")
