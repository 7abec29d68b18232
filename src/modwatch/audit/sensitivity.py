"""What precision and recall would be if the people who labelled erred at given rates.

Rogan & Gladen (1978): of a share p of positives, people who call a share `false_positive` of
negatives positive, and a share `false_negative` of positives negative, see
p (1 − false_negative) + (1 − p) false_positive. Solved for p on each side of the decision.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from modwatch.audit import checks
from modwatch.errors import MetricInputError
from modwatch.metrics import inputs
from modwatch.metrics.inputs import Floats


@dataclass(frozen=True, kw_only=True)
class Corrected:
    """The figures of an audit as they would be without people's errors."""

    false_positive: float
    false_negative: float
    prevalence_unflagged: float
    precision: float
    #: None where no positive is left.
    recall: float | None
    #: Whether the errors could explain all positives of a side, so that its share was cut to 0.
    cut: bool


def rogan_gladen(seen: float | Floats, false_positive: float, false_negative: float) -> Floats:
    """Return the true share behind a share that was seen, not cut to [0, 1].

    MetricInputError for error rates outside [0, 1), or that sum to 1 or more.

    >>> round(float(rogan_gladen(0.068, 0.02, 0.02)), 6)
    0.05
    """
    if not 0 <= false_positive < 1 or not 0 <= false_negative < 1:
        raise MetricInputError("the error rates of people must lie in [0, 1)")
    if false_positive + false_negative >= 1:
        raise MetricInputError("people who err that often tell nothing; take other people")
    return np.asarray((seen - false_positive) / (1 - false_positive - false_negative))


def corrected(
    precision: float,
    prevalence_unflagged: float,
    comments: tuple[int, int],
    *,
    errors: Sequence[tuple[float, float]],
    recall: float | None = None,
) -> list[Corrected]:
    """Return the figures at each pair of (false positive rate, false negative rate).

    `comments` are the numbers of flagged and unflagged comments. Few false positives among many
    negatives are many: at low prevalence recall depends on them more than on anything else. The
    odds of a `recall` that is free of bias over those of the plain quotient of the two shares are
    kept at every pair, so that people who never err change nothing.
    MetricInputError for shares outside [0, 1], negative numbers, or impossible error rates.

    >>> table = corrected(0.8, 0.01, (100, 9900), errors=[(0.0, 0.0), (0.005, 0.0)])
    >>> [round(row.recall, 2) for row in table]
    [0.45, 0.62]
    >>> round(corrected(0.8, 0.01, (100, 9900), errors=[(0.0, 0.0)], recall=0.44)[0].recall, 6)
    0.44
    """
    inputs.fraction("the precision", precision)
    inputs.fraction("the prevalence of the unflagged", prevalence_unflagged)
    checks.whole_numbers("comments", comments)
    found, lost = comments[0] * precision, comments[1] * prevalence_unflagged
    odds = 1.0
    if recall is not None and inputs.fraction("the recall", recall) not in (0, 1) and found * lost:
        odds = recall / (1 - recall) * lost / found
    rows = []
    for false_positive, false_negative in errors:
        shares = [
            float(rogan_gladen(seen, false_positive, false_negative))
            for seen in (precision, prevalence_unflagged)
        ]
        right, missed = (min(max(share, 0.0), 1.0) for share in shares)
        found, lost = comments[0] * right * odds, comments[1] * missed
        rows.append(
            Corrected(
                false_positive=false_positive,
                false_negative=false_negative,
                prevalence_unflagged=missed,
                precision=right,
                recall=found / (found + lost) if found + lost else None,
                cut=min(shares) < 0 or max(shares) > 1,
            )
        )
    return rows
