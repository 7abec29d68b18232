"""Recalibration: from the score of a comment to the probability that people label it positive.

A model that was trained on equal numbers of positives and negatives, as in the paper (section 5.2),
multiplies the odds of every comment by the same factor; one that is too sure of itself stretches
their logarithm. Two numbers undo both, and keep the order of the scores. They decide where labels
are worth most, what a plan may expect and which decisions are reviewed first, never an estimate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from modwatch.common.errors import DesignError, MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats, Ints, counted, shares
from modwatch.statistics.intervals import effective_number

#: Source of a calibration that brings the mean to a prevalence that the planner expects.
EXPECTED = "expected prevalence"

#: Scores closer to 0 or 1 count as this close: a score of exactly 0 does not exclude a positive.
_NEAREST = 2.0**-20

#: Weight of the scores in the expected prevalence, in labels.
_PRIOR_LABELS = 10.0
#: Slope before there are labels: scores are less sharp than they claim, and miss some positives.
#: Its standard deviation then, and its largest value.
_SLOPE, _SLOPE_DEVIATION, _MOST_SLOPE = 0.7, 0.5, 3.0

#: Standard deviations of the intercept, and of the slope from 1, before labels tell that a score is
#: off; and the χ² with two degrees of freedom from which they tell it, at 1 %.
_OFF, _TELLING = (1.0, 0.5), 9.21

#: Standard deviations of the effects of the model variance on the logit and on its slope, before
#: labels tell of any.
_BY_VARIANCE = (2.0, 2.0)

#: Classes of the logit by which the mean of many scores is computed.
_CLASSES = 2048


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The probability of a positive: logit p = intercept + slope × logit(score).

    MetricInputError for a slope below 0 or numbers that are not finite.

    >>> Calibration().probability([0.0, 0.2]).tolist()
    [0.0, 0.2]
    >>> Calibration(intercept=-2.0, slope=0.5).probability([0.0, 0.2]).round(4).tolist()
    [0.0001, 0.0634]
    """

    intercept: float = 0.0
    #: ≥ 0; 0 for a score without information.
    slope: float = 1.0
    #: What it was estimated from.
    source: str = "scores"
    #: Labels that it was estimated from, and positives among them.
    labels: int = 0
    positives: int = 0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.intercept) and 0 <= self.slope < np.inf):
            raise MetricInputError("A calibration needs finite numbers and a slope of at least 0.")

    def probability(self, score: ArrayLike) -> Floats:
        """Return the probability (n,) of a positive; MetricInputError for scores outside [0, 1]."""
        values = shares("score", score)
        if (self.intercept, self.slope) == (0.0, 1.0):
            return values
        return np.asarray(special.expit(self.intercept + self.slope * _logit(values)))


@dataclass(frozen=True, kw_only=True)
class VarianceCalibration:
    """The probability of a positive given the model variance, too.

    logit p = intercept + slope · l + (shift + tilt · l) · v, with l the logit of the score s and
    v = variance / (s(1−s)), the part in [0, 1] of the label's variance that the weights explain.
    MetricInputError for numbers that are not finite.

    >>> unsure = VarianceCalibration(coefficients=(0.0, 1.0, 0.0, -1.0))
    >>> unsure.probability([0.1, 0.1], [0.0, 0.045]).round(2).tolist()
    [0.1, 0.25]
    """

    #: Intercept, slope, shift and tilt.
    coefficients: tuple[float, float, float, float]

    def __post_init__(self) -> None:
        if not np.isfinite(self.coefficients).all():
            raise MetricInputError("A calibration needs finite numbers.")

    def probability(self, score: ArrayLike, variance: ArrayLike) -> Floats:
        """Return the probability (n,) of a positive from scores and model variances (n,)."""
        intercept, *effects = self.coefficients
        parts = zip(effects, _by_variance(score, variance), strict=True)
        return np.asarray(special.expit(intercept + sum(a * part for a, part in parts)))


@dataclass(frozen=True, kw_only=True)
class Recalibration:
    """What the labels of a window ask for; None: the score alone.

    >>> Recalibration().probabilities(np.array([0.2]), {})
    (None, None)
    """

    by_score: Calibration | None = None
    by_variance: VarianceCalibration | None = None

    def probabilities(
        self, score: ArrayLike, columns: Mapping[str, NDArray[np.floating]]
    ) -> tuple[Floats | None, Floats | None]:
        """Return `calibrated` and `given_variance` of `review_scores`, for n comments."""
        variance = columns.get("model_variance")
        given = None
        if self.by_variance is not None and variance is not None:
            given = self.by_variance.probability(score, variance)
        calibrated = None if self.by_score is None else self.by_score.probability(score)
        return calibrated, given


