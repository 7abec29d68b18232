"""What a statistic accepts: each function returns a checked float64 array or raises."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.errors import MetricInputError

Floats = NDArray[np.float64]


def column(name: str, values: ArrayLike) -> Floats:
    """Return `values` as a float64 array (n,) without NaN or infinity.

    Raises MetricInputError, naming the argument, for anything else.

    >>> column("review_score", [1, 2]).tolist()
    [1.0, 2.0]
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as exc:
        raise MetricInputError(f"{name} holds something that is not a number; pass floats") from exc
    if array.ndim != 1:
        raise MetricInputError(f"{name} has {array.ndim} dimensions; pass a single column")
    if array.size and not np.isfinite(array.sum()) and not np.isfinite(array).all():
        raise MetricInputError(f"{name} holds NaN or infinity; drop or mend those rows first")
    return array


def labels(values: ArrayLike) -> Floats:
    """Return labels (n,) as 0.0 and 1.0; soft labels must be cut by the caller, in the open.

    >>> labels([True, False]).tolist()
    [1.0, 0.0]
    """
    array = column("label", values)
    if not ((array == 0) | (array == 1)).all():
        raise MetricInputError("label holds values other than 0 and 1; cut soft labels first")
    return array


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
    """Return weights (n,) ≥ 0; all 1 when `values` is None.

    >>> weights(None, 2).tolist()
    [1.0, 1.0]
    """
    if values is None:
        return np.ones(size)
    array = column("weight", values)
    if array.size and array.min() < 0:
        raise MetricInputError("weight holds negative values; pass inverse inclusion probabilities")
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
    label: ArrayLike, prob: ArrayLike, weight: ArrayLike | None
) -> tuple[Floats, Floats, Floats]:
    """Return checked labels, probabilities and weights, each (n,).

    >>> [array.tolist() for array in rows([1], [0.5], None)]
    [[1.0], [0.5], [1.0]]
    """
    y, p = labels(label), probabilities(prob)
    w = weights(weight, y.size)
    same_length(label=y, prob=p, weight=w)
    return y, p, w
