"""Second opinions: routed comments that a second person labels, to estimate annotator error."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modwatch.errors import DesignError
from modwatch.routing.design import allocate

_LOWER_HALF = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, kw_only=True)
class SecondOpinions:
    """The s of r routed comments that are queued again for another person."""

    #: (s,) positions among the routed comments, ascending.
    row: NDArray[np.int64]
    #: (s,) in (0, 1]: probability of a second opinion, given that the comment is routed.
    inclusion_probability: NDArray[np.float64]
    #: (s,) rank in the queue, after the first item of the comment and at most r + 1.
    rank: NDArray[np.int64]


def draw_second_opinions(
    stratum: NDArray[np.integer], keys: NDArray[np.uint64], share: float
) -> SecondOpinions:
    """Return a random ⌈share × r⌉ of r routed comments, half each from top and slice if possible.

    The slice is small, and each of its labels weighs as much as many in the top, so a proportional
    share would be too few. A share above 0 draws at least one from each. All ranks after the first
    item are equally likely, so the rank reveals nothing.

    Args:
        stratum: (r,) in the order of the queue; 0 is the top.
        keys: (r,) from `random_keys`, independent of those that drew the slice.
        share: in [0, 1].

    Raises:
        DesignError: not one key per comment.

    >>> drawn = draw_second_opinions(np.array([0, 0, 0, 1, 2]), np.arange(5, dtype=np.uint64), 0.4)
    >>> drawn.row.tolist(), drawn.inclusion_probability.round(2).tolist()
    ([0, 3], [0.33, 0.5])
    """
    if keys.shape != stratum.shape:
        raise DesignError(
            f"got {keys.size} keys for {stratum.size} comments; pass one key per comment"
        )
    groups = [np.flatnonzero(stratum == 0), np.flatnonzero(stratum != 0)]
    population = np.array([group.size for group in groups])
    wanted = max(math.ceil(share * stratum.size - 1e-9), int((population > 0).sum()))
    sizes = allocate(np.ones(2), population, wanted if share else 0, minimum=1)
    drawn = [
        group[np.argsort(keys[group], kind="stable")[:size]]
        for group, size in zip(groups, sizes, strict=True)
    ]
    chance = np.repeat(sizes / np.maximum(population, 1), sizes)
    row = np.concatenate(drawn)
    queue = np.argsort(row)
    row = row[queue]
    return SecondOpinions(
        row=row,
        inclusion_probability=chance[queue],
        rank=_places(row + 1, keys[row], stratum.size + 1),
    )


def _places(first: NDArray[np.int64], keys: NDArray[np.uint64], last: int) -> NDArray[np.int64]:
    """Return a uniform rank in (first, last] each; the upper halves of drawn keys are small."""
    uniform = (keys & _LOWER_HALF).astype(np.float64) / 2.0**32
    return np.asarray(first + 1 + np.floor(uniform * (last - first)), np.int64)
