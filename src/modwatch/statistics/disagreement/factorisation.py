"""Flip rates without retests: how often a matrix factorisation mispredicts a label.

`estimate_flip_rates` chooses between this and the estimators that use retests.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from modwatch.common.errors import MetricInputError
from modwatch.statistics.disagreement.annotations import Annotations, Codes
from modwatch.statistics.disagreement.flip_rates import (
    MINIMUM_ITEMS,
    FlipRates,
    retest_flip_rates,
)
from modwatch.statistics.intervals import clopper_pearson

Floats = NDArray[np.float32]

#: Annotators an item from which on the share of minority labels reflects items more than slips.
_MANY = 10

#: Hyperparameters that are tried: factors, and ridge in labels.
_FACTORS, _RIDGES = (0, 2, 8), (0.5, 2.0, 10.0, 50.0)
_SWEEPS = 12
_STREAM = 1
_VALIDATION = 0.2
#: Labels an annotator; with fewer, a bias of their own predicts each label of the training part.
_LEAST = 5


@dataclass(frozen=True, kw_only=True)
class _Data:
    """Labels of annotators by item: codes, and the label as a number or as one class (N,)."""

    item: Codes
    annotator: Codes
    hit: Floats
    items: int
    annotators: int

    def rows(self, chosen: NDArray[np.bool_]) -> "_Data":
        """Return the chosen rows."""
        item, annotator, hit = self.item[chosen], self.annotator[chosen], self.hit[chosen]
        return replace(self, item=item, annotator=annotator, hit=hit)


@dataclass(frozen=True, kw_only=True)
class _Factors:
    """Mean, biases, and factors of items and annotators."""

    mean: float
    item: Floats
    annotator: Floats
    #: (F, I) and (F, A).
    of_item: Floats
    of_annotator: Floats

    def predict(self, data: _Data) -> Floats:
        """Return the predicted number, or share of a class (N,)."""
        found = self.mean + self.item[data.item] + self.annotator[data.annotator]
        for v, u in zip(self.of_item, self.of_annotator, strict=True):
            found += v[data.item] * u[data.annotator]
        return np.asarray(found, np.float32)


def estimate_flip_rates(
    annotations: Annotations,
    *,
    by: ArrayLike | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> FlipRates:
    """Return flip rates by the estimator that the data allow; `reason` explains the choice.

    With 100 retests: by strata of items if these differ; else one rate for all. Strata are those of
    `by` (I,), such as a model's probability, if it is given and items have fewer than ten
    annotators (median); else those of the share of minority labels. With fewer retests:
    `svd_flip_rates`, with `seed` and `progress`.

    Raises:
        MetricInputError: labels that were given again differ as often as by chance, or there are
            neither retests nor annotators who gave many labels to the same items.
    """
    if annotations.retests.item.size < MINIMUM_ITEMS:
        return svd_flip_rates(annotations, seed=seed, progress=progress)
    several = np.median(annotations.counts().sum(axis=1)) >= _MANY
    return retest_flip_rates(annotations, by=None if several else by)


def svd_flip_rates(
    annotations: Annotations,
    *,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> FlipRates:
    """Return flip rates without retests: at most the share of labels that are mispredicted.

    A factorisation of the matrix of items and annotators, with biases, predicts each label from
    the annotator's other labels and those of similar annotators. The flip rate is the share of the
    labels of the training part that it mispredicts; ridge and number of factors are those with the
    fewest mispredictions on a validation part of 20 % (Gordon et al. 2021, section 4.3). Fitted by
    cyclic coordinate descent (Yu et al. 2012, CCD++). Classes that are numbers, as ratings are, are
    predicted as such, others one at a time.

    This rate may be too low, where the factors fit slips, and too high, where they miss opinions
    that few share. Certain is a bound: a label held out is mispredicted at least as often as it is
    a slip. So the bounds are 0, since all of it may be opinion, and the 95 % upper end of the share
    of these. There is one rate for all: it would be no bound in strata that the labels themselves
    make. Prefer retests.

    Args:
        annotations: first labels are used.
        seed: of the split and the first factors. The order of the annotations does not matter.
        progress: called with the number of fits that are done, and of all.

    Raises:
        MetricInputError: no item with labels of two annotators, labels that are all alike, fewer
            than five of them an annotator on average, a factorisation that predicts no better than
            the most frequent label, or best without factors.
    """
    counts = annotations.counts()
    if len(annotations.annotators) < 2 or not (counts.sum(axis=1) > 1).any():
        raise MetricInputError(
            "no item has labels of two annotators; flip rates need retests or several annotators"
        )
    if (counts.sum(axis=0) > 0).sum() < 2:
        raise MetricInputError("all labels are the same; they show no slip")
    mean = counts.sum() / len(annotations.annotators)
    if mean < _LEAST:
        raise MetricInputError(
            f"annotators gave {mean:.1f} labels on average; a factorisation needs {_LEAST}. Flip "
            "rates need retests here"
        )
    item, annotator, label = _in_order(annotations)
    rng = _stream(seed)
    held = rng.random(label.size) < _VALIDATION
    if not held.any():
        raise MetricInputError(f"there are {label.size} labels, too few to hold some out")
    data = [
        _Data(
            item=item,
            annotator=annotator,
            hit=hit.astype(np.float32),
            items=len(annotations.items),
            annotators=len(annotations.annotators),
        )
        for hit in _targets(annotations, label)
    ]
    fitted = [part.rows(~held) for part in data]
    grid = list(product(_FACTORS, _RIDGES))
    best, best_error, chosen = np.empty(0, bool), np.inf, grid[0]
    for done, (factors, ridge) in enumerate(grid):
        fits = [_fit(part, factors, ridge, seed) for part in fitted]
        wrong = _predicted(fits, data, annotations.n_classes) != label
        error = float(wrong[held].mean())
        if error < best_error:
            best, best_error, chosen = wrong, error, (factors, ridge)
        progress(done + 1, len(grid))
    if best_error >= 1 - np.bincount(label[held]).max() / held.sum():
        raise MetricInputError(
            f"a factorisation mispredicts {best_error:.1%} of the labels held out, no fewer than "
            "the most frequent label would: items have too few labels. Flip rates need retests here"
        )
    if not chosen[0]:
        raise MetricInputError(
            f"a model without factors predicts labels best ({best_error:.1%} of those held out are "
            "mispredicted), so opinions cannot be told from slips. Flip rates need retests here"
        )
    return _rates(annotations, best, held, chosen)


def _targets(annotations: Annotations, label: NDArray[np.int8]) -> list[NDArray[Any]]:
    """Return what is fitted (N,): the label's place among numbers, or whether it is each class."""
    numbers = pd.to_numeric(pd.Series(map(str, annotations.classes)), errors="coerce")
    if annotations.n_classes == 2 or numbers.is_monotonic_increasing:  # not if one is no number
        return [label]
    return [label == number for number in range(annotations.n_classes)]


