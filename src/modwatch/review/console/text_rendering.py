"""Comments as HTML: invisible and bidirectional control characters become visible marks.

Only the rendering changes, never the comment.
"""

import re
import unicodedata
from dataclasses import dataclass
from itertools import islice

from markupsafe import Markup, escape

from modwatch.common.text import CONTROLS, INVISIBLE

#: Characters shown at once; the rest on demand, so that a megabyte does not freeze the page.
SHOWN = 4_000

#: Approximate length of the pieces of the rest, which the browser lays out as they come into view.
_PIECE = 10_000

#: Maximum number of marks in one piece.
_MARKS = 50

#: Control and format characters (bidi controls among them), line separators, blank letters.
_HIDDEN = re.compile(f"[{CONTROLS}{INVISIBLE}]+")

#: Zero-width (non-)joiners, legitimate in some scripts and in emoji.
_JOINERS = "\u200c\u200d"

_SHORT = {
    "\u200b": "ZWSP", "\u200c": "ZWNJ", "\u200d": "ZWJ", "\u200e": "LRM", "\u200f": "RLM",
    "\u061c": "ALM", "\u202a": "LRE", "\u202b": "RLE", "\u202c": "PDF", "\u202d": "LRO",
    "\u202e": "RLO", "\u2066": "LRI", "\u2067": "RLI", "\u2068": "FSI", "\u2069": "PDI",
    "\u2060": "WJ", "\ufeff": "BOM", "\xad": "SHY", "\u2028": "LS", "\u2029": "PS",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Folded:
    """A comment in two parts, as HTML."""

    head: Markup
    #: Shown on demand, in pieces; empty for a comment of usual length.
    rest: tuple[Markup, ...]
    #: Of the whole comment, in characters.
    length: int


def mark_invisible(text: str, most: int = 1_000) -> Markup:
    """Return `text` escaped, invisible characters as marks; after `most` marks, as dots.

    >>> mark_invisible("a<b\\u202ec")
    Markup('a&lt;b<span class="mark" title="RIGHT-TO-LEFT OVERRIDE">RLO</span>c')
    >>> mark_invisible("👩\\u200d🚒") == "👩\\u200d🚒"
    True
    """
    parts: list[Markup] = []
    end = 0
    for run in islice(_HIDDEN.finditer(text), most):
        parts += escape(text[end : run.start()]), _mark(text, run)
        end = run.end()
    return Markup("").join([*parts, escape(_HIDDEN.sub("·", text[end:]))])


def fold(text: str) -> Folded:
    """Return `text` with marks, divided if it is too long to show at once."""
    if len(text) <= SHOWN * 5 // 4 and text.count("\n") <= 200:
        return Folded(head=mark_invisible(text), rest=(), length=len(text))
    lines = text[:SHOWN].split("\n")
    head = "\n".join(lines[:120])
    pieces, start = [], len(head)
    while start < len(text):
        end = _break(text, start + _PIECE)
        pieces.append(mark_invisible(text[start:end].removeprefix("\n"), _MARKS))
        start = end
    return Folded(head=mark_invisible(head), rest=tuple(pieces), length=len(text))


def excerpt(text: str, length: int = 80) -> Markup:
    """Return the beginning of `text` on one line, with marks."""
    line = " ".join(text[: length * 4].split())
    return mark_invisible(line if len(line) <= length else line[: length - 1] + "…")


def _break(text: str, wanted: int) -> int:
    """Return where to divide `text` up to `wanted`: at a line break, a space, or anywhere."""
    if wanted >= len(text):
        return len(text)
    for sign in "\n ":
        position = text.rfind(sign, wanted - _PIECE // 2, wanted)
        if position >= 0:
            return position
    return wanted


def _mark(text: str, run: re.Match[str]) -> Markup:
    hidden = run.group()
    if hidden in _JOINERS and _joins(text, run.start(), run.end()):
        return Markup(hidden)  # noqa: S704 - one of two characters
    names = [unicodedata.name(sign, f"U+{ord(sign):04X}") for sign in hidden[:3]]
    short = [_SHORT.get(sign, f"U+{ord(sign):04X}") for sign in hidden[:3]]
    more = f" ×{len(hidden)}" if len(hidden) > 3 else ""
    return Markup('<span class="mark" title="{}">{}</span>').format(
        ", ".join(names) + more, " ".join(short) + more
    )


def _joins(text: str, start: int, end: int) -> bool:
    """Return whether a joiner is legitimate: between two characters that are not Latin."""
    around = (text[start - 1 : start], text[end : end + 1])
    return all(
        sign and not sign.isascii() and "LATIN" not in unicodedata.name(sign, "") for sign in around
    )
