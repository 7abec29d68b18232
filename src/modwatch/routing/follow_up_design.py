"""Follow-ups: which of the routed comments without a label are labelled after all.

Labels that are missing may depend on the label. A random part of what is missing, labelled with the
same care, represents all of it (Hansen & Hurwitz 1946, *The problem of non-response in sample
surveys*; Cochran 1977, section 13.6).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modwatch.common.errors import DesignError
from modwatch.statistics.arguments import Floats


@dataclass(frozen=True, kw_only=True)
class FollowUpDraw:
    """Which of m missing comments are followed up."""

    #: (m,) whether the comment is followed up.
    drawn: NDArray[np.bool_]
    #: (m,) in (0, 1]: the probability of that, one for the top and one for the slice.
    probability: Floats


def draw_follow_ups(
    stratum: NDArray[np.integer], keys: NDArray[np.uint64], *, share: float, minimum: int = 2
) -> FollowUpDraw:
    """Return simple random samples of the missing comments of the top, and of the slice.

    Together ⌈`share` × m⌉ of them: up to half from the slice, whose comments stand for many, and
    the others from the top. At least `minimum` from either that has as many.

    Args:
        stratum: (m,) of the missing comments; 0 is the top.
        keys: (m,) from `random_keys`, independent of those of the slice and of the confirmations.
        share: in [0, 1]; 0 follows nothing up.
        minimum: at least 1.

    Raises:
        DesignError: not one key per comment, or a share out of range.

    >>> draw = draw_follow_ups(np.array([0] * 9 + [3]), np.arange(10, dtype=np.uint64), share=0.3)
    >>> np.flatnonzero(draw.drawn).tolist(), draw.probability[[0, 9]].round(2).tolist()
    ([0, 1, 9], [0.22, 1.0])
    """
    if keys.shape != stratum.shape:
        raise DesignError(f"got {keys.size} keys for {stratum.size} comments; pass one each")
    if not 0 <= share <= 1:  # NaN fails too
        raise DesignError(f"the share of follow-ups must be in [0, 1], got {share!r}")
    drawn, probability = np.zeros(stratum.size, np.bool_), np.zeros(stratum.size)
    top = np.flatnonzero(stratum == 0)
    rest = np.flatnonzero(stratum != 0)
    wanted = math.ceil(share * stratum.size)
    from_rest = min(rest.size, max(wanted // 2, minimum)) if share else 0
    from_top = min(top.size, max(wanted - from_rest, minimum)) if share else 0
    for part, size in ((top, from_top), (rest, from_rest)):
        drawn[part[np.argsort(keys[part], kind="stable")[:size]]] = True
        probability[part] = size / max(part.size, 1)
    return FollowUpDraw(drawn=drawn, probability=probability)
