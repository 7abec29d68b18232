"""Precision, recall and what goes with them, each with its interval.

Flagged and unflagged comments are sampled apart. What both tell together (recall, F1, accuracy) has
the interval of the method of variance estimates recovery (Zou & Donner 2008), which is made of the
intervals of the two and keeps their asymmetry.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy import special

from modwatch.audit.counts import Ints, WeightedCounts
from modwatch.audit.intervals import IntervalRule, interval
from modwatch.errors import MetricInputError
from modwatch.metrics.inputs import Floats

#: Positives (for precision also: negatives are no requirement) below which no figure is given.
ENOUGH_POSITIVES = 3

METRICS = ("prevalence_unflagged", "precision", "recall", "f1", "accuracy", "prevalence")


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A figure of an audit; value and ends are None when the labels do not suffice."""

    metric: str
    labels: int
    #: Positives among the labels.
    positives: int
    #: ok | insufficient
    status: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    #: Standard error of the value, to first order.
    error: float | None = None
    reason: str = ""
    #: About how many labels would do, of those that were too few.
    labels_needed: int | None = None


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


@dataclass(frozen=True, kw_only=True)
class Audited:
    """The labels of an audit: the flagged side, the unflagged one, and how to tell intervals.

    A side is None when none of its comments is labelled.

    >>> from modwatch.audit.counts import StratumCounts
    >>> flagged = StratumCounts.of(population=[100], labels=[50], positives=[40], score=[0.9])
    >>> rest = StratumCounts.of(population=[900, 1000], labels=[100, 100], positives=[0, 4],
    ...                         score=[0.01, 0.1])
    >>> audited = Audited(flagged=flagged.weighted(), unflagged=rest.weighted(),
    ...                   comments=(100, 1900))
    >>> audited.estimate("precision").value
    0.8
    >>> round(audited.estimate("recall").value, 2)
    0.65
    """

    flagged: WeightedCounts | None
    unflagged: WeightedCounts | None
    #: Flagged and unflagged comments of the population.
    comments: tuple[int, int]
    rule: IntervalRule = field(default_factory=IntervalRule)

    def estimate(self, metric: str) -> Estimate:
        """Return one of `METRICS`, or why there is none; MetricInputError for another."""
        _check(metric)
        sides = [(name, self.side(name)) for name in _NEEDS[metric]]
        reason, needed = _lacks(metric, sides)
        estimate = Estimate(
            metric=metric,
            labels=sum(side.labels for _, side in sides),
            positives=sum(int(side.positives) for _, side in sides),
            status="insufficient" if reason else "ok",
            reason=reason,
            labels_needed=needed,
        )
        if reason:
            return estimate
        told = self.figure(metric)
        value, low, high, error = map(float, (told.value, told.low, told.high, told.error))
        return replace(estimate, value=value, low=low, high=high, error=error)

    def estimates(self) -> list[Estimate]:
        """Return all of `METRICS`."""
        return [self.estimate(metric) for metric in METRICS]

    def figure(self, metric: str) -> Figure:
        """Return the metric (…) however few labels there are, as simulations need it."""
        _check(metric)
        return _FIGURES[metric](self)

    def side(self, name: str) -> Shares:
        """Return the share of positives among `flagged` or `unflagged` comments."""
        return self._flagged if name == "flagged" else self._unflagged

    # Every metric is made of these two, and an interval is the costly part of them.
    @cached_property
    def _flagged(self) -> Shares:
        return _shares(self.flagged, self.comments[0], self.rule)

    @cached_property
    def _unflagged(self) -> Shares:
        return _shares(self.unflagged, self.comments[1], self.rule)


def _shares(counts: WeightedCounts | None, comments: int, rule: IntervalRule) -> Shares:
    if counts is not None:
        return Shares.of(counts, comments, rule)
    # No comment, or no label of any: see `_lacks`.
    zero, high = np.zeros(()), np.ones(()) if comments else np.zeros(())
    return Shares(
        comments=comments, rate=zero, low=zero, high=high, variance=zero, labels=0,
        positives=np.zeros((), dtype=np.int64),
    )  # fmt: skip


