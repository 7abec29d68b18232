"""Figures of an audit as functions of its two sides.

Flagged and unflagged comments are sampled apart. What both tell together (recall, F1, accuracy) has
the interval of the method of variance estimates recovery (Zou & Donner 2008), which is made of the
intervals of the two and keeps their asymmetry.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from modwatch.audit.counts import Ints, WeightedCounts
from modwatch.audit.intervals import IntervalRule, interval
from modwatch.metrics.inputs import Floats


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Estimated share of positives (…), its ends and its variance, on one side."""

    comments: int
    rate: Floats
    low: Floats
    high: Floats
    variance: Floats
    labels: int
    positives: Ints

    @classmethod
    def of(cls, counts: WeightedCounts, comments: int, rule: IntervalRule) -> "Shares":
        """Return what the labels of one side tell."""
        low, high = interval(counts, rule)
        return cls(
            comments=comments,
            rate=counts.rate,
            low=np.minimum(low, counts.rate),
            high=np.maximum(high, counts.rate),
            variance=counts.variance,
            labels=int(counts.labels.sum()),
            positives=counts.positives.sum(-1),
        )


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Value, ends and standard error (…) of a metric."""

    value: Floats
    low: Floats
    high: Floats
    error: Floats


def shares(counts: WeightedCounts | None, comments: int, rule: IntervalRule) -> Shares:
    """Return what the labels of one side tell; None stands for no label."""
    if counts is not None:
        return Shares.of(counts, comments, rule)
    # No comment, or no label of any: no figure is told of it.
    zero, high = np.zeros(()), np.ones(()) if comments else np.zeros(())
    return Shares(
        comments=comments, rate=zero, low=zero, high=high, variance=zero, labels=0,
        positives=np.zeros((), dtype=np.int64),
    )  # fmt: skip


def _plain(side: Shares) -> Figure:
    return Figure(value=side.rate, low=side.low, high=side.high, error=np.sqrt(side.variance))


def _recall(right: Shares, missed: Shares) -> Figure:
    """TP/(TP+FN), free of bias to second order."""
    found, lost = right.comments * right.rate, missed.comments * missed.rate
    plain = _quotient(found, found + lost)
    spread = _relative(right), _relative(missed)
    bias = plain * (1 - plain) ** 2 * spread[1] - plain**2 * (1 - plain) * spread[0]
    low, high = _odds_ends(right, missed, 0.0)
    value = np.clip(plain - bias, low, high)
    error = plain * (1 - plain) * np.sqrt(spread[0] + spread[1])
    return Figure(value=value, low=low, high=high, error=error)


def _f1(right: Shares, missed: Shares) -> Figure:
    """2TP/(2TP+FP+FN) = 2TP/(flagged + TP + FN)."""
    found, lost = right.comments * right.rate, missed.comments * missed.rate
    value = _quotient(2 * found, right.comments + found + lost)
    low, high = _odds_ends(right, missed, float(right.comments))
    low, high = 2 * low, 2 * high
    # d/dTP and d/dFN of the quotient.
    whole = np.maximum(right.comments + found + lost, 1e-100)
    by_found, by_lost = 2 * (right.comments + lost) / whole**2, 2 * found / whole**2
    error = np.sqrt(
        (by_found * right.comments) ** 2 * right.variance
        + (by_lost * missed.comments) ** 2 * missed.variance
    )
    low, high = np.minimum(low, value), np.clip(high, value, 1)
    return Figure(value=value, low=low, high=high, error=error)


def _accuracy(right: Shares, missed: Shares) -> Figure:
    """1 − (FP + FN)/N."""
    total = max(right.comments + missed.comments, 1)
    wrong = (right.comments * (1 - right.rate) + missed.comments * missed.rate) / total
    return _sum(
        1 - wrong,
        (right.comments * (right.rate - right.low), missed.comments * (missed.high - missed.rate)),
        (right.comments * (right.high - right.rate), missed.comments * (missed.rate - missed.low)),
        (right, missed),
        total,
    )


def _prevalence(right: Shares, missed: Shares) -> Figure:
    """(TP + FN)/N: the share of positives among all comments."""
    total = max(right.comments + missed.comments, 1)
    return _sum(
        (right.comments * right.rate + missed.comments * missed.rate) / total,
        tuple(side.comments * (side.rate - side.low) for side in (right, missed)),
        tuple(side.comments * (side.high - side.rate) for side in (right, missed)),
        (right, missed),
        total,
    )


def _sum(
    value: Floats,
    below: tuple[Floats, ...],
    above: tuple[Floats, ...],
    sides: tuple[Shares, Shares],
    total: int,
) -> Figure:
    """Return a sum of independent parts: squared distances to the ends add up."""
    variance = sum(side.comments**2 * side.variance for side in sides)
    return Figure(
        value=value,
        low=np.clip(value - np.hypot(*below) / total, 0, 1),
        high=np.clip(value + np.hypot(*above) / total, 0, 1),
        error=np.sqrt(variance) / total,
    )


def _odds_ends(right: Shares, missed: Shares, fixed: float) -> tuple[Floats, Floats]:
    """Return the ends of TP/(fixed + TP + FN), from the logarithm of (fixed + FN)/TP."""
    right_, missed_ = (np.stack([side.rate, side.low, side.high]) for side in (right, missed))
    tp, fn = right.comments * right_, fixed + missed.comments * missed_
    # Nothing found of one of the two has no logarithm; its end alone decides then.
    (found, least, most), (other, few, many) = (np.log(np.maximum(v, 1e-300)) for v in (tp, fn))
    up = other - found + np.hypot(many - other, least - found)
    down = other - found - np.hypot(few - other, most - found)
    low, high = special.expit(-up), special.expit(-down)
    return np.where(tp[1] > 0, low, 0.0), np.where(tp[2] > 0, high, 0.0)


def _relative(side: Shares) -> Floats:
    """Return the squared coefficient of variation; 0 where nothing was found."""
    return _quotient(side.variance, side.rate**2)


def _quotient(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.zeros(np.shape(part)), where=np.asarray(whole) > 0)


#: By metric: of one side, or of the flagged and the unflagged one.
FIGURES: dict[str, Callable[..., Figure]] = {
    "prevalence_unflagged": _plain,
    "precision": _plain,
    "recall": _recall,
    "f1": _f1,
    "accuracy": _accuracy,
    "prevalence": _prevalence,
}
