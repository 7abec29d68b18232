"""Annotations: who gave which label to which item; probabilities of a model for the same items."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from modwatch.common.errors import MetricInputError
from modwatch.statistics import arguments

Codes = NDArray[np.int32]
Labels = NDArray[np.int8]
Counts = NDArray[np.float64]

_MOST_CLASSES = 100


@dataclass(frozen=True, kw_only=True)
class Retests:
    """Pairs of successive labels that one annotator gave to one item."""

    #: (R,) code of the item, and of the annotator.
    item: Codes
    annotator: Codes
    #: (R,) code of the earlier and of the later label, and of the annotator's first of the item.
    first: Labels
    second: Labels
    original: Labels

    @property
    def differ(self) -> NDArray[np.bool_]:
        """(R,) whether the labels of a pair differ."""
        return np.asarray(self.first != self.second)


@dataclass(frozen=True, kw_only=True)
class Annotations:
    """N labels, in the order in which they were given.

    An annotator may have labelled an item several times: the first label is the annotation, each
    later one a retest.

    >>> annotations = Annotations.from_columns(
    ...     item=["a", "a", "b", "a"], annotator=["ann", "bob", "ann", "ann"], label=[1, 0, 0, 0]
    ... )
    >>> annotations.counts().tolist()
    [[1.0, 1.0], [1.0, 0.0]]
    >>> annotations.retests.differ.tolist()
    [True]
    """

    #: (I,) the items, (A,) the annotators and (K,) the classes, in order of their codes.
    items: NDArray[Any] = field(repr=False)
    annotators: NDArray[Any] = field(repr=False)
    classes: tuple[Hashable, ...]
    #: (N,) codes of each label's item, annotator and class.
    item: Codes = field(repr=False)
    annotator: Codes = field(repr=False)
    label: Labels = field(repr=False)

    @classmethod
    def from_columns(
        cls,
        *,
        item: ArrayLike,
        annotator: ArrayLike,
        label: ArrayLike,
        classes: Sequence[Hashable] | None = None,
    ) -> "Annotations":
        """Return annotations from three columns, in the order in which the labels were given.

        Args:
            item: (N,) id of the item: text or integers.
            annotator: (N,) id of the annotator, likewise.
            label: (N,) class.
            classes: the classes, of which the last is the positive one of two. None: those in
                `label`, sorted.

        Raises:
            MetricInputError: no label, columns of different lengths, missing values, one class
                only, a label outside the classes, or more than 100 classes.
        """
        columns = {"item": item, "annotator": annotator, "label": label}
        try:
            series = {name: pd.Series(values) for name, values in columns.items()}
        except (TypeError, ValueError) as exc:
            raise MetricInputError("item, annotator and label should be 1d arrays") from exc
        sizes = {name: len(values) for name, values in series.items()}
        if len(set(sizes.values())) > 1:
            raise MetricInputError(f"the columns have different lengths: {sizes}")
        if not sizes["label"]:
            raise MetricInputError("there is no annotation")
        for name, values in [*series.items(), ("classes", classes or ())]:
            arguments.names(name, values)
        known = tuple(_in_order(series["label"]) if classes is None else classes)
        if not 2 <= len(set(known)) == len(known) <= _MOST_CLASSES:
            raise MetricInputError(
                f"there must be 2 to {_MOST_CLASSES} different classes, got {len(set(known))}"
                + ("; pass `classes` if not all of them occur" if len(set(known)) < 2 else "")
            )
        code = pd.Index(known).get_indexer(series["label"])
        if (code < 0).any():
            raise MetricInputError(
                f"{int((code < 0).sum())} labels are outside the {len(known)} classes"
            )
        item_code, items = pd.factorize(series["item"])
        annotator_code, annotators = pd.factorize(series["annotator"])
        return cls(
            items=np.asarray(items),
            annotators=np.asarray(annotators),
            classes=known,
            item=item_code.astype(np.int32),
            annotator=annotator_code.astype(np.int32),
            label=code.astype(np.int8),
        )

    @property
    def n_classes(self) -> int:
        """Number K of classes."""
        return len(self.classes)

    @cached_property
    def _by_pair(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Order of the labels by item, annotator and time; and whether each follows another."""
        pair = self.item.astype(np.int64) * len(self.annotators) + self.annotator
        order = np.argsort(pair, kind="stable")
        ordered = pair[order]
        again = np.zeros(len(order), dtype=bool)
        np.equal(ordered[1:], ordered[:-1], out=again[1:])
        return order, again

    @cached_property
    def first(self) -> NDArray[np.bool_]:
        """(N,) whether a label is its annotator's first of the item."""
        order, again = self._by_pair
        first = np.empty(len(order), dtype=bool)
        first[order] = ~again
        return first

    @cached_property
    def retests(self) -> Retests:
        """The pairs of successive labels of one annotator and item."""
        order, again = self._by_pair
        place = np.flatnonzero(again)
        begins = np.maximum.accumulate(np.where(again, 0, np.arange(again.size)))
        later, earlier = order[place], order[place - 1]
        return Retests(
            item=self.item[later],
            annotator=self.annotator[later],
            first=self.label[earlier],
            second=self.label[later],
            original=self.label[order[begins[place]]],
        )

    def counts(self) -> Counts:
        """Return (I, K) annotators by item and label; each annotator counts once, first label.

        The array is the same at each call, and read-only.
        """
        return self._counts

    @cached_property
    def _counts(self) -> Counts:
        cell = self.item.astype(np.int64) * self.n_classes + self.label
        size = len(self.items) * self.n_classes
        found = np.bincount(cell[self.first], minlength=size).astype(np.float64)
        found.setflags(write=False)
        return found.reshape(len(self.items), self.n_classes)

    def of_annotators(self, chosen: NDArray[np.bool_]) -> "Annotations":
        """Return the annotations of the annotators (A,) that are chosen; items keep their codes."""
        rows = chosen[self.annotator]
        item, annotator, label = self.item[rows], self.annotator[rows], self.label[rows]
        return replace(self, item=item, annotator=annotator, label=label)