#: Labels of flagged comments with which precision is told even when hardly any is right.
_ENOUGH_LABELS = 30

_NEEDS = {
    "prevalence_unflagged": ("unflagged",),
    "precision": ("flagged",),
    **dict.fromkeys(("recall", "f1", "accuracy", "prevalence"), ("flagged", "unflagged")),
}


def _check(metric: str) -> None:
    if metric not in METRICS:
        raise MetricInputError(f"the metric is {metric!r}; it must be one of {METRICS}")


def _lacks(metric: str, sides: list[tuple[str, Shares]]) -> tuple[str, int | None]:
    """Return why there is no figure, and how many labels would do; ("", None) when there is."""
    for name, side in sides:
        if not side.comments:
            if len(sides) == 1 or (metric == "recall" and name == "flagged"):
                return f"no {name} comment", None
            continue
        if not side.labels:
            return f"no label of {side.comments} {name} comments", None
        found = int(side.positives)
        if side.labels >= side.comments or found >= ENOUGH_POSITIVES or metric == "accuracy":
            continue
        if metric == "precision" and side.labels >= _ENOUGH_LABELS:
            continue
        # Of none found, one would have been found half of the time if there were 0.7 to expect.
        needed = int(np.ceil(side.labels * 2 * ENOUGH_POSITIVES / max(found, 0.7)))
        needed = min(needed, side.comments)
        return (
            f"{found} positive(s) among {side.labels} labels of {name} comments, fewer than "
            f"{ENOUGH_POSITIVES}; about {needed} labels of them would do",
            needed,
        )
    if not any(side.comments for _, side in sides):
        return "no comment", None
    if metric in ("recall", "f1") and not any(side.positives for _, side in sides):
        return "no comment is positive", None
    return "", None


def _plain(side: Shares) -> Figure:
    return Figure(value=side.rate, low=side.low, high=side.high, error=np.sqrt(side.variance))


def _recall(audited: Audited) -> Figure:
    """TP/(TP+FN), free of bias to second order."""
    right, missed = audited.side("flagged"), audited.side("unflagged")
    found, lost = right.comments * right.rate, missed.comments * missed.rate
    plain = _quotient(found, found + lost)
    spread = _relative(right), _relative(missed)
    bias = plain * (1 - plain) ** 2 * spread[1] - plain**2 * (1 - plain) * spread[0]
    low, high = _odds_ends(right, missed, 0.0)
    value = np.clip(plain - bias, low, high)
    error = plain * (1 - plain) * np.sqrt(spread[0] + spread[1])
    return Figure(value=value, low=low, high=high, error=error)


def _f1(audited: Audited) -> Figure:
    """2TP/(2TP+FP+FN) = 2TP/(flagged + TP + FN)."""
    right, missed = audited.side("flagged"), audited.side("unflagged")
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


def _accuracy(audited: Audited) -> Figure:
    """1 − (FP + FN)/N."""
    right, missed = audited.side("flagged"), audited.side("unflagged")
    total = max(sum(audited.comments), 1)
    wrong = (right.comments * (1 - right.rate) + missed.comments * missed.rate) / total
    return _sum(
        1 - wrong,
        (right.comments * (right.rate - right.low), missed.comments * (missed.high - missed.rate)),
        (right.comments * (right.high - right.rate), missed.comments * (missed.rate - missed.low)),
        (right, missed),
        total,
    )


def _prevalence(audited: Audited) -> Figure:
    """(TP + FN)/N: the share of positives among all comments."""
    right, missed = audited.side("flagged"), audited.side("unflagged")
    total = max(sum(audited.comments), 1)
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


_FIGURES = {
    "prevalence_unflagged": lambda audited: _plain(audited.side("unflagged")),
    "precision": lambda audited: _plain(audited.side("flagged")),
    "recall": _recall,
    "f1": _f1,
    "accuracy": _accuracy,
    "prevalence": _prevalence,
}
