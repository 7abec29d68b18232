"""The collaborative metrics as their definitions read, one threshold and one row at a time."""

import itertools
import math

import numpy as np
from hypothesis import strategies as st
from scipy.integrate import quad

#: Rows of label, eighths of a probability and review score: so coarse that ties abound.
rows = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 8), st.integers(0, 5)), min_size=1, max_size=24
)
alphas = st.integers(0, 24).map(lambda k: k / 24)
#: How often each row stands there, if `repeated`.
times = st.lists(st.integers(0, 3), min_size=24, max_size=24)


def columns(drawn):
    """Return label, probability and review score."""
    label, prob, score = (np.array(column, float) for column in zip(*drawn, strict=True))
    return label, prob / 8, score


def repeated(drawn, times):
    """Return each row as often as `times` says."""
    return [row for row, n in zip(drawn, times, strict=False) for _ in range(n)]


def places(alpha, size):
    """Return ⌊αn⌋."""
    return math.floor(alpha * size + 1e-9)


def reviewed_part(score, k):
    """Return the chance of each row to be among the top k when equal scores are in random order."""
    part = np.zeros(score.size)
    for i, own in enumerate(score):
        above, equal = (score > own).sum(), (score == own).sum()
        part[i] = min(max((k - above) / equal, 0), 1)
    return part


def every_review(score, k):
    """Yield who is reviewed, for every order of the rows in which ties may be broken."""
    for order in itertools.permutations(range(score.size)):
        top = sorted(order, key=lambda i: -score[i])[:k]  # the sort is stable
        yield np.isin(np.arange(score.size), top).astype(float)


def curve_points(label, prob, reviewed):
    """Return (true positives, false positives) at every threshold, reviewed rows being right."""
    points = [(0.0, 0.0)]
    for threshold in [math.inf, *sorted(set(prob), reverse=True), -math.inf]:
        flagged = (prob >= threshold).astype(float)
        positive = reviewed * label + (1 - reviewed) * flagged
        points.append((float((positive * label).sum()), float((positive * (1 - label)).sum())))
    return [*points, (float(label.sum()), float((1 - label).sum()))]


def auroc(label, prob, reviewed):
    """Return the area by trapezes."""
    tp, fp = np.array(curve_points(label, prob, reviewed)).T
    return np.trapezoid(tp / label.sum(), fp / (1 - label).sum())


def auprc(label, prob, reviewed, interpolation):
    """Return the area of precision over recall, each segment by numerical integration."""
    area = 0.0
    points = curve_points(label, prob, reviewed)
    for (tp, fp), (next_tp, next_fp) in itertools.pairwise(points):
        if next_tp <= tp:
            continue
        if interpolation == "step":
            area += (next_tp - tp) * next_tp / (next_tp + next_fp)
            continue
        slope = (next_fp - fp) / (next_tp - tp)
        area += quad(precision_at, tp, next_tp, args=(tp, fp, slope))[0]
    return area / label.sum()


def precision_at(true, tp, fp, slope):
    """Return the precision on a segment from (tp, fp) where `true` positives are found."""
    return true / (true + fp + slope * (true - tp))
