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

from modwatch.disagreement.annotations import Annotations, majority
from modwatch.disagreement.flip_rates import FlipRates
from modwatch.disagreement.primary import primary_labels, primary_shares
from modwatch.errors import MetricInputError
from modwatch.metrics import inputs
from modwatch.metrics.ranking import reviews, share
from modwatch.metrics.strategies import review_scores

Floats = NDArray[np.float64]

#: Metrics of a model alone, and of model and moderators together.
ADJUSTED_METRICS = (
    *("accuracy", "precision", "recall", "f1", "auroc", "average_precision"),
    *("oc_accuracy", "oc_auroc", "oc_average_precision", "review_efficiency"),
)


@dataclass(frozen=True, kw_only=True)
class _Items:
    """n items with a decision each, by descending probability."""

    #: (n,) probability of the positive class.
    prob: Floats
    #: (n,) weight of the positive, and of the negative primary labels; sums may be negative.
    positive: Floats
    negative: Floats
    #: (n,) decision, and reviewed part in [0, 1].
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
    percentile of the flip rates; `oracle`, the adjusted score of a model that predicts the
    majority; `normalised`, adjusted / oracle. NaN where a metric is undefined.

    Primary labels are estimated without the bias of Eq. 2 (`signed_shares`). The bounds cover the
    flip rates, not the choice of items or annotators.

    Args:
        annotations: of two classes, the last of which is positive.
        y_prob: (I,) probabilities of the positive class, in the order of `annotations.items`.
        rates: their flip rates.
        threshold: decisions are positive above.
        review_fraction: α of the metrics of model and moderators together.
        strategy: of `modwatch.metrics.review_scores`.
        sample_weight: (I,) ≥ 0, such as 1/inclusion probability.

    Raises:
        MetricInputError: more than two classes, probabilities outside [0, 1] or NaN, an item
            without annotations, or columns of other lengths.

    >>> from modwatch.disagreement import Annotations, estimate_flip_rates
    >>> rng = np.random.default_rng(0)
    >>> opinion = rng.random((400, 10)) < rng.random(400)[:, None]
    >>> item, annotator = np.divmod(np.arange(8000) % 4000, 10)
    >>> label = (opinion.ravel()[np.arange(8000) % 4000] ^ (rng.random(8000) < 0.1)).astype(int)
    >>> annotations = Annotations.of(item=item, annotator=annotator, label=label)
    >>> table = adjusted_metrics(
    ...     annotations, opinion.mean(axis=1), estimate_flip_rates(annotations)
    ... )
    >>> table.loc["accuracy", ["raw", "adjusted", "oracle"]].round(2).tolist()
    [0.73, 0.79, 0.8]
    """
    prob, weight = _checked(annotations, y_prob, sample_weight)
    label, given = _label_shares(annotations, rates)
    score = review_scores(prob, strategy=strategy, sample_weight=weight)
    (review,) = reviews(score, [review_fraction], weight)
    reviewed = review.reviewed(score)
    order = np.argsort(-prob, kind="stable")

    def scored(shares: Floats, by: Floats, flagged: NDArray[np.bool_]) -> dict[str, float | None]:
        ranks = np.argsort(-by, kind="stable") if by is not prob else order
        items = _Items(
            prob=by[ranks],
            positive=(weight * shares[:, 1])[ranks],
            negative=(weight * shares[:, 0])[ranks],
            flagged=flagged[ranks],
            reviewed=reviewed[ranks],
        )
        return _metrics(items)

    found = {name: scored(shares, prob, prob > threshold) for name, shares in given.items()}
    found["oracle"] = scored(given["adjusted"], label.astype(np.float64), label == 1)
    table = pd.DataFrame(found, index=list(ADJUSTED_METRICS), dtype=np.float64)
    ends = np.sort(table[["low", "high"]].to_numpy(), axis=1)
    table["low"], table["high"] = ends[:, 0], ends[:, 1]
    table["normalised"] = table["adjusted"] / table["oracle"]
    return table


def adjusted(
    metric: Callable[..., float | None],
    label_share: ArrayLike,
    y_prob: ArrayLike,
    flip_rate: ArrayLike = 0.0,
    *,
    sample_weight: ArrayLike | None = None,
    **arguments: Any,
) -> float | None:
    """Return any metric of label, probability and weight against primary labels.

    `metric(y_true, y_prob, sample_weight=…)` is called once, with each item once as positive and
    once as negative, weighted by its shares of primary labels by Eq. 2 (`primary_labels`). With
    `flip_rate` 0 this is the metric against every annotation. Items need many annotators: Eq. 2
    is biased otherwise, and `adjusted_metrics` is not.

    Args:
        metric: such as `modwatch.metrics.oc_auroc` or `sklearn.metrics.brier_score_loss`.
        label_share: (n,) share of the annotators whose label is positive.
        y_prob: (n,) probabilities.
        flip_rate: of each item (n,), or of all.
        sample_weight: (n,) ≥ 0.
        arguments: further arguments of the metric; arrays (n,) are doubled like the items.

    Raises:
        MetricInputError: shares or probabilities outside [0, 1].

    >>> from modwatch.metrics import accuracy
    >>> round(adjusted(accuracy, [0.6, 0.0], [0.9, 0.2], 0.176), 3)
    0.827
    """
    toxic = inputs.probabilities(label_share, name="label_share")
    prob = inputs.probabilities(y_prob)
    weight = inputs.weights(sample_weight, toxic.size)
    size = inputs.same_length(label_share=toxic, y_prob=prob, sample_weight=weight)
    primary = primary_labels(np.stack([1 - toxic, toxic], axis=1), flip_rate)
    for name, value in arguments.items():
        if np.ndim(value) == 1 and np.size(value) == size:
            arguments[name] = np.tile(np.asarray(value), 2)
    return metric(
        np.repeat([0.0, 1.0], size),
        np.tile(prob, 2),
        sample_weight=np.concatenate([weight * primary[:, 0], weight * primary[:, 1]]),
        **arguments,
    )


def _checked(
    annotations: Annotations, y_prob: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Floats, Floats]:
    """Return probabilities and weights."""
    if annotations.n_classes != 2:
        raise MetricInputError(
            f"y_prob needs two classes, and the annotations have {annotations.n_classes}; use "
            "adjusted_accuracy"
        )
    prob = inputs.probabilities(y_prob)
    weight = inputs.weights(sample_weight, prob.size)
    if not prob.size == weight.size == len(annotations.items):
        raise MetricInputError(
            f"y_prob has {prob.size} values for {len(annotations.items)} items; pass one each, in "
            "the order of annotations.items"
        )
    return prob, weight


def _label_shares(
    annotations: Annotations, rates: FlipRates
) -> tuple[NDArray[np.int64], dict[str, Floats]]:
    """Return the majority label (I,), and the shares of labels (I, K) of each column."""
    counts = annotations.counts()
    given = counts.sum(axis=1, keepdims=True)
    if not given.all():
        raise MetricInputError(
            f"{int((given == 0).sum())} items have no annotation; leave them out"
        )
    label, _ = majority(counts)
    return label, {
        "majority": np.eye(annotations.n_classes)[label],
        "raw": counts / given,
        "adjusted": primary_shares(annotations, rates),
        "low": primary_shares(annotations, rates, bound="low"),
        "high": primary_shares(annotations, rates, bound="high"),
    }


def _metrics(items: _Items) -> dict[str, float | None]:
    """Return every metric; weights may be negative, so that nothing is clipped before the end."""
    reviewed, kept = items.reviewed, 1 - items.reviewed
    right = np.where(items.flagged, items.positive, items.negative)
    wrong = items.positive + items.negative - right
    flagged_toxic = _total(items.positive[items.flagged])
    toxic, total = _total(items.positive), _total(right) + _total(wrong)
    flagged = flagged_toxic + _total(items.negative[items.flagged])
    caught = _total(wrong * reviewed)
    none = np.zeros_like(reviewed)
    areas = {name: _areas(items, part) for name, part in (("", none), ("oc_", reviewed))}
    return {
        "accuracy": share(_total(right), total),
        "precision": share(flagged_toxic, flagged),
        "recall": share(flagged_toxic, toxic),
        "f1": share(2 * flagged_toxic, flagged + toxic),
        "oc_accuracy": share(_total(right * kept) + _total((right + wrong) * reviewed), total),
        "review_efficiency": share(caught, _total((right + wrong) * reviewed)),
        **{
            f"{prefix}{name}": value
            for prefix, both in areas.items()
            for name, value in zip(("auroc", "average_precision"), both, strict=True)
        },
    }


def _areas(items: _Items, reviewed: Floats) -> Iterable[float | None]:
    """Return the areas under the ROC curve and (in steps) the precision-recall curve.

    The reviewed part ranks above all others if positive, and below all others if negative.
    """
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


def adjusted_accuracy(
    annotations: Annotations,
    decision: ArrayLike,
    rates: FlipRates,
    *,
    sample_weight: ArrayLike | None = None,
) -> dict[str, float]:
    """Return the accuracy of decisions among K classes against majority, raw and primary labels.

    Keys as the columns of `adjusted_metrics`.

    Args:
        annotations: of K classes.
        decision: (I,) class of each item, one of `annotations.classes`.
        rates: their flip rates.
        sample_weight: (I,) ≥ 0.

    Raises:
        MetricInputError: a decision outside the classes, or another number of them.

    >>> annotations = Annotations.of(item=[0, 0, 0], annotator=[0, 1, 2], label=["a", "a", "b"])
    >>> from modwatch.disagreement import fixed_flip_rate
    >>> found = adjusted_accuracy(annotations, ["a"], fixed_flip_rate(annotations, 0.0))
    >>> round(found["adjusted"], 3), found["majority"]
    (0.667, 1.0)
    """
    code = pd.Index(annotations.classes).get_indexer(pd.Index(np.asarray(decision)))
    if (code < 0).any() or code.size != len(annotations.items):
        raise MetricInputError(
            f"decision must have one of the {annotations.n_classes} classes for each of the "
            f"{len(annotations.items)} items"
        )
    weight = inputs.weights(sample_weight, code.size)
    label, shares = _label_shares(annotations, rates)

    def right(given: Floats, chosen: NDArray[Any]) -> float:
        agreeing = float((weight * given[np.arange(code.size), chosen]).sum())
        return share(agreeing, float(weight.sum())) or 0.0

    found = {name: right(given, code) for name, given in shares.items()}
    found["oracle"] = right(shares["adjusted"], label)
    found["normalised"] = found["adjusted"] / found["oracle"]
    return found
