"""What the functions of an audit accept: each returns what it was given, checked, or raises."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modwatch.errors import DesignError, MetricInputError
from modwatch.metrics import inputs
from modwatch.metrics.inputs import Floats

Ints = NDArray[np.int64]

#: Whole numbers beyond are not told apart as floats.
_MOST = 2**53


def whole_numbers(name: str, values: ArrayLike) -> Ints:
    """Return whole numbers ≥ 0 of any shape; MetricInputError names what holds something else.

    >>> whole_numbers("labels", [2.0, 3]).tolist()
    [2, 3]
    """
    try:
        array = np.asarray(values)
    except ValueError as exc:
        raise MetricInputError(f"{name} has rows of different lengths; pass an array") from exc
    flat = inputs.column(name, array.ravel())
    if ((flat < 0) | (flat > _MOST) | (flat != np.floor(flat))).any():
        raise MetricInputError(
            f"{name} holds values that are not whole numbers from 0; pass counts"
        )
    return flat.astype(np.int64).reshape(array.shape)


def shares(name: str, values: ArrayLike) -> Floats:
    """Return numbers (n,) in [0, 1]; MetricInputError names what holds something else.

    >>> shares("rate", [0.5]).tolist()
    [0.5]
    """
    array = inputs.column(name, values)
    if array.size and (array.min() < 0 or array.max() > 1):
        raise MetricInputError(f"{name} holds values outside [0, 1]; pass shares")
    return array


def strata_sizes(population: ArrayLike) -> Ints:
    """Return the comments N_h ≥ 1 (H,) of at least one stratum; DesignError for an empty one.

    >>> strata_sizes([100, 10]).tolist()
    [100, 10]
    """
    sizes = whole_numbers("population", population)
    if sizes.ndim != 1 or not sizes.size:
        raise DesignError("the population is no list of strata; pass the comments of each")
    if (sizes < 1).any():
        raise DesignError("a stratum is empty; leave it out")
    return sizes


def one_a_stratum(strata: int, **columns: NDArray[Any]) -> None:
    """Raise MetricInputError unless each column is (strata,).

    >>> one_a_stratum(2, rate=np.array([0.1, 0.2]))
    """
    for name, column in columns.items():
        if column.shape != (strata,):
            raise MetricInputError(
                f"{name} has the shape {column.shape} for {strata} strata; pass one number each"
            )


def budget(labels: int) -> int:
    """Return a whole number of labels; DesignError for anything else.

    >>> budget(300)
    300
    """
    if labels != labels // 1:  # NaN fails too
        raise DesignError(f"the number of labels is {labels}; it must be whole")
    return int(labels)


def tails(beyond: tuple[float, float]) -> tuple[float, float]:
    """Return the probabilities beyond the ends of an interval, each in [0, 0.5).

    >>> tails((0.025, 0.0))
    (0.025, 0.0)
    """
    if not all(0 <= tail < 0.5 for tail in beyond):
        raise DesignError(f"the tails of the interval are {beyond}; each must lie in [0, 0.5)")
    return beyond
