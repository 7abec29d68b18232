"""Where the score is cut into strata.

A stratum is a range of scores. Cuts are values that occur among the scores, so that they can be
written into a plan and applied to any stream of comments, in any order, with the same result.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from modwatch.audit import checks
from modwatch.errors import DesignError
from modwatch.metrics import inputs
from modwatch.metrics.inputs import Floats

Ints = NDArray[np.int64]

#: quantile: as many comments in each. equal_width: as wide each. sqrt_mass: equal sums of √f over
#: narrow classes of frequency f (Dalenius & Hodges 1959). neyman: equal sums of √(p(1−p)), the
#: standard deviation of the label under a calibrated score p.
METHODS = ("quantile", "equal_width", "sqrt_mass", "neyman")

#: Part of the mass of `neyman` that is spread evenly, so that no stratum of sure comments holds
#: nearly all of them.
EVEN_SHARE = 0.25

#: Classes from which `sqrt_mass` is summed.
_CLASSES = 1000


@dataclass(frozen=True, kw_only=True)
class Strata:
    """Ranges of the score: stratum h holds edges[h−1] ≤ score < edges[h], in rising order."""

    method: str
    #: (H−1,) inner edges, rising.
    edges: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.edges) + 1

    def assign(self, score: ArrayLike) -> Ints:
        """Return the stratum (n,) in 0…H−1 of each score (n,); MetricInputError outside [0, 1].

        >>> Strata(method="quantile", edges=(0.5,)).assign([0.2, 0.5, 0.9]).tolist()
        [0, 1, 1]
        """
        values = checks.shares("score", score)
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

    `counts` (n,) says how many comments have each score; one each by default, so that a histogram
    does for a population too large for memory. `expected` (n,) is the probability that `neyman`
    goes by, such as the recalibrated score; the score itself by default. Equal scores stay
    together, and strata that would be empty are left out. Wei et al., section 4.4; `METHODS`.

    Raises:
        DesignError: an unknown method, fewer than one bin, no comment.
        MetricInputError: scores outside [0, 1], negative counts, arrays of different lengths.

    >>> strata([0.1, 0.2, 0.3, 0.9], method="quantile", bins=2).edges
    (0.3,)
    """
    if method not in METHODS:
        raise DesignError(f"the strata method is {method!r}; it must be one of {METHODS}")
    if bins < 1:
        raise DesignError(f"the number of strata is {bins}; it must be at least 1")
    values = checks.shares("score", score)
    ones = np.ones(values.size)
    number = ones if counts is None else checks.whole_numbers("counts", counts)
    chance = values if expected is None else checks.shares("expected", expected)
    inputs.same_length(score=values, counts=number, expected=chance)
    value, where = np.unique(values, return_inverse=True)
    frequency = np.bincount(where, weights=number, minlength=value.size).astype(np.float64)
    chance = np.bincount(where, weights=number * chance, minlength=value.size).astype(np.float64)
    value, chance, frequency = (each[frequency > 0] for each in (value, chance, frequency))
    if not value.size:
        raise DesignError("there is no comment to stratify; audit a period that has some")
    if method == "equal_width":
        place = value * bins
    else:
        mass = _mass(value, frequency, chance / frequency, method)
        middle = np.cumsum(mass) - mass / 2
        place = middle / mass.sum() * bins
    # Rounded, so that the order of a sum does not decide where a tie goes.
    stratum = np.minimum(np.floor(np.round(place, 9)), bins - 1)
    first = np.flatnonzero(np.diff(stratum)) + 1
    return Strata(method=method, edges=tuple(float(edge) for edge in value[first]))


def _mass(value: Floats, frequency: Floats, chance: Floats, method: str) -> Floats:
    """Return the mass (m,) of each score, of which each stratum is to have the same."""
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


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Strata crossed with a column, such as the language."""

    #: (n,) cell of each comment, in 0…C−1.
    index: Ints
    #: (C,) stratum of the score of each cell.
    stratum: tuple[int, ...]
    #: (C,) value of the column; `OTHER` for those too rare for a cell of their own.
    value: tuple[str, ...]


OTHER = "other"


def cross(stratum: Ints, values: Sequence[str | None], *, least: int = 1) -> Cells:
    """Cross strata (n,) with a column (n,): one cell for each pair that occurs.

    Values with fewer than `least` comments, and missing ones, share the value `OTHER`. DesignError
    for columns of different lengths.

    >>> cells = cross(np.array([0, 0, 1, 1]), ["de", "en", "en", None])
    >>> list(zip(cells.stratum, cells.value)), cells.index.tolist()
    ([(0, 'de'), (0, 'en'), (1, 'en'), (1, 'other')], [0, 1, 2, 3])
    """
    if len(values) != stratum.size:
        raise DesignError(f"{len(values)} values for {stratum.size} comments; pass one each")
    names = np.array([OTHER if value is None else str(value) for value in values], dtype=object)
    where, unique = pd.factorize(names)
    kept = np.where(np.bincount(where, minlength=unique.size) >= least, unique, OTHER)
    code, word = pd.factorize(kept, sort=True)
    pair = stratum * max(word.size, 1) + code[where]
    found, index = np.unique(pair, return_inverse=True)
    return Cells(
        index=index.astype(np.int64),
        stratum=tuple(int(each // max(word.size, 1)) for each in found),
        value=tuple(str(word[each % max(word.size, 1)]) for each in found),
    )
