"""The collaborative metrics against the head, a literal threshold sweep, and their properties."""

import itertools

import numpy as np
import pandas as pd
import pytest
from brute_force import alphas, columns, every_review, places, repeated, reviewed_part, rows, times
from brute_force import auprc as literal_auprc
from brute_force import auroc as literal_auroc
from examples import examples
from hypothesis import example, given
from hypothesis import strategies as st

from modwatch.statistics.collaboration import collaborative as c
from modwatch.statistics.collaboration import model_metrics
from modwatch.statistics.collaboration.model_metrics import accuracy, auprc, auroc
from modwatch.statistics.collaboration.review_strategies import STRATEGIES, review_scores

pytestmark = pytest.mark.usefixtures("floating_point_errors_raise")

EVERY = [
    c.oc_accuracy,
    c.oc_auroc,
    c.oc_auprc,
    c.review_efficiency,
    c.review_effectiveness,
    c.remaining_cost,
]


def same(value, expected):
    """Return whether two results agree, undefined ones too."""
    if expected is None or value is None:
        return value is expected
    return value == pytest.approx(expected, abs=1e-12)


def wrong_decisions(label, prob):
    return ((prob > 0.5) != (label == 1)).astype(float)


@given(rows, alphas)
def test_areas_are_those_of_a_literal_sweep_over_thresholds(drawn, alpha):
    label, prob, score = columns(drawn)
    reviewed = reviewed_part(score, places(alpha, label.size))
    if 0 < label.sum() < label.size:
        expected = literal_auroc(label, prob, reviewed)
        value = c.oc_auroc(label, prob, score, review_fraction=alpha)
        assert value == pytest.approx(expected, abs=1e-12)
    if label.sum():
        for name in ("davis-goadrich", "step"):
            expected = literal_auprc(label, prob, reviewed, name)
            value = c.oc_auprc(label, prob, score, review_fraction=alpha, interpolation=name)
            assert value == pytest.approx(expected, abs=1e-9)


@given(rows, alphas)
def test_counts_are_those_of_the_definition(drawn, alpha):
    label, prob, score = columns(drawn)
    k = places(alpha, label.size)
    reviewed, wrong = reviewed_part(score, k), wrong_decisions(label, prob)
    caught = (reviewed * wrong).sum()
    args, at = (label, prob, score), {"review_fraction": alpha}
    assert same(c.oc_accuracy(*args, **at), 1 - (wrong.sum() - caught) / label.size)
    assert same(c.review_efficiency(*args, **at), caught / k if k else None)
    share = caught / wrong.sum() if wrong.any() else None
    assert same(c.review_effectiveness(*args, **at), share)


@examples(40)
@given(rows.map(lambda drawn: drawn[:5]), alphas)
def test_ties_count_as_the_mean_over_every_order_of_the_rows(drawn, alpha):
    label, prob, score = columns(drawn)
    wrong, k = wrong_decisions(label, prob), places(alpha, label.size)
    caught = np.mean([(reviewed * wrong).sum() for reviewed in every_review(score, k)])
    expected = 1 - (wrong.sum() - caught) / label.size
    args, at = (label, prob, score), {"review_fraction": alpha}
    assert c.oc_accuracy(*args, **at) == pytest.approx(expected)
    if k:
        assert c.review_efficiency(*args, **at) == pytest.approx(caught / k)
    if wrong.any():
        expected = caught / wrong.sum()
        assert c.review_effectiveness(*args, **at) == pytest.approx(expected)


@given(rows)
def test_no_review_leaves_the_model_and_full_review_leaves_no_error(drawn):
    label, prob, score = columns(drawn)
    assert c.oc_accuracy(label, prob, score, review_fraction=0) == accuracy(label, prob)
    assert c.oc_auroc(label, prob, score, review_fraction=0) == auroc(label, prob)
    assert c.oc_auprc(label, prob, score, review_fraction=0) == auprc(label, prob)
    assert c.review_efficiency(label, prob, score, review_fraction=0) is None
    assert c.review_effectiveness(label, prob, score, review_fraction=0) in (0, None)
    assert c.oc_accuracy(label, prob, score, review_fraction=1) == 1
    assert c.oc_auroc(label, prob, score, review_fraction=1) in (1, None)
    assert c.oc_auprc(label, prob, score, review_fraction=1) in (1, None)
    assert c.review_effectiveness(label, prob, score, review_fraction=1) in (1, None)
    errors = 1 - accuracy(label, prob)
    assert c.review_efficiency(label, prob, score, review_fraction=1) == pytest.approx(errors)


@given(rows, st.floats(0, 1), times)
def test_whole_weights_repeat_rows(drawn, alpha, times):
    other = repeated(drawn, times)
    for metric in EVERY:
        value = metric(*columns(drawn), review_fraction=alpha, sample_weight=times[: len(drawn)])
        assert same(value, metric(*columns(other), review_fraction=alpha) if other else None)


@given(rows, alphas, times)
def test_weights_on_another_scale_are_masses_of_the_same_rows(drawn, alpha, times):
    weight = np.array(times[: len(drawn)])
    total = int(weight.sum())
    alpha = places(alpha, total) / total if total else 0  # no place is lost to rounding
    for metric in EVERY:
        whole = metric(*columns(drawn), review_fraction=alpha, sample_weight=weight)
        assert same(metric(*columns(drawn), review_fraction=alpha, sample_weight=weight / 7), whole)


