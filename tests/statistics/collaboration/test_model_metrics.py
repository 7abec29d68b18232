"""Metrics of the model alone."""

import numpy as np
import pandas as pd
import pytest
from brute_force import columns, repeated, rows, times
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

from modwatch.common.errors import MetricInputError
from modwatch.statistics.collaboration import model_metrics as c

pytestmark = pytest.mark.usefixtures("floating_point_errors_raise")

METRICS = [c.accuracy, c.recall, c.precision, c.auroc, c.auprc]
CALIBRATION_METRICS = [
    c.calibration_auroc,
    c.calibration_auprc,
    c.brier_score,
    c.expected_calibration_error,
]


def test_values_in_the_head():
    label, prob = [1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1]
    assert c.accuracy(label, prob) == 0.5
    assert c.recall(label, prob) == 0.5
    assert c.precision(label, prob) == 0.5
    assert c.prevalence(label) == 0.5
    assert c.auroc(label, prob) == 0.75
    assert c.accuracy(label, prob, threshold=0.3) == 0.75


def test_nothing_to_divide_by_has_no_value():
    assert c.recall([0], [0.9]) is None
    assert c.precision([1], [0.1]) is None
    assert c.auroc([1, 1], [0.1, 0.2]) is None
    assert c.auprc([0], [0.1]) is None
    assert c.accuracy([], []) is None
    assert c.prevalence([]) is None


@given(rows, times)
def test_scikit_learn_agrees(drawn, times):
    label, prob, _ = columns(drawn)
    weight = np.array(times[: len(drawn)]) + 0.25
    flagged = prob > 0.5
    assert c.accuracy(label, prob, sample_weight=weight) == pytest.approx(
        sk.accuracy_score(label, flagged, sample_weight=weight)
    )
    for ours, theirs in ((c.recall, sk.recall_score), (c.precision, sk.precision_score)):
        expected = theirs(label, flagged, sample_weight=weight, zero_division=np.nan)
        value = ours(label, prob, sample_weight=weight)
        assert value == (None if np.isnan(expected) else pytest.approx(expected))
    if 0 < label.sum() < label.size:
        expected = sk.roc_auc_score(label, prob, sample_weight=weight)
        assert c.auroc(label, prob, sample_weight=weight) == pytest.approx(expected)
        expected = sk.average_precision_score(label, prob, sample_weight=weight)
        value = c.auprc(label, prob, sample_weight=weight, interpolation="step")
        assert value == pytest.approx(expected)


@pytest.mark.parametrize("metric", [*METRICS, *CALIBRATION_METRICS])
def test_soft_labels_need_a_threshold(metric):
    soft, prob = np.array([0.0, 0.2, 0.7, 0.9]), [0.1, 0.6, 0.4, 0.8]
    with pytest.raises(MetricInputError, match="label_threshold"):
        metric(soft, prob)
    for cut in (0, 0.7):
        assert metric(soft, prob, label_threshold=cut) == metric((soft > cut).astype(int), prob)


def test_prevalence_depends_on_the_label_threshold():
    soft = [0.0, 0.2, 0.7, 0.9]
    assert c.prevalence(soft, label_threshold=0) == 0.75
    assert c.prevalence(soft, label_threshold=0.7) == 0.25


pairs = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 20)), min_size=1, max_size=20)


def columns_of_pairs(drawn):
    label, prob = (np.array(column, float) for column in zip(*drawn, strict=True))
    return label, prob / 20


def test_a_sure_and_right_model_is_perfect():
    label, prob = [0, 1], [0.0, 1.0]
    assert c.brier_score(label, prob) == 0
    assert c.expected_calibration_error(label, prob) == 0
    assert c.calibration_auroc(label, prob) is None
    assert c.calibration_auprc(label, prob) is None


@given(pairs)
def test_the_error_is_the_literal_sum_over_bins(drawn):
    label, prob = columns_of_pairs(drawn)
    confidence, right = np.maximum(prob, 1 - prob), (prob > 0.5) == (label == 1)
    expected = 0.0
    for i in range(15):
        inside = (confidence > i / 15) & (confidence <= (i + 1) / 15)
        if inside.any():
            expected += inside.mean() * abs(confidence[inside].mean() - right[inside].mean())
    assert c.expected_calibration_error(label, prob) == pytest.approx(expected)


