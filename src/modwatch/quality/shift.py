"""How far two distributions lie apart, as effect sizes that do not grow with n."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Edges of the bins that a day's probabilities are counted in: fixed, so that days can be added
#: up, and closer together near 0 and 1, where toxicity scores crowd.
PROBABILITY_EDGES = (0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1)


def probability_histogram(prob: ArrayLike) -> tuple[int, ...]:
    """Counts of `prob` (n,) in [0, 1] by bin of `PROBABILITY_EDGES`, the last bin closed.

    >>> sum(probability_histogram([0.0, 0.5, 1.0]))
    3
    """
    counts, _ = np.histogram(np.asarray(prob, dtype=np.float64), bins=PROBABILITY_EDGES)
    return tuple(int(count) for count in counts)


def population_stability_index(observed: Sequence[int], reference: Sequence[int]) -> float:
    """PSI ≥ 0 of two histograms over the same bins; 0 is alike, above 0.2 is commonly a shift.

    Σ (p − q)·ln(p / q), the symmetrised Kullback–Leibler divergence in nats (Jeffreys 1946).
    Half a count is added to each bin, so that an empty bin gives a finite value.

    >>> population_stability_index([5, 5], [50, 50])
    0.0
    """
    p, q = _smoothed(observed), _smoothed(reference)
    return float(np.sum((p - q) * np.log(p / q)))


def total_variation(observed: Mapping[str, int], reference: Mapping[str, int]) -> float:
    """Total variation distance in [0, 1]: the share of one mix that would have to change.

    0 is the same mix, 1 is nothing in common. Both must count something.

    >>> total_variation({"en": 3, "de": 1}, {"en": 1, "de": 1})
    0.25
    """
    names = sorted(set(observed) | set(reference))
    p = np.array([observed.get(name, 0) for name in names]) / sum(observed.values())
    q = np.array([reference.get(name, 0) for name in names]) / sum(reference.values())
    return float(np.abs(p - q).sum() / 2)


def _smoothed(counts: Sequence[int]) -> NDArray[np.float64]:
    array: NDArray[np.float64] = np.asarray(counts, dtype=np.float64) + 0.5
    return np.asarray(array / array.sum())
