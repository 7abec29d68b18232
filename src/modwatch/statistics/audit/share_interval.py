"""The share of positives on one side of the decision, with its interval.

`finite_inversion` is the default method, `inversion` the same without the finite population. The
others are those of survey software: they estimate the rate of a stratum from its own labels alone.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import special, stats

from modwatch.common.errors import DesignError
from modwatch.statistics.arguments import Floats
from modwatch.statistics.audit.finite_inversion import finite_inversion
from modwatch.statistics.audit.inversion_interval import HIDDEN_SHARE, inversion_interval
from modwatch.statistics.audit.stratified import WeightedCounts
from modwatch.statistics.intervals import clopper_pearson

METHODS = ("finite_inversion", "inversion", "korn_graubard", "logit")
SIDES = ("both", "lower", "upper")


@dataclass(frozen=True, kw_only=True)
class IntervalOptions:
    """Which confidence interval an audit reports; frozen in its plan.

    >>> IntervalOptions(level=0.9, sides="lower").tails
    (0.1, 0.0)
    """

    method: str = "finite_inversion"
    #: Confidence level in (0.5, 1).
    level: float = 0.95
    #: both, or one-sided: `lower` or `upper` gives one bound at the level, the other end is 0 or 1.
    sides: str = "both"
    #: Share in [0, 1) of all positives of the period that may have scores like those of negatives;
    #: for `finite_inversion`. For `inversion`, of the positives of each side.
    hidden_share: float = HIDDEN_SHARE

    @property
    def mirrored(self) -> "IntervalOptions":
        """The options of the opposite one-sided bound; two-sided options stay the same.

        >>> IntervalOptions(sides="lower").mirrored.sides
        'upper'
        """
        other = {"lower": "upper", "upper": "lower"}
        return replace(self, sides=other.get(self.sides, self.sides))

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise DesignError(f"Interval method must be one of {METHODS}, got {self.method!r}.")
        if self.sides not in SIDES:
            raise DesignError(f"Sides of the interval must be one of {SIDES}, got {self.sides!r}.")
        if not 0.5 < self.level < 1:
            raise DesignError(f"Confidence level must be in (0.5, 1), got {self.level}.")
        if not 0 <= self.hidden_share < 1:
            raise DesignError(f"Hidden share must be in [0, 1), got {self.hidden_share}.")

    @property
    def tails(self) -> tuple[float, float]:
        """Probability beyond the lower and the upper end."""
        beyond = 1 - self.level
        if self.sides == "both":
            return beyond / 2, beyond / 2
        return (round(beyond, 12), 0.0) if self.sides == "lower" else (0.0, round(beyond, 12))


def interval(
    counts: WeightedCounts, options: IntervalOptions, found: float | Floats = 0.0
) -> tuple[Floats, Floats]:
    """Return the ends (…) of the interval of the share estimated by `counts`.

    Where every comment is labelled, both are the share itself. `found` (…): the positives of the
    other side, for each comment of this one; see `finite_inversion`.

    >>> counts = WeightedCounts(weight=np.array([0.01]), labels=np.array([100]),
    ...     positives=np.array([10]), score=np.array([0.1]), unseen=np.array([1.0]))
    >>> ends = interval(counts, IntervalOptions(method="korn_graubard"))
    >>> [round(float(end), 3) for end in ends]
    [0.049, 0.177]
    """
    if not counts.unseen.any():
        return counts.rate, counts.rate
    if options.method == "finite_inversion":
        return finite_inversion(
            counts, tails=options.tails, hidden_share=options.hidden_share, found=found
        )
    if options.method == "inversion":
        return inversion_interval(counts, tails=options.tails, hidden_share=options.hidden_share)
    method = korn_graubard if options.method == "korn_graubard" else logit
    return method(counts, options.tails)


def korn_graubard(
    counts: WeightedCounts, tails: tuple[float, float] = (0.025, 0.025)
) -> tuple[Floats, Floats]:
    """Return the Clopper–Pearson interval on the effective sample size (Korn & Graubard 1998).

    n* = p̂(1−p̂)/V̂ × (t(n−1)/t(df))², df = labels − strata; where the labels do not vary, n replaces
    p̂(1−p̂)/V̂.
    """
    rate, variance = counts.rate, counts.variance
    labels, freedom = float(counts.labels.sum()), counts.degrees_of_freedom
    effective = np.where(
        variance > 0, rate * (1 - rate) / np.where(variance > 0, variance, 1), labels
    )
    ends = []
    for number, tail in enumerate(tails):
        trials = effective
        if tail > 0:
            plain, true = stats.t.ppf(1 - tail, max(labels - 1, 1)), stats.t.ppf(1 - tail, freedom)
            trials = effective * float(plain / true) ** 2
        ends.append(clopper_pearson(rate * trials, trials, tails)[number])
    return ends[0], ends[1]


def logit(
    counts: WeightedCounts, tails: tuple[float, float] = (0.025, 0.025)
) -> tuple[Floats, Floats]:
    """Return the interval that is symmetric on the logit scale, with Student's t.

    Falls back to Korn–Graubard where the share is 0 or 1, or the labels do not vary.
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


@dataclass(frozen=True, kw_only=True)
class IntervalEstimate:
    """Value, ends of the interval and standard error (…)."""

    value: Floats
    low: Floats
    high: Floats
    error: Floats


@dataclass(frozen=True, kw_only=True)
class SideShare(IntervalEstimate):
    """The share of positives (…) on one side of the decision."""

    comments: int
    variance: Floats

    @classmethod
    def from_counts(
        cls,
        counts: WeightedCounts | None,
        comments: int,
        options: IntervalOptions,
        found: float | Floats = 0.0,
        most: int | None = None,
    ) -> "SideShare":
        """Return the share estimated from the labels of one side; None means no labels.

        `found` (…): positives of the other side for each comment of this one. For `most`, see
        `AuditEstimator.most_intervals`.
        """
        if counts is None:  # never reported: `AuditEstimator.estimate` gives the reason instead
            zero, high = np.zeros(()), np.ones(()) if comments else np.zeros(())
            return cls(
                comments=comments, value=zero, low=zero, high=high, error=zero, variance=zero
            )  # fmt: skip
        low, high = _interval(counts, options, found, most)
        return cls(
            comments=comments,
            value=counts.rate,
            low=np.minimum(low, counts.rate),
            high=np.maximum(high, counts.rate),
            error=np.sqrt(counts.variance),
            variance=counts.variance,
        )


def _interval(
    counts: WeightedCounts, options: IntervalOptions, found: float | Floats, most: int | None
) -> tuple[Floats, Floats]:
    """Return the ends (…) of the interval, those of most repetitions between those of others."""
    rate = counts.rate
    if most is None or rate.size <= most or not counts.unseen.any():
        return interval(counts, options, found)
    order = np.argsort(rate, kind="stable")
    some = order[np.unique(np.linspace(0, rate.size - 1, most).astype(np.int64))]
    some = some[np.unique(rate[some], return_index=True)[1]]
    others = np.broadcast_to(found, rate.shape)[some]
    low, high = interval(replace(counts, positives=counts.positives[some]), options, others)
    below = np.interp(rate, rate[some], rate[some] - low)
    above = np.interp(rate, rate[some], high - rate[some])
    return np.clip(rate - below, 0, 1), np.clip(rate + above, 0, 1)
