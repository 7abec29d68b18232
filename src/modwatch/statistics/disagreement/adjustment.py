"""Disagreement-adjusted metrics: a model against every annotator's primary label.

Each item counts as often as there are primary labels, by their shares, so that a model which
predicts the majority is right for the majority of the people, not for all (Gordon et al. 2021,
section 3.2). The paper draws ten labels an item; here the shares are weights, which is the
expectation over all draws.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats
from modwatch.statistics.collaboration.ranking import reviews, share
from modwatch.statistics.collaboration.review_strategies import review_scores
from modwatch.statistics.decisions import is_flagged
from modwatch.statistics.disagreement.annotations import Annotations, distribution, majority
from modwatch.statistics.disagreement.flip_rates import FlipRates
from modwatch.statistics.disagreement.others import others_against_primary
from modwatch.statistics.disagreement.primary import primary_labels, primary_shares

Codes = NDArray[np.int64]
Scores = dict[str, float | None]

#: Metrics of a model alone, and of model and moderators together.
ADJUSTED_METRICS = (
    *("accuracy", "precision", "recall", "f1", "auroc", "average_precision"),
    *("oc_accuracy", "oc_auroc", "oc_average_precision"),
    *("review_efficiency", "review_effectiveness"),
)


@dataclass(frozen=True, kw_only=True)
class _Items:
    """n items by descending probability of one class, the positive one here."""

    #: (n,) probability of the class.
    prob: Floats
    #: (n,) weight of its primary labels, and of those of the other classes; sums may be negative.
    positive: Floats
    negative: Floats
    #: (n,) whether it is the decision, and reviewed part in [0, 1].
    flagged: NDArray[np.bool_]
    reviewed: Floats


def adjusted_metrics(
    annotations: Annotations,
    y_prob: ArrayLike,
    rates: FlipRates,
    *,
    threshold: float = 0.5,
    review_fraction: float = 0.1,
    strategy: str = "uncertainty",
    sample_weight: ArrayLike | None = None,
) -> pd.DataFrame:
    """Return a table of metrics against majority, raw and primary labels; a row each metric.

    Columns: `majority`, against the majority label (ties: positive); `raw`, against every
    annotation; `adjusted`, against primary labels, with `low` and `high`, from the 95th and 5th
    percentile of the flip rates; `oracle`, the adjusted score of the majority of the *other*
    annotators, whose own label does not help to make it (`agreement_with_people`), over the items
    with several; `normalised`, adjusted over these items / oracle. NaN where a metric is undefined.
    A model may exceed the oracle: few voters make a worse decision than many.

    Of more than two classes, precision, recall, F1 and the areas are those of each class against
    all others, and their mean over the classes in which they are defined (macro, one-vs-rest). The
    decision is the most probable class, the first of several; the uncertainty is 1 − max p, the
    predictive variance 1 − Σp².

    Primary labels are estimated without the bias of Eq. 2 (`primary_shares`). The bounds cover the
    flip rates, not the choice of items or annotators. Where labels of a stratum or a person may
    differ from themselves as often as by chance, they bound nothing: that end is 0 or 1.

    Args:
        annotations: of K classes; of two, the last is positive.
        y_prob: (I,) probabilities of the last of two classes, or (I, K) of all, in the order of
            `annotations.items`.
        rates: their flip rates.
        threshold: of two classes, decisions are positive above.
        review_fraction: α of the metrics of model and moderators together.
        strategy: of `modwatch.statistics.review_scores`; of more classes `uncertainty` or
            `predictive_variance`.
        sample_weight: (I,) ≥ 0, such as 1/inclusion probability.

    Raises:
        MetricInputError: probabilities outside [0, 1] or NaN or not of each class, an item without
            annotations, columns of other lengths, or a strategy for two classes.

    >>> from modwatch.statistics.disagreement import Annotations, estimate_flip_rates
    >>> rng = np.random.default_rng(0)
    >>> opinion = rng.random((400, 10)) < rng.random(400)[:, None]
    >>> item, annotator = np.divmod(np.arange(8000) % 4000, 10)
    >>> label = (opinion.ravel()[np.arange(8000) % 4000] ^ (rng.random(8000) < 0.1)).astype(int)
    >>> annotations = Annotations.from_columns(item=item, annotator=annotator, label=label)
    >>> table = adjusted_metrics(
    ...     annotations, opinion.mean(axis=1), estimate_flip_rates(annotations)
    ... )
    >>> table.loc["accuracy", ["raw", "adjusted", "oracle"]].round(2).tolist()
    [0.73, 0.79, 0.74]
    """
    prob, weight = _checked(annotations, y_prob, sample_weight)
    given = _label_shares(annotations, rates)
    if annotations.n_classes == 2:
        classes, decision = [1], is_flagged(prob[:, 0], threshold).astype(np.int64)
        score = review_scores(prob[:, 0], strategy, threshold=threshold, sample_weight=weight)
    else:
        classes, decision = [*range(annotations.n_classes)], prob.argmax(axis=1)
        score = _uncertainty(prob, strategy)
    (review,) = reviews(score, [review_fraction], weight)
    reviewed = review.reviewed(score)

    def scored(shares: Iterable[Floats], by: Floats, chosen: Codes) -> list[Scores]:
        orders = [np.argsort(-column, kind="stable") for column in by.T]
        return [
            _scores(weight[:, None] * shares_of, classes, by, chosen, reviewed, orders)
            for shares_of in shares
        ]

    several = annotations.counts().sum(axis=1) > 1
    given["several"] = given["adjusted"] * several[:, None]
    found = dict(zip(given, scored(given.values(), prob, decision), strict=True))
    found["oracle"] = _oracle(annotations, rates, weight * several, classes, reviewed)
    table = pd.DataFrame(found, index=list(ADJUSTED_METRICS), dtype=np.float64)
    table["low"], table["high"] = _ends(*table[["adjusted", "low", "high"]].to_numpy().T)
    table["normalised"] = table.pop("several") / table["oracle"]
    return table


def adjusted(
    metric: Callable[..., float | None],
    label_share: ArrayLike,
    y_prob: ArrayLike,
    flip_rate: ArrayLike = 0.0,
    *,
    sample_weight: ArrayLike | None = None,
    **further: Any,
) -> float | None:
    """Return any metric of label, probability and weight against primary labels.

    `metric(y_true, y_prob, sample_weight=…)` is called once, with each item once as each class (of
    two: 0.0, 1.0), weighted by its shares of primary labels by Eq. 2 (`primary_labels`). With
    `flip_rate` 0 this is the metric against every annotation. Items need many annotators: Eq. 2
    is biased otherwise, and `adjusted_metrics` is not.

    Args:
        metric: such as `modwatch.statistics.oc_auroc` or `sklearn.metrics.brier_score_loss`.
        label_share: (n,) share of the annotators whose label is positive, or (n, K) of each class.
        y_prob: (n,) probabilities, or (n, K) of each class; given to the metric as they are.
        flip_rate: of each item (n,), or of all.
        sample_weight: (n,) ≥ 0.
        further: further arguments of the metric; arrays (n,) are repeated like the items.

    Raises:
        MetricInputError: shares or probabilities outside [0, 1].

    >>> from modwatch.statistics import accuracy
    >>> round(adjusted(accuracy, [0.6, 0.0], [0.9, 0.2], 0.176), 3)
    0.827
    """
    given, prob = np.asarray(label_share), np.asarray(y_prob)
    if given.ndim == 1:
        toxic = arguments.probabilities(given, name="label_share")
        given = np.stack([1 - toxic, toxic], axis=1)
    prob = arguments.probabilities(prob.ravel()).reshape(prob.shape)
    weight = arguments.weights(sample_weight, len(given))
    size = arguments.same_length(label_share=given, y_prob=prob, sample_weight=weight)
    primary = primary_labels(given, flip_rate)
    classes = primary.shape[1]
    for name, value in further.items():
        if np.ndim(value) == 1 and np.size(value) == size:
            further[name] = np.tile(np.asarray(value), classes)
    return metric(
        np.repeat(np.arange(classes, dtype=np.float64), size),
        np.concatenate([prob] * classes),
        sample_weight=(weight[:, None] * primary).T.ravel(),
        **further,
    )


def _checked(
    annotations: Annotations, y_prob: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Floats, Floats]:
    """Return probabilities (I, C) of the scored classes, the last of two or all, and weights."""
    items, classes = len(annotations.items), annotations.n_classes
    if classes == 2 and np.ndim(y_prob) == 1:
        prob = arguments.probabilities(y_prob)[:, None]
    else:
        prob = distribution(y_prob, annotations, np.float64)
        prob = prob[:, 1:] if classes == 2 else prob
    weight = arguments.weights(sample_weight, len(prob))
    if not len(prob) == weight.size == items:
        raise MetricInputError(
            f"y_prob has {len(prob)} values for {items} items; pass one each, in "
            "the order of annotations.items"
        )
    return prob, weight


def _uncertainty(prob: Floats, strategy: str) -> Floats:
    """Return the review score (I,) of probabilities (I, K) of more than two classes."""
    if strategy == "uncertainty":
        return np.asarray(1 - prob.max(axis=1))
    if strategy == "predictive_variance":
        return np.asarray(1 - (prob**2).sum(axis=1))
    raise MetricInputError(
        f"strategy {strategy!r} is for two classes, and there are {prob.shape[1]}; use "
        "'uncertainty'"
    )


def _label_shares(annotations: Annotations, rates: FlipRates) -> dict[str, Floats]:
    """Return the shares of labels (I, K) of each column."""
    counts = annotations.counts()
    given = counts.sum(axis=1, keepdims=True)
    if not given.all():
        raise MetricInputError(
            f"{int((given == 0).sum())} items have no annotation; leave them out"
        )
    label, _ = majority(counts)
    return {
        "majority": np.eye(annotations.n_classes)[label],
        "raw": counts / given,
        "adjusted": primary_shares(annotations, rates),
        "low": primary_shares(annotations, rates, bound="low"),
        "high": _of_high_rates(annotations, rates),
    }


def _oracle(
    annotations: Annotations,
    rates: FlipRates,
    weight: Floats,
    classes: list[int],
    reviewed: Floats,
) -> Scores:
    """Return every metric of the majority of the others: a row each class and reviewed part."""
    levels, level = np.unique(reviewed, return_inverse=True)
    size = annotations.n_classes
    labels = others_against_primary(annotations, rates, weight, level).reshape(-1, size)
    decision = np.tile(np.arange(size), len(levels))
    by = np.stack([decision == value for value in classes], axis=1).astype(np.float64)
    orders = [np.argsort(-column, kind="stable") for column in by.T]
    return _scores(labels, classes, by, decision, np.repeat(levels, size), orders)


def _of_high_rates(annotations: Annotations, rates: FlipRates) -> Floats:
    """Return shares (I, K) by the high flip rates; NaN if one leaves labels without information."""
    if rates.rates("high").max() < 1 - 1 / annotations.n_classes:
        return primary_shares(annotations, rates, bound="high")
    return np.full_like(annotations.counts(), np.nan)


def _ends(adjusted: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the lower and the upper end (n,) of metrics by low and by high flip rates.

    They are within 0 and 1, unless the metric itself is not.
    """
    open_ended = np.where(low <= adjusted, 1.0, 0.0)
    other = np.where(np.isnan(high) & ~np.isnan(low), open_ended, high)
    low, other = np.clip(low, 0, 1), np.clip(other, 0, 1)
    return np.minimum(np.fmin(low, other), adjusted), np.maximum(np.fmax(low, other), adjusted)