@given(rows, times)
def test_more_review_never_makes_it_worse(drawn, times):
    weight = np.array(times[: len(drawn)]) + 0.5
    for metric in (c.oc_accuracy, c.oc_auroc, c.oc_auprc, c.review_effectiveness):
        values = [
            metric(*columns(drawn), review_fraction=k / 8, sample_weight=weight) for k in range(9)
        ]
        if values[0] is not None:
            assert all(more >= less - 1e-12 for less, more in itertools.pairwise(values))


@given(rows, st.floats(0, 1), st.lists(st.floats(1e-100, 1e100), min_size=24, max_size=24))
@example([(1, 0, 0)], 5e-324, [1.5])
def test_no_result_leaves_its_range_whatever_the_weights(drawn, alpha, weights):
    args, weight = columns(drawn), weights[: len(drawn)]
    for metric in EVERY:
        value = metric(*args, review_fraction=alpha, sample_weight=weight)
        assert value is None or 0 <= value <= 1
        if metric is not c.review_efficiency:
            whole = 0 if metric is c.remaining_cost else 1
            assert metric(*args, review_fraction=1, sample_weight=weight) in (whole, None)


@given(rows, st.sampled_from(STRATEGIES), times)
def test_the_curve_equals_the_single_metrics(drawn, strategy, times):
    label, prob, _ = columns(drawn)
    weight = np.array(times[: len(drawn)])
    curve = c.collaboration_curve(label, prob, strategies=[strategy], sample_weight=weight)
    score = review_scores(prob, strategy, sample_weight=weight)
    for row in curve.itertuples():
        for name, metric in zip(c.METRICS, EVERY, strict=True):
            value = getattr(row, name)
            expected = metric(label, prob, score, review_fraction=row.alpha, sample_weight=weight)
            assert same(None if value is pd.NA else value, expected)


@pytest.mark.parametrize("alpha", [0, 0.02, 0.2, 0.5, 1])
def test_closed_forms_of_a_calibrated_model_with_evenly_spread_scores(alpha):
    # p uniform on [0, 1], each row standing there as both labels, weighing p and 1−p.
    grid = (np.arange(1000) + 0.5) / 1000
    label, prob = np.repeat([1.0, 0.0], 1000), np.tile(grid, 2)
    args = (label, prob, review_scores(prob, "uncertainty"))
    at = {"review_fraction": alpha, "sample_weight": np.concatenate([grid, 1 - grid])}
    efficiency = c.review_efficiency(*args, **at)
    assert efficiency == (pytest.approx(1 / 2 - alpha / 4, abs=1e-5) if alpha else None)
    expected = 3 / 4 + alpha / 2 - alpha**2 / 4
    assert c.oc_accuracy(*args, **at) == pytest.approx(expected, abs=1e-5)
    assert c.oc_auroc(*args, **at) == pytest.approx(1 - (1 - alpha) ** 3 / 6, abs=1e-5)


def test_other_weights_are_masses_without_rounding():
    for alpha, weight, expected in ((0.5, 0.5, 1), (0.25, 0.5, 0.5), (0.25, 1, 0)):  # ⌊0.5⌋ = 0
        at = {"review_fraction": alpha, "sample_weight": [weight, weight]}
        assert c.review_effectiveness([1, 0], [0, 0], [1, 0], **at) == expected


def test_the_curve_has_a_row_for_every_strategy_and_fraction():
    curve = c.collaboration_curve([1, 0], [0.9, 0.2])
    asked = list(itertools.product(["uncertainty", "toxicity"], c.REVIEW_FRACTIONS))
    assert list(zip(curve["strategy"], curve["alpha"], strict=True)) == asked
    assert list(curve.columns) == ["strategy", "alpha", *c.METRICS]
    assert c.collaboration_curve([1, 0], [0.9, 0.2], review_fractions=[]).empty


# --- what Kivlichan et al. (2021) state ---------------------------------------------------------


@given(rows, alphas, times)
def test_equation_2_holds_with_alpha_for_masses(drawn, alpha, times):
    weight = np.array(times[: len(drawn)]) + 0.5
    gain = alpha * (
        c.review_efficiency(*columns(drawn), review_fraction=alpha, sample_weight=weight) or 0
    )
    expected = accuracy(*columns(drawn)[:2], sample_weight=weight) + gain
    assert c.oc_accuracy(
        *columns(drawn), review_fraction=alpha, sample_weight=weight
    ) == pytest.approx(expected)


@given(rows)
def test_mean_effectiveness_over_capacities_is_the_calibration_auroc(drawn):
    label, prob, _ = columns(drawn)
    area = model_metrics.calibration_auroc(label, prob)
    if area is None:
        return
    score, n = review_scores(prob, "uncertainty"), label.size
    caught = [
        c.review_effectiveness(label, prob, score, review_fraction=k / n) for k in range(n + 1)
    ]
    errors = 1 - accuracy(label, prob)
    assert np.trapezoid(caught, dx=1 / n) == pytest.approx(errors / 2 + (1 - errors) * area)
