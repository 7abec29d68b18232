"""Estimates that allow for errors of the annotators, from labels that others confirmed.

The true labels of the sample are drawn many times from their posterior, given all labels
(`statistics.true_labels`): multiple imputation (Rubin 1987).
Every draw gives a metric with its interval for the error of sampling, as if the labels were true.
The interval of the metric is that of the mixture of all draws, so that it covers both errors, and
it has width even where every comment was labelled.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from modwatch.statistics.agreement import CONTRADICTED, agreement_beyond_chance
from modwatch.statistics.arguments import Floats, Ints
from modwatch.statistics.audit.draw import DrawnComment
from modwatch.statistics.audit.estimates import (
    BOUNDED_ABOVE,
    AuditEstimate,
    AuditEstimator,
    shown_error,
)
from modwatch.statistics.audit.labels import AuditLabel, blind_labels, key_of
from modwatch.statistics.audit.metric_intervals import SIDES_OF
from modwatch.statistics.audit.plan import SIDES, AuditPlan
from modwatch.statistics.audit.share_interval import IntervalEstimate, IntervalOptions
from modwatch.statistics.audit.stratified import WeightedCounts
from modwatch.statistics.label_truth import (
    MINIMUM_CONFIRMED,
    RATE_BOUNDS,
    GivenLabels,
    TrueLabels,
    true_labels,
)

#: Draws of the true labels.
DRAWS = 60

#: Draws whose interval is computed; those of the others lie between.
_INTERVALS = 12

#: Standard errors beyond chance (one-sided, 1 %) below which labels carry no information.
_BEYOND_CHANCE = 2.33

#: Part of `RATE_BOUNDS` beyond which labels carry too little information.
_NEAR_THE_BOUND = 0.85

_STEPS = 60
_NARROW = 1e-12


@dataclass(frozen=True, kw_only=True)
class LabelErrors:
    """The true labels of a sample and the annotators' error rates, inferred from its labels."""

    #: The comments (m,) with a label; anything that names them.
    keys: Sequence[Any]
    #: Of these comments, in order; group 0 is the flagged side, 1 the unflagged one.
    truth: TrueLabels
    #: `agreement_beyond_chance` of first and second labels; None if fewer than `MINIMUM_CONFIRMED`
    #: comments have both.
    beyond_chance: float | None = None
    #: Whether the second labels of one side contradict the first ones more than chance would.
    contradicted: bool = False

    @cached_property
    def drawn(self) -> dict[Any, Ints]:
        """Return draws (DRAWS,) of the true label of each comment, 0 or 1."""
        generator = np.random.default_rng(0)
        places = np.linspace(0, len(self.truth.prob) - 1, DRAWS).astype(np.int64)
        prob = self.truth.prob[places][:, self.truth.cell]
        toxic = (generator.random(prob.shape) < prob).astype(np.int64)
        return dict(zip(self.keys, toxic.T, strict=True))

    @property
    def useless(self) -> bool:
        """Whether labels are useless: they agree no more than chance, or err near the bounds.

        Coins tossed would otherwise be taken for labels of comments that are nearly all toxic, half
        of them missed by all annotators; a side that was first labelled the wrong way round, for
        one whose comments are all alike.
        """
        if self.contradicted:
            return True
        if self.beyond_chance is not None and self.beyond_chance < _BEYOND_CHANCE:
            return True
        return any(
            float(rate.mean()) > _NEAR_THE_BOUND * bound
            for side in SIDES
            if SIDES.index(side) < self.truth.false_positive.shape[1]
            for rate, bound in zip(self.rates(side), RATE_BOUNDS, strict=True)
        )

    def rates(self, side: str) -> tuple[Floats, Floats]:
        """Return draws (d,) of the false-positive and the false-negative rate of one side."""
        group = SIDES.index(side)
        return self.truth.false_positive[:, group], self.truth.false_negative[:, group]


def label_errors(
    plan: AuditPlan, drawn: Sequence[DrawnComment], labels: Sequence[AuditLabel]
) -> LabelErrors | None:
    """Return what the labels imply about their errors; None if the plan has no confirmations.

    Also None without labels. Errors are shared up to what the plan states. With fewer than
    `label_truth.MINIMUM_CONFIRMED` confirmed comments, errors may be as frequent as
    `label_truth.RATE_BOUNDS`.
    """
    given = blind_labels(labels)
    rows = [comment for comment in drawn if key_of(comment) in given]
    if not plan.confirmations or not rows:
        return None
    by_row = [given[key_of(row)] for row in rows]
    unflagged = {*plan.of_side("unflagged")}
    sides = np.array([comment.stratum in unflagged for comment in rows], dtype=np.int64)
    truth = true_labels(
        GivenLabels(
            prob=np.array([comment.score for comment in rows]),
            group=sides,
            given=np.array([len(labels) for labels in by_row]),
            toxic=np.array([sum(labels) for labels in by_row]),
        ),
        plan.stated_errors,
        seed=0,
    )
    of_pairs = [
        (side, *values[:2]) for side, values in zip(sides, by_row, strict=True) if len(values) > 1
    ]
    pairs = np.array(of_pairs, np.int64).reshape(-1, 3)
    by_side = [_beyond_chance(pairs[pairs[:, 0] == number]) for number in range(len(SIDES))]
    return LabelErrors(
        keys=[key_of(comment) for comment in rows],
        truth=truth,
        beyond_chance=_beyond_chance(pairs),
        contradicted=any(value is not None and value < CONTRADICTED for value in by_side),
    )


