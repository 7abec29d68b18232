"""The two rankings behind every collaborative metric, in one place.

`review` says how much of each row is reviewed at a capacity (ranking by review score);
`Sweep` gives the curves over all thresholds (ranking by score).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from modwatch.errors import MetricInputError
from modwatch.metrics.inputs import Floats

Interpolation = Literal["davis-goadrich", "step"]


def capacity(alpha: float, weight: Floats) -> float:
    """Return the mass of rows that can be reviewed: ⌊αΣw⌋ for whole weights, else αΣw.

    Whole weights count repeated rows, and nobody reviews half a comment; other weights are masses
    on an arbitrary scale, which has no whole comments to round to. α·n a rounding error below a
    whole number counts as that number (0.29 of 100 is 29).

    >>> capacity(0.29, np.ones(100)), capacity(0.5, np.ones(3)), capacity(0.5, np.full(3, 0.5))
    (29.0, 1.0, 0.75)
    """
    total = float(weight.sum())
    if (weight == np.rint(weight)).all():
        return float(slots(alpha, total))
    return alpha * total


def slots(alpha: float, total: float) -> int:
    """Return ⌊α·total⌋, forgiving the rounding of α itself.

    >>> slots(0.29, 100)
    29
    """
    return math.floor(alpha * total * (1 + 4 * float(np.finfo(np.float64).eps)))


@dataclass(frozen=True, kw_only=True)
class Review:
    """Which rows are reviewed: all above the boundary, a share of those at it, none below."""

    #: Review score of the last reviewed row; inf when none is reviewed.
    boundary: float
    #: Share in [0, 1] of the rows at the boundary that is reviewed.
    share: float

    def reviewed(self, review_score: Floats) -> Floats:
        """Return the reviewed part (n,) in [0, 1] of each row.

        The share at the boundary is the expectation over random tie-breaking.

        >>> Review(boundary=2.0, share=0.5).reviewed(np.array([1.0, 2.0, 3.0])).tolist()
        [0.0, 0.5, 1.0]
        """
        part = (review_score > self.boundary).astype(np.float64)
        if self.share > 0:
            part[review_score == self.boundary] = self.share
        return part


def reviews(review_score: Floats, alphas: Sequence[float], weight: Floats) -> list[Review]:
    """Return the review at each α, from one sort of the scores (n,).

    >>> reviews(np.array([3.0, 2.0, 2.0]), [2 / 3], np.ones(3))
    [Review(boundary=2.0, share=0.5)]
    """
    order = np.argsort(review_score, kind="stable")[::-1]  # stable: merges sorted runs in O(n)
    mass = weight[order]
    np.cumsum(mass, out=mass)
    lowered = -review_score[order]
    return [_review(lowered, mass, capacity(alpha, weight)) for alpha in alphas]


def _review(lowered: Floats, mass: Floats, places: float) -> Review:
    """Return the review of `places` rows; `lowered` is minus the score, `mass` summed up."""
    at = int(np.searchsorted(mass, places))
    if places <= 0 or not mass.size:
        return Review(boundary=math.inf, share=0.0)
    if at == mass.size:  # rounding of the sum: everything is reviewed
        return Review(boundary=-float(lowered[-1]), share=1.0)
    first, last = (int(np.searchsorted(lowered, lowered[at], side)) for side in ("left", "right"))
    above = float(mass[first - 1]) if first else 0.0
    share = (places - above) / (float(mass[last - 1]) - above)
    return Review(boundary=-float(lowered[at]), share=min(max(share, 0.0), 1.0))


@dataclass(frozen=True, kw_only=True)
class Curve:
    """The points of the ROC and precision-recall curves.

    Only the g groups of equal score that hold a positive carry area, so only they are kept.
    """

    #: (g,) positive mass of each group, falling score.
    gain: Floats
    #: (g,) negative mass scored above the group.
    before: Floats
    #: (g,) negative mass inside the group.
    inside: Floats
    #: Positive mass classified correctly at every threshold.
    sure: float
    #: All positive and all negative mass.
    positives: float
    negatives: float

    def auroc(self) -> float | None:
        """Return the area under the ROC curve, None where a class has no mass."""
        beaten = self.negatives - self.before - self.inside / 2
        won = float(np.dot(self.gain, beaten)) + self.sure * self.negatives
        return quotient(won, self.positives * self.negatives)

    def auprc(self, interpolation: Interpolation = "davis-goadrich") -> float | None:
        """Return the area under the precision-recall curve, None without positive mass.

        Davis & Goadrich (2006): between two thresholds false positives grow linearly with true
        ones, so precision is integrated in closed form; `step` gives average precision.
        """
        area = float(self._precision_area(interpolation).sum())
        return quotient(area + self.sure, self.positives)

    def precision_credit(self) -> Floats:
        """Return the mean precision (g,) over the recall that the group brings."""
        area = self._precision_area("davis-goadrich")
        return np.divide(area, self.gain, out=np.zeros_like(area), where=self.gain > 0)

    def _precision_area(self, interpolation: Interpolation) -> Floats:
        start = np.cumsum(self.gain) + self.sure - self.gain
        return _AREAS[interpolation](self.gain, start, self.before, self.inside)


class Sweep:
    """All thresholds of one score at once.

    >>> sweep = Sweep(np.array([1.0, 0.0, 1.0]), np.array([0.9, 0.5, 0.1]))
    >>> sweep.curve(np.ones(3), np.zeros(3)).auroc()
    0.5
    >>> sweep.curve(np.ones(3), np.ones(3)).auroc()
    1.0
    """

    def __init__(self, label: Floats, score: Floats) -> None:
        order = np.argsort(-score, kind="stable")
        positive = label[order] == 1
        self._positive: NDArray[np.intp] = order[positive]
        self._negative: NDArray[np.intp] = order[~positive]
        rising, rising_negative = -score[self._positive], -score[self._negative]
        new = np.ones(rising.size, dtype=bool)
        new[1:] = rising[1:] != rising[:-1]
        start = np.flatnonzero(new)
        self._bounds: NDArray[np.intp] = np.append(start, rising.size)
        self._above = np.searchsorted(rising_negative, rising[start], "left")
        self._through = np.searchsorted(rising_negative, rising[start], "right")

    def curve(self, weight: Floats, reviewed: Floats) -> Curve:
        """Return the curve of rows (n,) of which the `reviewed` part is right at every threshold.

        That part ranks above all others when positive, and below all others when negative.
        """
        kept = weight * (1 - reviewed)
        below = _cumulative(kept[self._negative])
        before = below[self._above]
        gain = np.diff(_cumulative(kept[self._positive])[self._bounds])
        sure = float(np.dot(weight[self._positive], reviewed[self._positive]))
        return Curve(
            gain=gain,
            before=before,
            inside=below[self._through] - before,
            sure=sure,
            positives=float(gain.sum()) + sure,
            negatives=float(weight[self._negative].sum()),
        )

    def credits(self, group: Floats) -> Floats:
        """Return, for each row (n,), the credit (g,) of its group; 0 for negatives.

        >>> Sweep(np.array([1.0, 0.0]), np.array([0.9, 0.1])).credits(np.array([0.5])).tolist()
        [0.5, 0.0]
        """
        out = np.zeros(self._positive.size + self._negative.size)
        out[self._positive] = np.repeat(group, np.diff(self._bounds))
        return out


def check_interpolation(interpolation: str) -> None:
    """Return nothing; raise MetricInputError for an unknown interpolation."""
    if interpolation not in _AREAS:
        known = ", ".join(_AREAS)
        raise MetricInputError(f"interpolation is {interpolation!r}; it must be one of {known}")


def quotient(numerator: float, denominator: float) -> float | None:
    """Return the quotient, None over nothing.

    >>> quotient(1, 2), quotient(0, 0)
    (0.5, None)
    """
    return float(numerator / denominator) if denominator > 0 else None


def _cumulative(mass: Floats) -> Floats:
    """Return running sums (n+1,) that start at 0."""
    total = np.zeros(mass.size + 1)
    np.cumsum(mass, out=total[1:])
    return total


def _davis_goadrich(gain: Floats, true: Floats, false: Floats, inside: Floats) -> Floats:
    """Return ∫ TP/(TP+FP) dTP over each segment that starts at (`true`, `false`)."""
    grows = gain > 0
    rise = gain + inside
    precision = np.divide(gain, rise, out=np.zeros_like(gain), where=grows)  # 1/(1+slope)
    slope = np.divide(inside, gain, out=np.zeros_like(gain), where=grows)
    offset = false - slope * true
    total = true + false
    log = np.log1p(np.divide(rise, total, out=np.zeros_like(gain), where=grows & (total > 0)))
    return precision * (gain - offset * precision * log)


def _step(gain: Floats, true: Floats, false: Floats, inside: Floats) -> Floats:
    """Return the gain times the precision at the end of each segment."""
    end = true + gain
    out = np.zeros_like(gain)
    return gain * np.divide(end, end + false + inside, out=out, where=gain > 0)


_AREAS = {"davis-goadrich": _davis_goadrich, "step": _step}
