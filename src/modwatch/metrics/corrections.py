"""Each metric without the moderators' errors, given how often they err.

Model: each label is wrong with probability e, whatever the comment's true label and score. Then a
share m of comments is seen as m' = m(1−2e) + e, so that m = (m' − e)/(1−2e): Rogan & Gladen (1978)
with sensitivity and specificity 1−e. Accuracy is such a share, too: a wrong label turns a right
decision into a wrong one and back. Of all comments, the shares k are reviewed and F flagged; π' is
the prevalence as it is seen:

    prevalence, accuracy, precision_flagged, review_efficiency
                          (m' − e)/(1−2e)
    recall_flagged        (T' − eF)/(T' + M' − e): toxic flagged T', toxic missed M'
    review_effectiveness  (R' − ek)/(R' + U' − e): errors reviewed R', errors not reviewed U'
    oc_accuracy           1 − (U' − e(1−k))/(1−2e) − ek. The metric takes reviewers to be always
                          right; here they err at e like everybody
    auroc                 ½ + (m' − ½)/c, c = (π'−e)(1−e−π')/((1−2e)π'(1−π'))
    calibration_auroc     the same with the share of wrong decisions, 1 − accuracy, for π'

(for the last two, Menon et al. 2015, section 4). Where the top's labels err at another rate than
the rest's, each metric takes the mean rate of the comments that it is about. That is exact for what
is reviewed and what is not; a metric over both is off by 2·cov(e, m) over the comments, which a
table of estimates does not tell.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from modwatch.errors import MetricInputError
from modwatch.metrics.inputs import Floats
from modwatch.metrics.labelled import LabelledDay
from modwatch.metrics.moderator_error import ErrorRate, ModeratorError

_DRAWS = 2000
_POINTS = (np.arange(_DRAWS) + 0.5) / _DRAWS
_NORMAL = np.asarray(special.ndtri(_POINTS), dtype=np.float64)
_Z = float(special.ndtri(0.975))


@dataclass(frozen=True, kw_only=True)
class Totals:
    """What is known of all the comments that a table of estimates measures."""

    comments: int
    #: prob > threshold.
    flagged: int
    #: Reviewed whole, for their review score.
    top: int
    #: The strategy that chose the top.
    strategy: str

    def __post_init__(self) -> None:
        if not 0 <= max(self.flagged, self.top) <= self.comments or min(self.flagged, self.top) < 0:
            raise MetricInputError(
                f"{self.flagged} flagged and {self.top} top comments of {self.comments} cannot be; "
                "pass counts of the same comments"
            )

    @classmethod
    def of(cls, days: Sequence[LabelledDay], *, threshold: float, strategy: str) -> "Totals":
        """Return the totals of some days.

        >>> from modwatch.metrics.labelled import fully_labelled
        >>> day = fully_labelled(np.array([0.9, 0.6]), np.array([1, 0]))
        >>> Totals.of([day], threshold=0.7, strategy="uncertainty").flagged
        1
        """
        return cls(
            comments=sum(len(day.prob) for day in days),
            flagged=sum(int((np.asarray(day.prob, np.float64) > threshold).sum()) for day in days),
            top=sum(int((day.stratum == 0).sum()) for day in days),
            strategy=strategy,
        )


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Draws (d,) of what one metric is corrected from; the first of each is the value itself."""

    #: The estimate, and another that its formula needs.
    value: Floats
    other: Floats
    #: Error rate of all labels, of the reviewed and of the unreviewed.
    error: Floats
    error_reviewed: Floats
    error_unreviewed: Floats
    #: Part of all comments that is flagged, and that is reviewed.
    flagged: float
    reviewed: float
    #: How far the share of wrong labels lies from the rate by chance, for a part of all comments.
    chance: Callable[[Floats, float], Floats]