def majority(counts: Counts) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the majority label (I,) of counts (I, K), and whether it is tied with another (I,).

    Of tied labels the last one counts: the positive one of two. An item without labels is tied.

    >>> label, tied = majority(np.array([[1.0, 2.0], [2.0, 2.0], [3.0, 0.0]]))
    >>> label.tolist(), tied.tolist()
    ([1, 1, 0], [False, True, False])
    """
    most = counts.max(axis=1, keepdims=True)
    reaches = counts == most
    last = counts.shape[1] - 1 - reaches[:, ::-1].argmax(axis=1)
    return last.astype(np.int64), reaches.sum(axis=1) > 1


Float = TypeVar("Float", np.float32, np.float64)

#: By which the probabilities of an item may miss 1, as in 32-bit floats.
_ROUNDING = 1e-4


def distribution(y_prob: ArrayLike, annotations: Annotations, dtype: type[Float]) -> NDArray[Float]:
    """Return probabilities (I, K) of the classes, in the order of the items.

    Args:
        y_prob: (I,) probability of the last of two classes, or (I, K) of all.
        annotations: of K classes.
        dtype: of the result.

    Raises:
        MetricInputError: probabilities that are no distribution, or of another number of items.

    >>> annotations = Annotations.from_columns(item=[0, 1], annotator=[0, 0], label=[0, 1])
    >>> distribution([0.25, 1.0], annotations, np.float64).tolist()
    [[0.75, 0.25], [0.0, 1.0]]
    """
    prob = arguments.numeric("y_prob", y_prob)
    classes, items = annotations.n_classes, len(annotations.items)
    if prob.ndim == 1 and classes == 2:
        prob = np.stack([1 - prob, prob], axis=1)
    if prob.shape != (items, classes):
        other = "one probability each, or " if classes == 2 else ""
        raise MetricInputError(
            f"y_prob has shape {prob.shape} for {items} items and {classes} classes; pass {other}"
            "one of each class"
        )
    inside = bool(((prob >= 0) & (prob <= 1)).all())
    if not inside or not np.allclose(prob.sum(axis=1), 1, atol=_ROUNDING):
        raise MetricInputError(
            "y_prob contains NaN or values outside [0, 1], or does not sum to 1 by item"
        )
    return prob.astype(dtype)


def _in_order(labels: "pd.Series[Any]") -> list[Any]:
    """Return the different labels in order; MetricInputError if they have none."""
    try:
        return sorted(labels.unique().tolist())
    except TypeError as exc:
        raise MetricInputError("labels are of several kinds; pass text, or numbers") from exc
