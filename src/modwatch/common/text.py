"""Text that people read: invisible characters, cells of CSV files, Markdown.

The constants are the only table of characters that are not visible or change the direction of text:
parts of a character class of a regular expression. Cells of CSV files are escaped with them, so
that spreadsheets do not run them as formulas.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

#: Stands in the place of an erased text.
ERASED = "[erased]"

#: Control characters, without tab, line feed and carriage return.
CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"

#: Lone halves of surrogate pairs.
SURROGATES = "\ud800-\udfff"

#: Marks, embeddings, overrides and isolates of the Unicode bidirectional algorithm.
BIDI_CONTROLS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"

#: Formats (with the bidirectional controls), joiners, separators, tags, and characters that Unicode
#: counts as letters or symbols: Hangul fillers, Khmer inherent vowels, the blank of Braille.
INVISIBLE = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)

#: They choose a glyph of the character before, as in emoji, and have none of their own.
VARIATION_SELECTORS = "\ufe00-\ufe0f"

#: Formats that some scripts show: signs before Arabic, Syriac and Kaithi numbers, and joiners of
#: hieroglyphs.
_SHOWN_FORMATS = (
    "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd\U00013430-\U0001343f"
)

_INVISIBLE = re.compile(f"[{CONTROLS}{INVISIBLE}{VARIATION_SELECTORS}]")

#: Controls and formats, without those that separate words.
_UNREAD = re.compile(
    f"[{CONTROLS}{INVISIBLE}{VARIATION_SELECTORS}{_SHOWN_FORMATS}]"
    "(?<![\x0b\x0c\x85\u2028\u2029\u2800])"
)

_INVISIBLE_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def is_invisible(character: str) -> bool:
    """Return whether a character has no glyph of its own; spaces do not count as invisible.

    >>> [is_invisible(character) for character in "a \\u202e\\u3164"]
    [False, False, True, True]
    """
    return (
        unicodedata.category(character) in _INVISIBLE_CATEGORIES
        or _INVISIBLE.match(character) is not None
    )


def visible(text: str) -> str:
    """Return a text as models read it: without controls and formats, which hide or split words.

    Every character of the Unicode category Cf is removed, as in BERT (Devlin et al. 2019), and what
    else has no glyph. The blank of Braille looks like a space and becomes one.

    >>> visible("i\\xadd\\u200bi\\ufe0fot")
    'idiot'
    """
    if text.isascii() and text.isprintable():  # most texts
        return text
    return _UNREAD.sub("", text).replace("\u2800", " ")


#: Besides spaces, controls and formats, what the validation rule `blank_text` takes for blank.
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0]")
#: How pandas and databases write a missing value; `none` may be a class where labels are words.
MISSING = frozenset({"nan", "nat", "<na>", "null"})
#: Longest comment and longest id that Modwatch takes by default, in characters.
LONGEST_TEXT, LONGEST_ID = 50_000, 256


def text_problem(text: str | None) -> str | None:
    """Return why a text cannot be a comment, by the name of its validation rule; None: it can.

    >>> [text_problem(text) for text in ("fine", " \\u200b", "a\\0", "\\ud83d")]
    [None, 'blank_text', 'nul_byte', 'undecodable_text']
    """
    if text is None or all(map(_is_blank, text)):
        return "blank_text"
    if len(text) > LONGEST_TEXT:
        return "long_text"
    if "\0" in text:
        return "nul_byte"
    return "undecodable_text" if re.search(f"[{SURROGATES}]", text) else None


def id_problem(comment_id: str | None) -> str | None:
    """Return why a text cannot be an id, by the name of its validation rule; None: it can.

    >>> id_problem("c1"), id_problem("NaN"), id_problem("c" * 257), id_problem("4,41E+06")
    (None, 'missing_id', 'long_id', 'rounded_id')
    """
    if comment_id is not None and re.fullmatch(r"\d[.,]\d+E\+\d+", comment_id):
        return "rounded_id"
    if comment_id is not None and folded(comment_id) in MISSING:
        return "missing_id"
    if comment_id is not None and len(comment_id) > LONGEST_ID:
        return "long_id"
    problem = text_problem(comment_id)
    return "missing_id" if problem == "blank_text" else problem


def _is_blank(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] == "Z" or category in ("Cc", "Cf") or bool(_BLANK.match(character))


def folded(name: str) -> str:
    """Return a name as it is compared: without case, width or surrounding space.

    >>> folded(" LAB1 ") == folded("lab1")
    True
    """
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).strip()


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


def named_model(version: str, origin: str) -> str:
    """Return the version of a model, with its origin where that must be known.

    >>> named_model("3", "old"), named_model("3", "")
    ('3 (old)', '3')
    """
    return f"{version} ({origin})" if origin else version
