"""Review strategies: which comments people see first."""

import numpy as np
from numpy.typing import ArrayLike

from modwatch.errors import MetricInputError
from modwatch.metrics import inputs
from modwatch.metrics.inputs import Floats

#: Review strategies: section 5 and, for the mixture, section 7 of Kivlichan et al. (2021).
STRATEGIES = ("uncertainty", "toxicity", "hybrid")

#: A list with a smaller share of the capacity is never reached.
_SMALLEST_SHARE = float(np.finfo(np.float64).tiny)


def review_scores(
    prob: ArrayLike,
    strategy: str,
    *,
    toxic_share: float = 0.5,
    weight: ArrayLike | None = None,
) -> Floats:
    """Return the review score (n,) of each comment; larger is reviewed first.

    `uncertainty` is p(1−p) in [0, 0.25], Eq. 1; `toxicity` is p. `hybrid` gives `toxic_share` of
    any capacity to the most toxic and the rest to the most uncertain: its score, below 0, is minus
    the length of the two lists together, as a fraction of all rows, at which a row stands on one.
    A row on both is reviewed once, and the lists go on in the same shares until the capacity is
    full. Only the hybrid looks at `weight`: its ranks are masses of rows.

    >>> review_scores([0.5, 1.0], "uncertainty").tolist()
    [0.25, 0.0]
    >>> review_scores([0.5, 0.9, 0.1, 1.0], "hybrid").argsort()[-2:].tolist()
    [0, 3]
    """
    p = inputs.probabilities(prob)
    share, w = inputs.fraction("toxic_share", toxic_share), inputs.weights(weight, p.size)
    inputs.same_length(prob=p, weight=w)
    if strategy == "toxicity":
        return p
    if strategy == "uncertainty":
        return p * (1 - p)
    if strategy == "hybrid":
        return _hybrid(p, share, w)
    raise MetricInputError(f"strategy is {strategy!r}; it must be one of {STRATEGIES}")


def _hybrid(p: Floats, share: float, weight: Floats) -> Floats:
    """Return minus the smallest capacity at which a row is on either list."""
    parts = [(share, p), (1 - share, p * (1 - p))]
    reached = [_mass_rank(score, weight) / part for part, score in parts if part >= _SMALLEST_SHARE]
    nearest: Floats = -np.minimum.reduce(reached)
    return nearest


def _mass_rank(score: Floats, weight: Floats) -> Floats:
    """Return the fraction of mass scored higher, equals counted half."""
    values, group = np.unique(score, return_inverse=True)
    mass = np.bincount(group, weights=weight, minlength=values.size)
    above = np.cumsum(mass[::-1])[::-1] - mass
    total = max(float(mass.sum()), np.finfo(np.float64).tiny)
    rank: Floats = (above + mass / 2)[group] / total
    return rank
