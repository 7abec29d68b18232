"""Who is reviewed at a capacity, and the areas of segments."""

import numpy as np
import pytest
from brute_force import alphas, columns, places, precision_at, reviewed_part, rows
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from sklearn.metrics import average_precision_score, roc_auc_score

from modwatch.statistics.collaboration.ranking import (
    Sweep,
    davis_goadrich,
    dot,
    mean,
    reviews,
    slots,
)

masses = st.floats(0, 1e6)


@given(rows, alphas)
def test_the_reviewed_part_is_the_chance_of_a_place(drawn, alpha):
    *_, score = columns(drawn)
    (review,) = reviews(score, [alpha], np.ones(score.size))
    expected = reviewed_part(score, places(alpha, score.size))
    assert review.reviewed(score) == pytest.approx(expected)


@given(rows, st.floats(0, 1), st.lists(st.floats(1e-6, 1e6), min_size=24, max_size=24))
def test_the_reviewed_mass_is_the_capacity(drawn, alpha, weights):
    *_, score = columns(drawn)
    weight = np.array(weights[: score.size])
    (review,) = reviews(score, [alpha], weight)
    total = float(weight.sum())
    whole = (weight == np.rint(weight)).all()
    expected = slots(alpha, total) if whole else alpha * total
    assert dot(weight, review.reviewed(score)) == pytest.approx(expected, abs=1e-12 * weight.sum())


def test_weights_too_light_to_add_anything_are_no_trouble():
    score, weight = np.array([2.0, 1.0]), np.array([1e100, 1.0])
    half, everything = reviews(score, [0.5, 1], weight)
    assert half.reviewed(score).tolist() == [0.5, 0]
    assert everything.reviewed(score).tolist() == [1, 1]


def test_all_and_none():
    none, everything = reviews(np.array([1.0, 2.0]), [0, 1], np.array([0.3, 0.6]))
    assert none.reviewed(np.array([1.0, 2.0])).tolist() == [0, 0]
    assert everything.reviewed(np.array([1.0, 2.0])).tolist() == [1, 1]
    assert reviews(np.array([]), [0.5], np.array([]))[0].share == 0


@pytest.mark.parametrize("total", [7, 100, 1_000, 12_345])
def test_a_share_of_whole_comments_is_not_lost_to_rounding(total):
    assert all(slots(k / total, total) == k for k in range(total + 1))
    assert slots(1, 5e15) == 5e15


# Slopes up to a thousand: of steeper segments the quadrature misses the beginning.
@given(*[st.floats(0.1, 100)] * 2, *[st.floats(0, 100)] * 2)
def test_a_segment_is_the_integral_of_precision(gain, true, false, inside):
    slope = inside / gain
    expected = quad(precision_at, true, true + gain, args=(true, false, slope))[0]
    args = (np.array([value]) for value in (gain, true, false, inside))
    assert davis_goadrich(*args)[0] == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_a_segment_without_positives_has_no_area():
    zero, one = np.zeros(1), np.ones(1)
    assert davis_goadrich(zero, one, one, one).tolist() == [0]
    assert davis_goadrich(zero, zero, zero, zero).tolist() == [0]


def test_a_curve_of_many_groups_is_added_up_from_all_blocks():
    rng = np.random.default_rng(0)
    label, score = rng.integers(0, 2, 150_000).astype(float), rng.random(150_000)
    weight = rng.random(150_000)
    curve = Sweep(label, score).curve(weight, np.zeros(150_000))
    expected = roc_auc_score(label, score, sample_weight=weight)
    assert curve.auroc() == pytest.approx(expected, abs=1e-12)
    expected = average_precision_score(label, score, sample_weight=weight)
    assert curve.auprc("step") == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.tuples(st.floats(0, 1), masses), max_size=20))
def test_a_mean_lies_between_the_ends(drawn):
    value, weight = (
        (np.array(column) for column in zip(*drawn, strict=True))
        if drawn
        else (np.zeros(0), np.zeros(0))
    )
    found = mean(value, weight)
    if found is None:
        assert not weight.any()
    else:
        assert 0 <= found <= 1
        assert found == pytest.approx(np.average(value, weights=weight), abs=1e-12)
