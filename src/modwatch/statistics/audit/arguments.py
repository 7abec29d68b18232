"""Validation of arguments: each function returns what it was given as an array, or raises."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.common.errors import DesignError, MetricInputError
from modwatch.statistics import inputs
from modwatch.statistics.inputs import Floats

Ints = NDArray[np.int64]

#: Largest whole number that a float represents exactly.
_MAX = 2**53


def whole_numbers(name: str, values: ArrayLike) -> Ints:
    """Return whole numbers ≥ 0 of any shape; MetricInputError names the argument otherwise.

    >>> whole_numbers("labels", [2.0, 3]).tolist()
    [2, 3]
    """
    try:
        array = np.asarray(values)
    except ValueError as exc:
        raise MetricInputError(f"{name} has rows of different lengths; pass an array") from exc
    flat = inputs.column(name, array.ravel())
    if ((flat < 0) | (flat > _MAX) | (flat != np.floor(flat))).any():
        raise MetricInputError(f"{name} must contain whole numbers of at least 0; pass counts")
    return flat.astype(np.int64).reshape(array.shape)


def shares(name: str, values: ArrayLike) -> Floats:
    """Return numbers (n,) in [0, 1]; MetricInputError names the argument otherwise.

    >>> shares("rate", [0.5]).tolist()
    [0.5]
    """
    array = inputs.column(name, values)
    if array.size and (array.min() < 0 or array.max() > 1):
        raise MetricInputError(f"{name} must contain values in [0, 1]; pass shares")
    return array


def strata_sizes(population: ArrayLike) -> Ints:
    """Return the comments N_h ≥ 1 (H,) of at least one stratum; DesignError for an empty one.

    >>> strata_sizes([100, 10]).tolist()
    [100, 10]
    """
    sizes = whole_numbers("population", population)
    if sizes.ndim != 1 or not sizes.size:
        raise DesignError("population must be a list with the number of comments of each stratum")
    if (sizes < 1).any():
        raise DesignError("population must not contain empty strata; leave them out")
    return sizes


def one_per_stratum(strata: int, **columns: NDArray[Any]) -> None:
    """Raise MetricInputError unless each column is (strata,).

    >>> one_per_stratum(2, rate=np.array([0.1, 0.2]))
    """
    for name, column in columns.items():
        if column.shape != (strata,):
            raise MetricInputError(
                f"{name} has shape {column.shape} for {strata} strata; pass one number per stratum"
            )


def budget(labels: int) -> int:
    """Return a whole number of labels; DesignError for anything else.

    >>> budget(300)
    300
    """
    if labels != labels // 1:  # NaN fails too
        raise DesignError(f"Number of labels must be whole, got {labels}.")
    return int(labels)


def tails(beyond: tuple[float, float]) -> tuple[float, float]:
    """Return the probabilities beyond the ends of an interval, each in [0, 0.5).

    >>> tails((0.025, 0.0))
    (0.025, 0.0)
    """
    if not all(0 <= tail < 0.5 for tail in beyond):
        raise DesignError(f"Tails of the interval must be in [0, 0.5), got {beyond}.")
    return beyond