def _scores(
    labels: Floats,
    classes: list[int],
    by: Floats,
    decision: Codes,
    reviewed: Floats,
    orders: list[NDArray[np.intp]],
) -> Scores:
    """Return every metric of weighted labels (I, K); the columns of `by` are the scored classes."""
    of_classes = []
    for value, prob, order in zip(classes, by.T, orders, strict=True):
        items = _Items(
            prob=prob[order],
            positive=labels[order, value],
            negative=np.delete(labels, value, axis=1).sum(axis=1)[order],
            flagged=(decision == value)[order],
            reviewed=reviewed[order],
        )
        of_classes.append(_of_class(items))
    last = orders[-1]
    right = np.take_along_axis(labels, decision[:, None], axis=1)[last, 0]
    wrong = labels.sum(axis=1)[last] - right
    macro = {name: _mean([of[name] for of in of_classes]) for name in of_classes[0]}
    return _overall(right, wrong, reviewed[last]) | macro


def _mean(values: list[float | None]) -> float | None:
    """Return the mean of the values that are defined."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _overall(right: Floats, wrong: Floats, reviewed: Floats) -> Scores:
    """Return the metrics of decisions; weights may be negative, and nothing is clipped before."""
    total, caught = _total(right) + _total(wrong), _total(wrong * reviewed)
    agreed = _total(right * (1 - reviewed)) + _total((right + wrong) * reviewed)
    return {
        "accuracy": share(_total(right), total),
        "oc_accuracy": share(agreed, total),
        "review_efficiency": share(caught, _total((right + wrong) * reviewed)),
        "review_effectiveness": share(caught, _total(wrong)),
    }


def _of_class(items: _Items) -> Scores:
    """Return the metrics of a class against all others."""
    hits, positives = _total(items.positive[items.flagged]), _total(items.positive)
    flagged, none = hits + _total(items.negative[items.flagged]), np.zeros_like(items.reviewed)
    areas = {name: _areas(items, part) for name, part in (("", none), ("oc_", items.reviewed))}
    return {
        "precision": share(hits, flagged),
        "recall": share(hits, positives),
        "f1": share(2 * hits, flagged + positives),
        **{
            f"{prefix}{name}": value
            for prefix, both in areas.items()
            for name, value in zip(("auroc", "average_precision"), both, strict=True)
        },
    }


def _areas(items: _Items, reviewed: Floats) -> Iterable[float | None]:
    """Return the areas under the ROC curve and (in steps) the precision-recall curve."""
    starts = np.flatnonzero(np.diff(items.prob, prepend=np.inf))
    true = np.add.reduceat(items.positive * (1 - reviewed), starts)
    false = np.add.reduceat(items.negative * (1 - reviewed), starts)
    sure = _total(items.positive * reviewed)
    positives, negatives = _total(items.positive), _total(items.negative)
    above = np.cumsum(false) - false
    won = sure * negatives + _total(true * (negatives - above - false / 2))
    passed = np.cumsum(false) + np.cumsum(true) + sure
    hits = np.divide(
        true * (np.cumsum(true) + sure), passed, out=np.zeros_like(true), where=passed > 0
    )
    return share(won, positives * negatives), share(sure + _total(hits), positives)


def _total(values: Floats) -> float:
    return float(values.sum())
