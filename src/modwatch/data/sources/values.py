"""Typed values of files, databases and spreadsheets, as the text, vote or number that they hold.

Every kind of data is converted here, so that what one accepts no other rejects. A function returns
the value and its problem: one of the two is None, and both are where a value is missing.
"""

import datetime as dt
import json
import math
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

from modwatch.common.errors import SourceError
from modwatch.common.text import MISSING, folded
from modwatch.data.lake.schemas import NO_DECISION, RESTRICTIONS

#: A BCP 47 tag, or nothing.
LANGUAGE = "(?:[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8}){0,8})?"
#: Words for a vote, in lower case.
_VOTES = {
    **dict.fromkeys(("1", "true", "t", "yes", "y", "ja", "wahr"), 1),
    **dict.fromkeys(("0", "false", "f", "no", "n", "nein", "falsch"), 0),
}
#: What a word may mean: as a label, as what was done with a comment, and as who did it.
LABELS = {"toxic": 1, "other": 0}
#: What a word means that is no label: its author did not judge, or there is none.
NONE = ("abstain", "missing")
DECISIONS, TAKERS = (*RESTRICTIONS, "kept"), ("model", "rule", "person")
_DONE = {"toxic": "removed", "other": "kept", **{word: word for word in DECISIONS}}
#: Words that need no mapping, in lower case.
_DECISIONS = {
    **dict.fromkeys(("deleted", "rejected", "hidden", "blocked", "spam", "trash"), "removed"),
    **dict.fromkeys(("restricted", "demoted", "labelled"), "limited"),
    **dict.fromkeys(("approved", "allowed", "published", "visible", "accepted"), "kept"),
    **{word: word for word in DECISIONS},
}
_TAKERS = {
    **dict.fromkeys(("classifier", "ai", "automated", "automatic"), "model"),
    **dict.fromkeys(("filter", "automod"), "rule"),
    **dict.fromkeys(("human", "moderator", "manual"), "person"),
    **{word: word for word in TAKERS},
}
#: Words for a missing label or number, as R, spreadsheets and databases write one.
MISSING_WORDS = MISSING | {"na", "n/a", "#n/a"}
#: A number with a decimal comma, and the sign of per cent.
_COMMA, _PER_CENT = re.compile(r"[+-]?\d*,\d+(?=\s*%?$)"), re.compile(r"\s*%$")
#: Floats from here on do not hold every whole number: ids would be rounded to others.
_INEXACT = 2.0**53
#: A missing value in a dump of MySQL or PostgreSQL.
_NULL = r"\N"


def plain(value: object) -> object:
    """Return a value without the types of NumPy and pandas; None where it is missing.

    NaN, NaT and the NULL of dumps (`\\N`) are missing. Bytes are text, with lone surrogates for
    those that are not UTF-8.

    >>> plain(float("nan")), plain(np.int64(3)), plain(b"caf\\xc3\\xa9")
    (None, 3, 'café')
    """
    if isinstance(value, str):
        return None if value == _NULL else value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "surrogateescape")
    if isinstance(value, np.ndarray):
        return list(value)
    if isinstance(value, Decimal):
        return None if value.is_nan() else value
    # Only NaN and NaT differ from themselves; whether pandas.NA does is unknown.
    return value if (value == value) is True else None


def text_of(value: object) -> tuple[str | None, str | None]:
    """Return a value as text: whole floats and decimals without a point, times in ISO 8601.

    The problem of truth values, lists and infinite numbers is `malformed_record`, and that of
    whole floats that are not exact. An empty text is kept.

    >>> text_of(17.0), text_of(Decimal("17.50")), text_of(b"\\xe9"), text_of(True)
    (('17', None), ('17.50', None), ('\ufffd', 'undecodable_text'), ('True', 'malformed_record'))
    >>> text_of(1774096245123456780.0)
    ('1774096245123456768', 'malformed_record')
    """
    value = plain(value)
    if value is None:
        return None, None
    if isinstance(value, str):
        return decodable(value)
    if isinstance(value, bool):
        return str(value), "malformed_record"
    if isinstance(value, float | Decimal):
        return _number(value)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat(), None
    if isinstance(value, int | uuid.UUID):
        return str(value), None
    try:
        return decodable(str(value))[0], "malformed_record"
    except RecursionError:
        return "", "malformed_record"


def _number(value: float | Decimal) -> tuple[str, str | None]:
    if not math.isfinite(value):
        return str(value), "malformed_record"
    if value != int(value):
        return (f"{value:f}" if isinstance(value, Decimal) else repr(value)), None
    inexact = isinstance(value, float) and abs(value) >= _INEXACT
    return str(int(value)), "malformed_record" if inexact else None


