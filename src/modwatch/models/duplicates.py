"""Exact and near duplicates of texts, so that nothing is tested on what it was trained on."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

#: Words of a shingle.
_WORDS = 3
#: Least Jaccard similarity of near duplicates.
_SIMILARITY = 0.5
_WORD = re.compile(r"\w+")


def near_duplicates(texts: Sequence[str], of: Sequence[str]) -> NDArray[np.bool_]:
    """Return which of `texts` (n,) is a duplicate of one of the texts `of`.

    Case, punctuation and spacing do not count. Two texts are near duplicates if the Jaccard
    similarity of their sets of three successive words is at least 0.5 (Broder 1997, of shingles);
    texts of fewer words are compared as a whole. A text without words has no duplicate.

    >>> near_duplicates(["Go away, you fool!", "Stay here."], ["go away you  fool"]).tolist()
    [True, False]
    """
    index: dict[int, list[int]] = defaultdict(list)
    sizes = []
    for number, text in enumerate(of):
        shingles = _shingles(text)
        sizes.append(len(shingles))
        for shingle in shingles:
            index[shingle].append(number)
    found = np.zeros(len(texts), dtype=bool)
    for row, text in enumerate(texts):
        shingles = _shingles(text)
        shared = Counter(number for shingle in shingles for number in index.get(shingle, ()))
        found[row] = any(
            both / (len(shingles) + sizes[number] - both) >= _SIMILARITY
            for number, both in shared.items()
        )
    return found


def plain_text(text: str) -> str:
    """Return the words of a text in lower case, so that case, punctuation and spacing are equal.

    >>> plain_text("You  FOOL!")
    'you fool'
    """
    return " ".join(_WORD.findall(text.lower()))


def _shingles(text: str) -> set[int]:
    words = _WORD.findall(text.lower())
    starts = range(max(len(words) - _WORDS + 1, min(len(words), 1)))
    return {hash(tuple(words[k : k + _WORDS])) for k in starts}
