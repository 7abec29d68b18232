"""A model's probabilities of the classes of annotations."""

from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.common.errors import MetricInputError
from modwatch.statistics.disagreement.annotations import Annotations

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

    >>> annotations = Annotations.of(item=[0, 1], annotator=[0, 0], label=[0, 1])
    >>> distribution([0.25, 1.0], annotations, np.float64).tolist()
    [[0.75, 0.25], [0.0, 1.0]]
    """
    prob = np.asarray(y_prob, dtype=dtype)
    classes, items = annotations.n_classes, len(annotations.items)
    if prob.ndim == 1 and classes == 2:
        prob = np.stack([1 - prob, prob], axis=1)
    if prob.shape != (items, classes):
        other = "one probability each, or " if classes == 2 else ""
        raise MetricInputError(
            f"y_prob has shape {prob.shape} for {items} items and {classes} classes; pass {other}"
            "one of each class"
        )
    sums = prob.sum(axis=1)
    if not ((prob >= 0) & (prob <= 1)).all() or not np.allclose(sums, 1, atol=_ROUNDING):
        raise MetricInputError(
            "y_prob contains NaN or values outside [0, 1], or does not sum to 1 by item"
        )
    return prob