def _in_order(annotations: Annotations) -> tuple[Codes, Codes, NDArray[np.int8]]:
    """Return item, annotator and label (N,) of the first labels, in an order of their own.

    Split and first factors are drawn by row and item: in the order in which the annotations come,
    another order of them would be another split.
    """
    rows = annotations.first
    annotator = _rank(annotations.annotators)[annotations.annotator[rows]]
    item = _rank(annotations.items)[annotations.item[rows]]
    order = np.argsort(item * len(annotations.annotators) + annotator)
    label = annotations.label[rows][order]
    return item[order].astype(np.int32), annotator[order].astype(np.int32), label


def _rank(ids: NDArray[Any]) -> NDArray[np.intp]:
    """Return the place (n,) of each of n ids by its hash, which ids of any kind have.

    >>> _rank(np.array(["a", "b", "c"]))[[2, 0, 1]] - _rank(np.array(["c", "a", "b"]))
    array([0, 0, 0])
    """
    place = np.empty(len(ids), np.intp)
    place[np.argsort(pd.util.hash_array(ids), kind="stable")] = np.arange(len(ids))
    return place


def _stream(seed: int) -> np.random.Generator:
    """Return random numbers other than those of labels that were simulated by `default_rng(seed)`.

    With these, the labels that are held out would be those of the least random numbers.
    """
    return np.random.default_rng([seed, _STREAM])