def decodable(text: str) -> tuple[str, str | None]:
    """Return `text` as valid UTF-8, and `undecodable_text` if characters were replaced.

    >>> decodable("fine"), decodable(b"caf\\xe9".decode("utf-8", "surrogateescape"))
    (('fine', None), ('caf\ufffd', 'undecodable_text'))
    """
    if text.isascii():
        return text, None
    try:
        text.encode()
    except UnicodeEncodeError:
        # errors="replace" would write "?", an ordinary character.
        replaced = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
        return replaced, "undecodable_text"
    return text, None


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """What the words of labels, votes and decisions mean; the same for every kind of data.

    Words are compared without regard to case, width and surrounding space. Where words for toxic or
    other comments are named, every label must be one of the vocabulary.

    >>> spanish = Vocabulary.of(["sí=toxic", "no=other", "no sé=abstain"])
    >>> [vote_of(word, spanish)[0] for word in ("SÍ", "no", "No sé", "NA")]
    [1, 0, None, None]
    >>> vote_of("yes", spanish)
    (None, 'unreadable_label')
    """

    #: What a word means: one of LABELS, DECISIONS or TAKERS.
    meanings: Mapping[str, str] = field(default_factory=dict)
    #: Words of people who do not judge. In order: the same vocabulary has the same `repr`.
    abstain: tuple[str, ...] = ()
    #: Words for a missing value.
    missing: tuple[str, ...] = tuple(sorted(MISSING_WORDS))

    @classmethod
    def of(cls, value: Iterable[str] = ()) -> "Vocabulary":
        """Return the vocabulary of `WORD=toxic`, `WORD=removed`, `WORD=abstain` and the like.

        Raises:
            SourceError: a value has another meaning, or a word has two.
        """
        known = (*LABELS, *NONE, *DECISIONS, *TAKERS)
        meanings = dict[str, str]()
        for pair in value:
            word, _, meaning = pair.rpartition("=")
            meaning = folded(meaning)
            if not word or meaning not in known:
                raise SourceError(
                    f"write WORD=MEANING in place of {pair!r}; it may mean {', '.join(known)}"
                )
            if (first := meanings.setdefault(_word(word), meaning)) != meaning:
                raise SourceError(f"{word!r} means both {first} and {meaning}; name it once")
        abstain, missing = (
            {word for word, meaning in meanings.items() if meaning == none} for none in NONE
        )
        return cls(
            meanings={word: m for word, m in meanings.items() if m not in NONE},
            abstain=tuple(sorted(abstain)),
            missing=tuple(sorted((MISSING_WORDS - meanings.keys()) | missing)),
        )

    @cached_property
    def votes(self) -> Mapping[str, int]:
        """1 for a word that means toxic, 0 for another one."""
        return {word: LABELS[m] for word, m in self.meanings.items() if m in LABELS}

    def is_no_vote(self, value: object) -> bool:
        """Return whether a value is missing, blank, or that of somebody who abstains."""
        value = plain(value)
        if value is None:
            return True
        if not isinstance(value, str):
            return False
        word = folded(value)
        return not word or word in self.abstain or word in self.missing


def _word(value: object) -> str:
    """Return a label as it is compared; numbers by their value.

    >>> _word("2.0"), _word(" Hate")
    ('2', 'hate')
    """
    number, problem = number_of(value)
    finite = problem is None and number is not None and math.isfinite(number)
    text = text_of(number)[0] if finite else None
    return folded(str(value) if text is None else text)


#: Where nothing is named.
USUAL = Vocabulary()


def vote_of(value: object, vocabulary: Vocabulary = USUAL) -> tuple[int | None, str | None]:
    """Return a vote, 1 or 0, from a number, a truth value or a word; blank is missing.

    >>> vote_of("Yes"), vote_of(0.0), vote_of(b"\\x01"), vote_of(" "), vote_of(0.7)
    ((1, None), (0, None), (1, None), (None, None), (None, 'unreadable_label'))
    """
    if vocabulary.is_no_vote(value):
        return None, None
    if vocabulary.votes:
        vote = vocabulary.votes.get(_word(plain(value)))
        return vote, "unreadable_label" if vote is None else None
    if isinstance(value, bytes) and value in (b"\x00", b"\x01"):  # a BIT of MySQL
        return value[0], None
    value = plain(value)
    vote = _VOTES.get(str(value).strip().lower())
    if vote is None:
        number, _ = number_of(value)
        vote = int(number) if number in (0, 1) else None
    return vote, "unreadable_label" if vote is None else None


