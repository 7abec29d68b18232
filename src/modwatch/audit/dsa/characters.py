"""Characters that do harm, or do not matter, in the cells of a report."""

import re

from modwatch.text import BIDI_CONTROLS, CONTROLS, SURROGATES

#: Control characters but tab and line ends, surrogates, and what turns text around.
HARMFUL = re.compile(f"[{CONTROLS}{SURROGATES}{BIDI_CONTROLS}]")

#: What spreadsheets may take for the beginning of a formula, also in its wide form.
FORMULA_SIGNS = tuple("=+-@\t\r＝＋－＠")

_SAME = str.maketrans({"–": "-", "—": "-", "‑": "-", "’": "'", "\u00a0": " "})


def plain(text: str) -> str:
    """Return a name without what does not matter: outer and double blanks, kinds of dash.

    >>> plain("Own–initiative ")
    'Own-initiative'
    """
    return " ".join(text.translate(_SAME).split())


def key(text: str) -> str:
    """Return what two spellings of one name share.

    >>> key("own initiative  ") == key("Own-initiative")
    True
    """
    return " ".join(plain(text).replace("-", " ").casefold().split())


def echo(text: str) -> str:
    """Return up to 40 characters of a cell, in quotes, without any that could do harm.

    >>> echo("<b>é</b>")
    "'?b?é?/b?'"
    """
    harmless = (each if each.isalnum() or each in " .,:/%+-_[]()" else "?" for each in text[:41])
    shown = "".join(harmless)
    return f"'{shown[:39]}…'" if len(shown) > 40 else f"'{shown}'"
