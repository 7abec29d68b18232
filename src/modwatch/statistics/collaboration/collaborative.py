"""Oracle-model collaborative metrics of Kivlichan et al. (2021), exact.

Arguments are described in `modwatch.statistics`. A fraction α, `review_fraction`, of the n samples
is reviewed by an oracle, in descending order of `y_score`. Samples tied at the last reviewed score
are reviewed fractionally, each with the same share, so no result depends on the order of the rows.
For OC-Acc, Review Efficiency and Review Effectiveness this is the expectation over random
tie-breaking; for the areas it is the limit for many tied samples. Without `y_score`, the review
score is that of the strategy `uncertainty`.

Capacity: ⌊αn⌋ samples. An integer weight repeats its sample, so integer weights have the capacity
⌊αΣw⌋; other weights (inverse inclusion probabilities) have αΣw.

Undefined metrics are None. Invalid arguments raise MetricInputError.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats
from modwatch.statistics.collaboration.model_metrics import wrong
from modwatch.statistics.collaboration.ranking import (
    Interpolation,
    Sweep,
    check_interpolation,
    dot,
    reviews,
    share,
)
from modwatch.statistics.collaboration.review_strategies import Costs, review_scores, stakes
from modwatch.statistics.decisions import is_flagged

#: Review fractions of section 6 of Kivlichan et al. (2021).
REVIEW_FRACTIONS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2)

#: Columns of `collaboration_curve`.
METRICS = (
    *("oc_accuracy", "oc_auroc", "oc_auprc"),
    *("review_efficiency", "review_effectiveness", "remaining_cost"),
)


def oc_accuracy(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    y_score: ArrayLike | None = None,
    *,
    review_fraction: float,
    sample_weight: ArrayLike | None = None,
    threshold: float = 0.5,
    label_threshold: float | None = None,
) -> float | None:
    """Return OC-Acc in [0, 1]: the fraction reviewed, or decided correctly without review.

    Equals accuracy + (k/n)·RE with k of n reviewed (Eq. 2 writes α for k/n); 1 at
    review_fraction = 1. None without samples. Section 4.1.

    >>> oc_accuracy([1, 0, 0], [0.4, 0.6, 0.1], [0.24, 0.24, 0.09], review_fraction=1 / 3)
    0.6666666666666666
    """
    rows = _rows(y_true, y_prob, sample_weight, threshold, label_threshold)
    return _of_errors(rows, _reviewed(rows, y_score, review_fraction))["oc_accuracy"]


def oc_auroc(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    y_score: ArrayLike | None = None,
    *,
    review_fraction: float,
    sample_weight: ArrayLike | None = None,
    threshold: float = 0.5,
    label_threshold: float | None = None,
) -> float | None:
    """Return OC-AUROC in [0, 1]: the AUROC when reviewed samples are correct at every threshold.

    Reviewed positives rank above and reviewed negatives below all others. 1 at review_fraction = 1;
    the plain AUROC at 0. None with one class only. `threshold` has no effect; it is accepted so
    that the five metrics share one signature. Section 4.1.

    >>> oc_auroc([1, 0, 1], [0.9, 0.5, 0.1], [0.09, 0.25, 0.09], review_fraction=0)
    0.5
    """
    rows = _rows(y_true, y_prob, sample_weight, threshold, label_threshold)
    reviewed = _reviewed(rows, y_score, review_fraction)
    return Sweep(rows.label, rows.prob).curve(rows.weight, reviewed).auroc()


def oc_auprc(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    y_score: ArrayLike | None = None,
    *,
    review_fraction: float,
    sample_weight: ArrayLike | None = None,
    threshold: float = 0.5,
    interpolation: Interpolation = "davis-goadrich",
    label_threshold: float | None = None,
) -> float | None:
    """Return OC-AUPRC in [0, 1]: the AUPRC when reviewed samples are correct at every threshold.

    Integrated as in Davis & Goadrich (2006); `interpolation="step"` gives average precision. None
    without positives. `threshold` has no effect, as in `oc_auroc`. Section 4.1.

    >>> oc_auprc([1, 0, 1], [0.9, 0.5, 0.1], [0.09, 0.25, 0.09], review_fraction=1 / 3)
    1.0
    """
    check_interpolation(interpolation)
    rows = _rows(y_true, y_prob, sample_weight, threshold, label_threshold)
    reviewed = _reviewed(rows, y_score, review_fraction)
    return Sweep(rows.label, rows.prob).curve(rows.weight, reviewed).auprc(interpolation)


def review_efficiency(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    y_score: ArrayLike | None = None,
    *,
    review_fraction: float,
    sample_weight: ArrayLike | None = None,
    threshold: float = 0.5,
    label_threshold: float | None = None,
) -> float | None:
    """Return Review Efficiency in [0, 1]: the error rate of the model on reviewed samples.

    None when nothing is reviewed. Section 4.1.

    >>> review_efficiency([1, 0, 0], [0.4, 0.6, 0.1], [0.24, 0.24, 0.09], review_fraction=1 / 3)
    1.0
    """
    rows = _rows(y_true, y_prob, sample_weight, threshold, label_threshold)
    return _of_errors(rows, _reviewed(rows, y_score, review_fraction))["review_efficiency"]


def review_effectiveness(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    y_score: ArrayLike | None = None,
    *,
    review_fraction: float,
    sample_weight: ArrayLike | None = None,
    threshold: float = 0.5,
    label_threshold: float | None = None,
) -> float | None:
    """Return Review Effectiveness in [0, 1]: the fraction of the model's errors that are reviewed.

    None without errors. Appendix A.2.

    >>> review_effectiveness([1, 0, 0], [0.4, 0.6, 0.1], [0.24, 0.24, 0.09], review_fraction=1 / 3)
    0.5
    """
    rows = _rows(y_true, y_prob, sample_weight, threshold, label_threshold)
    return _of_errors(rows, _reviewed(rows, y_score, review_fraction))["review_effectiveness"]


def remaining_cost(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    y_score: ArrayLike | None = None,
    *,
    review_fraction: float,
    costs: Costs = (1.0, 1.0),
    sample_weight: ArrayLike | None = None,
    threshold: float = 0.5,
    label_threshold: float | None = None,
) -> float | None:
    """Return what the wrong decisions outside of the review cost, per sample.

    `costs` are of a false negative and of a false positive, as in `review_scores`; at 1 each it is
    1 − OC-Acc. None without samples.

    >>> remaining_cost([1, 0, 1], [0.4, 0.6, 0.3], [0, 1, 0], review_fraction=1 / 3, costs=(6, 1))
    4.0
    """
    rows = _rows(y_true, y_prob, sample_weight, threshold, label_threshold, costs)
    return _of_errors(rows, _reviewed(rows, y_score, review_fraction))["remaining_cost"]


def collaboration_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    review_fractions: Sequence[float] = REVIEW_FRACTIONS,
    strategies: Sequence[str] = ("uncertainty", "toxicity"),
    sample_weight: ArrayLike | None = None,
    threshold: float = 0.5,
    costs: Costs | None = None,
    interpolation: Interpolation = "davis-goadrich",
    label_threshold: float | None = None,
) -> pd.DataFrame:
    """Return the collaborative metrics for every strategy and review fraction.

    One row per strategy and review fraction: `strategy`, `alpha`, then the columns `METRICS` as
    nullable floats, missing where undefined. `remaining_cost` is what the wrong decisions outside
    of the review cost, per comment, at `costs` as in `review_scores`; by default 1 each, and the
    strategy `cost` takes those for which `threshold` is the best one. O(n log n) time; each further
    fraction costs O(n).

    >>> curve = collaboration_curve(
    ...     [1, 0], [0.4, 0.1], review_fractions=[0, 0.5], strategies=["toxicity"]
    ... )
    >>> curve["oc_accuracy"].tolist(), curve["review_efficiency"].tolist()
    ([0.5, 1.0], [<NA>, 1.0])
    """
    check_interpolation(interpolation)
    alphas = [arguments.fraction("review_fraction", alpha) for alpha in review_fractions]
    rows = _falling(_rows(y_true, y_prob, sample_weight, threshold, label_threshold, costs))
    sweep = Sweep(rows.label, rows.prob)
    table = []
    for strategy in strategies:
        score = review_scores(
            rows.prob,
            strategy,
            threshold=threshold,
            costs=costs,
            sample_weight=rows.weight,
        )
        for alpha, review in zip(alphas, reviews(score, alphas, rows.weight), strict=True):
            reviewed = review.reviewed(score)
            curve = sweep.curve(rows.weight, reviewed)
            areas = {"oc_auroc": curve.auroc(), "oc_auprc": curve.auprc(interpolation)}
            values = {**_of_errors(rows, reviewed), **areas}
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
    #: What the decision costs if it is wrong.
    stake: Floats


def _rows(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    sample_weight: ArrayLike | None,
    threshold: float,
    label_threshold: float | None,
    costs: Costs | None = None,
) -> _Rows:
    """Return the checked rows."""
    y, p, w = arguments.rows(y_true, y_prob, sample_weight, label_threshold)
    false = wrong(y, p, threshold)
    return _Rows(
        label=y, prob=p, weight=w, wrong=false, stake=stakes(is_flagged(p, threshold), costs)
    )


def _falling(rows: _Rows) -> _Rows:
    """Return the rows by descending probability: later sorts only merge, and gathers stream."""
    order = np.argsort(-rows.prob, kind="stable")
    return _Rows(**{name: column[order] for name, column in vars(rows).items()})


def _reviewed(rows: _Rows, y_score: ArrayLike | None, review_fraction: float) -> Floats:
    """Return the reviewed part (n,) of each row."""
    if y_score is None:
        y_score = review_scores(rows.prob, flagged=rows.wrong != (rows.label == 1))
    score = arguments.column("y_score", y_score)
    arguments.same_length(y_true=rows.label, y_score=score)
    alpha = arguments.fraction("review_fraction", review_fraction)
    (review,) = reviews(score, [alpha], rows.weight)
    return review.reviewed(score)


def _of_errors(rows: _Rows, reviewed: Floats) -> dict[str, float | None]:
    """Return the metrics of the errors that a review catches, and of those that it misses."""
    wrong, part = rows.weight[rows.wrong], reviewed[rows.wrong]
    caught, missed = dot(wrong, part), dot(wrong, 1 - part)
    right = float(rows.weight.sum(where=~rows.wrong)) + caught
    whole, cost = right + missed, dot(wrong * rows.stake[rows.wrong], 1 - part)
    return {
        "remaining_cost": cost / whole if whole else None,
        "oc_accuracy": share(right, whole),
        "review_efficiency": share(caught, dot(rows.weight, reviewed)),
        "review_effectiveness": share(caught, caught + missed),
    }
