"""The share of positives on one side of the decision, with its interval: `finite_inversion`."""

from dataclasses import dataclass, replace

import numpy as np

from modwatch.common.errors import DesignError
from modwatch.statistics.arguments import Floats
from modwatch.statistics.audit.finite_inversion import finite_inversion
from modwatch.statistics.audit.inversion_interval import HIDDEN_SHARE
from modwatch.statistics.audit.stratified import WeightedCounts

SIDES = ("both", "lower", "upper")


@dataclass(frozen=True, kw_only=True)
class IntervalOptions:
    """Which confidence interval an audit reports; frozen in its plan.

    >>> IntervalOptions(level=0.9, sides="lower").tails
    (0.1, 0.0)
    """

    #: Confidence level in (0.5, 1).
    level: float = 0.95
    #: both, or one-sided: `lower` or `upper` gives one bound at the level, the other end is 0 or 1.
    sides: str = "both"
    #: Share in [0, 1) of all positives of the period that may have scores like those of negatives.
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
    >>> ends = interval(counts, IntervalOptions())
    >>> [round(float(end), 2) for end in ends]
    [0.05, 0.18]
    """
    if not counts.unseen.any():
        return counts.rate, counts.rate
    low, high = finite_inversion(
        counts, tails=options.tails, hidden_share=options.hidden_share, found=found
    )
    # Of few comments the ends are of whole ones, and the share may lie beyond.
    return np.minimum(low, counts.rate), np.maximum(high, counts.rate)


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
            low=low,
            high=high,
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
