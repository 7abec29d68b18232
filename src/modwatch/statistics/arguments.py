"""Validation of arguments: each function returns the checked argument, or raises.

Columns may be lists, numpy arrays or pandas Series. Messages name the argument, never its values.
"""

from collections.abc import Iterable, Sequence, Sized
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from modwatch.common.errors import DesignError, MetricInputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Range of positive weights: within it, quotients and products of weights stay finite.
_LIGHTEST, _HEAVIEST = 1e-100, 1e100

#: Largest whole number that a float represents exactly.
_MAX = 2**53


def column(name: str, values: ArrayLike) -> Floats:
    """Return `values` as a float64 array (n,) of finite numbers.

    Raises MetricInputError, naming the argument, for anything else.
    """
    array = numbers(name, values)
    if not np.isfinite(array).all():
        raise MetricInputError(f"{name} contains NaN or infinity; drop or impute those rows")
    return array


def numbers(name: str, values: ArrayLike) -> Floats:
    """Return `values` as a float64 array (n,), as `column` does; NaN and infinity may be in it."""
    array = numeric(name, values)
    if array.ndim != 1:
        raise MetricInputError(f"{name} should be a 1d array, got an array of shape {array.shape}")
    return array


def numeric(name: str, values: ArrayLike) -> Floats:
    """Return `values` as a float64 array of any shape; MetricInputError for anything else."""
    try:
        return _numbers(np.asarray(values))
    except (TypeError, ValueError) as exc:
        raise MetricInputError(f"{name} should be numeric; pass an array of floats") from exc


def _numbers(array: NDArray[np.generic]) -> Floats:
    """Return the array as float64; raise TypeError for text and dates, which numpy would parse."""
    if array.dtype.kind in "cmMSU":
        raise TypeError(f"an array of {array.dtype}")
    return np.asarray(array, dtype=np.float64)


def labels(values: ArrayLike, threshold: float | None = None, *, name: str = "y_true") -> Floats:
    """Return labels (n,) as 0.0 and 1.0; soft labels in [0, 1] are 1 above `threshold`.

    Soft labels without a threshold raise: the choice changes every metric, so it must be explicit.

    >>> labels([True, False]).tolist(), labels([0.8, 0.7, 0.0], threshold=0.7).tolist()
    ([1.0, 0.0], [1.0, 0.0, 0.0])
    """
    array = column(name, values)
    if threshold is None:
        if not ((array == 0) | (array == 1)).all():
            raise MetricInputError(
                f"{name} contains values other than 0 and 1; pass label_threshold to binarize "
                "soft labels"
            )
        return array
    if not 0 <= threshold < 1:  # NaN fails too
        raise MetricInputError(f"label_threshold must be in [0, 1), got {threshold}")
    votes = shares(name, array, "contains values outside [0, 1]; pass shares of votes, or 0 and 1")
    return (votes > threshold).astype(np.float64)


def names(name: str, values: ArrayLike | Iterable[object]) -> NDArray[Any]:
    """Return names of groups, categories or classes (n,), text or numbers, none of them missing.

    Raises MetricInputError, naming the argument, for None, NaN and NaT, and for what has rows.

    >>> names("groups", ["forum", None])
    Traceback (most recent call last):
    modwatch.common.errors.MetricInputError: 1 values of groups are missing; drop those rows
    """
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "biu":
        return values  # of millions of comments, none of them missing
    try:
        listed = values if isinstance(values, Sized) else list(cast("Iterable[object]", values))
        series = pd.Series(listed, dtype=object)
    except (TypeError, ValueError) as exc:
        raise MetricInputError(f"{name} should be a 1d array") from exc
    if missing := int(series.isna().sum()):
        raise MetricInputError(f"{missing} values of {name} are missing; drop those rows")
    return series.to_numpy()


def probabilities(values: ArrayLike, *, name: str = "y_prob") -> Floats:
    """Return probabilities (n,) in [0, 1]."""
    return shares(name, values, "contains values outside [0, 1]; pass probabilities, not logits")


