"""How many labels an audit needs, and what they cost, before anything is drawn.

The paper asks for a standard error of ε p / z: the 95 % interval of the prevalence p then reaches
to p (1 ± ε). Wei et al., section 4.5, appendices A.4 and A.5.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from modwatch.audit import checks
from modwatch.errors import DesignError
from modwatch.metrics.inputs import Floats

#: Of the paper's annotators (appendix D).
LABELS_AN_HOUR = 600


def required_labels(
    prevalence: float, *, relative_error: float = 0.2, confidence: float = 0.95
) -> int:
    """Return how many labels a random sample needs: ⌈(1−p)/p × (z/ε)²⌉ (Eq. 9, Table 2).

    `prevalence` in (0, 1], `relative_error` ε > 0, `confidence` in (0, 1); DesignError otherwise.

    >>> required_labels(0.059), required_labels(0.001, relative_error=0.05)
    (1532, 1535047)
    """
    error = _standard_error(prevalence, relative_error, confidence)
    # Rounded before it is rounded up, so that a whole number stays what it is.
    return max(1, math.ceil(round(prevalence * (1 - prevalence) / error**2, 9)))


def required_labels_stratified(
    population: ArrayLike,
    rate: ArrayLike,
    share: ArrayLike,
    *,
    relative_error: float = 0.2,
    confidence: float = 0.95,
) -> int:
    """Return how many labels a stratified sample needs, a part share_h of them in stratum h.

    `population` N_h, `rate` p_h in [0, 1] as expected, `share` > 0 summing to 1, each (H,). Eq. 11
    is this with share 1/H, Eq. 13 with ∝ N_h √(p_h(1−p_h)). No correction for finite strata.
    DesignError and MetricInputError name what does not fit.

    >>> half = [0.5, 0.5]
    >>> required_labels_stratified([500, 500], [0.1, 0.1], half), required_labels(0.1)
    (865, 865)
    """
    sizes, rates = _strata(population, rate)
    shares = checks.shares("share", share)
    checks.one_a_stratum(sizes.size, share=shares)
    if not (shares > 0).all() or abs(shares.sum() - 1) > 1e-9:
        raise DesignError("the shares of the strata must be positive and sum to 1")
    weight = sizes / sizes.sum()
    error = _standard_error(float(weight @ rates), relative_error, confidence)
    variance = float((weight**2 * rates * (1 - rates) / shares).sum())  # times the labels
    return max(1, math.ceil(round(variance / error**2, 9)))


def optimal_shares(population: ArrayLike, rate: ArrayLike) -> Floats:
    """Return the shares (H,) of labels that make the variance least (Eq. 8).

    DesignError where no stratum varies: any allocation does then.

    >>> optimal_shares([900, 100], [0.01, 0.5]).round(3).tolist()
    [0.642, 0.358]
    """
    sizes, rates = _strata(population, rate)
    mass = sizes * np.sqrt(rates * (1 - rates))
    if not mass.any():
        raise DesignError("no stratum varies, so that none needs more labels than another")
    return np.asarray(mass / mass.sum())


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a design asks of people."""

    design: str
    labels: int
    hours: float
    #: Labels of a random sample over labels of this design.
    times_cheaper: float


def costs(
    population: ArrayLike,
    rate: ArrayLike,
    designs: Mapping[str, ArrayLike],
    *,
    relative_error: float = 0.2,
    confidence: float = 0.95,
    labels_an_hour: float = LABELS_AN_HOUR,
) -> list[Cost]:
    """Return the cost of a random sample and of each design, given by its shares (H,) of labels.

    >>> table = costs([9000, 1000], [0.002, 0.2], {"equal": [0.5, 0.5]})
    >>> [(cost.design, cost.labels) for cost in table]
    [('random', 4310), ('equal', 1301)]
    """
    if not 0 < labels_an_hour < math.inf:
        raise DesignError(f"{labels_an_hour} labels an hour; it must be a number above 0")
    sizes, rates = _strata(population, rate)
    accuracy = {"relative_error": relative_error, "confidence": confidence}
    plain = required_labels(float(sizes @ rates / sizes.sum()), **accuracy)
    wanted = {"random": plain} | {
        name: required_labels_stratified(sizes, rates, share, **accuracy)
        for name, share in designs.items()
    }
    return [
        Cost(design=name, labels=n, hours=n / labels_an_hour, times_cheaper=plain / n)
        for name, n in wanted.items()
    ]


def _strata(population: ArrayLike, rate: ArrayLike) -> tuple[Floats, Floats]:
    """Return N_h and p_h (H,), checked."""
    sizes, rates = checks.strata_sizes(population), checks.shares("rate", rate)
    checks.one_a_stratum(sizes.size, rate=rates)
    return sizes.astype(np.float64), rates


def _standard_error(prevalence: float, relative_error: float, confidence: float) -> float:
    """Return the standard error that is asked for."""
    if not 0 < prevalence <= 1:
        raise DesignError(f"the expected prevalence is {prevalence}; it must lie in (0, 1]")
    if not 0 < relative_error < math.inf:
        raise DesignError(f"the relative error is {relative_error}; it must be a number above 0")
    if not 0 < confidence < 1:
        raise DesignError(f"the confidence is {confidence}; it must lie in (0, 1)")
    return relative_error * prevalence / float(stats.norm.ppf((1 + confidence) / 2))
