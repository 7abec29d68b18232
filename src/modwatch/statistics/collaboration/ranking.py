"""The two rankings behind every collaborative metric.

`reviews` returns how much of each row is reviewed at a capacity (ranking by review score);
`Sweep` returns the curves over all thresholds (ranking by probability).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from modwatch.common.errors import MetricInputError
from modwatch.statistics.arguments import Floats

Interpolation = Literal["davis-goadrich", "step"]

_EPSILON = float(np.finfo(np.float64).eps)

#: From here on every float is an integer, so a sum cannot distinguish integer weights from others.
_COUNTABLE = 2.0**53

#: Groups of equal score processed at once; small enough for a processor's cache.
_BLOCK = 8_192


def slots(alpha: float, total: float) -> int:
    """Return the capacity ⌊α·total⌋; a product just below an integer counts as that integer.

    >>> slots(0.29, 100)
    29
    """
    return math.floor(min(alpha * total * (1 + 4 * _EPSILON), total))


@dataclass(frozen=True, kw_only=True)
class Review:
    """Which rows are reviewed: all above the boundary, a share of those at it, none below."""

    #: Review score of the last reviewed row; inf when none is reviewed, −inf when all are.
    boundary: float
    #: Share in [0, 1] of the rows at the boundary that is reviewed.
    share: float

    def reviewed(self, review_score: Floats) -> Floats:
        """Return the reviewed part (n,) in [0, 1] of each row.

        The share at the boundary is the expectation over random tie-breaking.
        """
        part = (review_score > self.boundary).astype(np.float64)
        if self.share > 0:
            part[review_score == self.boundary] = self.share
        return part


def reviews(review_score: Floats, alphas: Sequence[float], weight: Floats) -> list[Review]:
    """Return the review at each α, from one sort of the scores (n,)."""
    whole = bool((weight == np.rint(weight)).all())
    order = np.argsort(review_score, kind="stable")[::-1]  # stable: merges sorted runs in O(n)
    mass, lowered = weight[order], review_score[order]
    np.cumsum(mass, out=mass)
    np.negative(lowered, out=lowered)
    total = float(mass[-1]) if mass.size else 0.0
    whole &= total < _COUNTABLE
    # Integer weights count repeated rows, and no comment is reviewed by half; other weights are on
    # an arbitrary scale without whole comments to round to.
    places = [slots(alpha, total) if whole else alpha * total for alpha in alphas]
    return [_review(lowered, mass, place) for place in places]


def _review(lowered: Floats, mass: Floats, places: float) -> Review:
    """Return the review of `places` rows; `lowered` is minus the score, `mass` summed up."""
    if not mass.size or places <= _EPSILON * mass[-1]:  # nothing, or less than sums resolve
        return Review(boundary=math.inf, share=0.0)
    if places >= mass[-1]:
        return Review(boundary=-math.inf, share=0.0)
    at = int(np.searchsorted(mass, places))
    first, last = (int(np.searchsorted(lowered, lowered[at], side)) for side in ("left", "right"))
    above = float(mass[first - 1]) if first else 0.0
    share = (places - above) / (float(mass[last - 1]) - above)
    return Review(boundary=-float(lowered[at]), share=min(max(share, 0.0), 1.0))


@dataclass(frozen=True, kw_only=True)
class _Groups:
    """The g groups of equal score with a positive, by descending score; only they add area."""

    #: (g+1,) positives above each group, and all positives.
    bounds: NDArray[np.intp]
    #: (g,) negatives above each group, and above its lower end.
    above: NDArray[np.intp]
    through: NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The ROC and precision-recall curves over all thresholds."""

    groups: _Groups
    #: (P+1,) running weight of the P positives by descending score, from the reviewed ones.
    true: Floats
    #: (N+1,) running weight of the N negatives by descending score, from 0.
    false: Floats
    #: Total weight of positives, and of negatives.
    positives: float
    negatives: float

    def auroc(self) -> float | None:
        """Return the area under the ROC curve, None if a class has no weight."""
        if self.negatives <= 0:
            return None
        won = sum(
            dot(gain, 1 - (before + inside / 2) / self.negatives)
            for gain, _, before, inside in self._segments()
        )
        return share(won + float(self.true[0]), self.positives)

    def auprc(self, interpolation: Interpolation = "davis-goadrich") -> float | None:
        """Return the area under the precision-recall curve, None without positives.

        Davis & Goadrich (2006): between two thresholds false positives grow linearly with true
        ones, so precision is integrated in closed form; `step` gives average precision.
        """
        area = sum(float(_AREAS[interpolation](*part).sum()) for part in self._segments())
        return share(area + float(self.true[0]), self.positives)

    def _segments(self) -> Iterator[tuple[Floats, Floats, Floats, Floats]]:
        """Yield by blocks of groups: positives in each and above it, negatives above and in it."""
        groups = self.groups
        for first in range(0, groups.above.size, _BLOCK):
            true = self.true[groups.bounds[first : first + _BLOCK + 1]]
            before = self.false[groups.above[first : first + _BLOCK]]
            inside = self.false[groups.through[first : first + _BLOCK]] - before
            yield np.diff(true), true[:-1], before, inside