def _beyond_chance(pairs: Ints) -> float | None:
    """Return the agreement beyond chance of pairs (n, 3): side, first and second label."""
    return agreement_beyond_chance(*pairs.T) if len(pairs) >= MINIMUM_CONFIRMED else None


@dataclass(frozen=True, kw_only=True)
class ImputedEstimator:
    """Estimates every metric of an audit from draws of the true labels.

    `draws` is the estimator of all draws at once, its positives (R, C).
    """

    draws: AuditEstimator
    #: The interval that the plan asks for.
    options: IntervalOptions

    @classmethod
    def from_draws(cls, draws: AuditEstimator) -> "ImputedEstimator":
        """Return the estimator for the interval of `draws`, computed two-sided in each draw."""
        options = draws.options
        level = max(1 - 2 * max(options.tails), 0.5 + _NARROW)
        both = replace(options, sides="both", level=level)
        draws = replace(draws, options=both, most_intervals=_INTERVALS)
        return cls(draws=draws, options=options)

    def estimate(self, metric: str) -> AuditEstimate:
        """Return one of `estimates.METRICS`, its bound, or the reason why there is none.

        `positives` are those expected among the labelled comments, to the nearest whole number.
        """
        made = self._typical.counted(metric)
        if made.reason:
            return self._bounded(made) if made.labels_needed else made
        ends = self.draws.interval_estimate(metric)
        value, (low, high) = float(np.mean(ends.value)), self._ends(ends)
        random, known = (low, high), not self.draws.extremes.keys() & {*SIDES_OF[metric]}
        if not known:
            random = self._ends(self.draws.plain_interval(metric))
        error = float(np.sqrt(np.mean(ends.error**2) + np.var(ends.value)))
        return replace(
            made,
            value=value,
            low=min(low, value),
            high=max(high, value),
            error=shown_error((value, *random, error), self.options),
            low_if_random=None if known else random[0],
            high_if_random=None if known else random[1],
        )

    @cached_property
    def _typical(self) -> AuditEstimator:
        """The estimator of the expected positives: it decides whether there are enough of them."""
        flagged, unflagged = map(_expected, (self.draws.flagged, self.draws.unflagged))
        return replace(
            self.draws, flagged=flagged, unflagged=unflagged, extremes={}, options=self.options
        )

    def _bounded(self, made: AuditEstimate) -> AuditEstimate:
        """Return an estimate without a value with its bound, where the labels give one."""
        upper = made.metric in BOUNDED_ABOVE
        if not self.options.tails[int(upper)]:
            return made
        ends = self.draws.interval_estimate(made.metric)
        bound = self.draws.bound(made.metric, upper=upper)
        if upper:
            high = self._ends(replace(ends, high=np.maximum(bound, ends.value)))[1]
            return replace(made, bound="upper", high=high) if high < 1 else made
        low = self._ends(replace(ends, low=np.minimum(bound, ends.value)))[0]
        return replace(made, bound="lower", low=low) if low > 0 else made

    def _ends(self, ends: IntervalEstimate) -> tuple[float, float]:
        """Return the ends of the mixture, as far as the plan asks for them."""
        below, above = self.options.tails
        low, high = self._quantiles(ends, np.array([below, 1 - above])).tolist()
        return low if below else 0.0, high if above else 1.0

    def _quantiles(self, ends: IntervalEstimate, at: Floats) -> Floats:
        """Return quantiles (k,) of the mixture of the confidence distributions of the draws."""
        width = -special.ndtri(self.draws.options.tails[0])
        below = np.maximum(ends.value - ends.low, _NARROW) / width
        above = np.maximum(ends.high - ends.value, _NARROW) / width
        value, below, above = np.broadcast_arrays(np.atleast_1d(ends.value), below, above)
        low = np.full(at.shape, float(np.min(ends.low)) - 1.0)
        high = np.full(at.shape, float(np.max(ends.high)) + 1.0)
        for _ in range(_STEPS):
            middle = (low + high) / 2
            away = middle[:, None] - value
            chance = special.ndtr(away / np.where(away < 0, below, above)).mean(axis=1)
            low, high = np.where(chance < at, middle, low), np.where(chance < at, high, middle)
        return np.asarray(np.clip(high, 0.0, 1.0))


def _expected(counts: WeightedCounts | None) -> WeightedCounts | None:
    """Return the mean of draws, in whole positives."""
    if counts is None:
        return None
    mean = np.rint(np.atleast_2d(counts.positives).mean(axis=0)).astype(np.int64)
    return replace(counts, positives=mean)
