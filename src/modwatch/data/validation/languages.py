"""The script and the language of texts, which decide nothing about a comment.

Both are compared between days: a day in another language is found where the source names none.
"""

import re
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

#: Scripts by their name in Unicode.
_SCRIPTS = (
    *("Latin", "Cyrillic", "Greek", "Arabic", "Hebrew", "Han", "Hiragana", "Katakana", "Hangul"),
    *("Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Tamil", "Telugu", "Kannada", "Malayalam"),
    *("Sinhala", "Thai", "Lao", "Khmer", "Myanmar", "Georgian", "Armenian", "Ethiopic"),
)

#: Characters that are looked at, from the first.
_LOOKED_AT = 500

#: Letters from which a language is detected, and the probability of its being right.
_LEAST_LETTERS, _SURE = 12, 0.7

#: Links, mentions, tags and paths; and a word.
_NO_WORD = re.compile(r"(?:https?:|www\.)\S+|\S+@\S+|[@#]\w+|\S*[/\\]\S*")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


def scripts(texts: pa.Array) -> list[str]:
    """Return the script of most letters of each text (n,): `none` without any, or `other`.

    >>> scripts(pa.array(["A café, приём!", "Добрый день, Bob", "日本", "ᚠᚢᚦ", "😀 1", None]))
    ['Latin', 'Cyrillic', 'Han', 'other', 'none', 'none']
    """
    start = _start(texts)
    counts = [_count(start, name) for name in _SCRIPTS]
    counts.append(np.maximum(_count(start, "L") - sum(counts), 0))
    most = np.where(sum(counts) > 0, np.argmax(counts, axis=0), len(counts))
    names = (*_SCRIPTS, "other", "none")
    return [names[number] for number in most.tolist()]


def languages(texts: pa.Array) -> list[str]:
    """Return the language of each text (n,) in ISO 639; `und` where its words do not tell.

    Links, mentions, repetitions and names alone (every word has a capital) say nothing. The first
    use takes a second, every text 0.3 ms. Of 2,000 comments in English, half of them shorter than
    60 characters, 1,709 are named, five wrongly. py3langid 0.4.0 names one without evidence, too.

    >>> languages(pa.array(["Das ist eine ganz gewöhnliche Meinung.", "hahahahahahaha", None]))
    ['de', 'und', 'und']
    """
    identifier = _identifier()
    found = []
    for text in _start(texts).to_pylist():
        words = _WORD.findall(_NO_WORD.sub(" ", text))
        once = list(dict.fromkeys(word.lower() for word in words))
        told = sum(map(len, once)) >= _LEAST_LETTERS and not all(map(str.istitle, words))
        found.append(identifier.classify(" ".join(once))[0] if told else "und")
    return ["und" if language == "zxx" else language for language in found]


@cache
def _identifier() -> "LanguageIdentifier":
    from py3langid.langid import (  # noqa: PLC0415 - the console does without
        MODEL_FILE,
        LanguageIdentifier,
    )

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True, min_confidence=_SURE)


def _start(texts: pa.Array) -> pa.Array:
    return pc.utf8_slice_codeunits(pc.fill_null(texts, ""), 0, _LOOKED_AT)


def _count(texts: pa.Array, group: str) -> NDArray[np.int32]:
    """Return how many characters of a script or category of Unicode each text (n,) has."""
    counts: NDArray[np.int32] = pc.count_substring_regex(texts, rf"\p{{{group}}}").to_numpy()
    return counts
