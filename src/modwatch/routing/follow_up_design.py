"""Follow-ups: which of the routed comments without a label are labelled after all.

Labels that are missing may depend on the label. A random part of what is missing, labelled with the
same care, represents all of it (Hansen & Hurwitz 1946, *The problem of non-response in sample
surveys*; Cochran 1977, section 13.6).
"""

import math

import numpy as np
from numpy.typing import NDArray

from modwatch.common.errors import DesignError
from modwatch.statistics.arguments import Floats, Ints

#: Parts of a day whose missing comments are drawn, and represented, apart: the slice, what is
#: flagged of the top, and the rest of the top.
PARTS = ("slice", "top_flagged", "top")


def follow_up_parts(stratum: NDArray[np.integer], flagged: NDArray[np.bool_]) -> Ints:
    """Return the number in `PARTS` of each comment (m,); stratum 0 is the top.

    >>> follow_up_parts(np.array([3, 0, 0]), np.array([True, True, False])).tolist()
    [0, 1, 2]
    """
    return np.where(stratum != 0, 0, np.where(flagged, 1, 2))


def draw_follow_ups(
    part: Ints, keys: NDArray[np.uint64], *, share: float, minimum: int = 2
) -> tuple[NDArray[np.bool_], Floats]:
    """Return which of m missing comments are followed up (m,), and with what probability (m,).

    Simple random samples of each part, together ⌈`share` × m⌉: up to half from the slice, whose
    comments stand for many, and the others from both parts of the top in proportion. At least
    `minimum` from each part that has as many.

    Args:
        part: (m,) from `follow_up_parts`.
        keys: (m,) from `random_keys`, independent of those of the slice and of the confirmations.
        share: in [0, 1]; 0 follows nothing up.
        minimum: at least 1.

    Raises:
        DesignError: not one key per comment, or a share out of range.

    >>> part = np.array([2] * 9 + [0])
    >>> drawn, probability = draw_follow_ups(part, np.arange(10, dtype=np.uint64), share=0.3)
    >>> np.flatnonzero(drawn).tolist(), probability[[0, 9]].round(2).tolist()
    ([0, 1, 9], [0.22, 1.0])
    """
    if keys.shape != part.shape:
        raise DesignError(f"got {keys.size} keys for {part.size} comments; pass one each")
    if not 0 <= share <= 1:  # NaN fails too
        raise DesignError(f"the share of follow-ups must be in [0, 1], got {share!r}")
    drawn, probability = np.zeros(part.size, np.bool_), np.zeros(part.size)
    sizes = _sizes(np.bincount(part, minlength=len(PARTS)).tolist(), share, minimum)
    for number, size in enumerate(sizes if share else ()):
        rows = np.flatnonzero(part == number)
        drawn[rows[np.argsort(keys[rows], kind="stable")[:size]]] = True
        probability[rows] = size / max(rows.size, 1)
    return drawn, probability


def _sizes(missing: list[int], share: float, minimum: int) -> list[int]:
    """Return how many of the missing comments of each part are drawn."""
    wanted = math.ceil(share * sum(missing))
    of_slice = min(max(wanted // 2, minimum), missing[0])
    top = wanted - of_slice
    proportional = round(top * missing[1] / max(sum(missing[1:]), 1))
    of_flagged = min(max(proportional, minimum), missing[1])
    return [of_slice, of_flagged, min(max(top - of_flagged, minimum), missing[2])]
