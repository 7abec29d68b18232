"""Every metric of an audit as a function of the shares of positives on both sides.

Metrics of both sides get their interval by the method of variance estimates recovery (Zou & Donner
2008), which keeps the asymmetry of both. Values and ends may have an axis of repetitions (…).
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from modwatch.statistics.arguments import Floats
from modwatch.statistics.audit.share_interval import IntervalEstimate, SideShare

#: Comments: what is rounded to whole comments is not rounded further for this.
_ROUNDING = 1e-6

#: Comments by which a count moves at least, or to its end, in the interval of a quotient.
_FEW = 3.0


def _own_share(side: SideShare) -> IntervalEstimate:
    return side


def _recall(flagged: SideShare, unflagged: SideShare) -> IntervalEstimate:
    """TP/(TP+FN), unbiased to second order."""
    tp, fn = flagged.comments * flagged.value, unflagged.comments * unflagged.value
    plain = _quotient(tp, tp + fn)
    spread = _relative_variance(flagged), _relative_variance(unflagged)
    bias = plain * (1 - plain) ** 2 * spread[1] - plain**2 * (1 - plain) * spread[0]
    low, high = _odds_ends(flagged, unflagged, 0.0)
    value = np.clip(plain - bias, low, high)
    error = plain * (1 - plain) * np.sqrt(spread[0] + spread[1])
    return IntervalEstimate(value=value, low=low, high=high, error=error)


def _f1(flagged: SideShare, unflagged: SideShare) -> IntervalEstimate:
    """2TP/(2TP+FP+FN) = 2TP/(flagged + TP + FN)."""
    tp, fn = flagged.comments * flagged.value, unflagged.comments * unflagged.value
    value = _quotient(2 * tp, flagged.comments + tp + fn)
    low, high = _odds_ends(flagged, unflagged, float(flagged.comments))
    low, high = 2 * low, 2 * high
    # d/dTP and d/dFN of the quotient.
    total = np.maximum(flagged.comments + tp + fn, 1e-100)
    by_tp, by_fn = 2 * (flagged.comments + fn) / total**2, 2 * tp / total**2
    error = np.sqrt(
        (by_tp * flagged.comments) ** 2 * flagged.variance
        + (by_fn * unflagged.comments) ** 2 * unflagged.variance
    )
    low, high = np.minimum(low, value), np.clip(high, value, 1)
    return IntervalEstimate(value=value, low=low, high=high, error=error)


def _specificity(flagged: SideShare, unflagged: SideShare) -> IntervalEstimate:
    """TN/(TN+FP): recall with the roles of the sides and of the labels exchanged."""
    return _recall(_negatives(unflagged), _negatives(flagged))


def _false_positive_rate(flagged: SideShare, unflagged: SideShare) -> IntervalEstimate:
    """FP/(FP+TN) = 1 − specificity."""
    return _recall(_negatives(flagged), _negatives(unflagged))


def _negatives(side: SideShare) -> SideShare:
    """Return the share of negatives."""
    return replace(side, value=1 - side.value, low=1 - side.high, high=1 - side.low)


def _accuracy(flagged: SideShare, unflagged: SideShare) -> IntervalEstimate:
    """1 − (FP + FN)/N."""
    total = max(flagged.comments + unflagged.comments, 1)
    wrong = (flagged.comments * (1 - flagged.value) + unflagged.comments * unflagged.value) / total
    below, above = _distances(flagged), _distances(unflagged)[::-1]
    return _sum(1 - wrong, (below, above), (flagged, unflagged), total)


def _prevalence(flagged: SideShare, unflagged: SideShare) -> IntervalEstimate:
    """(TP + FN)/N: the share of positives among all comments."""
    total = max(flagged.comments + unflagged.comments, 1)
    value = (flagged.comments * flagged.value + unflagged.comments * unflagged.value) / total
    distances = _distances(flagged), _distances(unflagged)
    return _sum(value, distances, (flagged, unflagged), total)


def _distances(side: SideShare) -> tuple[Floats, Floats]:
    """Return how far the ends lie below and above the value, in comments."""
    return side.comments * (side.value - side.low), side.comments * (side.high - side.value)


def _sum(
    value: Floats,
    distances: tuple[tuple[Floats, Floats], tuple[Floats, Floats]],
    sides: tuple[SideShare, SideShare],
    total: int,
) -> IntervalEstimate:
    """Return a sum of independent parts: squared distances to the ends add up."""
    below, above = zip(*distances, strict=True)
    variance = sum(side.comments**2 * side.variance for side in sides)
    low, high = total * value - np.hypot(*below), total * value + np.hypot(*above)
    low, high = np.floor(low + _ROUNDING), np.ceil(high - _ROUNDING)
    return IntervalEstimate(
        value=value,
        low=np.clip(low / total, 0, 1),
        high=np.clip(high / total, 0, 1),
        error=np.sqrt(variance) / total,
    )


def _odds_ends(flagged: SideShare, unflagged: SideShare, fixed: float) -> tuple[Floats, Floats]:
    """Return the ends of TP/(fixed + TP + FN), from the logarithm of (fixed + FN)/TP.

    Each count moves from its value towards its end by its part of the distance, but by at least
    `_FEW` comments or to its end: counts are whole, and few do not add up like variances.
    """
    tp, fn = (
        side.comments * np.stack([side.value, side.low, side.high]) for side in (flagged, unflagged)
    )
    few, many = _moved(tp, fixed + fn, fewer=True), _moved(tp, fixed + fn, fewer=False)
    low = np.maximum(np.minimum(few[0], tp[0] - _FEW), tp[1])
    most = np.minimum(np.maximum(few[1] - fixed, fn[0] + _FEW), fn[2])
    high = np.minimum(np.maximum(many[0], tp[0] + _FEW), tp[2])
    least = np.maximum(np.minimum(many[1] - fixed, fn[0] - _FEW), fn[1])
    return (
        np.where(tp[1] > 0, _quotient(low, fixed + low + most), 0.0),
        np.where(tp[2] > 0, _quotient(high, fixed + high + least), 0.0),
    )


def _moved(part: Floats, other: Floats, *, fewer: bool) -> tuple[Floats, Floats]:
    """Return both counts where their quotient is smallest or largest; each is value, low, high."""
    # A count of 0 has no logarithm; the end is then decided by the other count.
    one, two = (np.log(np.maximum(count, 1e-300)) for count in (part, other))
    by = one[1] - one[0] if fewer else one[2] - one[0]
    more = two[2] - two[0] if fewer else two[1] - two[0]
    distance = np.maximum(np.hypot(by, more), 1e-300)
    return np.exp(one[0] + by * np.abs(by) / distance), np.exp(
        two[0] + more * np.abs(more) / distance
    )


def _relative_variance(side: SideShare) -> Floats:
    """Return the squared coefficient of variation; 0 where there are no positives."""
    return _quotient(side.variance, side.value**2)


def _quotient(part: Floats, whole: Floats) -> Floats:
    part, whole = np.broadcast_arrays(part, whole)  # one may be known, as of all that are labelled
    return np.divide(part, whole, out=np.zeros(whole.shape), where=whole > 0)


#: By metric: a function of one side, or of the flagged and the unflagged side.
METHODS: dict[str, Callable[..., IntervalEstimate]] = {
    "prevalence_unflagged": _own_share,
    "precision": _own_share,
    "recall": _recall,
    "f1": _f1,
    "accuracy": _accuracy,
    "prevalence": _prevalence,
    "specificity": _specificity,
    "false_positive_rate": _false_positive_rate,
    "negative_predictive_value": _negatives,
}

#: The metrics of an audit.
METRICS = tuple(METHODS)

#: By metric: its sides, in the order in which `METHODS` takes them, and whether it rises (1) or
#: falls (−1) with the share of positives on each.
SIDES_OF: dict[str, dict[str, int]] = {
    "prevalence_unflagged": {"unflagged": 1},
    "negative_predictive_value": {"unflagged": -1},
    "precision": {"flagged": 1},
    **{
        metric: {"flagged": 1, "unflagged": -1}
        for metric in ("recall", "f1", "accuracy", "specificity")
    },
    "prevalence": {"flagged": 1, "unflagged": 1},
    "false_positive_rate": {"flagged": -1, "unflagged": 1},
}
