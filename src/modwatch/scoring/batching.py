"""Batches of comments of about one length: little padding, a bounded size, the order kept."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]


def length_buckets(lengths: Sequence[int], *, token_budget: int, most: int) -> Iterator[Rows]:
    """Yield the rows of one batch after another, shortest comments first; each row once.

    A batch padded to its longest comment holds at most `token_budget` tokens and at most `most`
    comments; a comment longer than the budget is a batch of its own. Equal lengths keep their
    order, so the same lengths always give the same batches.

    >>> [rows.tolist() for rows in length_buckets([5, 1, 1], token_budget=6, most=8)]
    [[1, 2], [0]]
    """
    length = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(length, kind="stable")
    start = 0
    while start < len(order):
        end = _end(length[order], start, token_budget, most)
        yield order[start:end]
        start = end


def _end(sorted_length: NDArray[np.int64], start: int, token_budget: int, most: int) -> int:
    """Return where the batch that begins at `start` ends, at least one further."""
    candidates = sorted_length[start : start + most]
    padded = candidates * np.arange(1, len(candidates) + 1)  # rises: both factors do
    return start + max(1, int(np.searchsorted(padded, token_budget, side="right")))