@given(pairs, st.lists(st.integers(0, 3), min_size=20, max_size=20))
def test_whole_weights_repeat_rows_in_calibration(drawn, times):
    other = repeated(drawn, times)
    for metric in CALIBRATION_METRICS:
        value = metric(*columns_of_pairs(drawn), sample_weight=times[: len(drawn)])
        expected = metric(*columns_of_pairs(other)) if other else None
        assert value == (None if expected is None else pytest.approx(expected, abs=1e-12))


@given(pairs, st.lists(st.floats(1e-9, 1e9), min_size=20, max_size=20))
def test_no_calibration_leaves_its_range_whatever_the_weights(drawn, weights):
    for metric in CALIBRATION_METRICS:
        value = metric(*columns_of_pairs(drawn), sample_weight=weights[: len(drawn)])
        assert value is None or 0 <= value <= 1


@given(pairs)
def test_scikit_learn_agrees_on_brier_and_on_how_uncertainty_ranks_errors(drawn):
    label, prob = columns_of_pairs(drawn)
    if 0 < label.sum() < label.size:
        assert c.brier_score(label, prob) == pytest.approx(brier_score_loss(label, prob))
    wrong = (prob > 0.5) != (label == 1)
    if 0 < wrong.sum() < wrong.size:
        uncertainty = prob * (1 - prob)
        expected = roc_auc_score(wrong, uncertainty)
        assert c.calibration_auroc(label, prob) == pytest.approx(expected)
        expected = average_precision_score(wrong, uncertainty)
        value = c.calibration_auprc(label, prob, interpolation="step")
        assert value == pytest.approx(expected)


@given(st.integers(1, 100), st.data())
def test_bins_are_closed_at_the_upper_end_that_the_curve_prints(bins, data):
    at = data.draw(st.integers(0, bins - 1))
    curve = c.reliability_curve([], [], n_bins=bins)
    lower, upper = curve.loc[at, "lower"], curve.loc[at, "upper"]
    assert c.bin_of(
        np.array([upper, np.nextafter(np.float32(lower), np.float32(1))]), bins
    ).tolist() == [at, at]
    assert c.bin_of(np.array([0.0, 1.0]), bins).tolist() == [0, bins - 1]


@given(pairs, st.integers(1, 20))
def test_one_bin_holds_the_means_of_all_and_many_hold_their_own(drawn, bins):
    label, prob = columns_of_pairs(drawn)
    curve = c.reliability_curve(label, prob, n_bins=bins)
    for row in curve.itertuples():
        inside = (prob > row.lower) & (prob <= row.upper) | (prob == 0) & (row.lower == 0)
        assert row.count == row.weight == inside.sum()
        if inside.any():
            assert row.mean_prob == pytest.approx(prob[inside].mean())
            assert row.positive_rate == pytest.approx(label[inside].mean())
        else:
            assert row.mean_prob is row.positive_rate is pd.NA


def test_the_reliability_curve_counts_every_row_once():
    curve = c.reliability_curve([1, 0, 1], [0.0, 0.5, 1.0], n_bins=2, sample_weight=[1, 2, 3])
    assert curve["count"].tolist() == [2, 1]
    assert curve["weight"].tolist() == [3, 3]
    assert curve["mean_prob"].tolist() == pytest.approx([1 / 3, 1])
    assert curve["positive_rate"].tolist() == pytest.approx([1 / 3, 1])


@pytest.mark.parametrize("metric", CALIBRATION_METRICS)
def test_calibration_of_nothing_and_of_weightless_rows_has_no_value(metric):
    assert metric([], []) is None
    assert metric([0, 1], [0.2, 0.3], sample_weight=[0, 0]) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_true": [1]}, "y_true 1, y_prob 2"),
        ({"y_true": [0.3, 1]}, "label_threshold"),
        ({"y_prob": [0.5, np.nan]}, "y_prob contains NaN"),
        ({"y_prob": [0.5, 1.5]}, "y_prob contains values outside"),
        ({"sample_weight": [1, -1]}, "negative"),
        ({"sample_weight": [1, np.inf]}, "sample_weight contains NaN or infinity"),
        ({"sample_weight": [1]}, "sample_weight 1"),
    ],
)
def test_input_that_does_not_fit_calibration_is_refused(change, message):
    for metric in (*CALIBRATION_METRICS, c.reliability_curve):
        with pytest.raises(MetricInputError, match=message):
            metric(**({"y_true": [0, 1], "y_prob": [0.2, 0.7]} | change))
