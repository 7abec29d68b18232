"""The share of positives on one side of the decision with its interval, in one audit or in many."""

from dataclasses import dataclass, replace

import numpy as np

from modwatch.statistics.audit.intervals import IntervalOptions, interval
from modwatch.statistics.audit.stratified import WeightedCounts
from modwatch.statistics.inputs import Floats


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
    #: Whether ends of sums and quotients allow for counts being whole.
    whole: bool = True

    @classmethod
    def of(
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
