"""Scores of a model that was trained at another prevalence, brought to the one that is expected.

Training on as many positives as negatives, as the paper does (section 5.2), multiplies the odds of
every comment by the same factor. Dividing by it again is all that allocation needs: it halves the
labels at 1 % prevalence, whether the expected prevalence is right or half of what it should be.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from modwatch.errors import DesignError
from modwatch.metrics import inputs
from modwatch.metrics.inputs import Floats

_WIDEST = 40.0
_STEPS = 80


def prior_shift(score: ArrayLike, prevalence: float, *, counts: ArrayLike | None = None) -> float:
    """Return what to add to the logit of the scores (n,), so that their mean is `prevalence`.

    `counts` (n,) says how many comments have each score. DesignError for a prevalence outside
    (0, 1).

    >>> round(prior_shift([0.5, 0.5], 0.1), 4)
    -2.1972
    """
    if not 0 < prevalence < 1:
        raise DesignError(f"the expected prevalence is {prevalence}; it must lie in (0, 1)")
    values = inputs.probabilities(score)
    number = np.ones(values.size) if counts is None else inputs.column("counts", counts)
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

    >>> shifted([0.0, 0.5, 1.0], 0.0).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.asarray(special.expit(special.logit(np.asarray(score, np.float64)) + shift))
