"""Calibration metrics: extremes in the head, and weights as repetition."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss

from modwatch.errors import MetricInputError
from modwatch.metrics import calibration as c

METRICS = [
    c.calibration_auroc,
    c.calibration_auprc,
    c.brier_score,
    c.expected_calibration_error,
]

rows = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 20)), min_size=1, max_size=20)


def columns(drawn):
    label, prob = (np.array(column, float) for column in zip(*drawn, strict=True))
    return label, prob / 20


def test_a_sure_and_right_model_is_perfect():
    label, prob = [0, 1], [0.0, 1.0]
    assert c.brier_score(label, prob) == 0
    assert c.expected_calibration_error(label, prob) == 0
    assert c.calibration_auroc(label, prob) is None
    assert c.calibration_auprc(label, prob) is None


def test_a_sure_and_wrong_model_is_worst():
    assert c.brier_score([1, 0], [0.0, 1.0]) == 1
    assert c.expected_calibration_error([1, 0], [0.0, 1.0]) == 1


def test_over_confident_errors_rank_last():
    assert c.calibration_auroc([1, 0, 0], [0.01, 0.4, 0.3]) == 0


@given(rows)
def test_the_error_is_the_literal_sum_over_bins(drawn):
    label, prob = columns(drawn)
    confidence, right = np.maximum(prob, 1 - prob), (prob > 0.5) == (label == 1)
    expected = 0.0
    for i in range(15):
        inside = (confidence > i / 15) & (confidence <= (i + 1) / 15)
        if inside.any():
            expected += inside.mean() * abs(confidence[inside].mean() - right[inside].mean())
    assert c.expected_calibration_error(label, prob) == pytest.approx(expected)


@given(rows, st.lists(st.integers(0, 3), min_size=20, max_size=20))
def test_whole_weights_repeat_rows_in_calibration(drawn, times):
    times = np.array(times[: len(drawn)])
    repeated = [row for row, n in zip(drawn, times, strict=True) for _ in range(n)]
    for metric in METRICS:
        value = metric(*columns(drawn), weight=times)
        other = metric(*columns(repeated)) if repeated else None
        assert value == (other if other is None else pytest.approx(other, abs=1e-12))


@given(rows)
def test_scikit_learn_agrees_on_brier(drawn):
    label, prob = columns(drawn)
    if 0 < label.sum() < label.size:
        assert c.brier_score(label, prob) == pytest.approx(brier_score_loss(label, prob))


def test_the_reliability_curve_counts_every_row_once():
    curve = c.reliability_curve([1, 0, 1], [0.0, 0.5, 1.0], bins=2, weight=[1, 2, 3])
    assert curve["count"].tolist() == [2, 1]
    assert curve["weight"].tolist() == [3, 3]
    assert curve["mean_prob"].tolist() == pytest.approx([1 / 3, 1])
    assert curve["positive_rate"].tolist() == pytest.approx([1 / 3, 1])


def test_an_empty_bin_has_no_mean():
    curve = c.reliability_curve([], [], bins=1)
    assert curve["mean_prob"].tolist() == [pd.NA]


@pytest.mark.parametrize("metric", METRICS)
def test_calibration_of_nothing_has_no_value(metric):
    assert metric([], []) is None


@pytest.mark.parametrize("bins", [0, -1])
def test_bins_must_be_positive(bins):
    with pytest.raises(MetricInputError, match="bins"):
        c.expected_calibration_error([1], [0.5], bins=bins)
