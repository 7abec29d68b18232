"""Sensitivity of precision and recall to annotator errors at given rates.

Rogan & Gladen (1978): at a share p of positives, annotators with error rates `false_positive` and
`false_negative` observe p (1 − false_negative) + (1 − p) false_positive. Solved for p on each side
of the decision.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats, whole_numbers


@dataclass(frozen=True, kw_only=True)
class Corrected:
    """The metrics of an audit, corrected for annotator errors."""

    false_positive: float
    false_negative: float
    prevalence_unflagged: float
    precision: float
    #: None where no positives are left.
    recall: float | None
    #: Whether a corrected share was outside [0, 1] and was clipped.
    cut: bool


def rogan_gladen(observed: float | Floats, false_positive: float, false_negative: float) -> Floats:
    """Return the true share behind an observed share, not clipped to [0, 1].

    MetricInputError for error rates outside [0, 1), or that sum to 1 or more.

    >>> round(float(rogan_gladen(0.068, 0.02, 0.02)), 6)
    0.05
    """
    if not 0 <= false_positive < 1 or not 0 <= false_negative < 1:
        raise MetricInputError("Annotator error rates must be in [0, 1).")
    if false_positive + false_negative >= 1:
        raise MetricInputError(
            "Annotator error rates must sum to less than 1; such labels carry no information."
        )
    return np.asarray((observed - false_positive) / (1 - false_positive - false_negative))


def corrected(
    precision: float,
    prevalence_unflagged: float,
    comments: tuple[int, int],
    *,
    errors: Sequence[tuple[float, float]],
    recall: float | None = None,
) -> list[Corrected]:
    """Return the metrics at each pair of (false positive rate, false negative rate).

    `comments` are the numbers of flagged and unflagged comments. At low prevalence, recall depends
    mostly on false positives among the many negatives. The ratio of the odds of the bias-corrected
    `recall` to those of the plain quotient is kept at every pair, so that error rates of 0 change
    nothing. MetricInputError for shares outside [0, 1], negative numbers, or invalid error rates.

    >>> table = corrected(0.8, 0.01, (100, 9900), errors=[(0.0, 0.0), (0.005, 0.0)])
    >>> [round(row.recall, 2) for row in table]
    [0.45, 0.62]
    >>> round(corrected(0.8, 0.01, (100, 9900), errors=[(0.0, 0.0)], recall=0.44)[0].recall, 6)
    0.44
    """
    arguments.fraction("precision", precision)
    arguments.fraction("prevalence_unflagged", prevalence_unflagged)
    whole_numbers("comments", comments)
    tp, fn = comments[0] * precision, comments[1] * prevalence_unflagged
    odds = 1.0
    if recall is not None and arguments.fraction("recall", recall) not in (0, 1) and tp * fn:
        odds = recall / (1 - recall) * fn / tp
    rows = []
    for false_positive, false_negative in errors:
        shares = [
            float(rogan_gladen(observed, false_positive, false_negative))
            for observed in (precision, prevalence_unflagged)
        ]
        on_flagged, on_unflagged = (min(max(share, 0.0), 1.0) for share in shares)
        tp, fn = comments[0] * on_flagged * odds, comments[1] * on_unflagged
        rows.append(
            Corrected(
                false_positive=false_positive,
                false_negative=false_negative,
                prevalence_unflagged=on_unflagged,
                precision=on_flagged,
                recall=tp / (tp + fn) if tp + fn else None,
                cut=min(shares) < 0 or max(shares) > 1,
            )
        )
    return rows
