"""Expected performance of a day's decisions if its scores are calibrated; requires no labels.

Confidence-based performance estimation (CBPE): a comment scored p is toxic with probability p, so
the expected error of its decision is known. It detects changes of the comments that the scores
reflect. It does not detect miscalibration: an over-confident model appears better than it is. That
requires labels (`measure_days`).

Means over a fixed set of comments are exact expectations. Recall and AUROC are ratios of two
expectations, which differ from the expected ratio by a term of order 1/n. Nothing is simulated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats
from modwatch.statistics.collaboration.ranking import reviews
from modwatch.statistics.decisions import is_flagged
from modwatch.statistics.drift.day_comparison import MINIMUM_COMMENTS, Finding
from modwatch.statistics.intervals import NORMAL_QUANTILE
from modwatch.statistics.live.figures import FIGURES

#: Minimum number of flagged or reviewed comments, and of expected labels of a class.
MINIMUM_PART = 10


def expected_performance(
    y_prob: ArrayLike,
    y_score: ArrayLike,
    *,
    review_fraction: float,
    threshold: float = 0.5,
    flagged: NDArray[np.bool_] | None = None,
) -> Iterator[Finding]:
    """Yield the expected precision, recall, AUROC, OC-Acc, RE and accuracy of n comments.

    If scores are calibrated, the interval covers the true value on 95 % of days, since labels of
    known probability are still random; it does not account for miscalibration. Too few comments or
    expected labels give an insufficient finding.

    Args:
        y_prob: (n,) in [0, 1].
        y_score: (n,) the deployed review scores, as `review_scores` returns them.
        review_fraction: the deployed one, in [0, 1].
        threshold: in [0, 1]; a comment is flagged if its probability is above.
        flagged: (n,) the decisions, where they are not y_prob > threshold.

    Raises:
        MetricInputError: an argument out of range.

    >>> prob = np.tile([0.1, 0.8], 500)
    >>> findings = expected_performance(prob, prob * (1 - prob), review_fraction=0.1)
    >>> [round(finding.value, 3) for finding in findings]
    [0.8, 0.889, 0.854, 0.87, 0.2, 0.85]
    """
    p = arguments.probabilities(y_prob)
    t = arguments.fraction("threshold", threshold)
    decided = is_flagged(p, t) if flagged is None else arguments.decisions(flagged)
    score = arguments.column("y_score", y_score)
    arguments.same_length(y_prob=p, y_score=score, flagged=decided)
    order = np.lexsort((score, decided, p))  # sums do not depend on the order of the rows
    p, score, flags = p[order], score[order], decided[order].astype(np.float64)
    alpha = arguments.fraction("review_fraction", review_fraction)
    (review,) = reviews(score, [alpha], np.ones(p.size))
    reviewed = review.reviewed(score)
    wrong = np.where(flags > 0, 1 - p, p)
    parts = {"everything": np.ones(p.size), "reviewed": reviewed, "unreviewed": 1 - reviewed}
    yield _precision(p, flags)
    yield _recall(p, flags)
    yield _auroc(p)
    for figure in FIGURES.values():
        if (share := figure.errors) is not None:
            yield _errors(figure.key, p, wrong, parts[share.of], parts[share.over], share.left)


def _errors(
    metric: str, p: Floats, wrong: Floats, part: Floats, over: Floats, left: bool
) -> Finding:
    """Return the expected errors in a part (n,) over the size of a part (n,), or what is left."""
    size = float(over.sum())
    if reason := _lacks(p, size, "comments in its denominator"):
        return _insufficient(metric, p, reason)
    value = float(np.dot(part, wrong)) / size
    return _finding(metric, p, 1 - value if left else value, _spread(p, part / size))


def _precision(p: Floats, flagged: Floats) -> Finding:
    """Return the expected positives among the flagged over these."""
    size = float(flagged.sum())
    if reason := _lacks(p, size, "comments in its denominator"):
        return _insufficient("precision_flagged", p, reason)
    value = float(np.dot(p, flagged)) / size
    return _finding("precision_flagged", p, value, _spread(p, flagged / size))


def _recall(p: Floats, flagged: Floats) -> Finding:
    """Return the expected positives among the flagged over all expected positives."""
    positives = float(p.sum())
    if reason := _lacks(p, positives, "toxic comments expected"):
        return _insufficient("recall_flagged", p, reason)
    value = float(np.dot(p, flagged)) / positives
    return _finding("recall_flagged", p, value, _spread(p, (flagged - value) / positives))


def _auroc(p: Floats) -> Finding:
    """Return the expected share of pairs, one toxic and one not, in the correct order."""
    values, counts = np.unique(p, return_counts=True)
    positive, negative = counts * values, counts * (1 - values)  # expected, by distinct score
    positives, negatives = float(positive.sum()), float(negative.sum())
    if reason := _lacks(p, min(positives, negatives), "comments expected of a class"):
        return _insufficient("auroc", p, reason)
    beaten = np.cumsum(negative) - negative / 2
    losing = positives - np.cumsum(positive) + positive / 2
    own = float(np.dot(positive, 1 - values))  # no comment makes a pair with itself
    value = (float(np.dot(positive, beaten)) - own / 2) / (positives * negatives - own)
    influence = (beaten / negatives - value) / positives - (losing / positives - value) / negatives
    return _finding("auroc", p, value, _spread(values, influence, counts))


def _spread(p: Floats, influence: Floats, count: NDArray[np.int64] | int = 1) -> float:
    """Return the standard deviation of an estimate to which each label adds its influence."""
    return math.sqrt(float((count * p * (1 - p) * influence**2).sum()))


def _lacks(p: Floats, size: float, noun: str) -> str:
    """Return why there are too few comments; empty if there are enough."""
    if p.size < MINIMUM_COMMENTS:
        return f"{p.size} comments of the day; {MINIMUM_COMMENTS} are needed"
    return "" if size >= MINIMUM_PART else f"{size:.0f} {noun}; {MINIMUM_PART} are needed"


def _finding(metric: str, p: Floats, value: float, spread: float) -> Finding:
    return Finding(
        metric=f"cbpe_{metric}",
        feature="prob",
        value=value,
        low=max(value - NORMAL_QUANTILE * spread, 0.0),
        high=min(value + NORMAL_QUANTILE * spread, 1.0),
        n=p.size,
    )


def _insufficient(metric: str, p: Floats, reason: str) -> Finding:
    return Finding(metric=f"cbpe_{metric}", feature="prob", value=None, n=p.size, reason=reason)
