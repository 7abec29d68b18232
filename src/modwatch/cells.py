"""Cells of a CSV file that no spreadsheet takes for a formula."""

import re

#: What a spreadsheet may run, whatever it drops from the front: spaces, quotation marks, marks that
#: nobody sees. And the apostrophe itself, so that taking one away is always right.
_RISKY = re.compile(
    "[\\t\\r\\n']|[\\s\\x00-\\x20\\x7f-\\xa0\\xad\"'`´‘’‚‛“”„«»\\u061c\\u180e\\u200b-\\u200f"
    "\\u2028-\\u202f\\u2060-\\u206f\\ufe00-\\ufe0f\\ufeff]*[=+\\-@＝＋－−＠﹢﹣﹦﹫]"
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
