"""How far people agree with a decision that their own label did not make.

Of three labels, the majority has two by itself: judged by the labels that made it, it agrees with
too many people. Here each label is judged by the majority of the *other* labels of its item.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from modwatch.statistics import arguments
from modwatch.statistics.arguments import Floats
from modwatch.statistics.disagreement.annotations import Annotations, Counts, distribution
from modwatch.statistics.disagreement.flip_rates import FlipRates
from modwatch.statistics.disagreement.primary import primary_parts
from modwatch.statistics.estimate import Estimate
from modwatch.statistics.intervals import LEVEL


def agreement_with_people(
    annotations: Annotations,
    rates: FlipRates,
    *,
    decision: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Estimate:
    """Return the share of people's primary labels that a decision equals, with a 95 % interval.

    Without `decision` it is that of a majority of as many people as an item has labels, and of one
    more person. Each label is judged by the majority of the others, who are one fewer. Where they
    are tied, one person more would decide, who agrees with the label at least as often as by
    chance, and no more often than two people agree over all items: the value is in the middle, and
    the interval contains both. Of two classes this is exact, of more an approximation.

    The interval is for people and items of whom these are a sample. Its variance is that of people,
    by the jackknife, and that of items as far as it exceeds that of single labels. It contains the
    bounds of the flip rates. Where all agree it has the width that one item more would give it.

    Args:
        annotations: of K classes; without `decision`, items with one label are left out.
        rates: their flip rates; with `fixed_flip_rate(annotations, 0.0)`, all labels are opinions.
        decision: (I,) 1 where it is the last of two classes, else 0, or (I, K) 1 for the class that
            is decided; not made by these labels.
        sample_weight: (I,) ≥ 0.

    Raises:
        MetricInputError: decisions for other items or classes.

    >>> from modwatch.statistics.disagreement import fixed_flip_rate
    >>> annotations = Annotations.from_columns(
    ...     item=[*"aaabbbccc"], annotator=[0, 1, 2] * 3, label=[1, 1, 0, 0, 0, 0, 1, 1, 1]
    ... )
    >>> round(agreement_with_people(annotations, fixed_flip_rate(annotations, 0.0)).value, 3)
    0.809
    """
    counts = annotations.counts()
    weight = arguments.weights(sample_weight, len(counts))
    arguments.same_length(items=counts, sample_weight=weight)
    chosen = None if decision is None else distribution(decision, annotations, np.float64)
    if chosen is None:
        weight = weight * (counts.sum(axis=1) > 1)
    used = int(counts[weight > 0].sum())
    if not used:
        return Estimate.insufficient("no item has labels of two annotators", n=0)
    found = [
        _agreement(annotations, rates, bound, weight, chosen)
        for bound in (None, "low", "high")
        if rates.rates(bound).max() < 1 - 1 / annotations.n_classes
    ]
    if not found:
        return Estimate.insufficient("labels are as often slips as coin tosses", n=used)
    value, low, high = np.transpose(found)
    highest = high.max() if len(found) == 3 else 1.0
    return Estimate.from_interval(value[0], (low.min(), highest), n=used)


def others_against_primary(
    annotations: Annotations, rates: FlipRates, weight: Floats, level: NDArray[np.intp]
) -> Floats:
    """Return the weight (L, K, K) of people's primary labels by the majority of the others.

    By level (I,) of the item, class of the majority, and class of the primary label.
    """
    counts, size = annotations.counts(), annotations.n_classes
    own, flipped = primary_parts(annotations, rates)
    of_items = weight / np.maximum(counts.sum(axis=1), 1)
    pairs = _pair_agreement(counts, weight)
    found = np.zeros((int(level.max()) + 1, size, size))
    for label in range(size):
        by_class = majority_of_others(counts, label, 0.5, pairs) * of_items[:, None]
        for chosen, of_class in enumerate(by_class.T):
            found[:, chosen, label] += np.bincount(level, of_class * own[:, label])
            found[:, chosen] -= np.bincount(level, of_class * flipped[:, label])[:, None]
    return found


def majority_of_others(counts: Counts, left_out: int, tie: float, pairs: float) -> Floats:
    """Return the probability (I, K) of each class to be the majority without a label of a class.

    A tie that contains the class of the label counts for it from 1/number (`tie` = 0) to `pairs`
    (`tie` = 1), the agreement of pairs; other ties are split.

    >>> majority_of_others(np.array([[0.0, 3.0], [1.0, 2.0]]), 1, 0.5, 0.7).tolist()
    [[0.0, 1.0], [0.4, 0.6]]
    """
    others = counts - np.eye(counts.shape[1])[left_out]
    reaches = others == others.max(axis=1, keepdims=True)
    number = reaches.sum(axis=1)
    found = reaches / number[:, None]
    tied = reaches[:, left_out] & (number > 1)
    chance = found[tied, left_out]
    kept = chance + tie * np.maximum(pairs - chance, 0)
    found[tied] *= ((1 - kept) / (1 - chance))[:, None]
    found[tied, left_out] = kept
    return np.asarray(found)


def _agreement(
    annotations: Annotations,
    rates: FlipRates,
    bound: Literal["low", "high"] | None,
    weight: Floats,
    chosen: Floats | None,
) -> tuple[float, float, float]:
    """Return the agreement with decisions (I, K) or the others' majority, and its interval."""
    counts, classes = annotations.counts(), range(annotations.n_classes)
    own, flipped = primary_parts(annotations, rates, bound=bound)
    number, taken = counts.sum(axis=1), flipped.sum(axis=1)
    pairs = _pair_agreement(counts, weight)

    def right(of: Counts, tie: float) -> Floats:
        """Return the probability (I, K) that a label of each class equals the decision."""
        if chosen is not None:
            return chosen
        return np.stack([majority_of_others(of, k, tie, pairs)[:, k] for k in classes], axis=1)

    of_items = [
        ((own * right(counts, tie)).sum(axis=1) - taken) / np.maximum(number, 1)
        for tie in (0.5, 0.0, 1.0)
    ]
    value, low, high = (float(weight @ of_item / weight.sum()) for of_item in of_items)
    rows = annotations.first
    item, label = annotations.item[rows], annotations.label[rows]
    flip = rates.rates(bound)[item]
    rate = flip / (len(classes) - 1)
    scale = 1 / (1 - len(classes) * rate)
    change = np.empty(item.size)
    for left_out in classes:
        of = np.flatnonzero(label == left_out)
        i = item[of]
        without = right(counts[i] - np.eye(len(classes))[left_out], 0.5)
        without = without[i] if chosen is not None else without
        rest = (own[i] * without).sum(axis=1) - taken[i]
        rest -= scale[of] * (without[:, left_out] - rate[of])
        change[of] = rest / np.maximum(number[i] - 1, 1) - of_items[0][i]
    margin = _margin(annotations, weight, of_items[0] - value, change)
    return value, low - margin, high + margin


