"""Pseudonyms that nobody can mistake for another person's.

Two names clash when one of their *skeletons* is the same. A skeleton is the name without case,
compatibility forms (NFKC) and the accents of European scripts, with the look-alikes below put in
Latin. The limits: the list holds the Cyrillic, Greek and Latin letters that most fonts draw alike,
not the thousands of Unicode TS 39; other scripts (Cherokee, Armenian, …) are compared as they are;
what looks alike in one font only is missed. A false clash costs whoever chooses one more try.
"""

import re
import unicodedata

from modwatch.errors import QueueError

LONGEST_PSEUDONYM = 100

#: Printable by Python's rules and yet not seen: fillers, joiners, Braille's blank.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")

_CAPITALS = str.maketrans(
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧАВЕЅІЈКМНОРСТУХӀ",
    "ABEZHIKMNOPTYXABESIJKMHOPCTYXI",
)
_CYRILLIC = ("аеѕіјкмнорстухвьгпһԁԛԝӏ", "aesijkmhopctyxbbrnhdqwl")
_GREEK = ("αβγεηικνορστυχω", "abyenikvopotuxw")
_LATIN = ("ɑɡıłøđħ", "agilodh")
_SMALL = str.maketrans(*("".join(parts) for parts in zip(_CYRILLIC, _GREEK, _LATIN, strict=True)))

#: What one stroke, one ring or one dash may be.
_STROKES = str.maketrans("01i|‐‑‒–—−", "olll------")


def name_key(name: str) -> str:
    """Return `name` as it is stored and looked up: NFC, without space around it."""
    return unicodedata.normalize("NFC", name.strip())


def usable_pseudonym(name: str) -> str:
    """Return `name` as it is stored; raise `QueueError` for one that cannot be read on a screen.

    Controls, bidirectional overrides, joiners and invisible characters are refused, though a few
    scripts write some of them: a pseudonym can do without.
    """
    stored = unicodedata.normalize("NFC", name)
    seen = stored.isprintable() and not any(map(_unseen, stored))
    if not seen or not 0 < len(stored) <= LONGEST_PSEUDONYM or stored != stored.strip():
        raise QueueError(
            f"a pseudonym has 1 to {LONGEST_PSEUDONYM} visible characters and no space around "
            "them; choose another"
        )
    return stored


def skeletons(name: str) -> frozenset[str]:
    """Return what `name` is taken for at a glance: read as it stands, and read as capitals.

    Greek Η is drawn as H, and η as n, hence two.

    >>> skeletons("Ann") == skeletons("аnn")  # the second begins with a Cyrillic letter
    True
    """
    plain = unicodedata.normalize("NFKC", name)
    return frozenset(_small(each) for each in (plain, plain.translate(_CAPITALS)))


def _small(name: str) -> str:
    letters = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", name).casefold())
    bare = re.sub("[\u0300-\u036f]", "", letters).translate(_SMALL).translate(_STROKES)
    return " ".join(bare.replace("rn", "m").replace("vv", "w").split())


def _unseen(character: str) -> bool:
    point = ord(character)
    selector = 0xFE00 <= point <= 0xFE0F or 0xE0100 <= point <= 0xE01EF
    return selector or character in _INVISIBLE or 0x180B <= point <= 0x180F
