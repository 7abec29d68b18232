"""Precision, recall and the other metrics of an audit, with intervals or the reason there is none.

Flagged and unflagged comments are sampled separately; `metric_intervals` makes a metric and its
interval of those of the two sides.

Where there are too few positives for a value, there is a bound: the metric at the ends of the two
sides. It contains the interval that a value would have had, so that choosing between the two by the
labels costs no coverage: what is reported covers as often as the interval reported always.

Drawn comments without a final label may be either. Each end takes the label that moves the metric
towards it (worst-case bounds, Manski 1989), and allows for sampling on top.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from modwatch.common.errors import MetricInputError
from modwatch.statistics.arguments import Floats
from modwatch.statistics.audit.metric_intervals import METHODS, METRICS, SIDES_OF
from modwatch.statistics.audit.share_interval import IntervalEstimate, IntervalOptions, SideShare
from modwatch.statistics.audit.stratified import WeightedCounts
from modwatch.statistics.estimate import Estimate

#: Metrics with an upper bound where there are too few positives for a value: few are good news.
BOUNDED_ABOVE = ("prevalence_unflagged", "prevalence", "precision", "false_positive_rate")

#: Metrics of the negatives, of which both sides need some.
_OF_NEGATIVES = ("specificity", "false_positive_rate")

#: Positives among the labels of a side below which its metrics are not estimated.
ENOUGH_POSITIVES = 3

#: Labels of flagged comments that suffice for precision even with fewer positives.
_ENOUGH_LABELS = 30


@dataclass(frozen=True, kw_only=True)
class AuditEstimate(Estimate):
    """A metric of an audit; `n` counts the labels.

    Without a value, one of `low` and `high` is the bound named by `bound`, or both are None.
    """

    metric: str
    #: Positives among the labels.
    positives: int
    #: Standard error of the value, to first order; None without a value, and where it is less than
    #: half of what the interval implies: labels that are few, or all alike, do not show it.
    error: float | None = None
    #: lower | upper: it is at least `low`, or at most `high`; None with a value, or without either.
    bound: str | None = None
    #: Whether every comment of its sides has a final label: no error of sampling is left.
    all_labelled: bool = False
    #: The ends if the comments without a final label were like the others; None without any.
    low_if_random: float | None = None
    high_if_random: float | None = None
    #: About how many labels of the side that lacks them would suffice.
    labels_needed: int | None = None
    #: That side: flagged | unflagged; None when `labels_needed` is.
    labels_needed_side: str | None = None

    def figure(self) -> dict[str, Any]:
        """Return the fields as results have them: `labels` in place of `n`."""
        fields = asdict(self)
        fields["labels"] = fields.pop("n")
        return fields


@dataclass(frozen=True, kw_only=True)
class AuditEstimator:
    """Estimates every metric of an audit from the labels of both sides.

    A side is None when none of its comments is labelled.

    >>> from modwatch.statistics.audit.stratified import StratumCounts
    >>> flagged = StratumCounts.from_arrays(
    ...     population=[100], labels=[50], positives=[40], score=[0.9])
    >>> rest = StratumCounts.from_arrays(
    ...     population=[900, 1000], labels=[100, 100], positives=[0, 4], score=[0.01, 0.1])
    >>> audit = AuditEstimator(flagged=flagged.weighted(), unflagged=rest.weighted(),
    ...                        comments=(100, 1900))
    >>> audit.estimate("precision").value
    0.8
    >>> round(audit.estimate("recall").value, 2)
    0.65
    """

    flagged: WeightedCounts | None
    unflagged: WeightedCounts | None
    #: Flagged and unflagged comments of the population.
    comments: tuple[int, int]
    options: IntervalOptions = field(default_factory=IntervalOptions)
    #: By side: the counts if all its drawn comments without a final label were negative, and if all
    #: were positive. A side without such comments is absent.
    extremes: Mapping[str, tuple[WeightedCounts, WeightedCounts]] = field(default_factory=dict)
    #: With so many repetitions or fewer, the interval of each is computed. With more, those of this
    #: many, spread over the range of the estimates; the others' distances from the estimate lie
    #: between. None: all are computed.
    most_intervals: int | None = None

    def estimate(self, metric: str) -> AuditEstimate:
        """Return one of `METRICS`, its bound, or the reason there is none.

        MetricInputError for another metric.
        """
        estimate = self.counted(metric)
        if estimate.reason:
            return self._bounded(estimate) if estimate.labels_needed else estimate
        value, low, high, _ = _floats(self.interval_estimate(metric))
        error = shown_error(_floats(self.plain_interval(metric)), self.options)
        if self.extremes.keys() & {*SIDES_OF[metric]}:
            _, low_if, high_if, _ = _floats(self.plain_interval(metric))
            estimate = replace(estimate, low_if_random=low_if, high_if_random=high_if)
        return replace(estimate, value=value, low=low, high=high, error=error)

    def counted(self, metric: str) -> AuditEstimate:
        """Return what `estimate` does, without value, interval or bound: they are expensive.

        MetricInputError for a metric that is none of `METRICS`.
        """
        _validate(metric)
        sides = [self._labelled(name) for name in SIDES_OF[metric]]
        reason, needed, needed_side = _insufficient(metric, sides)
        return AuditEstimate(
            metric=metric,
            value=None,
            low=None,
            high=None,
            n=sum(side.labels for side in sides),
            positives=sum(side.positives for side in sides),
            status="insufficient" if reason else "ok",
            reason=reason,
            labels_needed=needed,
            labels_needed_side=needed_side,
            all_labelled=all(side.labels == side.comments for side in sides),
        )

    def estimates(self, metrics: Sequence[str] = METRICS) -> list[AuditEstimate]:
        """Return several of `METRICS`, by default all."""
        return [self.estimate(metric) for metric in metrics]

    def interval_estimate(self, metric: str) -> IntervalEstimate:
        """Return the metric (…), however few labels there are: for simulations."""
        _validate(metric)
        plain = self.plain_interval(metric)
        if not self.extremes:
            return plain
        low = self.plain_interval(metric, rises=0, falls=1).low
        high = self.plain_interval(metric, rises=1, falls=0).high
        return replace(plain, low=np.minimum(plain.low, low), high=np.maximum(plain.high, high))

    def bound(self, metric: str, *, upper: bool) -> Floats:
        """Return the largest or smallest value (…) of the metric at the ends of its sides."""
        _validate(metric)
        at_ends = []
        for name, sign in SIDES_OF[metric].items():
            rises = (sign > 0) == upper
            side = self._share(name, mirrored=sign < 0, missing=int(rises))
            end = side.high if rises else side.low
            zero = np.zeros_like(end)
            at_ends.append(replace(side, value=end, low=end, high=end, variance=zero, error=zero))
        bound, interval_ = METHODS[metric](*at_ends).value, self.interval_estimate(metric)
        # Whole comments may lie a little beyond the ends of the sides.
        if upper:
            return np.maximum(bound, interval_.high)
        return np.minimum(bound, interval_.low)

    def side(self, name: str) -> SideShare:
        """Return the share of positives among `flagged` or `unflagged` comments."""
        return self._share(name, mirrored=False, missing=None)

    def _labelled(self, name: str) -> "_Labelled":
        counts, comments = self._counts(name), self.comments[0 if name == "flagged" else 1]
        if counts is None:
            return _Labelled(name, comments, labels=0, positives=0)
        labels, positives = int(counts.labels.sum()), int(counts.positives.sum())
        return _Labelled(name, comments, labels=labels, positives=positives)

    def _counts(self, name: str) -> WeightedCounts | None:
        return self.flagged if name == "flagged" else self.unflagged

    def _bounded(self, estimate: AuditEstimate) -> AuditEstimate:
        """Return an estimate with its bound, where the labels give one."""
        upper = estimate.metric in BOUNDED_ABOVE
        if not self.options.tails[int(upper)]:
            return estimate
        bound = float(self.bound(estimate.metric, upper=upper))
        if upper:
            return replace(estimate, bound="upper", high=bound) if bound < 1 else estimate
        return replace(estimate, bound="lower", low=bound) if bound > 0 else estimate

    def plain_interval(
        self, metric: str, *, rises: int | None = None, falls: int | None = None
    ) -> IntervalEstimate:
        """Return the metric (…), as if comments without a label were like the others.

        Or had these labels, on the sides with which the metric rises and falls.
        """
        found = METHODS[metric](
            *(
                self._share(name, mirrored=sign < 0, missing=rises if sign > 0 else falls)
                for name, sign in SIDES_OF[metric].items()
            )
        )
        # Of ends that are the value itself, rounding may make others.
        return replace(
            found,
            low=np.minimum(found.low, found.value),
            high=np.maximum(found.high, found.value),
        )

    def _share(self, name: str, *, mirrored: bool, missing: int | None) -> SideShare:
        """Return a side, those without a label left out or taken for `missing`."""
        options = self.options.mirrored if mirrored else self.options
        missing = missing if name in self.extremes else None
        key = (name, options.sides, missing)
        if key not in self._known:
            self._known[key] = self._made(name, options, missing)
        return self._known[key]

    # Kept: every metric uses them, and the interval is expensive.
    @cached_property
    def _known(self) -> dict[tuple[str, str, int | None], SideShare]:
        return {}

    def _made(self, name: str, options: IntervalOptions, missing: int | None) -> SideShare:
        counts = self._counts(name)
        if missing is not None:
            counts = self.extremes[name][missing]
        if name == "flagged":
            return SideShare.from_counts(
                counts, self.comments[0], options, most=self.most_intervals
            )
        # As many as possible: more positives elsewhere allow for more hidden ones here.
        flagged = self._share("flagged", mirrored=False, missing=1)
        found = self.comments[0] * flagged.value / max(self.comments[1], 1)
        return SideShare.from_counts(counts, self.comments[1], options, found, self.most_intervals)


def _floats(estimate: IntervalEstimate) -> tuple[float, float, float, float]:
    """Return value, low, high and error of a single audit."""
    value, low, high, error = estimate.value, estimate.low, estimate.high, estimate.error
    return float(value), float(low), float(high), float(error)


def shown_error(
    estimate: tuple[float, float, float, float], options: IntervalOptions
) -> float | None:
    """Return the error of (value, low, high, error); None where the interval implies twice as much.

    >>> shown_error((0.5, 0.4, 0.6, 0.05), IntervalOptions())
    0.05
    >>> shown_error((0.5, 0.1, 0.9, 0.05), IntervalOptions())
    """
    value, low, high, error = estimate
    ends = zip((value - low, high - value), options.tails, strict=True)
    implied = [distance / -special.ndtri(tail) for distance, tail in ends if tail]
    return error if 2 * error >= sum(implied) / len(implied) - 1e-9 else None


def _validate(metric: str) -> None:
    if metric not in METRICS:
        raise MetricInputError(f"Metric must be one of {METRICS}, got {metric!r}.")


class _Labelled(NamedTuple):
    """How much of one side is labelled."""

    name: str
    comments: int
    labels: int
    #: Positives among the labels.
    positives: int


def _insufficient(metric: str, sides: list[_Labelled]) -> tuple[str, int | None, str | None]:
    """Return why there is no estimate, about how many labels would do, and the side."""
    for side in sides:
        if not side.comments:
            if len(sides) == 1 or (metric == "recall" and side.name == "flagged"):
                return f"no {side.name} comment", None, None
            continue
        if not side.labels:
            return f"no label of {_counted(side.comments, f'{side.name} comment')}", None, None
        positives, sign = side.positives, "positive"
        if metric in _OF_NEGATIVES:
            positives, sign = side.labels - positives, "negative"
        if side.labels >= side.comments or positives >= ENOUGH_POSITIVES or metric == "accuracy":
            continue
        if metric == "precision" and side.labels >= _ENOUGH_LABELS:
            continue
        # With no positives: an expectation of 0.7 shows none half of the time.
        needed = int(np.ceil(side.labels * 2 * ENOUGH_POSITIVES / max(positives, 0.7)))
        needed = min(needed, side.comments)
        return (
            f"{_counted(positives, sign)} among {_counted(side.labels, 'label')} of {side.name} "
            f"comments, fewer than {ENOUGH_POSITIVES}; about {needed} labels of them would do",
            needed,
            side.name,
        )
    if not any(side.comments for side in sides):
        return "no comment", None, None
    if metric in ("recall", "f1") and not any(side.positives for side in sides):
        return "no comment is positive", None, None
    return "", None, None


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
