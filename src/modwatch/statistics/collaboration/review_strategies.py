"""Review strategies: the score that orders comments for review."""

import numpy as np
from numpy.typing import ArrayLike

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats

#: Review strategies: section 5 and, for the mixture, section 7 of Kivlichan et al. (2021).
STRATEGIES = ("uncertainty", "toxicity", "hybrid")

#: Name of the review score of prediction sets, which estimates compare where groups are calibrated
#: apart; it needs labels, so that no day is routed by it.
CONFORMAL = "conformal"

#: A list with a smaller share of the capacity is left out.
_SMALLEST_SHARE = float(np.finfo(np.float64).tiny)


def review_scores(
    y_prob: ArrayLike,
    strategy: str,
    *,
    toxic_share: float = 0.5,
    sample_weight: ArrayLike | None = None,
) -> Floats:
    """Return the review score (n,) of each comment; the highest are reviewed first.

    `uncertainty` is p(1−p) in [0, 0.25], Eq. 1; `toxicity` is p. `hybrid` gives `toxic_share` of
    any capacity to the most toxic and the rest to the most uncertain: its score is minus the
    smallest capacity, as a fraction of all samples, at which a sample is on one of the two lists.
    A sample on both is reviewed once, and the lists continue in the same shares until the capacity
    is full. Only the hybrid uses `sample_weight`: its ranks are sums of weights.

    Args:
        y_prob: (n,) in [0, 1].
        strategy: one of `STRATEGIES`.
        toxic_share: of the hybrid, in [0, 1]: 0 is uncertainty, 1 is toxicity.
        sample_weight: (n,) ≥ 0; 1 each by default.

    Raises:
        MetricInputError: an unknown strategy, or an argument out of range.

    >>> review_scores([0.5, 1.0], "uncertainty").tolist()
    [0.25, 0.0]
    >>> review_scores([0.5, 0.9, 0.1, 1.0], "hybrid").argsort()[-2:].tolist()
    [0, 3]
    """
    p = arguments.probabilities(y_prob)
    share, w = (
        arguments.fraction("toxic_share", toxic_share),
        arguments.weights(sample_weight, p.size),
    )
    arguments.same_length(y_prob=p, sample_weight=w)
    if strategy == "toxicity":
        return p
    if strategy == "uncertainty":
        return p * (1 - p)
    if strategy == "hybrid":
        return _hybrid(p, share, w)
    raise MetricInputError(f"strategy must be one of {STRATEGIES}, got {strategy!r}")


def _hybrid(p: Floats, share: float, weight: Floats) -> Floats:
    """Return minus the smallest capacity (n,) at which a sample is on either list."""
    parts = [(share, p), (1 - share, p * (1 - p))]
    reached = [_mass_rank(score, weight) / part for part, score in parts if part >= _SMALLEST_SHARE]
    nearest: Floats = -np.minimum.reduce(reached)
    return nearest


def _mass_rank(score: Floats, weight: Floats) -> Floats:
    """Return the fraction (n,) of weight with a higher score, ties counted half."""
    values, group = np.unique(score, return_inverse=True)
    mass = np.bincount(group, weights=weight, minlength=values.size)
    above = np.cumsum(mass[::-1])[::-1] - mass
    total = max(float(mass.sum()), np.finfo(np.float64).tiny)
    rank: Floats = (above + mass / 2)[group] / total
    return rank