def _fit(data: _Data, factors: int, ridge: float, seed: int) -> _Factors:
    """Return the factors after some sweeps of coordinate descent over biases and factors."""
    rng = _stream(seed)
    mean = float(data.hit.mean())
    left = data.hit - np.float32(mean)
    sides = {"item": (data.item, data.items), "annotator": (data.annotator, data.annotators)}
    sizes = {name: np.bincount(code, minlength=n) + ridge for name, (code, n) in sides.items()}
    bias = {name: np.zeros(n, np.float32) for name, (_, n) in sides.items()}
    v = (rng.standard_normal((factors, data.items)) * 0.1).astype(np.float32)
    u = np.zeros((factors, data.annotators), np.float32)
    for _ in range(_SWEEPS):
        for name, (code, n) in sides.items():
            left += bias[name][code]
            bias[name] = (np.bincount(code, left, n) / sizes[name]).astype(np.float32)
            left -= bias[name][code]
        for f in range(factors):
            left += v[f][data.item] * u[f][data.annotator]
            u[f] = _one_side(left, v[f][data.item], data.annotator, data.annotators, ridge)
            v[f] = _one_side(left, u[f][data.annotator], data.item, data.items, ridge)
            left -= v[f][data.item] * u[f][data.annotator]
    return _Factors(
        mean=mean,
        item=bias["item"],
        annotator=bias["annotator"],
        of_item=v,
        of_annotator=u,
    )


def _one_side(left: Floats, other: Floats, code: Codes, size: int, ridge: float) -> Floats:
    """Return the ridge regression of the residuals on the other side's factor, by code."""
    above = np.bincount(code, left * other, size)
    below = np.bincount(code, other * other, size)
    # The factors of one side are normalised by the other's scale, so that the ridge counts labels.
    scale = float(np.mean(other * other)) or 1.0
    return np.asarray(above / (below + ridge * scale), np.float32)


def _predicted(fits: list[_Factors], data: list[_Data], classes: int) -> NDArray[np.int64]:
    """Return the predicted class (N,)."""
    if len(fits) == 1:
        return np.clip(np.rint(fits[0].predict(data[0])), 0, classes - 1).astype(np.int64)
    scores = np.stack([fit.predict(part) for fit, part in zip(fits, data, strict=True)])
    return np.asarray(scores.argmax(axis=0))


def _rates(
    annotations: Annotations,
    wrong: NDArray[np.bool_],
    held: NDArray[np.bool_],
    chosen: tuple[int, float],
) -> FlipRates:
    """Return the share of the labels fitted that are mispredicted (N,), and its bounds."""
    _, most = clopper_pearson(wrong[held].sum(), held.sum(), (0.0, 0.05))
    rate, highest = wrong[~held].mean(), 1 - 1 / annotations.n_classes
    row = {
        "items": len(annotations.items), "retests": 0, "self_disagreement": np.nan,
        "flip_rate": rate, "flip_rate_low": 0.0, "flip_rate_high": min(max(most, rate), highest),
    }  # fmt: skip
    reason = (
        f"there are too few retests; a factorisation with {chosen[0]} factors and ridge "
        f"{chosen[1]:g} mispredicts {wrong[held].mean():.1%} of the labels held out, and "
        f"{wrong[~held].mean():.1%} of those to which it was fitted"
    )
    of_item = np.zeros(len(annotations.items), np.intp)
    return FlipRates(method="svd", reason=reason, table=pd.DataFrame([row]), row=of_item)
