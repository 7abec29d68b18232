"""Cells of a CSV file that no spreadsheet takes for a formula."""

import re

from modwatch.text import CONTROLS, INVISIBLE, VARIATION_SELECTORS

#: Formulas, also after what a spreadsheet may drop from the front: spaces, quotation marks and
#: invisible characters. And the apostrophe itself, so that removing one is always right.
_RISKY = re.compile(
    rf"[\t\r\n']|[\s{CONTROLS}{INVISIBLE}{VARIATION_SELECTORS}\"'`´‘’‚‛“”„«»]*[=+\-@＝＋－−＠﹢﹣﹦﹫]"
)


def neutral(cell: str | None) -> str | None:
    """Return `cell` so that no spreadsheet takes it for a formula; undone by `original`.

    An apostrophe is put before a text that begins with `= + - @`, a tab or a line break, also
    after spaces, quotation marks and invisible marks, and before one that begins with an
    apostrophe. Numbers and dates are left as they are.

    >>> neutral("=1+1"), neutral("  -2"), neutral("'s"), neutral("fine = fine")
    ("'=1+1", "'  -2", "''s", 'fine = fine')
    """
    return f"'{cell}" if cell and _RISKY.match(cell) else cell


def original(cell: str) -> str:
    """Return what `neutral` was given: a text cell of the CSV without its first apostrophe.

    >>> original("'=1+1"), original("fine")
    ('=1+1', 'fine')
    """
    return cell.removeprefix("'")
