"""Expected performance of a day's decisions if its scores are calibrated; requires no labels.

Confidence-based performance estimation (CBPE): a comment scored p is toxic with probability p, so
the expected error of its decision is known. It detects changes of the comments that the scores
reflect. It does not detect miscalibration: an over-confident model appears better than it is. That
requires labels (`measure_days`).

Means over a fixed set of comments are exact expectations. Nothing is simulated.
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

#: Minimum number of comments in a denominator.
MINIMUM_PART = 10


def expected_performance(
    y_prob: ArrayLike,
    y_score: ArrayLike,
    *,
    review_fraction: float,
    threshold: float = 0.5,
    flagged: NDArray[np.bool_] | None = None,
) -> Iterator[Finding]:
    """Yield the expected OC-Acc, RE and accuracy of n comments.

    If scores are calibrated, the interval covers the true value on 95 % of days, since labels of
    known probability are still random; it does not account for miscalibration. Too few comments
    give an insufficient finding.

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
    [0.87, 0.2, 0.85]
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
    for figure in FIGURES.values():
        if (share := figure.errors) is not None:
            part, over = parts[share.of], parts[share.over]
            yield _errors(f"cbpe_{figure.key}", p, wrong, part, over, share.left)


def _errors(
    metric: str, p: Floats, wrong: Floats, part: Floats, over: Floats, left: bool
) -> Finding:
    """Return the expected errors in a part (n,) over the size of a part (n,), or what is left."""
    size = float(over.sum())
    reason = ""
    if p.size < MINIMUM_COMMENTS:
        reason = f"{p.size} comments of the day; {MINIMUM_COMMENTS} are needed"
    elif size < MINIMUM_PART:
        reason = f"{size:.0f} comments in its denominator; {MINIMUM_PART} are needed"
    if reason:
        return Finding(metric=metric, feature="prob", value=None, n=p.size, reason=reason)
    value = float(np.dot(part, wrong)) / size
    expected = 1 - value if left else value
    influence = part / size
    spread = math.sqrt(float((p * (1 - p) * influence**2).sum()))  # each label adds its influence
    return Finding(
        metric=metric,
        feature="prob",
        value=expected,
        low=max(expected - NORMAL_QUANTILE * spread, 0.0),
        high=min(expected + NORMAL_QUANTILE * spread, 1.0),
        n=p.size,
    )
