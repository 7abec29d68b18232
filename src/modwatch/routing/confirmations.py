"""Confirmations: which first labels further people confirm, and with what probability.

Two-phase sampling (Neyman 1938; Särndal, Swensson & Wretman 1992, chapter 9): first labels are the
first phase, and a part of them is confirmed with known probabilities, which depend on the first
label and on what is known at routing.
"""

import numpy as np
from numpy.typing import NDArray

from modwatch.errors import DesignError
from modwatch.metrics.inputs import Floats

#: Labels that a confirmation costs on average: a third person follows where two differ.
_COST = 1.2

#: Expected error rates of a first label, before labels tell how many are toxic.
_FALSE_POSITIVE, _FALSE_NEGATIVE = 0.02, 0.1

#: Shares of what the slice leaves of the budget: for toxic labels of the top, for its other labels,
#: and for labels of the slice that agree with the model. Toxic labels tell the most: a second label
#: of a toxic comment tells the false-negative rate, and only overturned ones the false positives.
_TOP_TOXIC, _TOP_OTHER, _SLICE_OTHER = 0.8, 0.1, 0.1


def confirmation_probabilities(
    stratum: NDArray[np.integer],
    prob: NDArray[np.floating],
    *,
    threshold: float,
    share: float,
    toxic_labels: tuple[float | None, float | None] = (None, None),
) -> Floats:
    """Return the probability (r, 2) that a first label of 0, and of 1, is confirmed.

    Of the random slice every toxic label is confirmed, and every label that contradicts the model:
    each stands for as many comments as a slice label does. What remains of the expected budget of
    `share` × r labels goes to other labels, most of it to toxic ones of the top.

    Args:
        stratum: (r,) of the routed comments; 0 is the top.
        prob: (r,) in [0, 1].
        threshold: the model flags prob > threshold.
        share: expected confirmations over routed comments, in [0, 1]; 0 confirms nothing.
        toxic_labels: share of toxic labels among recent ones of the top, and of the slice; by
            default what `prob` says.

    Raises:
        DesignError: arrays of different length, or a share out of range.

    >>> slice_, top = 1, 0
    >>> probability = confirmation_probabilities(
    ...     np.array([slice_, top]), np.array([0.1, 0.4]), threshold=0.5, share=0.5)
    >>> float(probability[0, 1]), bool(probability[1, 1] > probability[1, 0])
    (1.0, True)
    """
    if stratum.shape != prob.shape:
        raise DesignError(f"got {stratum.size} strata for {prob.size} comments; pass one each")
    if not 0 <= share <= 1:  # NaN fails too
        raise DesignError(f"the share of confirmations must be in [0, 1], got {share!r}")
    found = np.zeros((prob.size, 2))
    if not share or not prob.size:
        return found
    top, flagged = stratum == 0, prob > threshold
    found[~top, 1] = 1
    found[~top & flagged, 0] = 1
    expected = _expected_labels(top, prob, toxic_labels)
    budget = share * prob.size / _COST - float((found * expected).sum())
    wanted = [
        (top, 1, _TOP_TOXIC),
        (top, 0, _TOP_OTHER),
        (~top & ~flagged, 0, _SLICE_OTHER),
    ]
    while wanted and budget > 1e-9:
        whole, spent = sum(part for *_, part in wanted), 0.0
        for rows, label, part in wanted:
            mass = float(expected[rows, label].sum())
            room = mass - float((found * expected)[rows, label].sum())
            more = min(budget * part / whole, room)
            if mass > 0:
                found[rows, label] = np.minimum(found[rows, label] + more / mass, 1)
            spent += more
        wanted = [
            (rows, label, part) for rows, label, part in wanted if (found[rows, label] < 1).any()
        ]
        if spent < 1e-9:
            break
        budget -= spent
    return found


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
