"""Oracle-model collaborative metrics of Kivlichan et al. (2021), exact.

Rows are n comments with `label` y ∈ {0, 1}, `prob` p = p(y=1|x), decision f = 1[p > threshold] and
`review_score` u, larger reviewed first. A fraction α of the rows is reviewed by an oracle, by
falling u. The rows that share the last reviewed score are reviewed in part, each alike, so nothing
depends on the order of the rows. For OC-Acc, Review Efficiency and Review Effectiveness that is the
expectation over random tie-breaking; for the areas it is its limit when the tied rows are many.

Capacity: ⌊αn⌋ rows. A whole weight equals that many repetitions of its row, so whole weights have
the capacity ⌊αΣw⌋; other weights (inverse inclusion probabilities) have αΣw.

Soft labels, shares of votes in [0, 1], need a `label_threshold`: those above it are 1.

An undefined result is None. Inputs that do not fit raise MetricInputError.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from modwatch.metrics import inputs
from modwatch.metrics.classification import wrong
from modwatch.metrics.inputs import Floats
from modwatch.metrics.ranking import Interpolation, Sweep, check_interpolation, dot, reviews, share
from modwatch.metrics.strategies import STRATEGIES, review_scores

__all__ = [
    "METRICS",
    "REVIEW_FRACTIONS",
    "STRATEGIES",
    "collaboration_curve",
    "oc_accuracy",
    "oc_auprc",
    "oc_auroc",
    "review_effectiveness",
    "review_efficiency",
    "review_scores",
]

#: Review fractions of section 6 of Kivlichan et al. (2021).
REVIEW_FRACTIONS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2)

#: Columns of `collaboration_curve`.
METRICS = ("oc_accuracy", "oc_auroc", "oc_auprc", "review_efficiency", "review_effectiveness")


def oc_accuracy(
    label: ArrayLike,
    prob: ArrayLike,
    review_score: ArrayLike,
    alpha: float,
    *,
    weight: ArrayLike | None = None,
    threshold: float = 0.5,
    label_threshold: float | None = None,
) -> float | None:
    """Return OC-Acc in [0, 1]: the mass reviewed, or decided rightly without review, over all.

    Equals accuracy + (k/n)·RE with k reviewed of n (Eq. 2 writes α for k/n). None without rows.

    >>> oc_accuracy([1, 0, 0], [0.4, 0.6, 0.1], [0.24, 0.24, 0.09], 1 / 3)
    0.6666666666666666
    """
    rows = _rows(label, prob, weight, threshold, label_threshold)
    return _Masses.of(rows, _reviewed(rows, review_score, alpha)).oc_accuracy()


def oc_auroc(
    label: ArrayLike,
    prob: ArrayLike,
    review_score: ArrayLike,
    alpha: float,
    *,
    weight: ArrayLike | None = None,
    threshold: float = 0.5,
    label_threshold: float | None = None,
) -> float | None:
    """Return OC-AUROC in [0, 1]: the AUROC when reviewed rows are right at every threshold.

    Reviewed positives rank above and reviewed negatives below all others. 1 at α = 1; the plain
    AUROC at α = 0. None unless both classes have rows. `threshold` has no influence: it is taken
    so that the five metrics are called alike.

    >>> oc_auroc([1, 0, 1], [0.9, 0.5, 0.1], [0.09, 0.25, 0.09], 0)
    0.5
    """
    rows = _rows(label, prob, weight, threshold, label_threshold)
    curve = Sweep(rows.label, rows.prob).curve(rows.weight, _reviewed(rows, review_score, alpha))
    return curve.auroc()


def oc_auprc(
    label: ArrayLike,
    prob: ArrayLike,
    review_score: ArrayLike,
    alpha: float,
    *,
    weight: ArrayLike | None = None,
    threshold: float = 0.5,
    interpolation: Interpolation = "davis-goadrich",
    label_threshold: float | None = None,
) -> float | None:
    """Return OC-AUPRC in [0, 1], reviewed rows being right at every threshold.

    Integrated as in Davis & Goadrich (2006); `step` gives average precision. None without
    positives. `threshold` has no influence, as in `oc_auroc`.

    >>> oc_auprc([1, 0, 1], [0.9, 0.5, 0.1], [0.09, 0.25, 0.09], 1 / 3)
    1.0
    """
    check_interpolation(interpolation)
    rows = _rows(label, prob, weight, threshold, label_threshold)
    curve = Sweep(rows.label, rows.prob).curve(rows.weight, _reviewed(rows, review_score, alpha))
    return curve.auprc(interpolation)


def review_efficiency(
    label: ArrayLike,
    prob: ArrayLike,
    review_score: ArrayLike,
    alpha: float,
    *,
    weight: ArrayLike | None = None,
    threshold: float = 0.5,
    label_threshold: float | None = None,
) -> float | None:
    """Return RE in [0, 1]: wrong decisions among the reviewed. None when nothing is reviewed.

    >>> review_efficiency([1, 0, 0], [0.4, 0.6, 0.1], [0.24, 0.24, 0.09], 1 / 3)
    1.0
    """
    rows = _rows(label, prob, weight, threshold, label_threshold)
    return _Masses.of(rows, _reviewed(rows, review_score, alpha)).review_efficiency()


def review_effectiveness(
    label: ArrayLike,
    prob: ArrayLike,
    review_score: ArrayLike,
    alpha: float,
    *,
    weight: ArrayLike | None = None,
    threshold: float = 0.5,
    label_threshold: float | None = None,
) -> float | None:
    """Return the share in [0, 1] of all wrong decisions that is reviewed; None without any wrong.

    Kivlichan et al. (2021), appendix A.2.

    >>> review_effectiveness([1, 0, 0], [0.4, 0.6, 0.1], [0.24, 0.24, 0.09], 1 / 3)
    0.5
    """
    rows = _rows(label, prob, weight, threshold, label_threshold)
    return _Masses.of(rows, _reviewed(rows, review_score, alpha)).review_effectiveness()


def collaboration_curve(
    label: ArrayLike,
    prob: ArrayLike,
    *,
    alphas: Sequence[float] = REVIEW_FRACTIONS,
    strategies: Sequence[str] = ("uncertainty", "toxicity"),
    weight: ArrayLike | None = None,
    threshold: float = 0.5,
    toxic_share: float = 0.5,
    interpolation: Interpolation = "davis-goadrich",
    label_threshold: float | None = None,
) -> pd.DataFrame:
    """Return the five metrics at every strategy and α, from one sort of the rows.

    One row a strategy and α: `strategy`, `alpha`, then `oc_accuracy`, `oc_auroc`, `oc_auprc`,
    `review_efficiency`, `review_effectiveness` as nullable floats, missing where undefined.
    O(n log n) time; every further α costs O(n).

    >>> curve = collaboration_curve([1, 0], [0.4, 0.1], alphas=[0, 0.5], strategies=["toxicity"])
    >>> curve["oc_accuracy"].tolist(), curve["review_efficiency"].tolist()
    ([0.5, 1.0], [<NA>, 1.0])
    """
    check_interpolation(interpolation)
    alphas = [inputs.fraction("alpha", alpha) for alpha in alphas]
    rows = _falling(_rows(label, prob, weight, threshold, label_threshold))
    sweep = Sweep(rows.label, rows.prob)
    table = []
    for strategy in strategies:
        score = review_scores(rows.prob, strategy, toxic_share=toxic_share, weight=rows.weight)
        for alpha, review in zip(alphas, reviews(score, alphas, rows.weight), strict=True):
            values = _all_five(rows, sweep, review.reviewed(score), interpolation)
            table.append({"strategy": strategy, "alpha": alpha, **values})
    frame = pd.DataFrame(table, columns=["strategy", "alpha", *METRICS])
    return frame.astype(dict.fromkeys(METRICS, "Float64"))


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """Checked rows; arrays are (n,)."""

    label: Floats
    prob: Floats
    weight: Floats
    #: Whether the decision f differs from the label.
    wrong: NDArray[np.bool_]


def _rows(
    label: ArrayLike,
    prob: ArrayLike,
    weight: ArrayLike | None,
    threshold: float,
    label_threshold: float | None,
) -> _Rows:
    """Return the checked rows."""
    y, p, w = inputs.rows(label, prob, weight, label_threshold)
    return _Rows(label=y, prob=p, weight=w, wrong=wrong(y, p, threshold))


def _falling(rows: _Rows) -> _Rows:
    """Return the rows by falling probability, so that later sorts only merge and gathers stream."""
    order = np.argsort(-rows.prob, kind="stable")
    return _Rows(
        label=rows.label[order],
        prob=rows.prob[order],
        weight=rows.weight[order],
        wrong=rows.wrong[order],
    )


def _reviewed(rows: _Rows, review_score: ArrayLike, alpha: float) -> Floats:
    """Return the reviewed part (n,) of each row at α."""
    score = inputs.column("review_score", review_score)
    inputs.same_length(label=rows.label, review_score=score)
    (review,) = reviews(score, [inputs.fraction("alpha", alpha)], rows.weight)
    return review.reviewed(score)


@dataclass(frozen=True, kw_only=True)
class _Masses:
    """What a review finds, as weights of rows."""

    #: All right decisions.
    right: float
    #: Wrong ones among the reviewed, and among the others.
    caught: float
    missed: float
    #: All reviewed.
    seen: float

    @classmethod
    def of(cls, rows: _Rows, reviewed: Floats) -> "_Masses":
        wrong, part = rows.weight[rows.wrong], reviewed[rows.wrong]
        return cls(
            right=float(rows.weight.sum(where=~rows.wrong)),
            caught=dot(wrong, part),
            missed=dot(wrong, 1 - part),
            seen=dot(rows.weight, reviewed),
        )

    def oc_accuracy(self) -> float | None:
        right = self.right + self.caught
        return share(right, right + self.missed)

    def review_efficiency(self) -> float | None:
        return share(self.caught, self.seen)

    def review_effectiveness(self) -> float | None:
        return share(self.caught, self.caught + self.missed)


def _all_five(
    rows: _Rows, sweep: Sweep, reviewed: Floats, interpolation: Interpolation
) -> dict[str, float | None]:
    """Return the five metrics at one review."""
    masses, curve = _Masses.of(rows, reviewed), sweep.curve(rows.weight, reviewed)
    return {
        "oc_accuracy": masses.oc_accuracy(),
        "oc_auroc": curve.auroc(),
        "oc_auprc": curve.auprc(interpolation),
        "review_efficiency": masses.review_efficiency(),
        "review_effectiveness": masses.review_effectiveness(),
    }