def _margin(annotations: Annotations, weight: Floats, error: Floats, change: Floats) -> float:
    """Return half the width of the interval of a mean over items.

    `error` (I,) is the value of an item less the mean, `change` (N,) that without a first label
    less that with it.
    """
    rows = annotations.first
    item, annotator = annotations.item[rows], annotations.annotator[rows]
    number = annotations.counts().sum(axis=1).astype(np.intp)[item]
    # Without a label the value is that of fewer voters: only differences from their mean count.
    total = np.maximum(np.bincount(number, weight[item]), np.finfo(float).tiny)
    change = weight[item] * (change - (np.bincount(number, weight[item] * change) / total)[number])
    people = len(np.unique(annotator[weight[item] > 0]))
    items = int(np.count_nonzero(weight))
    of_people = np.bincount(annotator, change)
    of_items = ((weight * error) ** 2).sum() + (weight.sum() / items) ** 2 - change @ change
    variance = (1 - 1 / people) * (of_people @ of_people) + max(of_items, 0.0)
    quantile = special.stdtrit(max(min(people, items) - 1, 1), (1 + LEVEL) / 2)
    return float(quantile * np.sqrt(variance) / weight.sum())


def _pair_agreement(counts: Counts, weight: Floats) -> float:
    """Return the share of pairs of labels of one item that are equal, items weighted (I,)."""
    number = counts.sum(axis=1)
    weight = weight * (number > 1)
    equal = (counts * (counts - 1)).sum(axis=1) / np.maximum(number * (number - 1), 1)
    return float(weight @ equal / weight.sum()) if weight.any() else 1.0
