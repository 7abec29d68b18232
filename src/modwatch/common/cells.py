"""Cells of CSV files, escaped so that spreadsheets do not run them as formulas."""

import re
from typing import TYPE_CHECKING

from modwatch.common.text import CONTROLS, INVISIBLE, VARIATION_SELECTORS

if TYPE_CHECKING:
    import pandas as pd

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


def neutral_csv(table: "pd.DataFrame") -> str:
    """Return a table as CSV (RFC 4180) without its index, its texts escaped.

    The names of the columns are as they were.

    >>> import pandas as pd
    >>> neutral_csv(pd.DataFrame({"group": ["=1+1", "fine"], "value": [-1, 2]})).splitlines()
    ['group,value', "'=1+1,-1", 'fine,2']
    """
    escaped = table.copy()
    for name in table.select_dtypes(exclude="number").columns:
        escaped[name] = [neutral(cell) if isinstance(cell, str) else cell for cell in table[name]]
    return escaped.to_csv(index=False, lineterminator="\r\n")


def original(cell: str) -> str:
    """Return a cell of the CSV unescaped: without its leading apostrophe.

    >>> original("'=1+1"), original("fine")
    ('=1+1', 'fine')
    """
    return cell.removeprefix("'")
