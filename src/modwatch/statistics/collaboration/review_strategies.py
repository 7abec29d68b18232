"""Review strategies: the score that orders comments for review."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats
from modwatch.statistics.decisions import is_flagged

#: Review strategies. `predictive_variance`, `toxicity` and the mixture are of Kivlichan et al.
#: (2021), sections 4 and 7; `uncertainty` is of the decision.
STRATEGIES = ("uncertainty", "predictive_variance", "toxicity", "hybrid", "cost")

#: Costs of a false negative and of a false positive: (n,) or one number each, at least 0.
Costs = tuple[ArrayLike, ArrayLike]

#: Name of the review score of prediction sets, which estimates compare where groups are calibrated
#: apart; it needs labels, so that no day is routed by it.
CONFORMAL = "conformal"

#: A list with a smaller share of the capacity is left out.
_SMALLEST_SHARE = float(np.finfo(np.float64).tiny)


def review_scores(
    y_prob: ArrayLike,
    strategy: str = "uncertainty",
    *,
    threshold: float = 0.5,
    flagged: ArrayLike | None = None,
    calibrated: ArrayLike | None = None,
    costs: Costs | None = None,
    toxic_share: float = 0.5,
    sample_weight: ArrayLike | None = None,
) -> Floats:
    """Return the review score (n,) of each comment; the highest are reviewed first.

    - `uncertainty` is the probability that the decision is wrong: 1−p of a flagged comment, p of
      another one. At the threshold 0.5 it orders comments as `predictive_variance` does. It
      maximises the expected OC-Acc and Review Efficiency.
    - `predictive_variance` is p(1−p) in [0, 0.25], Eq. 1; it takes no notice of the decision.
    - `toxicity` is p.
    - `hybrid` gives `toxic_share` of any capacity to the most toxic and the rest to the most
      uncertain: its score is minus the smallest capacity, as a fraction of all samples, at which a
      sample is on one of the two lists. A sample on both is reviewed once, and the lists continue
      in the same shares until the capacity is full.
    - `cost` is the expected cost of the decision: the probability that it is wrong times what that
      costs. It minimises the expected cost that remains.

    Args:
        y_prob: (n,) in [0, 1].
        strategy: one of `STRATEGIES`.
        threshold: in [0, 1]; a comment is flagged if its probability is above.
        flagged: (n,) the decisions, where they are not y_prob > threshold.
        calibrated: (n,) in [0, 1], p of `uncertainty`, `hybrid` and `cost` where labels show that
            y_prob is off; y_prob by default.
        costs: of a false negative and of a false positive, of the strategy `cost`. By default those
            for which the threshold is the best one, 1−t and t.
        toxic_share: of the hybrid, in [0, 1]: 0 is uncertainty, 1 is toxicity.
        sample_weight: (n,) ≥ 0; 1 each by default. Only the hybrid uses it: its ranks are sums of
            weights.

    Raises:
        MetricInputError: an unknown strategy, or an argument out of range.

    >>> review_scores([0.5, 1.0, 0.2], threshold=0.1).tolist()
    [0.5, 0.0, 0.8]
    >>> review_scores([0.5, 1.0, 0.2], "predictive_variance").round(2).tolist()
    [0.25, 0.0, 0.16]
    >>> review_scores([0.1, 0.6], "cost", costs=(5, 1)).tolist()
    [0.5, 0.4]
    >>> review_scores([0.5, 0.9, 0.1, 1.0], "hybrid").argsort()[-2:].tolist()
    [0, 3]
    """
    p = arguments.probabilities(y_prob)
    if strategy == "toxicity":
        return p
    if strategy == "predictive_variance":
        return p * (1 - p)
    t = arguments.fraction("threshold", threshold)
    decided = is_flagged(p, t) if flagged is None else arguments.decisions(flagged)
    known = p if calibrated is None else arguments.probabilities(calibrated, name="calibrated")
    share, w = (
        arguments.fraction("toxic_share", toxic_share),
        arguments.weights(sample_weight, p.size),
    )
    arguments.same_length(y_prob=p, flagged=decided, calibrated=known, sample_weight=w)
    wrong = np.where(decided, 1 - known, known)
    if strategy == "uncertainty":
        return wrong
    if strategy == "cost":
        return wrong * stakes(decided, (1 - t, t) if costs is None else costs)
    if strategy == "hybrid":
        return _hybrid([(share, p), (1 - share, wrong)], w)
    raise MetricInputError(f"strategy must be one of {STRATEGIES}, got {strategy!r}")


def copies_last(score: Floats, copies: NDArray[np.bool_] | None) -> Floats:
    """Return the review scores (n,) with those of the copies (n,) lowered below all others.

    >>> copies_last(np.array([0.9, 0.5, 0.1]), np.array([True, False, False])).round(1).tolist()
    [-0.9, 0.5, 0.1]
    """
    if copies is None or not copies.any():
        return score
    return np.where(copies, score - float(np.ptp(score)) - 1, score)


def stakes(flagged: NDArray[np.bool_], costs: Costs | None) -> Floats:
    """Return what each decision (n,) costs if it is wrong; None: 1.

    Raises:
        MetricInputError: a cost below 0, not finite, or not one of each comment.

    >>> stakes(np.array([True, False]), (5, 1)).tolist()
    [1.0, 5.0]
    """
    missed, alarmed = (arguments.numeric("costs", cost) for cost in costs or (1.0, 1.0))
    for name, given in (("false_negative", missed), ("false_positive", alarmed)):
        if not ((given >= 0) & np.isfinite(given)).all():
            raise MetricInputError(f"the cost of a {name} must be a finite number of at least 0")
        if given.shape not in ((), flagged.shape):
            raise MetricInputError(
                f"got {given.size} costs of a {name} for {flagged.size} comments; pass one, or one "
                "per comment"
            )
    return np.where(flagged, alarmed, missed)


def _hybrid(parts: Sequence[tuple[float, Floats]], weight: Floats) -> Floats:
    """Return minus the smallest capacity (n,) at which a sample is on one of the lists.

    `parts` are the share and the score (n,) of each list.
    """
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
