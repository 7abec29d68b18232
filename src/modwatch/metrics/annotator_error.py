"""Annotator error rates: how often a person's label is wrong.

The true labels are unknown; only how often two labels differ is observed. If two people err
independently at the same rate e, whatever the true label, their labels of one comment differ with
probability r = 2e(1−e), so e = (1 − √(1−2r))/2 (Gordon et al. 2021, Eq. 3, for two people). Errors
that both make alike, because of a misleading guideline or a joke that everybody misses, do not
show, so e is then too small. Applied to one person's two labels, the formula gives a lower bound:
people repeat their own misreadings. Gold items, whose label is known, measure e directly but are
not a sample of the routed comments. `rogan_gladen` corrects the metrics for e.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.errors import MetricInputError
from modwatch.metrics import inputs
from modwatch.metrics.estimate import Estimate
from modwatch.metrics.inputs import Floats
from modwatch.metrics.intervals import share_confidence

#: Pairs of labels that an error rate requires: with 30 that all agree, e may still be 5 %.
MINIMUM_PAIRS = 30

_DRAWS = 2000


@dataclass(frozen=True, kw_only=True)
class LabelPairs:
    """Two labels of each of m comments."""

    #: (m,) 0 or 1: the label used in the estimates.
    first: NDArray[np.generic]
    #: (m,) 0 or 1: the other label.
    second: NDArray[np.generic]
    #: (m,) whether the comment is in the reviewed top; the others are in the random slice.
    top: NDArray[np.bool_]
    #: (m,) ≥ 0: routed comments that the pair represents; within the slice proportional to
    #: 1/inclusion probability.
    weight: NDArray[np.floating]

    def __post_init__(self) -> None:
        inputs.same_length(first=self.first, second=self.second, top=self.top, weight=self.weight)
        inputs.labels(self.first, name="first")
        inputs.labels(self.second, name="second")
        inputs.weights(self.weight, len(self.first), name="weight")
        if np.asarray(self.top).dtype != np.bool_:
            raise MetricInputError("top should be boolean; pass an array of dtype bool")

    def only(self, rows: NDArray[np.bool_]) -> "LabelPairs":
        """Return the pairs where `rows` (m,) is true."""
        return LabelPairs(**{name: column[rows] for name, column in vars(self).items()})


@dataclass(frozen=True, kw_only=True)
class ErrorRate(Estimate):
    """The error rate e of one label, in [0, ½).

    The high end may be ½, where labels carry no information. `n` counts pairs of labels, or answers
    to gold items; it is 0 for an assumed rate.
    """

    #: Pairs of equal weight with the same information (Kish).
    effective_n: float
    #: Confidence distribution, as an ascending sample; empty when insufficient.
    confidence: Floats = field(repr=False, compare=False)


@dataclass(frozen=True, kw_only=True)
class ErrorRates:
    """Error rates of labels in the reviewed top, whose comments are harder, and in the rest."""

    top: ErrorRate
    rest: ErrorRate
    #: All pairs together, weighted to the routed comments; replaces top or rest where either is
    #: insufficient.
    pooled: ErrorRate


@dataclass(frozen=True, kw_only=True)
class GoldAnswers:
    """Counts of answers to gold items."""

    #: Answers to toxic comments, and how many of them are correct.
    toxic: int
    toxic_right: int
    #: The same for comments that are not toxic.
    other: int
    other_right: int


def error_rates_from_pairs(pairs: LabelPairs, *, minimum: int = MINIMUM_PAIRS) -> ErrorRates:
    """Return the error rates of top and rest, each from its own pairs if they suffice, else all.

    >>> ones = np.ones(40)
    >>> alike = LabelPairs(first=ones, second=ones, top=ones > 0, weight=ones)
    >>> error_rates_from_pairs(alike).rest.value
    0.0
    """
    pooled, *own = (
        annotator_error_rate(part.first, part.second, sample_weight=part.weight, minimum=minimum)
        for part in (pairs, pairs.only(pairs.top), pairs.only(~pairs.top))
    )
    top, rest = (each if each.status == pooled.status == "ok" else pooled for each in own)
    return ErrorRates(top=top, rest=rest, pooled=pooled)


def assumed_error_rates(rate: float) -> ErrorRates:
    """Return an assumed error rate in [0, ½), the same for every label.

    >>> assumed_error_rates(0.02).top.value
    0.02
    """
    if not 0 <= rate < 0.5:  # NaN fails too
        raise MetricInputError(f"error rate must be in [0, 0.5), got {rate}")
    confidence = np.full(1, float(rate))
    assumed = ErrorRate.of(rate, (rate, rate), n=0, effective_n=0.0, confidence=confidence)
    return ErrorRates(top=assumed, rest=assumed, pooled=assumed)


def annotator_error_rate(
    y1: ArrayLike,
    y2: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    minimum: int = MINIMUM_PAIRS,
) -> ErrorRate:
    """Return the error rate e in [0, ½) of one person, from two people's labels of each comment.

    e = (1 − √(1−2r))/2 of the weighted disagreement rate r (Gordon et al. 2021, Eq. 3). Interval:
    that of r, mid-P Clopper–Pearson on the effective number of pairs (Korn & Graubard 1998),
    transformed by e(r). Insufficient with fewer than `minimum` pairs of positive weight, and for
    r ≥ ½, as of coin tosses.

    Args:
        y1, y2: (m,) labels, 0 or 1.
        sample_weight: (m,) ≥ 0; 1 each by default.
        minimum: pairs below which the estimate is insufficient.

    Raises:
        MetricInputError: labels other than 0 and 1, negative weights, different lengths.

    >>> labels = np.zeros(100)
    >>> flipped = np.where(np.arange(100) < 18, 1, 0)
    >>> round(annotator_error_rate(labels, flipped).value, 6)
    0.1
    """
    first, second = inputs.labels(y1, name="y1"), inputs.labels(y2, name="y2")
    w = inputs.weights(sample_weight, first.size)
    inputs.same_length(y1=first, y2=second, sample_weight=w)
    n = int((w > 0).sum())
    if n < max(minimum, 1):
        return _insufficient(f"{n} pairs of labels; {max(minimum, 1)} are needed", n, 0.0)
    effective = float(w.sum() ** 2 / (w**2).sum())
    disagreement = float(np.dot(w, first != second) / w.sum())
    if disagreement >= 0.5:
        return _insufficient("two people's labels differ as often as coin tosses", n, effective)
    confidence = error_of(share_confidence(disagreement * effective, effective))
    value = float(error_of(np.array([disagreement]))[0])
    return _error_rate(value, confidence, n, effective)


def gold_error_rate(n_correct: int, n: int, *, minimum: int = MINIMUM_PAIRS) -> ErrorRate:
    """Return the error rate in [0, ½) of n answers to gold items, `n_correct` of them correct.

    Interval: mid-P Clopper–Pearson. Insufficient with fewer than `minimum` answers, and if half of
    them or more are wrong. Raises MetricInputError unless 0 ≤ n_correct ≤ n.

    >>> gold_error_rate(95, 100).value
    0.05
    """
    if not 0 <= n_correct <= n:
        raise MetricInputError(f"n_correct must be in [0, {n}], got {n_correct}")
    if n < max(minimum, 1):
        return _insufficient(f"{n} answers; {max(minimum, 1)} are needed", n, 0.0)
    return _gold((n - n_correct) / n, share_confidence(n - n_correct, n), n)


def error_rates_from_gold(
    answers: GoldAnswers, *, prevalence: float | None = None, minimum: int = MINIMUM_PAIRS
) -> ErrorRates:
    """Return the error rate of answers to gold items, the same for top and rest.

    Gold items are toxic in a proportion of their own. With `minimum` answers to both toxic (error
    rate e₁) and other comments (e₀), the result is the rate on the measured comments,
    e = πe₁ + (1−π)e₀, where `prevalence` = π(1−e₁) + (1−π)e₀ is their *observed* prevalence.
    Otherwise, or without `prevalence`, it is the rate over all answers.

    >>> gold = GoldAnswers(toxic=50, toxic_right=40, other=50, other_right=50)
    >>> round(error_rates_from_gold(gold).pooled.value, 6)
    0.1
    >>> round(error_rates_from_gold(gold, prevalence=0.08).pooled.value, 6)
    0.02
    """
    n_correct, n = answers.toxic_right + answers.other_right, answers.toxic + answers.other
    rate = gold_error_rate(n_correct, n, minimum=minimum)
    toxic = gold_error_rate(answers.toxic_right, answers.toxic, minimum=minimum)
    other = gold_error_rate(answers.other_right, answers.other, minimum=minimum)
    if prevalence is not None and toxic.status == other.status == "ok":
        rate = _mixed(toxic, other, prevalence)
    return ErrorRates(top=rate, rest=rate, pooled=rate)


def error_of(disagreement: Floats) -> Floats:
    """Return the error rate e in [0, ½] implied by a disagreement rate r; ½ for r ≥ ½.

    >>> error_of(np.array([0.0, 0.18, 0.7])).round(6).tolist()
    [0.0, 0.1, 0.5]
    """
    return np.asarray((1 - np.sqrt(np.clip(1 - 2 * disagreement, 0, 1))) / 2)


def _gold(value: float, confidence: Floats, n: int) -> ErrorRate:
    if value >= 0.5:
        return _insufficient("answers are wrong as often as coin tosses", n, float(n))
    return _error_rate(value, np.minimum(confidence, 0.5), n, float(n))


def _error_rate(value: float, confidence: Floats, n: int, effective_n: float) -> ErrorRate:
    """Return a rate with the interval of its confidence distribution."""
    low, high = np.quantile(confidence, [0.025, 0.975])
    return ErrorRate.of(
        value, (float(low), float(high)), n=n, effective_n=effective_n, confidence=confidence
    )


def _mixed(toxic: ErrorRate, other: ErrorRate, prevalence: float) -> ErrorRate:
    """Return the rate over comments whose observed prevalence is given."""
    points = (np.arange(_DRAWS) + 0.5) / _DRAWS
    rng = np.random.default_rng(0)  # pairs the two distributions at random
    drawn = [rng.permutation(np.quantile(each.confidence, points)) for each in (toxic, other)]
    value = _rate_over(np.array([toxic.value]), np.array([other.value]), prevalence)
    confidence = np.sort(_rate_over(drawn[0], drawn[1], prevalence))
    return _gold(float(value[0]), confidence, toxic.n + other.n)


def _rate_over(toxic: Floats, other: Floats, prevalence: float) -> Floats:
    informative = np.maximum(1 - toxic - other, 1e-9)  # 0 at ½ and ½, where any share gives ½
    share = np.clip((prevalence - other) / informative, 0, 1)
    return np.asarray(share * toxic + (1 - share) * other)


def _insufficient(reason: str, n: int, effective_n: float) -> ErrorRate:
    return ErrorRate.insufficient(reason, n=n, effective_n=effective_n, confidence=np.empty(0))
