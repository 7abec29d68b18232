"""Confirmations: which first labels further people confirm, and with what probability.

Two-phase sampling (Neyman 1938; Särndal, Swensson & Wretman 1992, chapter 9): first labels are the
first phase, and a part of them is confirmed with known probabilities, which depend on the first
label and on what is known at routing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modwatch.common.errors import DesignError
from modwatch.statistics.arguments import Floats
from modwatch.statistics.decisions import is_flagged

#: Labels that a confirmation costs on average: a third person follows where two differ.
_COST = 1.2

#: Expected error rates of a first label, before labels show how many are toxic.
_FALSE_POSITIVE, _FALSE_NEGATIVE = 0.02, 0.1

#: Least probability of every label, so that statistics of confirmed labels can be weighted.
_LEAST = 0.01

#: Shares of what the slice leaves of the budget: for toxic labels of the top, for its other labels,
#: and for labels of the slice that agree with the model. Toxic labels are the most informative: a
#: second label of a toxic comment shows false negatives, and only overturned ones false positives.
_TOP_TOXIC, _TOP_OTHER, _SLICE_OTHER = 0.8, 0.1, 0.1


@dataclass(frozen=True, kw_only=True)
class ConfirmationDraw:
    """The c of r routed comments that are confirmed under at least one first label."""

    #: (c,) positions among the routed comments, ascending.
    row: NDArray[np.int64]
    #: (c, 2) whether a first label 0, 1 is confirmed.
    confirmed: NDArray[np.bool_]
    #: (c, 2) ranks of the items of rounds 2 and 3 among the r of a day, in [1, r].
    rank: NDArray[np.int64]


def confirmation_probabilities(
    y_prob: NDArray[np.floating],
    stratum: NDArray[np.integer],
    *,
    share: float,
    threshold: float = 0.5,
    flagged: NDArray[np.bool_] | None = None,
    toxic_labels: tuple[float | None, float | None] = (None, None),
) -> Floats:
    """Return the probability (r, 2) that a first label of 0, and of 1, is confirmed.

    Of the random slice every toxic label is confirmed, and every label that contradicts the
    automated decision: each stands for as many comments as a slice label does. What remains of the
    expected budget of `share` × r labels goes to other labels, most of it to toxic ones of the top.

    Args:
        y_prob: (r,) probabilities of the routed comments, in [0, 1].
        stratum: (r,) of theirs; 0 is the top.
        share: expected confirmations over routed comments, in [0, 1]; 0 confirms nothing.
        threshold: in [0, 1]; the model flags y_prob > threshold.
        flagged: (r,) the decisions, where they are not y_prob > threshold.
        toxic_labels: share of toxic labels among recent ones of the top, and of the slice; by
            default that of `y_prob`.

    Raises:
        DesignError: arrays of different length, or a share out of range.

    >>> slice_, top = 1, 0
    >>> probability = confirmation_probabilities(
    ...     np.array([0.1, 0.4]), np.array([slice_, top]), threshold=0.5, share=0.5)
    >>> float(probability[0, 1]), bool(probability[1, 1] > probability[1, 0])
    (1.0, True)
    """
    if stratum.shape != y_prob.shape:
        raise DesignError(f"got {stratum.size} strata for {y_prob.size} comments; pass one each")
    if not 0 <= share <= 1:  # NaN fails too
        raise DesignError(f"the share of confirmations must be in [0, 1], got {share!r}")
    decided = is_flagged(y_prob, threshold) if flagged is None else flagged
    if decided.shape != y_prob.shape:
        raise DesignError(f"got {decided.size} decisions for {y_prob.size} comments; pass one each")
    if not share or not y_prob.size:
        return np.zeros((y_prob.size, 2))
    found = np.full((y_prob.size, 2), min(_LEAST, share))
    top = stratum == 0
    found[~top, 1] = 1
    found[~top & decided, 0] = 1
    expected = _expected_labels(top, y_prob, toxic_labels)
    budget = share * y_prob.size / _COST - float((found * expected).sum())
    wanted = [
        (top, 1, _TOP_TOXIC),
        (top, 0, _TOP_OTHER),
        (~top & ~decided, 0, _SLICE_OTHER),
    ]
    while wanted and budget > 1e-9:
        whole, spent = sum(part for *_, part in wanted), 0.0
        for rows, label, part in wanted:
            mass = float(expected[rows, label].sum())
            room = mass - float((found * expected)[rows, label].sum())
            more = min(budget * part / whole, room)
            if mass > 0:
                found[rows, label] = np.minimum(found[rows, label] + max(more, 0) / mass, 1)
            spent += more
        wanted = [
            (rows, label, part) for rows, label, part in wanted if (found[rows, label] < 1).any()
        ]
        if spent < 1e-9:
            break
        budget -= spent
    return found


def draw_confirmations(
    probability: NDArray[np.float64], keys: NDArray[np.uint64], rank_keys: NDArray[np.uint64]
) -> ConfirmationDraw:
    """Return which comments are confirmed under which first labels, and where they are queued.

    Each comment has one uniform number, so that a label with the higher probability is confirmed
    whenever the other is. All ranks are equally likely: each round is served among the items of a
    later day, and its place there reveals nothing.

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
    ([0, 2], [[False, True], [True, True]], [[1, 1], [1, 1]])
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
    halves = np.column_stack([rank_keys[row] >> np.uint64(32), rank_keys[row] % np.uint64(2**32)])
    rank = 1 + np.floor(halves / 2.0**32 * size).astype(np.int64)
    return ConfirmationDraw(row=row, confirmed=confirmed[row], rank=rank)


def _expected_labels(
    top: NDArray[np.bool_],
    prob: NDArray[np.floating],
    toxic_labels: tuple[float | None, float | None],
) -> Floats:
    """Return the expected number (r, 2) of first labels of 0 and of 1 of each comment."""
    toxic = prob * (1 - _FALSE_NEGATIVE) + (1 - prob) * _FALSE_POSITIVE
    for rows, recent in ((top, toxic_labels[0]), (~top, toxic_labels[1])):
        if rows.any() and recent is not None:
            toxic[rows] = np.clip(toxic[rows] * recent / toxic[rows].mean(), 0, 1)
    return np.column_stack([1 - toxic, toxic])
