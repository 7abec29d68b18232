"""Scores of a model that was trained at another prevalence, brought to the one that is expected.

Training on as many positives as negatives, as the paper does (section 5.2), multiplies the odds of
every comment by the same factor. Dividing by it again is all that allocation needs: it halves the
labels at 1 % prevalence, whether the expected prevalence is right or half of what it should be.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from modwatch.audit import checks
from modwatch.errors import DesignError, MetricInputError
from modwatch.metrics import inputs
from modwatch.metrics.inputs import Floats

#: The logit of no float but 0 and 1 is further from 0.
_WIDEST = 750.0
_STEPS = 80


def prior_shift(score: ArrayLike, prevalence: float, *, counts: ArrayLike | None = None) -> float:
    """Return what to add to the logit of the scores (n,), so that their mean is `prevalence`.

    `counts` (n,) says how many comments have each score. DesignError for a prevalence outside
    (0, 1), no comment, or scores of exactly 0 or 1 that keep the mean from it.

    >>> round(prior_shift([0.5, 0.5], 0.1), 4)
    -2.1972
    """
    if not 0 < prevalence < 1:
        raise DesignError(f"the expected prevalence is {prevalence}; it must lie in (0, 1)")
    values = checks.shares("score", score)
    ones = np.ones(values.size, dtype=np.int64)
    number = ones if counts is None else checks.whole_numbers("counts", counts)
    inputs.same_length(score=values, counts=number)
    total = number.sum()
    if not total:
        raise DesignError("there is no comment to recalibrate; leave the expected prevalence out")
    if not number @ (values == 1) < prevalence * total < number @ (values > 0):
        raise DesignError(
            f"too many scores are exactly 0 or 1 for a mean of {prevalence}; leave the expected "
            "prevalence out, or score between 0 and 1"
        )
    low, high = -_WIDEST, _WIDEST
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if np.average(shifted(values, middle), weights=number) < prevalence:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def shifted(score: ArrayLike, shift: float) -> Floats:
    """Return the scores (n,) with `shift` added to their logit; 0 and 1 stay.

    MetricInputError for scores outside [0, 1], or a shift that is no number.

    >>> shifted([0.0, 0.5, 1.0], 0.0).tolist()
    [0.0, 0.5, 1.0]
    """
    if not np.isfinite(shift):
        raise MetricInputError(f"the shift is {shift}; it must be a number")
    return np.asarray(special.expit(special.logit(checks.shares("score", score)) + shift))