@dataclass(frozen=True, kw_only=True)
class KnownLabels:
    """Labels that are known before an audit, of a random sample of one side of the decision.

    MetricInputError for arrays of different lengths or values out of range.
    """

    #: (m,) in [0, 1].
    score: Floats
    #: (m,) 0 or 1.
    label: Ints
    #: (m,) > 0: comments that each stands for, 1/inclusion probability.
    weight: Floats
    #: Where they come from, for the plan.
    source: str

    def __post_init__(self) -> None:
        shares("score", self.score)
        arguments.labels(self.label)
        arguments.same_length(score=self.score, label=self.label, weight=self.weight)
        if not ((self.weight > 0) & np.isfinite(self.weight)).all():
            raise MetricInputError("weight must contain numbers above 0.")


def shift_to_mean(score: ArrayLike, prevalence: float, *, counts: ArrayLike | None = None) -> float:
    """Return the shift of the logit of the scores (n,) that makes their mean `prevalence`.

    `counts` (n,) is the number of comments with each score, 1 by default. DesignError for a
    prevalence outside (0, 1) or no comments.

    >>> round(shift_to_mean([0.5, 0.5], 0.1), 4)
    -2.1972
    """
    values = shares("score", score)
    number = np.ones(values.size, np.int64) if counts is None else counted("counts", counts)
    arguments.same_length(score=values, counts=number)
    return _intercept(_logit(values), number, 1.0, prevalence)


def shrunk(score: ArrayLike, counts: ArrayLike) -> Calibration:
    """Return the calibration of the scores (n,) of `counts` (n,) comments without any label.

    Their mean is kept and their logits are drawn together, by a slope of 0.7: a design that trusts
    the scores entirely draws too few comments where they are low, and misses positives there.
    DesignError without comments.
    """
    values, number = _population(score, counts)
    mean = float(np.clip(np.average(values, weights=number), _NEAREST, 1 - _NEAREST))
    logit, classes = _classes(_logit(values), number)
    return Calibration(intercept=_intercept(logit, classes, _SLOPE, mean), slope=_SLOPE)


def calibrated(score: ArrayLike, counts: ArrayLike, known: KnownLabels) -> Calibration:
    """Return the calibration of the scores (n,) of `counts` (n,) comments, from known labels.

    Their weighted share of positives gives the mean, their order by score the slope (penalised
    maximum likelihood). Both are regularised: the scores count as 10 labels for the mean, and the
    slope is 0.7 ± 0.5 before there are labels, so that few labels change little. The weighted
    labels count as many as their effective number, (Σw)²/Σw². DesignError without comments or
    labels.

    >>> known = KnownLabels(score=np.array([0.1, 0.1, 0.5, 0.5]), label=np.array([0, 0, 1, 0]),
    ...                     weight=np.array([300.0, 300, 10, 10]), source="random slice")
    >>> made = calibrated([0.1, 0.5], [600, 20], known)
    >>> made.probability([0.1, 0.5]).round(3).tolist()
    [0.088, 0.318]
    """
    values, number = _population(score, counts)
    if not known.label.size:
        raise DesignError("There are no labels to recalibrate the scores by.")
    effective = effective_number(known.weight)
    weight = known.weight * effective / known.weight.sum()
    prior = float(np.average(values, weights=number))
    prevalence = (weight @ known.label + _PRIOR_LABELS * prior) / (effective + _PRIOR_LABELS)
    prevalence = float(np.clip(prevalence, _NEAREST, 1 - _NEAREST))
    logit, classes = _classes(_logit(values), number)
    at = _logit(known.score)

    def unlikely(slope: float) -> float:
        chance = _intercept(logit, classes, slope, prevalence) + slope * at
        surprise = weight @ (np.logaddexp(0, chance) - known.label * chance)
        return float(surprise + ((slope - _SLOPE) / _SLOPE_DEVIATION) ** 2 / 2)

    slope = float(optimize.minimize_scalar(unlikely, bounds=(0, _MOST_SLOPE), method="bounded").x)
    return Calibration(
        intercept=_intercept(logit, classes, slope, prevalence),
        slope=slope,
        source=known.source,
        labels=int(known.label.size),
        positives=int(known.label.sum()),
    )


def shown_off(score: ArrayLike, toxic: ArrayLike) -> Calibration | None:
    """Return the calibration that labels ask for; None if they do not tell that the scores are off.

    Penalised logistic regression of the labels on the logit of the score. The labels tell it where
    they contradict the scores at 1 % (likelihood ratio). Comments of one score must be alike,
    however they were chosen.

    Args:
        score: (m,) in [0, 1].
        toxic: (m,) in [0, 1], the label or the probability that it is toxic.

    >>> score, half = np.repeat([0.02, 0.6], 500), np.tile([0, 1], 500)
    >>> shown_off(np.full(1000, 0.5), half) is None
    True
    >>> shown_off(score, np.concatenate([np.zeros(500), half[:500]])).probability([0.6]).round(1)
    array([0.5])
    """
    logit, share = _logit(shares("score", score)), shares("toxic", toxic)
    arguments.same_length(score=logit, toxic=share)
    found, gain = _fitted([logit], share, _OFF)
    if gain <= _TELLING:
        return None
    return Calibration(
        intercept=found[0],
        slope=found[1],
        source="labels of the window",
        labels=int(share.size),
        positives=int(np.round(share.sum())),
    )


