"""Confirmations: routed comments whose first label further people confirm, blind.

The second phase of a two-phase sample (Neyman 1938): whether a first label is confirmed depends on
the stratum, the score and the label itself, with known probabilities.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.errors import DesignError

#: Labels that one confirmation costs: a third person labels where two differ.
LABELS_EACH = 1.1

#: P(label 1 | p) expected of the first person: 0.9p + 0.02(1 − p).
_TRUE_POSITIVE, _FALSE_POSITIVE = 0.9, 0.02

#: Cells that share what is left of the budget: (top, 1), (top, 0) and (slice, 0).
_CELLS = 3


@dataclass(frozen=True, kw_only=True)
class Confirmations:
    """The c of r routed comments that are confirmed under at least one first label."""

    #: (c,) positions among the routed comments, ascending.
    row: NDArray[np.int64]
    #: (c, 2) whether a first label 0, 1 is confirmed.
    confirmed: NDArray[np.bool_]
    #: (c, 2) ranks of the items of rounds 2 and 3: after the first item, at most r + 1 and r + 2.
    rank: NDArray[np.int64]


def confirmation_probabilities(
    stratum: NDArray[np.integer], prob: ArrayLike, *, threshold: float, share: float
) -> NDArray[np.float64]:
    """Return the probabilities (r, 2) that a first label 0, 1 of each comment is confirmed.

    In the slice, label 1 and a label 0 that contradicts the model are always confirmed: each stands
    for many comments, or for an error of the model. What remains of the expected budget is spread
    in equal expected parts over the labels (top, 1), (top, 0) and (slice, 0), each probability at
    most 1.

    Args:
        stratum: (r,) of the routed comments; 0 is the top.
        prob: (r,) in [0, 1].
        threshold: of the model; it flags prob > threshold.
        share: in [0, 1]: expected number of further labels over r; 0 confirms nothing.

    Raises:
        DesignError: not one probability per comment.

    >>> stratum, prob = np.array([0, 0, 1, 1]), [0.5, 0.4, 0.9, 0.1]
    >>> confirmation_probabilities(stratum, prob, threshold=0.8, share=0.5).round(2).tolist()
    [[0.2, 0.28], [0.2, 0.28], [1.0, 1.0], [0.27, 1.0]]
    """
    p = np.asarray(prob, dtype=np.float64)
    if p.shape != stratum.shape:
        raise DesignError(
            f"got {p.size} probabilities for {stratum.size} comments; pass one per comment"
        )
    chance = np.zeros((p.size, 2))
    if share == 0:
        return chance
    positive = _TRUE_POSITIVE * p + _FALSE_POSITIVE * (1 - p)
    expected = np.column_stack([1 - positive, positive])  # (r, 2) P(first label)
    top = stratum == 0
    chance[~top, 1] = 1.0
    chance[~top & (p > threshold), 0] = 1.0
    left = share * p.size / LABELS_EACH - float((chance * expected).sum())
    for label, cell in ((1, top), (0, top), (0, ~top & (p <= threshold))):
        mass = float(expected[cell, label].sum())
        if mass > 0:
            chance[cell, label] = min(1.0, max(left, 0.0) / _CELLS / mass)
    return chance


def draw_confirmations(
    probability: NDArray[np.float64], keys: NDArray[np.uint64], rank_keys: NDArray[np.uint64]
) -> Confirmations:
    """Return which comments are confirmed under which first labels, and where they are queued.

    Each comment has one uniform number, so that a label with the higher probability is confirmed
    whenever the other is. All ranks after the earlier round are equally likely, so that a rank
    reveals nothing.

    Args:
        probability: (r, 2) from `confirmation_probabilities`, in the order of the queue.
        keys: (r,) from `random_keys`, independent of those that drew the slice.
        rank_keys: (r,) the same, independent of `keys`.

    Raises:
        DesignError: not one key per comment.

    >>> draw = draw_confirmations(
    ...     np.array([[0.0, 1.0], [0.0, 0.0], [0.5, 0.5]]),
    ...     np.array([9, 9, 2**62], np.uint64), np.zeros(3, np.uint64))
    >>> draw.row.tolist(), draw.confirmed.tolist(), draw.rank.tolist()
    ([0, 2], [[False, True], [True, True]], [[2, 3], [4, 5]])
    """
    size = len(probability)
    if keys.shape != (size,) or rank_keys.shape != (size,):
        raise DesignError(
            f"got {keys.size} and {rank_keys.size} keys for {size} comments; pass one key per "
            "comment"
        )
    uniform = (keys >> np.uint64(11)).astype(np.float64) / 2.0**53  # in [0, 1)
    confirmed = uniform[:, None] < probability
    row = np.flatnonzero(confirmed.any(axis=1))
    second = _places(row + 1, rank_keys[row] >> np.uint64(32), size + 1)
    third = _places(second, rank_keys[row] & np.uint64(0xFFFFFFFF), size + 2)
    return Confirmations(row=row, confirmed=confirmed[row], rank=np.column_stack([second, third]))


def _places(first: NDArray[np.int64], half: NDArray[np.uint64], last: int) -> NDArray[np.int64]:
    """Return a uniform rank in (first, last] each, from 32 random bits."""
    uniform = half.astype(np.float64) / 2.0**32
    return np.asarray(first + 1 + np.floor(uniform * (last - first)), np.int64)
