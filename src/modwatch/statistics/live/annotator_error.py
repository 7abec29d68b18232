"""Annotator error rates: how often a person's label is wrong.

The true labels are unknown; only how often two labels differ is observed. If two people err
independently at the same rate e, whatever the true label, their labels of one comment differ with
probability r = 2e(1−e), so e = (1 − √(1−2r))/2 (Gordon et al. 2021, Eq. 3, for two people). Errors
that both make alike, because of a misleading guideline or a joke that everybody misses, do not
show, so e is then too small. Applied to one person's two labels, the formula gives a lower bound:
people repeat their own misreadings. Gold items, whose label is known, measure e directly but are
not a sample of the routed comments.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from modwatch.statistics import inputs
from modwatch.statistics.estimate import Estimate
from modwatch.statistics.inputs import Floats
from modwatch.statistics.intervals import share_confidence

#: Pairs of labels that an error rate requires: with 30 that all agree, e may still be 5 %.
MINIMUM_PAIRS = 30


@dataclass(frozen=True, kw_only=True)
class ErrorRate(Estimate):
    """The error rate e of one label, in [0, ½).

    The high end may be ½, where labels carry no information. `n` counts pairs of labels, or answers
    to gold items; it is 0 for an assumed rate.
    """

    #: Pairs of equal weight with the same information (Kish).
    effective_n: float
    #: Confidence distribution, as an ascending sample; empty when insufficient.
    confidence: Floats = field(repr=False, compare=False)


def annotator_error_rate(
    y1: ArrayLike,
    y2: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    minimum: int = MINIMUM_PAIRS,
) -> ErrorRate:
    """Return the error rate e in [0, ½) of one person, from two people's labels of each comment.

    e = (1 − √(1−2r))/2 of the weighted disagreement rate r (Gordon et al. 2021, Eq. 3). Interval:
    that of r, mid-P Clopper–Pearson on the effective number of pairs (Korn & Graubard 1998),
    transformed by e(r). Insufficient with fewer than `minimum` pairs of positive weight, and for
    r ≥ ½, as of coin tosses.

    Args:
        y1, y2: (m,) labels, 0 or 1.
        sample_weight: (m,) ≥ 0; 1 each by default.
        minimum: pairs below which the estimate is insufficient.

    Raises:
        MetricInputError: labels other than 0 and 1, negative weights, different lengths.

    >>> labels = np.zeros(100)
    >>> flipped = np.where(np.arange(100) < 18, 1, 0)
    >>> round(annotator_error_rate(labels, flipped).value, 6)
    0.1
    """
    first, second = inputs.labels(y1, name="y1"), inputs.labels(y2, name="y2")
    w = inputs.weights(sample_weight, first.size)
    inputs.same_length(y1=first, y2=second, sample_weight=w)
    n = int((w > 0).sum())
    if n < max(minimum, 1):
        return _insufficient(f"{n} pairs of labels; {max(minimum, 1)} are needed", n, 0.0)
    effective = float(w.sum() ** 2 / (w**2).sum())
    disagreement = float(np.dot(w, first != second) / w.sum())
    if disagreement >= 0.5:
        return _insufficient("two people's labels differ as often as coin tosses", n, effective)
    confidence = error_of(share_confidence(disagreement * effective, effective))
    value = float(error_of(np.array([disagreement]))[0])
    return _error_rate(value, confidence, n, effective)


def error_of(disagreement: Floats) -> Floats:
    """Return the error rate e in [0, ½] implied by a disagreement rate r; ½ for r ≥ ½.

    >>> error_of(np.array([0.0, 0.18, 0.7])).round(6).tolist()
    [0.0, 0.1, 0.5]
    """
    return np.asarray((1 - np.sqrt(np.clip(1 - 2 * disagreement, 0, 1))) / 2)


def _error_rate(value: float, confidence: Floats, n: int, effective_n: float) -> ErrorRate:
    """Return a rate with the interval of its confidence distribution."""
    low, high = np.quantile(confidence, [0.025, 0.975])
    return ErrorRate.of(
        value, (float(low), float(high)), n=n, effective_n=effective_n, confidence=confidence
    )


def _insufficient(reason: str, n: int, effective_n: float) -> ErrorRate:
    return ErrorRate.insufficient(reason, n=n, effective_n=effective_n, confidence=np.empty(0))
