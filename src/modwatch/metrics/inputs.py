"""What a statistic accepts: each function returns a checked float64 array or raises."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.errors import MetricInputError

Floats = NDArray[np.float64]

#: Weights span no more: their quotients and products must be numbers too.
_LIGHTEST, _HEAVIEST = 1e-100, 1e100


def column(name: str, values: ArrayLike) -> Floats:
    """Return `values` as a float64 array (n,) without NaN or infinity.

    Raises MetricInputError, naming the argument, for anything else.

    >>> column("review_score", [1, 2]).tolist()
    [1.0, 2.0]
    """
    try:
        array = _numbers(np.asarray(values))
    except (TypeError, ValueError) as exc:
        raise MetricInputError(f"{name} holds something that is not a number; pass floats") from exc
    if array.ndim != 1:
        raise MetricInputError(f"{name} has {array.ndim} dimensions; pass a single column")
    if not np.isfinite(array).all():
        raise MetricInputError(f"{name} holds NaN or infinity; drop or mend those rows first")
    return array


def _numbers(array: NDArray[np.generic]) -> Floats:
    """Return the array as float64; texts and dates, which numpy would read as numbers, are not."""
    if array.dtype.kind in "cmMSU":
        raise TypeError(f"an array of {array.dtype}")
    return np.asarray(array, dtype=np.float64)


def labels(values: ArrayLike, threshold: float | None = None) -> Floats:
    """Return labels (n,) as 0.0 and 1.0; soft labels in [0, 1] are 1 above `threshold`.

    Without a threshold soft labels are refused: which one is used changes every metric, so that it
    must be chosen, and told.

    >>> labels([True, False]).tolist(), labels([0.8, 0.7, 0.0], threshold=0.7).tolist()
    ([1.0, 0.0], [1.0, 0.0, 0.0])
    """
    array = column("label", values)
    if threshold is None:
        if not ((array == 0) | (array == 1)).all():
            raise MetricInputError(
                "label holds values other than 0 and 1; pass label_threshold to cut soft labels"
            )
        return array
    if not 0 <= threshold < 1:  # NaN fails too
        raise MetricInputError(f"label_threshold is {threshold}; it must lie in [0, 1)")
    if array.size and (array.min() < 0 or array.max() > 1):
        raise MetricInputError(
            "label holds values outside [0, 1]; pass shares of votes, or 0 and 1"
        )
    return (array > threshold).astype(np.float64)


def probabilities(values: ArrayLike) -> Floats:
    """Return probabilities (n,) in [0, 1].

    >>> probabilities([0.25]).tolist()
    [0.25]
    """
    array = column("prob", values)
    if array.size and (array.min() < 0 or array.max() > 1):
        raise MetricInputError("prob holds values outside [0, 1]; pass probabilities, not logits")
    return array


def weights(values: ArrayLike | None, size: int) -> Floats:
    """Return weights (n,), each 0 or in [1e-100, 1e100]; all 1 when `values` is None.

    >>> weights(None, 2).tolist()
    [1.0, 1.0]
    """
    if values is None:
        return np.ones(size)
    array = column("weight", values)
    if array.size and array.min() < 0:
        raise MetricInputError("weight holds negative values; pass inverse inclusion probabilities")
    if not ((array == 0) | ((array >= _LIGHTEST) & (array <= _HEAVIEST))).all():
        raise MetricInputError(
            f"weight holds values that are not 0 and lie outside [{_LIGHTEST}, {_HEAVIEST}]; "
            "pass inverse inclusion probabilities"
        )
    return array


def fraction(name: str, value: float) -> float:
    """Return `value` as a float in [0, 1].

    >>> fraction("alpha", 1)
    1.0
    """
    if not 0 <= value <= 1:  # NaN fails too
        raise MetricInputError(f"{name} is {value}; it must lie in [0, 1]")
    return float(value)


def same_length(**arrays: Sequence[object] | NDArray[np.generic]) -> int:
    """Return the common length of the arrays.

    >>> same_length(label=[0, 1], prob=[0.5, 0.5])
    2
    """
    sizes = {name: len(array) for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise MetricInputError(
            f"the columns have different lengths: {told}; pass one row a comment"
        )
    return next(iter(sizes.values()))


def rows(
    label: ArrayLike,
    prob: ArrayLike,
    weight: ArrayLike | None,
    label_threshold: float | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Return checked labels, probabilities and weights, each (n,).

    >>> [array.tolist() for array in rows([1], [0.5], None)]
    [[1.0], [0.5], [1.0]]
    """
    y, p = labels(label, label_threshold), probabilities(prob)
    w = weights(weight, y.size)
    same_length(label=y, prob=p, weight=w)
    return y, p, w
