"""Pseudonyms that do not look like another person's.

Two names conflict if they share one of their *skeletons*. A skeleton is the name without case,
compatibility forms (NFKC) and the accents of European scripts, with the look-alikes below replaced
by Latin letters. Limitations: the list contains the Cyrillic, Greek and Latin letters that look
alike in most fonts, not the thousands of Unicode TS 39; other scripts (Cherokee, Armenian, …) are
compared unchanged. After a false conflict, choose another name.
"""

import re
import unicodedata

from modwatch.common.errors import QueueError
from modwatch.common.text import is_invisible

LONGEST_PSEUDONYM = 100

_CAPITALS = str.maketrans(
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧАВЕЅІЈКМНОРСТУХӀ",
    "ABEZHIKMNOPTYXABESIJKMHOPCTYXI",
)
_CYRILLIC = ("аеѕіјкмнорстухвьгпһԁԛԝӏ", "aesijkmhopctyxbbrnhdqwl")
_GREEK = ("αβγεηικνορστυχω", "abyenikvopotuxw")
_LATIN = ("ɑɡıłøđħ", "agilodh")
_SMALL = str.maketrans(*("".join(parts) for parts in zip(_CYRILLIC, _GREEK, _LATIN, strict=True)))

#: Characters that look like one stroke, one ring or one dash.
_STROKES = str.maketrans("01i|‐‑‒–—−", "olll------")


def name_key(name: str) -> str:
    """Return `name` in the form that is stored and looked up: NFC, without space around it."""
    return unicodedata.normalize("NFC", name.strip())


def usable_pseudonym(name: str) -> str:
    """Return `name` in the form that is stored; raise `QueueError` if it is invalid.

    Control characters, bidirectional controls, joiners and other invisible characters are invalid,
    although a few scripts use some of them.
    """
    stored = unicodedata.normalize("NFC", name)
    visible = stored.isprintable() and not any(map(is_invisible, stored))
    if not visible or not 0 < len(stored) <= LONGEST_PSEUDONYM or stored != stored.strip():
        raise QueueError(
            f"a pseudonym must have 1 to {LONGEST_PSEUDONYM} visible characters and no space "
            "around them; choose another"
        )
    return stored


def skeletons(name: str) -> frozenset[str]:
    """Return the skeletons of `name`: unchanged, and with look-alikes of capitals replaced.

    Two, because Greek Η looks like H, and η like n.

    >>> skeletons("Ann") == skeletons("аnn")  # the second begins with a Cyrillic letter
    True
    """
    plain = unicodedata.normalize("NFKC", name)
    return frozenset(_small(form) for form in (plain, plain.translate(_CAPITALS)))


def _small(name: str) -> str:
    letters = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", name).casefold())
    bare = re.sub("[\u0300-\u036f]", "", letters).translate(_SMALL).translate(_STROKES)
    return " ".join(bare.replace("rn", "m").replace("vv", "w").split())