def decision_of(value: object, vocabulary: Vocabulary = USUAL) -> tuple[str | None, str | None]:
    """Return what was done, one of DECISIONS or NO_DECISION; toxic means removed, other kept.

    1, true and the like have no meaning here: a column may tell what is hidden, or approved.

    >>> decision_of("Spam"), decision_of(""), decision_of("escalated")
    (('removed', None), ('none', None), (None, 'unreadable_decision'))
    >>> decision_of("weg", Vocabulary.of(["weg=toxic"]))
    ('removed', None)
    """
    if vocabulary.is_no_vote(value):
        return NO_DECISION, None
    word = _word(plain(value))
    done = _DONE.get(vocabulary.meanings.get(word, _DECISIONS.get(word, "")))
    return done, "unreadable_decision" if done is None else None


def taker_of(value: object, vocabulary: Vocabulary = USUAL) -> tuple[str | None, str | None]:
    """Return who took a decision, one of TAKERS.

    >>> taker_of("AutoMod"), taker_of("robot"), taker_of(None)
    (('rule', None), (None, 'unreadable_decided_by'), (None, None))
    """
    if vocabulary.is_no_vote(value):
        return None, None
    word = _word(plain(value))
    taker = vocabulary.meanings.get(word, _TAKERS.get(word))
    return (taker, None) if taker in TAKERS else (None, "unreadable_decided_by")


def majority(votes: Iterable[int | None]) -> tuple[int | None, float | None]:
    """Return the majority label (None on a tie or without votes) and the share of ones.

    >>> majority([1, 1, 0, None]), majority([0, 1]), majority([])
    ((1, 0.6666666666666666), (None, 0.5), (None, None))
    """
    known = [vote for vote in votes if vote is not None]
    if not known:
        return None, None
    share = sum(known) / len(known)
    return (None if share == 0.5 else int(share > 0.5)), share


def number_of(value: object) -> tuple[float | None, str | None]:
    """Return a number; blank is missing, and the text `nan` is a number that is none.

    Digits may be of any script and have an exponent. Unlike in Python, `1_1` is not 11.

    >>> number_of("0.25"), number_of("0,25"), number_of(Decimal("0.5")), number_of(float("nan"))
    ((0.25, None), (None, 'unreadable_number'), (0.5, None), (None, None))
    """
    value = plain(value)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None, None
    if isinstance(value, str | int | float | Decimal) and not isinstance(value, bool):
        try:
            return float(value.replace("_", "?") if isinstance(value, str) else value), None
        except (ValueError, OverflowError):
            pass
    return None, "unreadable_number"


def probability_of(value: object) -> tuple[float | None, str | None]:
    """Return a probability, which may have a decimal comma or be in per cent with their sign.

    >>> probability_of("0,25"), probability_of("25 %"), probability_of("12,5%"), probability_of(0.5)
    ((0.25, None), (0.25, None), (0.125, None), (0.5, None))
    >>> probability_of("n/a"), probability_of("high")
    ((None, None), (None, 'unreadable_number'))
    """
    if not isinstance(value, str):
        return number_of(value)
    if folded(value) in MISSING_WORDS:
        return None, None
    written = value.strip()
    if _COMMA.match(written):
        written = written.replace(",", ".")
    share = _PER_CENT.sub("", written)
    number, problem = number_of(share)
    return (number / 100 if number is not None and share != written else number), problem


def names_of(value: object) -> tuple[list[str] | None, str | None]:
    """Return names from a list, its JSON text, or text with `|` between them, without missing ones.

    >>> names_of("bakers|shepherds"), names_of('["bakers"]'), names_of(["a", 3, None])
    ((['bakers', 'shepherds'], None), (['bakers'], None), (['a', '3'], None))
    """
    value = plain(value)
    if value is None:
        return None, None
    names = listed(value)
    if names is None and isinstance(value, str):
        names = [*value.split("|")]
    if names is None:
        return None, "malformed_record"
    pairs = [text_of(name) for name in names]
    return [text for text, _ in pairs if text], next((p for _, p in pairs if p), None)


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any] | tuple[tuple[str, Any], ...]:
    """Return a JSON object; where a key occurs twice, its pairs, which are no text, vote or number.

    >>> object_of([("id", 1)]), object_of([("id", 1), ("id", 2)])
    ({'id': 1}, (('id', 1), ('id', 2)))
    """
    found = dict(pairs)
    return found if len(found) == len(pairs) else tuple(pairs)


def listed(value: object) -> list[Any] | None:
    """Return a list, or that of a JSON text; None for any other value.

    >>> listed('[1, 0]'), listed("[laughs]"), listed("1")
    ([1, 0], None, None)
    """
    if isinstance(value, str) and value.strip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return list(value) if isinstance(value, list | tuple) else None