class Draws:
    """Draws of estimates and error rates."""

    def __init__(self, error: ModeratorError, totals: Totals, seed: int) -> None:
        self._totals = totals
        self._generator = np.random.default_rng(seed)
        self._top = self._error(error.top)
        self._rest = self._top if error.rest is error.top else self._error(error.rest)

    def of(self, row: dict[Any, Any], other: dict[Any, Any]) -> Seen:
        """Return draws for one estimate, a row of a table of estimates, and the other it needs."""
        size, top = max(self._totals.comments, 1), self._totals.top
        reviewed = 0.0 if row["alpha"] is None else float(row["alpha"]) * size
        # Of another strategy's reviewed comments it is not known how many are of the top.
        shared = min(reviewed, top) if row["strategy"] == self._totals.strategy else None
        everybody = self._mixed(top, size - top)
        return Seen(
            value=self._estimate(row),
            other=self._estimate(other),
            error=everybody,
            error_reviewed=everybody if shared is None else self._mixed(shared, reviewed - shared),
            error_unreviewed=everybody
            if shared is None
            else self._mixed(top - shared, size - reviewed - (top - shared)),
            flagged=self._totals.flagged / size,
            reviewed=reviewed / size,
            chance=self._chance,
        )

    def _estimate(self, row: dict[Any, Any]) -> Floats:
        """Return draws of an estimate, half a normal distribution to either side."""
        value, low, high = (float(row[name]) for name in ("value", "low", "high"))
        z = self._generator.permutation(_NORMAL)
        drawn = value + z / _Z * np.where(z < 0, value - low, high - value)
        return np.asarray(np.clip(np.append(value, drawn), 0, 1))

    def _error(self, error: ErrorRate) -> Floats:
        drawn = np.quantile(error.confidence, _POINTS)
        return np.append(error.value or 0.0, self._generator.permutation(drawn))

    def _mixed(self, top: float, rest: float) -> Floats:
        """Return draws of the error rate of so many comments of the top and of the rest."""
        mass = top + rest
        return (top * self._top + rest * self._rest) / mass if mass > 0 else self._rest

    def _chance(self, error: Floats, part: float) -> Floats:
        comments = max(part * self._totals.comments, 1.0)
        z = np.append(0.0, self._generator.permutation(_NORMAL))
        return np.asarray(z * np.sqrt(error * (1 - error) / comments))


def _share(seen: Seen) -> Floats:
    return _true(seen.value, seen.error, 1.0, seen)


def _precision(seen: Seen) -> Floats:
    return _true(seen.value, seen.error, seen.flagged, seen)


def _efficiency(seen: Seen) -> Floats:
    return _true(seen.value, seen.error_reviewed, seen.reviewed, seen)


def _recall(seen: Seen) -> Floats:
    """`other` is the precision."""
    return _part_of_all(seen, seen.flagged, seen.error, seen.error)


def _effectiveness(seen: Seen) -> Floats:
    """`other` is the Review Efficiency."""
    return _part_of_all(seen, seen.reviewed, seen.error_reviewed, seen.error_unreviewed)


def _oc_accuracy(seen: Seen) -> Floats:
    left = 1 - seen.reviewed
    missed = _true((1 - seen.value) / max(left, 1e-12), seen.error_unreviewed, left, seen)
    return 1 - left * missed - seen.reviewed * seen.error_reviewed


def _auroc(seen: Seen) -> Floats:
    """`other` is the prevalence."""
    return _area(seen, seen.other)


def _calibration_auroc(seen: Seen) -> Floats:
    """`other` is the accuracy."""
    return _area(seen, 1 - seen.other)


def _true(share: Floats, error: Floats, part: float, seen: Seen) -> Floats:
    """Return the true share of something among a part of all comments."""
    return _divide(share - seen.chance(error, part) - error, 1 - 2 * error)


def _part_of_all(seen: Seen, part: float, error: Floats, other_error: Floats) -> Floats:
    """Return which part of all events lies in a part of the comments.

    `value` is the same as seen, `other` the rate of events seen in that part.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        elsewhere = seen.other * part * (1 / seen.value - 1)
    inside = part * _true(seen.other, error, part, seen)
    left = 1 - part
    outside = left * _true(elsewhere / max(left, 1e-12), other_error, left, seen)
    return _divide(inside, inside + outside)


def _area(seen: Seen, positive: Floats) -> Floats:
    """Return the area under the ROC curve, `positive` being the share of positive labels seen.

    The score of a label that was turned round lies anywhere: uniform among the others' ranks.
    """
    e, rarer = seen.error, np.minimum(positive, 1 - positive)
    spread = np.sqrt(1 / 12 + (seen.value - 0.5) ** 2)
    area = seen.value - _divide(spread * seen.chance(e, 1.0), rarer)
    kept = np.maximum(positive - e, 0) * np.maximum(1 - e - positive, 0)
    return 0.5 + _divide((area - 0.5) * (1 - 2 * e) * positive * (1 - positive), kept)


def _divide(above: Floats, below: Floats) -> Floats:
    """Return the quotient, NaN where errors could explain all that was seen."""
    quotient = np.full(np.shape(above), np.nan)
    np.divide(above, below, out=quotient, where=below > 0)
    return quotient


#: The formula of each metric that has one, and the other estimate that it needs.
FORMULAS: dict[str, tuple[Callable[[Seen], Floats], str | None]] = {
    "prevalence": (_share, None),
    "accuracy": (_share, None),
    "precision_flagged": (_precision, None),
    "recall_flagged": (_recall, "precision_flagged"),
    "auroc": (_auroc, "prevalence"),
    "calibration_auroc": (_calibration_auroc, "accuracy"),
    "oc_accuracy": (_oc_accuracy, None),
    "review_efficiency": (_efficiency, None),
    "review_effectiveness": (_effectiveness, "review_efficiency"),
}