class Sweep:
    """All thresholds of one score at once."""

    def __init__(self, label: Floats, score: Floats) -> None:
        order = np.argsort(-score, kind="stable")
        positive = label[order] == 1
        self._positive: NDArray[np.intp] = order[positive]
        self._negative: NDArray[np.intp] = order[~positive]
        rising, rising_negative = -score[self._positive], -score[self._negative]
        new = np.ones(rising.size, dtype=bool)
        new[1:] = rising[1:] != rising[:-1]
        start = np.flatnonzero(new)
        self._groups = _Groups(
            bounds=np.append(start, rising.size),
            above=np.searchsorted(rising_negative, rising[start], "left"),
            through=np.searchsorted(rising_negative, rising[start], "right"),
        )

    def curve(self, weight: Floats, reviewed: Floats) -> Curve:
        """Return the curve of rows (n,) whose `reviewed` part is correct at every threshold.

        That part ranks above all others if positive, and below all others if negative.
        """
        sure = dot(weight[self._positive], reviewed[self._positive])
        negatives = float(weight[self._negative].sum())
        kept = weight * (1 - reviewed)
        true = _running(kept, self._positive, sure)
        return Curve(
            groups=self._groups,
            true=true,
            false=_running(kept, self._negative, 0.0),
            positives=float(true[-1]),
            negatives=negatives,
        )


def check_interpolation(interpolation: str) -> None:
    """Return nothing; raise MetricInputError for an unknown interpolation."""
    if interpolation not in _AREAS:
        known = ", ".join(_AREAS)
        raise MetricInputError(f"interpolation must be one of {known}, got {interpolation!r}")


def dot(left: Floats, right: Floats) -> float:
    """Return Σ left·right of two arrays (n,), identical on every machine.

    `np.dot` splits the sum among as many threads as there are cores; on a busy machine these wait
    for each other.
    """
    return float(np.einsum("i,i->", left, right))


def mean(value: Floats, weight: Floats) -> float | None:
    """Return the weighted mean of values (n,) in [0, 1]; None without weight.

    Never outside [0, 1], and exact if all values are 0 or all are 1.
    """
    part = dot(weight, value)
    return share(part, part + dot(weight, 1 - value))


def share(part: float, whole: float) -> float | None:
    """Return part/whole clipped to [0, 1] against rounding; None if the whole is 0."""
    return min(max(part / whole, 0.0), 1.0) if whole > 0 else None


def _running(mass: Floats, rows: NDArray[np.intp], start: float) -> Floats:
    """Return the running sums (m+1,) of `mass` over the m `rows`, from `start`."""
    total = np.empty(rows.size + 1)
    total[0] = start
    np.take(mass, rows, out=total[1:], mode="clip")  # the default mode makes a copy
    np.cumsum(total, out=total)
    return total


def davis_goadrich(gain: Floats, true: Floats, false: Floats, inside: Floats) -> Floats:
    """Return ∫ TP/(TP+FP) dTP over each segment that starts at (`true`, `false`)."""
    rise = gain + inside
    precision = np.divide(gain, rise, out=np.zeros_like(gain), where=gain > 0)
    drift = false * precision - true * (1 - precision)
    total = true + false
    log = np.log1p(np.divide(rise, total, out=np.zeros_like(gain), where=total > 0))
    area: Floats = precision * (gain - drift * log)
    return area


def _step(gain: Floats, true: Floats, false: Floats, inside: Floats) -> Floats:
    """Return the gain times the precision at the end of each segment."""
    end = true + gain
    out = np.zeros_like(gain)
    return gain * np.divide(end, end + false + inside, out=out, where=gain > 0)


_AREAS = {"davis-goadrich": davis_goadrich, "step": _step}