def decisions(values: ArrayLike) -> NDArray[np.bool_]:
    """Return decisions (n,), 0 and 1 or truth values, as truth values."""
    return np.asarray(labels(values, name="flagged") == 1)


def weights(values: ArrayLike | None, size: int, *, name: str = "sample_weight") -> Floats:
    """Return weights (n,), each 0 or in [1e-100, 1e100]; all 1 when `values` is None."""
    if values is None:
        return np.ones(size)
    array = column(name, values)
    if array.size and array.min() < 0:
        raise MetricInputError(
            f"{name} contains negative values; pass inverse inclusion probabilities"
        )
    if not ((array == 0) | ((array >= _LIGHTEST) & (array <= _HEAVIEST))).all():
        raise MetricInputError(
            f"{name} contains values other than 0 outside [{_LIGHTEST}, {_HEAVIEST}]; "
            "pass inverse inclusion probabilities"
        )
    return array


def fraction(name: str, value: float) -> float:
    """Return `value` as a float in [0, 1]."""
    if not 0 <= value <= 1:  # NaN fails too
        raise MetricInputError(f"{name} must be in [0, 1], got {value}")
    return float(value)


def same_length(**arrays: Sequence[object] | NDArray[np.generic]) -> int:
    """Return the common length of the arrays.

    >>> same_length(y_true=[0, 1], y_prob=[0.5, 0.5])
    2
    """
    sizes = {name: len(array) for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise MetricInputError(f"inconsistent numbers of samples: {listed}; pass one row a comment")
    return next(iter(sizes.values()))


def rows(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    sample_weight: ArrayLike | None,
    label_threshold: float | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Return checked labels, probabilities and weights, each (n,)."""
    y, p = labels(y_true, label_threshold), probabilities(y_prob)
    w = weights(sample_weight, y.size)
    same_length(y_true=y, y_prob=p, sample_weight=w)
    return y, p, w


def whole_numbers(name: str, values: ArrayLike) -> Ints:
    """Return whole numbers ≥ 0 of any shape; MetricInputError names the argument otherwise."""
    try:
        array = np.asarray(values)
    except ValueError as exc:
        raise MetricInputError(f"{name} has rows of different lengths; pass an array") from exc
    flat = column(name, array.ravel())
    if ((flat < 0) | (flat > _MAX) | (flat != np.floor(flat))).any():
        raise MetricInputError(f"{name} must contain whole numbers of at least 0; pass counts")
    return flat.astype(np.int64).reshape(array.shape)


def counted(name: str, values: ArrayLike) -> Ints:
    """Return whole numbers ≥ 0 (n,); MetricInputError names the argument otherwise."""
    return whole_numbers(name, column(name, values))


def shares(
    name: str, values: ArrayLike, problem: str = "must contain values in [0, 1]; pass shares"
) -> Floats:
    """Return numbers (n,) in [0, 1]; MetricInputError names the argument and the problem."""
    array = column(name, values)
    if array.size and (array.min() < 0 or array.max() > 1):
        raise MetricInputError(f"{name} {problem}")
    return array


def strata_sizes(population: ArrayLike) -> Ints:
    """Return the comments N_h ≥ 1 (H,) of at least one stratum; DesignError for an empty one."""
    sizes = whole_numbers("population", population)
    if sizes.ndim != 1 or not sizes.size:
        raise DesignError("population must be a list with the number of comments of each stratum")
    if (sizes < 1).any():
        raise DesignError("population must not contain empty strata; leave them out")
    return sizes


def one_per_stratum(strata: int, **columns: NDArray[Any]) -> None:
    """Raise MetricInputError unless each column is (strata,)."""
    for name, column in columns.items():
        if column.shape != (strata,):
            raise MetricInputError(
                f"{name} has shape {column.shape} for {strata} strata; pass one number per stratum"
            )


def budget(labels: int) -> int:
    """Return a whole number of labels; DesignError for anything else."""
    if labels != labels // 1:  # NaN fails too
        raise DesignError(f"Number of labels must be whole, got {labels}.")
    return int(labels)
