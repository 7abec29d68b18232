"""Exact and near duplicates of texts.

So that nothing is tested on what it was trained on, and no review is spent on copies.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from modwatch.common.text import ERASED

#: Words of a shingle.
_WORDS = 3
#: Least Jaccard similarity of near duplicates, and of copies of which one review is enough: who
#: quotes a comment and adds an insult repeats nothing.
_SIMILARITY, _COPIED = 0.5, 0.6
#: Permutations of a MinHash, and what a false and a missed candidate weigh.
_MINHASH = {"num_perm": 128, "weights": (0.1, 0.9)}
#: Most candidates that a text is compared with, so that texts made to be nearly alike cost no more.
_CANDIDATES = 100
_WORD = re.compile(r"\w+")


def near_duplicates(texts: Sequence[str], of: Sequence[str]) -> NDArray[np.bool_]:
    """Return which of `texts` (n,) is a duplicate of one of the texts `of`.

    Case, punctuation and spacing do not count. Two texts are near duplicates if the Jaccard
    similarity of their sets of three successive words is at least 0.5 (Broder 1997, of shingles);
    texts of fewer words are compared as a whole. A text without words has no duplicate.

    >>> near_duplicates(["Go away, you fool!", "Stay here."], ["go away you  fool"]).tolist()
    [True, False]
    """
    index: dict[bytes, list[int]] = defaultdict(list)
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


def repeated(texts: Sequence[str]) -> NDArray[np.bool_]:
    """Return which texts (n,) are copies of an earlier one that is none itself.

    As `near_duplicates`, with a similarity of at least 0.6. Those to compare are found by MinHash,
    so that many texts take little time; about one copy in a hundred near the bound is missed. A
    text that was erased, or without words, repeats nothing.

    >>> repeated(["Go away, you fool!", "Stay here.", "go away you  fool", ""]).tolist()
    [False, False, True, False]
    """
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=_SIMILARITY, **_MINHASH)
    kept: list[set[bytes]] = []
    found = np.zeros(len(texts), dtype=bool)
    for row, text in enumerate(texts):
        shingles = _shingles(text)
        if not shingles or text == ERASED:
            continue
        made = MinHash(num_perm=_MINHASH["num_perm"])
        made.update_batch(shingles)
        found[row] = any(
            len(shingles & other) >= _COPIED * len(shingles | other)
            for other in map(kept.__getitem__, sorted(index.query(made))[:_CANDIDATES])
        )
        if not found[row]:
            index.insert(len(kept), made)
            kept.append(shingles)
    return found


def plain_text(text: str) -> str:
    """Return the words of a text in lower case, so that case, punctuation and spacing are equal.

    >>> plain_text("You  FOOL!")
    'you fool'
    """
    return " ".join(_WORD.findall(text.lower()))


def _shingles(text: str) -> set[bytes]:
    words = _WORD.findall(text.lower())
    starts = range(max(len(words) - _WORDS + 1, min(len(words), 1)))
    return {" ".join(words[k : k + _WORDS]).encode("utf-8", "surrogatepass") for k in starts}
