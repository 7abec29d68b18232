"""Oracle-model collaborative metrics of Kivlichan et al. (2021), exact.

Rows are n comments with `label` y ∈ {0, 1}, `prob` p = p(y=1|x), decision f = 1[p > threshold] and
`review_score` u, larger reviewed first. A fraction α of the rows is reviewed by an oracle, by
falling u. The rows that share the last reviewed score are reviewed in part, which is the
expectation over random tie-breaking, so nothing depends on the order of the rows.

Capacity: ⌊αn⌋ rows. A whole weight equals that many repetitions of its row, so whole weights have
the capacity ⌊αΣw⌋; other weights (inverse inclusion probabilities) have αΣw.

An undefined result is None. Inputs that do not fit raise MetricInputError.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from modwatch.errors import MetricInputError
from modwatch.metrics import inputs
from modwatch.metrics.inputs import Floats
from modwatch.metrics.ranking import (
    Curve,
    Interpolation,
    Sweep,
    check_interpolation,
    quotient,
    reviews,
)

#: Review strategies: sections 5 and, for the mixture, 8 of Kivlichan et al. (2021).
STRATEGIES = ("uncertainty", "toxicity", "hybrid")

#: Review fractions of section 6 of Kivlichan et al. (2021).
REVIEW_FRACTIONS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2)


def review_scores(
    prob: ArrayLike,
    strategy: str,
    *,
    toxic_share: float = 0.5,
    weight: ArrayLike | None = None,
) -> Floats:
    """Return the review score (n,) of each comment; larger is reviewed first.

    `uncertainty` is p(1−p) in [0, 0.25], Eq. 1; `toxicity` is p. `hybrid` gives `toxic_share` of
    any capacity to the most toxic and the rest to the most uncertain: its score, below 0, is minus
    the length of the two lists together, as a fraction of all rows, at which a row stands on one.
    A row on both is reviewed once, and the lists go on in the same shares until the capacity is
    full. Only the hybrid looks at `weight`: its ranks are masses of rows.

    >>> review_scores([0.5, 1.0], "uncertainty").tolist()
    [0.25, 0.0]
    >>> review_scores([0.5, 0.9, 0.1, 1.0], "hybrid").argsort()[-2:].tolist()
    [0, 3]
    """
    p = inputs.probabilities(prob)
    if strategy == "toxicity":
        return p
    if strategy == "uncertainty":
        return p * (1 - p)
    if strategy != "hybrid":
        raise MetricInputError(f"strategy is {strategy!r}; it must be one of {STRATEGIES}")
    return _hybrid(p, inputs.fraction("toxic_share", toxic_share), inputs.weights(weight, p.size))


def _hybrid(p: Floats, share: float, weight: Floats) -> Floats:
    """Return minus the smallest capacity at which a row is on either list."""
    parts = [(share, p), (1 - share, p * (1 - p))]
    reached = [_mass_rank(score, weight) / part for part, score in parts if part > 0]
    nearest: Floats = -np.minimum.reduce(reached)
    return nearest


def _mass_rank(score: Floats, weight: Floats) -> Floats:
    """Return the fraction of mass scored higher, equals counted half."""
    values, group = np.unique(score, return_inverse=True)
    mass = np.bincount(group, weights=weight, minlength=values.size)
    above = np.cumsum(mass[::-1])[::-1] - mass
    total = max(float(mass.sum()), np.finfo(np.float64).tiny)
    rank: Floats = (above + mass / 2)[group] / total
    return rank


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """Checked rows, all (n,)."""

    label: Floats
    prob: Floats
    weight: Floats
    threshold: float

    @property
    def wrong(self) -> Floats:
        """(n,) 1.0 where the decision f differs from the label."""
        wrong: Floats = ((self.prob > self.threshold) != (self.label == 1)).astype(np.float64)
        return wrong


def _rows(label: ArrayLike, prob: ArrayLike, weight: ArrayLike | None, threshold: float) -> _Rows:
    """Return the checked rows."""
    y, p, w = inputs.rows(label, prob, weight)
    return _Rows(label=y, prob=p, weight=w, threshold=inputs.fraction("threshold", threshold))


def _reviewed(rows: _Rows, review_score: ArrayLike, alpha: float) -> Floats:
    """Return the reviewed part (n,) of each row at α."""
    score = inputs.column("review_score", review_score)
    inputs.same_length(label=rows.label, review_score=score)
    (review,) = reviews(score, [inputs.fraction("alpha", alpha)], rows.weight)
    return review.reviewed(score)


def _oc_accuracy(rows: _Rows, reviewed: Floats) -> float | None:
    kept_wrong = float(np.dot(rows.weight, (1 - reviewed) * rows.wrong))
    total = float(rows.weight.sum())
    return quotient(total - kept_wrong, total)


def _review_efficiency(rows: _Rows, reviewed: Floats) -> float | None:
    mass = rows.weight * reviewed
    return quotient(float(np.dot(mass, rows.wrong)), float(mass.sum()))


def _review_effectiveness(rows: _Rows, reviewed: Floats) -> float | None:
    errors = rows.weight * rows.wrong
    return quotient(float(np.dot(errors, reviewed)), float(errors.sum()))


def _curve(rows: _Rows, reviewed: Floats, sweep: Sweep | None = None) -> Curve:
    """Return the curve on which reviewed rows are right at every threshold."""
    return (sweep or Sweep(rows.label, rows.prob)).curve(rows.weight, reviewed)


def oc_accuracy(
    label: ArrayLike,
    prob: ArrayLike,
    review_score: ArrayLike,
    alpha: float,
    *,
    weight: ArrayLike | None = None,
    threshold: float = 0.5,
) -> float | None:
    """Return OC-Acc in [0, 1]: the mass reviewed, or decided rightly without review, over all.

    Equals accuracy + (k/n)·RE with k reviewed of n (Eq. 2 writes α for k/n). None without rows.

    >>> oc_accuracy([1, 0, 0], [0.4, 0.6, 0.1], [0.24, 0.24, 0.09], 1 / 3)
    0.6666666666666666
    """
    rows = _rows(label, prob, weight, threshold)
    return _oc_accuracy(rows, _reviewed(rows, review_score, alpha))


def oc_auroc(
    label: ArrayLike,
    prob: ArrayLike,
    review_score: ArrayLike,
    alpha: float,
    *,
    weight: ArrayLike | None = None,
    threshold: float = 0.5,
) -> float | None:
    """Return OC-AUROC in [0, 1]: the AUROC when reviewed rows are right at every threshold.

    Reviewed positives rank above and reviewed negatives below all others. 1 at α = 1; the plain
    AUROC at α = 0. None unless both classes have rows. `threshold` has no influence: it is taken
    so that the five metrics are called alike.

    >>> oc_auroc([1, 0, 1], [0.9, 0.5, 0.1], [0.09, 0.25, 0.09], 0)
    0.5
    """
    rows = _rows(label, prob, weight, threshold)
    return _curve(rows, _reviewed(rows, review_score, alpha)).auroc()


def oc_auprc(
    label: ArrayLike,
    prob: ArrayLike,
    review_score: ArrayLike,
    alpha: float,
    *,
    weight: ArrayLike | None = None,
    threshold: float = 0.5,
    interpolation: Interpolation = "davis-goadrich",
) -> float | None:
    """Return OC-AUPRC in [0, 1], reviewed rows being right at every threshold.

    Integrated as in Davis & Goadrich (2006); `step` gives average precision. None without
    positives. `threshold` has no influence, as in `oc_auroc`.

    >>> oc_auprc([1, 0, 1], [0.9, 0.5, 0.1], [0.09, 0.25, 0.09], 1 / 3)
    1.0
    """
    check_interpolation(interpolation)
    rows = _rows(label, prob, weight, threshold)
    return _curve(rows, _reviewed(rows, review_score, alpha)).auprc(interpolation)


def review_efficiency(
    label: ArrayLike,
    prob: ArrayLike,
    review_score: ArrayLike,
    alpha: float,
    *,
    weight: ArrayLike | None = None,
    threshold: float = 0.5,
) -> float | None:
    """Return RE in [0, 1]: wrong decisions among the reviewed. None when nothing is reviewed.

    >>> review_efficiency([1, 0, 0], [0.4, 0.6, 0.1], [0.24, 0.24, 0.09], 1 / 3)
    1.0
    """
    rows = _rows(label, prob, weight, threshold)
    return _review_efficiency(rows, _reviewed(rows, review_score, alpha))


def review_effectiveness(
    label: ArrayLike,
    prob: ArrayLike,
    review_score: ArrayLike,
    alpha: float,
    *,
    weight: ArrayLike | None = None,
    threshold: float = 0.5,
) -> float | None:
    """Return the share in [0, 1] of all wrong decisions that is reviewed; None without any wrong.

    Kivlichan et al. (2021), appendix A.2.

    >>> review_effectiveness([1, 0, 0], [0.4, 0.6, 0.1], [0.24, 0.24, 0.09], 1 / 3)
    0.5
    """
    rows = _rows(label, prob, weight, threshold)
    return _review_effectiveness(rows, _reviewed(rows, review_score, alpha))


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
    rows = _falling(_rows(label, prob, weight, threshold))
    sweep = Sweep(rows.label, rows.prob)
    table = []
    for strategy in strategies:
        score = review_scores(rows.prob, strategy, toxic_share=toxic_share, weight=rows.weight)
        for alpha, review in zip(alphas, reviews(score, alphas, rows.weight), strict=True):
            values = _all_five(rows, sweep, review.reviewed(score), interpolation)
            table.append({"strategy": strategy, "alpha": alpha, **values})
    frame = pd.DataFrame(table, columns=["strategy", "alpha", *METRICS])
    return frame.astype(dict.fromkeys(METRICS, "Float64"))


#: Columns of `collaboration_curve`.
METRICS = ("oc_accuracy", "oc_auroc", "oc_auprc", "review_efficiency", "review_effectiveness")


def _all_five(
    rows: _Rows, sweep: Sweep, reviewed: Floats, interpolation: Interpolation
) -> dict[str, float | None]:
    """Return the five metrics at one review."""
    curve = _curve(rows, reviewed, sweep)
    return {
        "oc_accuracy": _oc_accuracy(rows, reviewed),
        "oc_auroc": curve.auroc(),
        "oc_auprc": curve.auprc(interpolation),
        "review_efficiency": _review_efficiency(rows, reviewed),
        "review_effectiveness": _review_effectiveness(rows, reviewed),
    }


def _falling(rows: _Rows) -> _Rows:
    """Return the rows by falling probability, so that later sorts only merge and gathers stream."""
    order = np.argsort(-rows.prob, kind="stable")
    return _Rows(
        label=rows.label[order],
        prob=rows.prob[order],
        weight=rows.weight[order],
        threshold=rows.threshold,
    )
