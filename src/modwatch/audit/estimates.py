"""Precision, recall and what goes with them, each with its interval, or why there is none."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from modwatch.audit.counts import WeightedCounts
from modwatch.audit.figures import FIGURES, Figure, Shares, shares
from modwatch.audit.intervals import IntervalRule
from modwatch.errors import MetricInputError

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
        sides = [self.side(name) for name in _NEEDS[metric]]
        if metric in _FALLS:
            sides[1] = self._unflagged_mirrored
        return FIGURES[metric](*sides)

    def side(self, name: str) -> Shares:
        """Return the share of positives among `flagged` or `unflagged` comments."""
        return self._flagged if name == "flagged" else self._unflagged

    # Every metric is made of these, and an interval is the costly part of them.
    @cached_property
    def _flagged(self) -> Shares:
        return shares(self.flagged, self.comments[0], self.rule)

    @cached_property
    def _unflagged(self) -> Shares:
        return shares(self.unflagged, self.comments[1], self.rule)

    @cached_property
    def _unflagged_mirrored(self) -> Shares:
        if self.rule.mirrored == self.rule:
            return self.side("unflagged")
        return shares(self.unflagged, self.comments[1], self.rule.mirrored)


#: Labels of flagged comments with which precision is told even when hardly any is right.
_ENOUGH_LABELS = 30

_NEEDS = {
    "prevalence_unflagged": ("unflagged",),
    "precision": ("flagged",),
    **dict.fromkeys(("recall", "f1", "accuracy", "prevalence"), ("flagged", "unflagged")),
}


#: What falls as the missed share rises: its lower bound needs the upper one of that share.
_FALLS = ("recall", "f1", "accuracy")


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
            return f"no label of {_many(side.comments, f'{name} comment')}", None
        found = int(side.positives)
        if side.labels >= side.comments or found >= ENOUGH_POSITIVES or metric == "accuracy":
            continue
        if metric == "precision" and side.labels >= _ENOUGH_LABELS:
            continue
        # Of none found, one would have been found half of the time if there were 0.7 to expect.
        needed = int(np.ceil(side.labels * 2 * ENOUGH_POSITIVES / max(found, 0.7)))
        needed = min(needed, side.comments)
        return (
            f"{_many(found, 'positive')} among {_many(side.labels, 'label')} of {name} comments, "
            f"fewer than {ENOUGH_POSITIVES}; about {needed} labels of them would do",
            needed,
        )
    if not any(side.comments for _, side in sides):
        return "no comment", None
    if metric in ("recall", "f1") and not any(side.positives for _, side in sides):
        return "no comment is positive", None
    return "", None


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
