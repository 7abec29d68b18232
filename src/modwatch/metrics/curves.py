"""Areas under curves of a weighted sample, with their confidence distributions.

An area is a mean over positives: each has the share of negatives that it beats (ROC), or the mean
precision over the recall that it brings. So it is a share of two totals, what positives win and
what they lose, and takes its interval from theirs; positives not seen yet may lose everything. The
area under the ROC curve is as well a mean over negatives, which vary independently.
"""

import numpy as np

from modwatch.metrics.inputs import Floats
from modwatch.metrics.intervals import add_in_quadrature, interval, share_of
from modwatch.metrics.ranking import Sweep
from modwatch.metrics.sample import Domain, Sample

Interval = tuple[float, float]


class WeightedCurves:
    """The curves of one score against one label (m,) of a sample."""

    def __init__(self, sample: Sample, label: Floats, score: Floats, *, seed: int) -> None:
        self._sample = sample
        self._label = label
        self._seed = seed
        self._score = score
        self._sweep = Sweep(label, score)

    def at(self, reviewed: Domain) -> tuple[tuple[float, Interval], tuple[float, Interval]] | None:
        """Return AUROC and AUPRC, each with its interval, reviewed comments being always right.

        None where a class is missing.
        """
        curve = self._sweep.curve(self._sample.weight, reviewed.part)
        auroc, auprc = curve.auroc(), curve.auprc()
        if auroc is None or auprc is None:
            return None
        negative = 1 - self._label
        above = self._beaten(self._score, negative, reviewed)
        below = self._beaten(-self._score, self._label, reviewed)
        positives = self._won(self._label, above, above, reviewed)
        negatives = self._won(negative, below, below, reviewed)
        precision = self._sweep.credits(curve.precision_credit())
        won = self._won(self._label, precision, np.zeros(precision.size), reviewed)
        return (auroc, add_in_quadrature(auroc, positives, negatives)), (auprc, won)

    def _beaten(self, score: Floats, other: Floats, reviewed: Domain) -> Floats:
        """Return the share (m,) of the `other` side that scores lower, or was reviewed."""
        order = np.argsort(score, kind="stable")
        mass = (self._sample.weight * other)[order]
        kept = np.append(0.0, np.cumsum(mass * (1 - reviewed.part[order])))
        low, high = (np.searchsorted(score[order], score, side) for side in ("left", "right"))
        lower: Floats = (kept[low] + kept[high]) / 2 + float(np.dot(mass, reviewed.part[order]))
        total = max(float(mass.sum()), np.finfo(np.float64).tiny)
        return np.clip(lower / total, 0.0, 1.0)

    def _won(self, side: Floats, credit: Floats, unseen: Floats, reviewed: Domain) -> Interval:
        """Return the interval of the mean credit over the rows of a side, reviewed ones winning.

        `unseen` (m,) is the credit that a row would have, were it of the side and not yet seen.
        """
        kept = self._sample.without(reviewed)
        whole = self._sample.everything()
        credited = side * (reviewed.part + kept.part * credit)
        won = self._sample.total(credited, whole)
        lost = self._sample.total(side * (1 - credit), kept, reach=1 - unseen)
        generator = np.random.default_rng(self._seed)
        return interval(share_of(won.confidence(), lost.confidence(), generator))
