"""Comments as people can read them: what is invisible or turns text around is shown as a mark.

Only what is shown changes; the comment itself, and what is decided about, does not.
"""

import re
import unicodedata
from dataclasses import dataclass
from itertools import islice

from markupsafe import Markup, escape

from modwatch.text import CONTROLS, INVISIBLE

#: Characters that are shown at once; the rest on demand, so that a megabyte does not freeze a page.
SHOWN = 4_000

#: The rest is laid out in pieces of about so many characters, as they come into view.
_PIECE = 10_000

#: Marks in one of those pieces.
_MARKS = 50


_HIDDEN = re.compile(f"[{CONTROLS}{INVISIBLE}]+")

#: What joins or parts letters, in scripts that need it, and in emoji.
_JOINERS = "\u200c\u200d"

_SHORT = {
    "\u200b": "ZWSP", "\u200c": "ZWNJ", "\u200d": "ZWJ", "\u200e": "LRM", "\u200f": "RLM",
    "\u061c": "ALM", "\u202a": "LRE", "\u202b": "RLE", "\u202c": "PDF", "\u202d": "LRO",
    "\u202e": "RLO", "\u2066": "LRI", "\u2067": "RLI", "\u2068": "FSI", "\u2069": "PDI",
    "\u2060": "WJ", "\ufeff": "BOM", "\xad": "SHY", "\u2028": "LS", "\u2029": "PS",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Folded:
    """A comment in two parts."""

    head: Markup
    #: What is shown on demand, in pieces; empty for a comment of usual length.
    rest: tuple[Markup, ...]
    #: Characters in all.
    length: int


def legible(text: str, most: int = 1_000) -> Markup:
    """Return `text` escaped, with a mark for what nobody sees; after `most` of them, with a dot.

    >>> legible("a<b\\u202ec")
    Markup('a&lt;b<span class="mark" title="RIGHT-TO-LEFT OVERRIDE">RLO</span>c')
    >>> legible("👩\\u200d🚒") == "👩\\u200d🚒"
    True
    """
    parts: list[Markup] = []
    end = 0
    for run in islice(_HIDDEN.finditer(text), most):
        parts += escape(text[end : run.start()]), _mark(text, run)
        end = run.end()
    return Markup("").join([*parts, escape(_HIDDEN.sub("·", text[end:]))])


def folded(text: str) -> Folded:
    """Return `text` as `legible`, divided where it is too long to be shown at once."""
    if len(text) <= SHOWN * 5 // 4 and text.count("\n") <= 200:
        return Folded(head=legible(text), rest=(), length=len(text))
    lines = text[:SHOWN].split("\n")
    head = "\n".join(lines[:120])
    pieces, start = [], len(head)
    while start < len(text):
        end = _break(text, start + _PIECE)
        pieces.append(legible(text[start:end].removeprefix("\n"), _MARKS))
        start = end
    return Folded(head=legible(head), rest=tuple(pieces), length=len(text))


def excerpt(text: str, length: int = 80) -> Markup:
    """Return the beginning of `text` on one line, as `legible`."""
    line = " ".join(text[: length * 4].split())
    return legible(line if len(line) <= length else line[: length - 1] + "…")


def _break(text: str, wanted: int) -> int:
    """Return where to divide `text` before `wanted`: at a line's end, a word's, or anywhere."""
    if wanted >= len(text):
        return len(text)
    for sign in "\n ":
        found = text.rfind(sign, wanted - _PIECE // 2, wanted)
        if found >= 0:
            return found
    return wanted


def _mark(text: str, run: re.Match[str]) -> Markup:
    signs = run.group()
    if signs in _JOINERS and _joins(text, run.start(), run.end()):
        return Markup(signs)  # noqa: S704 - one of two characters
    names = [unicodedata.name(sign, f"U+{ord(sign):04X}") for sign in signs[:3]]
    short = [_SHORT.get(sign, f"U+{ord(sign):04X}") for sign in signs[:3]]
    more = f" ×{len(signs)}" if len(signs) > 3 else ""
    return Markup('<span class="mark" title="{}">{}</span>').format(
        ", ".join(names) + more, " ".join(short) + more
    )


def _joins(text: str, start: int, end: int) -> bool:
    """Return whether a joiner stands where it belongs: between two signs that are not Latin."""
    around = (text[start - 1 : start], text[end : end + 1])
    return all(
        sign and not sign.isascii() and "LATIN" not in unicodedata.name(sign, "") for sign in around
    )