def shown_by_variance(
    score: ArrayLike, variance: ArrayLike, toxic: ArrayLike
) -> VarianceCalibration | None:
    """Return how labels depend on the model variance; None if they do not tell that they do.

    As `shown_off`, which this must explain better at 1 % (likelihood ratio).

    Args:
        score: (m,) in [0, 1].
        variance: (m,) Var p under the posterior of the model's weights.
        toxic: (m,) in [0, 1], the label or the probability that it is toxic.

    >>> score, variance = np.full(2000, 0.1), np.repeat([0.0, 0.045], 1000)
    >>> toxic = np.concatenate([np.tile([0] * 9 + [1], 100), np.tile([0, 0, 0, 1], 250)])
    >>> found = shown_by_variance(score, variance, toxic)
    >>> found.probability([0.1, 0.1], [0.0, 0.045]).round(1).tolist()
    [0.1, 0.2]
    >>> shown_by_variance(score, np.zeros(2000), toxic) is None
    True
    """
    parts, share = _by_variance(score, variance), shares("toxic", toxic)
    arguments.same_length(score=parts[0], toxic=share)
    alone, by_score = _fitted(parts[:1], share, _OFF)
    found, gain = _fitted(parts, share, (*_OFF, *_BY_VARIANCE), start=alone)
    if gain - by_score <= _TELLING:
        return None
    return VarianceCalibration(coefficients=(found[0], found[1], found[2], found[3]))


def _by_variance(score: ArrayLike, variance: ArrayLike) -> list[Floats]:
    """Return l, v and v·l, each (n,), of `VarianceCalibration`."""
    values = np.clip(shares("score", score), _NEAREST, 1 - _NEAREST)
    spread = arguments.column("variance", variance)
    arguments.same_length(score=values, variance=spread)
    logit = _logit(values)
    part = np.clip(spread / (values * (1 - values)), 0.0, 1.0)
    return [logit, part, part * logit]


def _fitted(
    parts: Sequence[Floats], share: Floats, deviations: Sequence[float], start: Sequence[float] = ()
) -> tuple[list[float], float]:
    """Return intercept and coefficients of the parts (m,), and twice the gain in log-likelihood.

    A logistic regression of the shares (m,) that is pulled to (0, 1, 0, …), the score as it is, by
    normal priors. The gain is over that.
    """
    identity = np.array([0.0, 1.0, *(0.0 for _ in parts[1:])])

    def unlikely(at: Floats) -> tuple[float, Floats]:
        chance = at[0] + at[1] * parts[0]
        for weight, part in zip(at[2:], parts[1:], strict=True):
            chance = chance + weight * part
        pull = (at - identity) / deviations
        error = special.expit(chance) - share
        surprise = float((np.logaddexp(0, chance) - share * chance).sum() + pull @ pull / 2)
        return surprise, np.array([error.sum(), *(error @ part for part in parts)]) + (
            pull / deviations
        )

    first = np.array([*start, *identity[len(start) :]])
    bounds = [(None, None), (0, _MOST_SLOPE), *((None, None) for _ in parts[1:])]
    found = optimize.minimize(unlikely, first, jac=True, method="L-BFGS-B", bounds=bounds)
    return [float(value) for value in found.x], 2 * (unlikely(identity)[0] - float(found.fun))


def _population(score: ArrayLike, counts: ArrayLike) -> tuple[Floats, Ints]:
    """Return the checked scores (n,) and the number of comments with each; at least one."""
    values, number = shares("score", score), counted("counts", counts)
    arguments.same_length(score=values, counts=number)
    if not number.any():
        raise DesignError("There are no comments to recalibrate.")
    return values, number


def _intercept(logit: Floats, counts: Floats | Ints, slope: float, prevalence: float) -> float:
    """Return the intercept that makes the mean of expit(intercept + slope × logit) `prevalence`."""
    if not 1e-15 <= prevalence <= 1 - 1e-15:  # NaN fails too; nearer to 0, sums run out
        raise DesignError(f"Expected prevalence must be in (0, 1), got {prevalence}.")
    if not counts.sum():
        raise DesignError("There are no comments to recalibrate; omit the expected prevalence.")

    def above(intercept: float) -> float:
        mean = np.average(special.expit(intercept + slope * logit), weights=counts)
        return float(mean - prevalence)

    target, reach = float(special.logit(prevalence)), slope * float(np.abs(logit).max()) + 1
    return float(optimize.brentq(above, target - reach, target + reach, xtol=1e-12))


def _logit(score: Floats) -> Floats:
    return np.asarray(special.logit(np.clip(score, _NEAREST, 1 - _NEAREST)))


def _classes(logit: Floats, counts: Ints) -> tuple[Floats, Floats]:
    """Return the mean logit and the count of the classes that occur."""
    low, high = float(logit.min()), float(logit.max())
    place = ((logit - low) / max(high - low, 1e-9) * (_CLASSES - 1)).astype(np.int64)
    number = np.bincount(place, weights=counts).astype(np.float64)
    total = np.bincount(place, weights=counts * logit)
    there = number > 0
    return total[there] / number[there], number[there]
