"""Strata: ranges of the score.

Edges are values that occur among the scores. Written into a plan and applied to the same comments
in any order, they give the same strata.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from modwatch.common.errors import DesignError
from modwatch.statistics import inputs
from modwatch.statistics.audit.arguments import Ints, shares, whole_numbers
from modwatch.statistics.inputs import Floats

#: quantile: equal numbers of comments. equal_width: ranges of equal width. sqrt_mass: equal sums of
#: √f over narrow classes of frequency f (Dalenius & Hodges 1959). neyman: equal sums of √(p(1−p)),
#: the standard deviation of the label under a calibrated score p.
METHODS = ("quantile", "equal_width", "sqrt_mass", "neyman")

#: Part of the mass of `neyman` that is spread evenly, so that the stratum of the lowest scores does
#: not contain nearly all comments.
EVEN_SHARE = 0.25

#: Number of classes for `sqrt_mass`.
_CLASSES = 1000


@dataclass(frozen=True, kw_only=True)
class Strata:
    """Ranges of the score: stratum h is edges[h−1] ≤ score < edges[h], in ascending order."""

    method: str
    #: (H−1,) inner edges, ascending.
    edges: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.edges) + 1

    def assign(self, score: ArrayLike) -> Ints:
        """Return the stratum (n,) in 0…H−1 of each score (n,); MetricInputError outside [0, 1].

        >>> Strata(method="quantile", edges=(0.5,)).assign([0.2, 0.5, 0.9]).tolist()
        [0, 1, 1]
        """
        values = shares("score", score)
        return np.searchsorted(np.array(self.edges), values, side="right").astype(np.int64)


def strata(
    score: ArrayLike,
    *,
    method: str = "neyman",
    bins: int = 8,
    counts: ArrayLike | None = None,
    expected: ArrayLike | None = None,
) -> Strata:
    """Return at most `bins` strata of the scores (n,) in [0, 1].

    `counts` (n,) is the number of comments with each score, 1 by default; pass a histogram for a
    population too large for memory. `expected` (n,) is the probability that `neyman` uses, such as
    the recalibrated score; the score itself by default. Equal scores stay in one stratum, and empty
    strata are left out. Wei et al., section 4.4; `METHODS`.

    Raises:
        DesignError: an unknown method, fewer than one bin, no comment.
        MetricInputError: scores outside [0, 1], negative counts, arrays of different lengths.

    >>> strata([0.1, 0.2, 0.3, 0.9], method="quantile", bins=2).edges
    (0.3,)
    """
    if method not in METHODS:
        raise DesignError(f"Strata method must be one of {METHODS}, got {method!r}.")
    if bins < 1:
        raise DesignError(f"Number of strata must be at least 1, got {bins}.")
    values = shares("score", score)
    ones = np.ones(values.size)
    number = ones if counts is None else whole_numbers("counts", counts)
    chance = values if expected is None else shares("expected", expected)
    inputs.same_length(score=values, counts=number, expected=chance)
    value, where = np.unique(values, return_inverse=True)
    frequency = np.bincount(where, weights=number, minlength=value.size).astype(np.float64)
    chance = np.bincount(where, weights=number * chance, minlength=value.size).astype(np.float64)
    value, chance, frequency = (each[frequency > 0] for each in (value, chance, frequency))
    if not value.size:
        raise DesignError("There are no comments to stratify; choose a period with comments.")
    if method == "equal_width":
        place = value * bins
    else:
        mass = _mass(value, frequency, chance / frequency, method)
        middle = np.cumsum(mass) - mass / 2
        place = middle / mass.sum() * bins
    # Rounded, so that the order of summation does not decide ties.
    stratum = np.minimum(np.floor(np.round(place, 9)), bins - 1)
    first = np.flatnonzero(np.diff(stratum)) + 1
    return Strata(method=method, edges=tuple(float(edge) for edge in value[first]))


def _mass(value: Floats, frequency: Floats, chance: Floats, method: str) -> Floats:
    """Return the mass (m,) of each score; strata have equal sums of it."""
    if method == "quantile":
        return frequency
    if method == "sqrt_mass":
        place = np.minimum((value * _CLASSES).astype(np.int64), _CLASSES - 1)
        of_class = np.bincount(place, weights=frequency, minlength=_CLASSES)[place]
        return np.asarray(frequency / np.sqrt(of_class))
    spread = frequency * np.sqrt(chance * (1 - chance))
    even = np.asarray(frequency / frequency.sum())
    if not spread.any():
        return even
    return np.asarray((1 - EVEN_SHARE) * spread / spread.sum() + EVEN_SHARE * even)
