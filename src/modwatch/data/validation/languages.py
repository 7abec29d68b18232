"""The script and the language of texts, which decide nothing about a comment.

Both are compared between days: a day in another language is found where the source names none.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

#: Scripts by their name in Unicode.
_SCRIPTS = (
    *("Latin", "Cyrillic", "Greek", "Arabic", "Hebrew", "Han", "Hiragana", "Katakana", "Hangul"),
    *("Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Tamil", "Telugu", "Kannada", "Malayalam"),
    *("Sinhala", "Thai", "Lao", "Khmer", "Myanmar", "Georgian", "Armenian", "Ethiopic"),
)

#: Characters that are looked at, from the first.
_LOOKED_AT = 500

#: Letters from which a language is detected.
_LEAST_LETTERS = 12


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
    """Return the language of each text (n,) in ISO 639; `und` of too few letters.

    The first use takes about a second, every text about 0.2 ms.

    >>> languages(pa.array(["Das ist eine ganz gewöhnliche Meinung.", "Ja.", None]))
    ['de', 'und', 'und']
    """
    import py3langid  # noqa: PLC0415 - the console does without

    start = _start(texts)
    pairs = zip(start.to_pylist(), _count(start, "L").tolist(), strict=True)
    return [py3langid.classify(text)[0] if n >= _LEAST_LETTERS else "und" for text, n in pairs]


def _start(texts: pa.Array) -> pa.Array:
    return pc.utf8_slice_codeunits(pc.fill_null(texts, ""), 0, _LOOKED_AT)


def _count(texts: pa.Array, group: str) -> NDArray[np.int32]:
    """Return how many characters of a script or category of Unicode each text (n,) has."""
    counts: NDArray[np.int32] = pc.count_substring_regex(texts, rf"\p{{{group}}}").to_numpy()
    return counts
