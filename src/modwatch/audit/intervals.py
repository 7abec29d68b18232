"""Intervals of a share from a stratified sample, side by side.

`inversion` is the default (`audit.inversion` says why). The others are what survey software offers:
they take what a stratum showed for what it holds.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import special, stats

from modwatch.audit import checks
from modwatch.audit.counts import WeightedCounts
from modwatch.audit.inversion import HIDDEN_SHARE, inversion_interval
from modwatch.errors import DesignError
from modwatch.metrics.inputs import Floats

METHODS = ("inversion", "korn_graubard", "logit", "bootstrap")
SIDES = ("both", "lower", "upper")

_RESAMPLES = 2000


@dataclass(frozen=True, kw_only=True)
class IntervalRule:
    """Which interval an audit reports; frozen in its plan.

    >>> IntervalRule(level=0.9, sides="lower").tails
    (0.1, 0.0)
    """

    method: str = "inversion"
    #: Confidence level in (0.5, 1).
    level: float = 0.95
    #: `lower` and `upper` give one bound at the level; the other end is 0 or 1.
    sides: str = "both"
    #: Part of the positives in [0, 1) that the score may be blind to; for `inversion`.
    hidden_share: float = HIDDEN_SHARE
    #: Of the bootstrap.
    seed: int = 0

    @property
    def mirrored(self) -> "IntervalRule":
        """The rule whose one bound is the other one; an interval stays itself.

        >>> IntervalRule(sides="lower").mirrored.sides
        'upper'
        """
        other = {"lower": "upper", "upper": "lower"}
        return replace(self, sides=other.get(self.sides, self.sides))

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise DesignError(f"the interval is {self.method!r}; it must be one of {METHODS}")
        if self.sides not in SIDES:
            raise DesignError(f"the sides are {self.sides!r}; they must be one of {SIDES}")
        if not 0.5 < self.level < 1:
            raise DesignError(f"the level is {self.level}; it must lie in (0.5, 1)")
        if not 0 <= self.hidden_share < 1:
            raise DesignError(f"the hidden share is {self.hidden_share}; it must lie in [0, 1)")

    @property
    def tails(self) -> tuple[float, float]:
        """Probability beyond the lower and the upper end."""
        beyond = 1 - self.level
        if self.sides == "both":
            return beyond / 2, beyond / 2
        return (round(beyond, 12), 0.0) if self.sides == "lower" else (0.0, round(beyond, 12))


def interval(counts: WeightedCounts, rule: IntervalRule) -> tuple[Floats, Floats]:
    """Return the ends (…) of the interval of the share that `counts` estimate.

    Where every comment is labelled, both are the share itself, whatever the method.

    >>> counts = WeightedCounts(weight=np.array([0.01]), labels=np.array([100]),
    ...     positives=np.array([10]), score=np.array([0.1]), unseen=np.array([1.0]))
    >>> ends = interval(counts, IntervalRule(method="korn_graubard"))
    >>> [round(float(end), 3) for end in ends]
    [0.049, 0.177]
    """
    if not counts.unseen.any():
        return counts.rate, counts.rate
    if rule.method == "inversion":
        return inversion_interval(counts, tails=rule.tails, hidden_share=rule.hidden_share)
    method = {"korn_graubard": korn_graubard, "logit": logit}.get(rule.method)
    if method is not None:
        return method(counts, rule.tails)
    return bootstrap(counts, rule.tails, seed=rule.seed)


def korn_graubard(
    counts: WeightedCounts, tails: tuple[float, float] = (0.025, 0.025)
) -> tuple[Floats, Floats]:
    """Return the Clopper–Pearson interval on the effective sample size (Korn & Graubard 1998).

    n* = p̂(1−p̂)/V̂ × (t(n−1)/t(df))², df = labels less strata; where nothing varies, p̂(1−p̂)/V̂ is
    taken to be n. DesignError for tails outside [0, 0.5).
    """
    checks.tails(tails)
    rate, variance = counts.rate, counts.variance
    labels, freedom = float(counts.labels.sum()), counts.degrees_of_freedom
    effective = np.where(
        variance > 0, rate * (1 - rate) / np.where(variance > 0, variance, 1), labels
    )
    ends = []
    for tail, lower in zip(tails, (True, False), strict=True):
        if tail <= 0:
            ends.append(np.full(rate.shape, 0.0 if lower else 1.0))
            continue
        plain, true = stats.t.ppf(1 - tail, max(labels - 1, 1)), stats.t.ppf(1 - tail, freedom)
        trials = effective * float(plain / true) ** 2
        found = rate * trials
        if lower:
            end = special.betaincinv(np.maximum(found, 1e-12), trials - found + 1, tail)
            ends.append(np.where(found > 0, end, 0.0))
        else:
            end = special.betaincinv(found + 1, np.maximum(trials - found, 1e-12), 1 - tail)
            ends.append(np.where(found < trials, end, 1.0))
    return ends[0], ends[1]


def logit(
    counts: WeightedCounts, tails: tuple[float, float] = (0.025, 0.025)
) -> tuple[Floats, Floats]:
    """Return the interval that is symmetric on the logit scale, with Student's t.

    A share of 0 or 1 has no logit, and labels that do not vary tell no error: the interval is
    Korn–Graubard's then. DesignError for tails outside [0, 0.5).
    """
    rate, error = counts.rate, np.sqrt(counts.variance)
    inside = (rate > 0) & (rate < 1) & (error > 0)
    safe = np.where(inside, rate, 0.5)
    scale = error / (safe * (1 - safe))
    other = korn_graubard(counts, tails)
    ends = []
    for number, (tail, sign) in enumerate(zip(tails, (-1, 1), strict=True)):
        step = sign * stats.t.ppf(1 - tail, counts.degrees_of_freedom) if tail > 0 else 0.0
        end = special.expit(special.logit(safe) + step * scale)
        ends.append(np.where(inside & (tail > 0), end, other[number]))
    return ends[0], ends[1]


def bootstrap(
    counts: WeightedCounts, tails: tuple[float, float] = (0.025, 0.025), *, seed: int = 0
) -> tuple[Floats, Floats]:
    """Return the percentile interval of a seeded, stratified bootstrap.

    Deviations are scaled by √((1−f) n/(n−1)), so that they vary as the sample did (Rao & Wu 1988).
    DesignError for tails outside [0, 0.5).
    """
    checks.tails(tails)
    generator = np.random.default_rng(seed)
    rate = counts.positives / counts.labels
    drawn = generator.binomial(counts.labels, rate, size=(_RESAMPLES, *rate.shape)) / counts.labels
    scale = np.sqrt(counts.unseen * counts.labels / np.maximum(counts.labels - 1, 1))
    shares = (rate + scale * (drawn - rate)) @ (counts.weight * counts.labels)
    low, high = np.quantile(shares, [tails[0], 1 - tails[1]], axis=0)
    low = np.where(tails[0] > 0, np.clip(low, 0, 1), 0.0)
    return low, np.where(tails[1] > 0, np.clip(high, 0, 1), 1.0)
