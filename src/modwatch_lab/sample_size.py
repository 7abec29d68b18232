"""How many labels a random sample needs, as Wei et al. print it (section 4.5, Table 2)."""

import math

from scipy import special

from modwatch.common.errors import DesignError

#: Of standard errors; smaller ones require more than 10^11 labels.
_FINEST = 1e-12


def required_labels(
    prevalence: float, *, relative_error: float = 0.2, confidence: float = 0.95
) -> int:
    """Return how many labels a random sample needs: ⌈(1−p)/p × (z/ε)²⌉ (Eq. 9, Table 2).

    `prevalence` in (0, 1], `relative_error` ε > 0, `confidence` in (0, 1); DesignError otherwise.

    >>> required_labels(0.059), required_labels(0.001, relative_error=0.05)
    (1532, 1535047)
    """
    error = _standard_error(prevalence, relative_error, confidence)
    # Rounded before ceil, so that floating-point noise does not add a label.
    return max(1, math.ceil(round(prevalence * (1 - prevalence) / error / error, 9)))


def _standard_error(prevalence: float, relative_error: float, confidence: float) -> float:
    """Return the target standard error."""
    if not 0 < prevalence <= 1:
        raise DesignError(f"Expected prevalence must be in (0, 1], got {prevalence}.")
    if not 0 < relative_error < math.inf:
        raise DesignError(f"Relative error must be a finite number above 0, got {relative_error}.")
    quantile = float(special.ndtri((1 + confidence) / 2)) if 0 < confidence < 1 else 0.0
    if not quantile:  # also of numbers so near 0 that half of them is nothing beside ½
        raise DesignError(f"Confidence must be in (0, 1), got {confidence}.")
    error = relative_error * prevalence / quantile
    if error < _FINEST:
        raise DesignError(f"a prevalence of {prevalence:g} requires more labels than there are")
    return error
