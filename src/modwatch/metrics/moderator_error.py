"""How often moderators err, from comments that two of them labelled without knowing of each other.

Nobody knows the truth, only how often two labels differ. If both people err independently and at
the same rate e, whatever the true label, two labels of one comment differ with probability
r = 2e(1−e), so that e = (1 − √(1−2r))/2 (Gordon et al. 2021, Eq. 3, for two people). Errors that
both make alike, because a guideline misleads or a joke escapes everybody, do not show: e is then
too small. The same formula on one person's two labels gives a lower bound: a person may repeat a
misreading. Comments of known label, gold, tell e directly, but are no sample of what is routed.
`rogan_gladen` says what e does to the metrics.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.errors import MetricInputError
from modwatch.metrics import inputs
from modwatch.metrics.inputs import Floats
from modwatch.metrics.intervals import share_confidence

#: Pairs of labels that an error rate needs: with 30 that all agree, e may still be 5 %.
MINIMUM_PAIRS = 30

_DRAWS = 2000


@dataclass(frozen=True, kw_only=True)
class LabelPairs:
    """The two labels of each of m comments that two people labelled."""

    #: (m,) 0 or 1: the label that the estimates are made of.
    first: NDArray[np.generic]
    #: (m,) 0 or 1: what somebody else said.
    second: NDArray[np.generic]
    #: (m,) whether the comment is of the reviewed top; the others are of the random slice.
    top: NDArray[np.bool_]
    #: (m,) ≥ 0: how many routed comments the pair stands for; inside the slice in proportion to
    #: 1/inclusion probability.
    weight: NDArray[np.floating]

    def __post_init__(self) -> None:
        inputs.same_length(first=self.first, second=self.second, top=self.top, weight=self.weight)
        inputs.labels(self.first)
        inputs.labels(self.second)
        inputs.weights(self.weight, len(self.first))
        if np.asarray(self.top).dtype != np.bool_:
            raise MetricInputError("top holds something other than truth values; pass booleans")

    def only(self, rows: NDArray[np.bool_]) -> "LabelPairs":
        """Return the pairs where `rows` (m,) is true."""
        return LabelPairs(
            first=self.first[rows],
            second=self.second[rows],
            top=self.top[rows],
            weight=self.weight[rows],
        )


@dataclass(frozen=True, kw_only=True)
class ErrorRate:
    """How often one person errs. Value and interval are None when `status` is insufficient."""

    #: In [0, ½).
    value: float | None
    #: 95 % interval; the high end may be ½, where labels say nothing.
    low: float | None
    high: float | None
    #: Pairs of labels, or answers; 0 when the rate is assumed.
    n: int
    #: As many of equal weight that would tell as much (Kish).
    effective_n: float
    #: ok | insufficient
    status: str
    #: Why it is insufficient; empty when ok.
    reason: str
    #: Confidence distribution, as a rising sample; empty when insufficient.
    confidence: Floats = field(repr=False, compare=False)


@dataclass(frozen=True, kw_only=True)
class ModeratorError:
    """Error rates of the labels of the reviewed top, whose comments are hard, and of the rest."""

    top: ErrorRate
    rest: ErrorRate
    #: All pairs together, weighted to the comments that were routed. It stands for top or rest
    #: where their own pairs do not suffice.
    pooled: ErrorRate


@dataclass(frozen=True, kw_only=True)
class GoldAnswers:
    """Answers to comments whose label is known."""

    #: Answers to toxic comments, and how many of them said so.
    toxic: int
    toxic_right: int
    #: The same of comments that are not toxic.
    other: int
    other_right: int


def moderator_error(pairs: LabelPairs, *, minimum: int = MINIMUM_PAIRS) -> ModeratorError:
    """Return the error rates of top and rest, each from its own pairs or else from all of them.

    >>> ones = np.ones(40)
    >>> alike = LabelPairs(first=ones, second=ones, top=ones > 0, weight=ones)
    >>> moderator_error(alike).rest.value
    0.0
    """
    pooled = error_rate(pairs.first, pairs.second, pairs.weight, minimum=minimum)
    own = (
        error_rate(part.first, part.second, part.weight, minimum=minimum)
        for part in (pairs.only(pairs.top), pairs.only(~pairs.top))
    )
    top, rest = (each if each.status == pooled.status == "ok" else pooled for each in own)
    return ModeratorError(top=top, rest=rest, pooled=pooled)


def assumed_error(rate: float) -> ModeratorError:
    """Return a rate that is supposed, for every label alike, and not estimated.

    >>> assumed_error(0.02).top.value
    0.02
    """
    if not 0 <= rate < 0.5:  # NaN fails too
        raise MetricInputError(f"the error rate is {rate}; it must lie in [0, 0.5)")
    supposed = ErrorRate(
        value=float(rate), low=float(rate), high=float(rate), n=0, effective_n=0.0,
        status="ok", reason="", confidence=np.full(1, float(rate)),
    )  # fmt: skip
    return ModeratorError(top=supposed, rest=supposed, pooled=supposed)


def error_rate(
    first: ArrayLike,
    second: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    minimum: int = MINIMUM_PAIRS,
) -> ErrorRate:
    """Return how often one person errs, from two people's labels (m,) of the same comments.

    The interval is that of the disagreement rate, mid-P Clopper–Pearson on the effective number of
    pairs (Korn & Graubard 1998), carried through e(r). Insufficient with fewer than `minimum` pairs
    of a weight above 0, and when labels differ as often as coin tosses do, r ≥ ½.

    >>> labels = np.zeros(100)
    >>> flipped = np.where(np.arange(100) < 18, 1, 0)
    >>> round(error_rate(labels, flipped).value, 6)
    0.1
    """
    one, other = inputs.labels(first), inputs.labels(second)
    w = inputs.weights(weight, one.size)
    inputs.same_length(first=one, second=other, weight=w)
    n = int((w > 0).sum())
    if n < max(minimum, 1):
        return _insufficient(f"{n} pairs of labels; {max(minimum, 1)} are needed", n, 0.0)
    effective = float(w.sum() ** 2 / (w**2).sum())
    disagreement = float(np.dot(w, one != other) / w.sum())
    if disagreement >= 0.5:
        return _insufficient("two people's labels differ as often as coin tosses", n, effective)
    confidence = error_of(share_confidence(disagreement * effective, effective))
    value = float(error_of(np.array([disagreement]))[0])
    low, high = np.quantile(confidence, [0.025, 0.975])
    return ErrorRate(
        value=value, low=min(float(low), value), high=max(float(high), value),
        n=n, effective_n=effective, status="ok", reason="", confidence=confidence,
    )  # fmt: skip


def known_error(right: int, n: int, *, minimum: int = MINIMUM_PAIRS) -> ErrorRate:
    """Return how often people err, from n answers to comments whose label is known.

    The interval is mid-P Clopper–Pearson. Insufficient with fewer than `minimum` answers, and when
    half of them or more are wrong. Raises MetricInputError for counts that cannot be.

    >>> known_error(95, 100).value
    0.05
    """
    if not 0 <= right <= n:
        raise MetricInputError(f"{right} of {n} answers cannot be right; pass counts")
    if n < max(minimum, 1):
        return _insufficient(f"{n} answers; {max(minimum, 1)} are needed", n, 0.0)
    return _known((n - right) / n, share_confidence(n - right, n), n)


def gold_error(
    answers: GoldAnswers, *, prevalence: float | None = None, minimum: int = MINIMUM_PAIRS
) -> ModeratorError:
    """Return the error rate that answers to gold tell, one for all comments.

    Gold is made of toxic and other comments in a proportion of its own. With answers enough of
    either, e₁ on toxic and e₀ on other comments, the rate is that of the comments measured,
    e = πe₁ + (1−π)e₀, of which the share `prevalence` = π(1−e₁) + (1−π)e₀ is *seen* as toxic.
    Otherwise, or without it, it is that of all answers together.

    >>> gold = GoldAnswers(toxic=50, toxic_right=40, other=50, other_right=50)
    >>> round(gold_error(gold).pooled.value, 6)
    0.1
    >>> round(gold_error(gold, prevalence=0.08).pooled.value, 6)
    0.02
    """
    right, n = answers.toxic_right + answers.other_right, answers.toxic + answers.other
    found = known_error(right, n, minimum=minimum)
    toxic = known_error(answers.toxic_right, answers.toxic, minimum=minimum)
    other = known_error(answers.other_right, answers.other, minimum=minimum)
    if prevalence is not None and toxic.status == other.status == "ok":
        found = _mixed(toxic, other, prevalence)
    return ModeratorError(top=found, rest=found, pooled=found)


def error_of(disagreement: Floats) -> Floats:
    """Return the error rate e in [0, ½] that explains a disagreement rate r; ½ from r = ½ on.

    >>> error_of(np.array([0.0, 0.18, 0.7])).round(6).tolist()
    [0.0, 0.1, 0.5]
    """
    return np.asarray((1 - np.sqrt(np.clip(1 - 2 * disagreement, 0, 1))) / 2)


def _known(value: float, confidence: Floats, n: int) -> ErrorRate:
    """Return a rate with the interval of its confidence distribution."""
    if value >= 0.5:
        return _insufficient("answers are wrong as often as coin tosses", n, float(n))
    confidence = np.minimum(confidence, 0.5)
    low, high = np.quantile(confidence, [0.025, 0.975])
    return ErrorRate(
        value=value, low=min(float(low), value), high=max(float(high), value),
        n=n, effective_n=float(n), status="ok", reason="", confidence=confidence,
    )  # fmt: skip


def _mixed(toxic: ErrorRate, other: ErrorRate, seen: float) -> ErrorRate:
    """Return the rate over comments of which the share `seen` is labelled toxic."""
    points = (np.arange(_DRAWS) + 0.5) / _DRAWS
    rng = np.random.default_rng(0)  # pairs the two distributions at random
    drawn = [rng.permutation(np.quantile(each.confidence, points)) for each in (toxic, other)]
    value = _rate_over(np.array([toxic.value]), np.array([other.value]), seen)
    confidence = np.sort(_rate_over(drawn[0], drawn[1], seen))
    return _known(float(value[0]), confidence, toxic.n + other.n)


def _rate_over(toxic: Floats, other: Floats, seen: float) -> Floats:
    told = np.maximum(1 - toxic - other, 1e-9)  # 0 at ½ and ½, where any share gives ½
    share = np.clip((seen - other) / told, 0, 1)
    return np.asarray(share * toxic + (1 - share) * other)


def _insufficient(reason: str, n: int, effective: float) -> ErrorRate:
    return ErrorRate(
        value=None, low=None, high=None, n=n, effective_n=effective,
        status="insufficient", reason=reason, confidence=np.empty(0),
    )  # fmt: skip
