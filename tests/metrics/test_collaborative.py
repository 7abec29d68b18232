"""The collaborative metrics against the head, a literal threshold sweep, and their identities."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from modwatch.errors import MetricInputError
from modwatch.metrics import collaborative as c
from modwatch.metrics.classification import accuracy, auprc, auroc

ALL_FIVE = [
    c.oc_accuracy,
    c.oc_auroc,
    c.oc_auprc,
    c.review_efficiency,
    c.review_effectiveness,
]

#: Coarse scores, so that ties abound.
rows = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 8), st.integers(0, 5)), min_size=1, max_size=24
)
alphas = st.integers(0, 24).map(lambda k: k / 24)


def columns(drawn):
    label, prob, score = (np.array(column, float) for column in zip(*drawn, strict=True))
    return label, prob / 8, score


def literal_points(label, prob, reviewed):
    """Return (true positives, false positives) at every threshold, reviewed rows being right."""
    points = [(0.0, 0.0)]
    for threshold in [math.inf, *sorted(set(prob), reverse=True), -math.inf]:
        flagged = (prob >= threshold).astype(float)
        right = reviewed * label + (1 - reviewed) * flagged
        points.append((float((right * label).sum()), float((right * (1 - label)).sum())))
    return [*points, (float(label.sum()), float((1 - label).sum()))]


def literal_reviewed(score, k):
    """Return the expectation of the top k over random orders of equal scores, by counting."""
    part = np.zeros(score.size)
    for i, own in enumerate(score):
        above, equal = (score > own).sum(), (score == own).sum()
        part[i] = min(max((k - above) / equal, 0), 1)
    return part


def literal_auroc(label, prob, reviewed):
    points = literal_points(label, prob, reviewed)
    tp, fp = np.array(points).T
    return np.trapezoid(tp / label.sum(), fp / (1 - label).sum())


def literal_auprc(label, prob, reviewed, interpolation):
    """Integrate precision over recall segment by segment, by quadrature."""
    area, positives = 0.0, label.sum()
    points = literal_points(label, prob, reviewed)
    for (tp, fp), (next_tp, next_fp) in itertools.pairwise(points):
        if next_tp <= tp:
            continue
        true = tp + (next_tp - tp) * (np.arange(20_000) + 0.5) / 20_000
        false = fp + (next_fp - fp) * (true - tp) / (next_tp - tp)
        mean = (true / (true + false)).mean()
        precision = mean if interpolation == "davis-goadrich" else next_tp / (next_tp + next_fp)
        area += (next_tp - tp) / positives * precision
    return area


@given(rows, alphas)
def test_areas_are_those_of_a_literal_sweep_over_thresholds(drawn, alpha):
    label, prob, score = columns(drawn)
    reviewed = literal_reviewed(score, math.floor(alpha * label.size + 1e-9))
    if 0 < label.sum() < label.size:
        expected = literal_auroc(label, prob, reviewed)
        assert c.oc_auroc(label, prob, score, alpha) == pytest.approx(expected, abs=1e-12)
    if label.sum():
        for name in ("davis-goadrich", "step"):
            expected = literal_auprc(label, prob, reviewed, name)
            value = c.oc_auprc(label, prob, score, alpha, interpolation=name)
            assert value == pytest.approx(expected, abs=1e-6)


@given(rows, alphas)
def test_counts_are_those_of_the_definition(drawn, alpha):
    label, prob, score = columns(drawn)
    k = math.floor(alpha * label.size + 1e-9)
    reviewed, wrong = literal_reviewed(score, k), (prob > 0.5) != (label == 1)
    right = (reviewed + (1 - reviewed) * ~wrong).mean()
    assert c.oc_accuracy(label, prob, score, alpha) == pytest.approx(right)
    efficiency = c.review_efficiency(label, prob, score, alpha)
    effectiveness = c.review_effectiveness(label, prob, score, alpha)
    assert efficiency == (pytest.approx(reviewed[wrong].sum() / k) if k else None)
    caught = pytest.approx(reviewed[wrong].sum() / wrong.sum()) if wrong.any() else None
    assert effectiveness == caught


@given(rows, alphas)
def test_equation_2_holds_with_the_reviewed_count(drawn, alpha):
    label, prob, score = columns(drawn)
    k = math.floor(alpha * label.size + 1e-9)
    gain = k / label.size * (c.review_efficiency(label, prob, score, alpha) or 0)
    collaborative = c.oc_accuracy(label, prob, score, alpha)
    assert collaborative == pytest.approx(accuracy(label, prob) + gain)


@given(rows)
def test_no_review_leaves_the_model_and_full_review_leaves_no_error(drawn):
    label, prob, score = columns(drawn)
    assert c.oc_accuracy(label, prob, score, 0) == accuracy(label, prob)
    assert c.oc_auroc(label, prob, score, 0) == auroc(label, prob)
    assert c.oc_auprc(label, prob, score, 0) == auprc(label, prob)
    assert c.review_efficiency(label, prob, score, 0) is None
    assert c.oc_accuracy(label, prob, score, 1) == 1
    assert c.oc_auroc(label, prob, score, 1) in (1, None)
    assert c.oc_auprc(label, prob, score, 1) in (1, None)
    assert c.review_effectiveness(label, prob, score, 1) in (1, None)


@given(rows, alphas, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(drawn, alpha, random):
    shuffled = random.sample(drawn, len(drawn))
    for metric in ALL_FIVE:
        value = metric(*columns(drawn), alpha)
        other = metric(*columns(shuffled), alpha)
        assert value == (other if other is None else pytest.approx(other, abs=1e-12))


@given(rows, alphas, st.lists(st.integers(0, 3), min_size=24, max_size=24))
def test_whole_weights_repeat_rows(drawn, alpha, times):
    times = np.array(times[: len(drawn)])
    repeated = [row for row, n in zip(drawn, times, strict=True) for _ in range(n)]
    for metric in ALL_FIVE:
        value = metric(*columns(drawn), alpha, weight=times)
        other = metric(*columns(repeated), alpha) if repeated else None
        assert value == (other if other is None else pytest.approx(other, abs=1e-12))


@given(rows)
def test_collaborative_accuracy_never_falls_with_more_review(drawn):
    values = [c.oc_accuracy(*columns(drawn), k / 24) for k in range(25)]
    assert all(more >= less - 1e-12 for less, more in itertools.pairwise(values))


@given(rows, st.sampled_from(c.STRATEGIES), st.lists(st.integers(0, 3), min_size=24, max_size=24))
def test_the_curve_equals_the_single_metrics(drawn, strategy, times):
    label, prob, _ = columns(drawn)
    weight = np.array(times[: len(drawn)])
    curve = c.collaboration_curve(label, prob, strategies=[strategy], weight=weight)
    score = c.review_scores(prob, strategy, weight=weight)
    for row in curve.itertuples():
        for name, metric in zip(c.METRICS, ALL_FIVE, strict=True):
            expected, value = (
                metric(label, prob, score, row.alpha, weight=weight),
                getattr(row, name),
            )
            assert (expected is None) == (value is pd.NA)
            if expected is not None:
                assert value == pytest.approx(expected, abs=1e-12)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_without_review_scikit_learn_agrees(seed):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, 200)
    label[:2] = 0, 1
    prob = rng.random(200).round(2)
    assert auroc(label, prob) == pytest.approx(roc_auc_score(label, prob))
    expected = average_precision_score(label, prob)
    assert auprc(label, prob, interpolation="step") == pytest.approx(expected)


def test_ties_at_the_capacity_are_reviewed_in_part():
    # Two of the three places go to three equal rows, of which one is wrong.
    label, prob = [1, 1, 0, 0], [0.9, 0.1, 0.1, 0.1]
    assert c.review_efficiency(label, prob, [2, 1, 1, 1], 3 / 4) == pytest.approx((2 / 3) / 3)


def test_other_weights_are_masses_without_rounding():
    assert c.review_effectiveness([1, 0], [0, 0], [1, 0], 0.5, weight=[0.5, 0.5]) == 1
    assert c.review_effectiveness([1, 0], [0, 0], [1, 0], 0.25, weight=[0.5, 0.5]) == 0.5
    assert c.review_effectiveness([1, 0], [0, 0], [1, 0], 0.25, weight=[1, 1]) == 0  # ⌊0.5⌋


def test_the_hybrid_splits_the_capacity_between_two_lists():
    prob = np.array([0.99, 0.98, 0.97, 0.5, 0.45, 0.4, 0.01])
    for share, expected in ((0.5, {0, 1, 3, 4}), (0.25, {0, 3, 4, 5}), (1, {0, 1, 2, 3})):
        score = c.review_scores(prob, "hybrid", toxic_share=share)
        assert set(np.argsort(-score)[:4]) == expected


@pytest.mark.parametrize("metric", ALL_FIVE)
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"label": [1]}, "lengths"),
        ({"label": [0.3, 1]}, "0 and 1"),
        ({"label": [[0, 1]]}, "dimensions"),
        ({"prob": [0.5, math.nan]}, "NaN"),
        ({"prob": [0.5, 1.5]}, r"\[0, 1\]"),
        ({"prob": ["a", "b"]}, "number"),
        ({"review_score": [1, math.inf]}, "infinity"),
        ({"review_score": [1]}, "lengths"),
        ({"alpha": 1.1}, "alpha"),
        ({"alpha": math.nan}, "alpha"),
        ({"weight": [1, -1]}, "negative"),
        ({"threshold": 2}, "threshold"),
    ],
)
def test_input_that_does_not_fit_is_refused(metric, change, told):
    good = {"label": [0, 1], "prob": [0.2, 0.7], "review_score": [1, 2], "alpha": 0.5}
    with pytest.raises(MetricInputError, match=told):
        metric(**(good | change))


@pytest.mark.parametrize("metric", ALL_FIVE)
def test_an_empty_day_and_weightless_rows_have_no_value(metric):
    assert metric([], [], [], 0.5) is None
    assert metric([0, 1], [0.2, 0.7], [1, 2], 0.5, weight=[0, 0]) is None


def test_one_class_and_no_errors_have_no_value():
    assert c.oc_auroc([1, 1], [0.2, 0.7], [1, 2], 0.5) is None
    assert c.oc_auprc([0, 0], [0.2, 0.7], [1, 2], 0.5) is None
    assert c.review_effectiveness([0, 1], [0.2, 0.7], [1, 2], 0.5) is None


def test_unknown_names_are_refused():
    with pytest.raises(MetricInputError, match="strategy"):
        c.review_scores([0.5], "chance")
    with pytest.raises(MetricInputError, match="interpolation"):
        c.oc_auprc([1], [0.5], [1], 0.5, interpolation="linear")
