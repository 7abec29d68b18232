"""Recalibration: shifts scores of a model trained at another prevalence to the expected one.

Training on equal numbers of positives and negatives, as the paper does (section 5.2), multiplies
the odds of every comment by the same factor. Allocation only needs that factor undone: this halves
the labels at 1 % prevalence, even if the expected prevalence is half of the true one.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from modwatch.audit.arguments import shares, whole_numbers
from modwatch.errors import DesignError, MetricInputError
from modwatch.metrics import inputs
from modwatch.metrics.inputs import Floats

#: Every float except 0 and 1 has a logit closer to 0.
_WIDEST = 750.0
_STEPS = 80


def prior_shift(score: ArrayLike, prevalence: float, *, counts: ArrayLike | None = None) -> float:
    """Return the shift of the logit of the scores (n,) that makes their mean `prevalence`.

    `counts` (n,) is the number of comments with each score, 1 by default. DesignError for a
    prevalence outside (0, 1), no comments, or too many scores of exactly 0 or 1 to reach it.

    >>> round(prior_shift([0.5, 0.5], 0.1), 4)
    -2.1972
    """
    if not 0 < prevalence < 1:
        raise DesignError(f"Expected prevalence must be in (0, 1), got {prevalence}.")
    values = shares("score", score)
    ones = np.ones(values.size, dtype=np.int64)
    number = ones if counts is None else whole_numbers("counts", counts)
    inputs.same_length(score=values, counts=number)
    total = number.sum()
    if not total:
        raise DesignError("There are no comments to recalibrate; omit the expected prevalence.")
    if not number @ (values == 1) < prevalence * total < number @ (values > 0):
        raise DesignError(
            f"Too many scores are exactly 0 or 1 for a mean of {prevalence}; omit the expected "
            "prevalence, or use scores between 0 and 1."
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

    MetricInputError for scores outside [0, 1], or a shift that is not a number.

    >>> shifted([0.0, 0.5, 1.0], 0.0).tolist()
    [0.0, 0.5, 1.0]
    """
    if not np.isfinite(shift):
        raise MetricInputError(f"Shift must be a finite number, got {shift}.")
    return np.asarray(special.expit(special.logit(shares("score", score)) + shift))
