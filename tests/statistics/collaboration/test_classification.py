"""Metrics of the model alone."""

import numpy as np
import pytest
from brute_force import columns, repeated, rows, times
from hypothesis import given
from sklearn import metrics as sk

from modwatch.common.errors import MetricInputError
from modwatch.statistics.collaboration import classification as c

pytestmark = pytest.mark.usefixtures("floating_point_errors_raise")

METRICS = [c.accuracy, c.recall, c.precision, c.auroc, c.auprc]


def test_values_in_the_head():
    label, prob = [1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1]
    assert c.accuracy(label, prob) == 0.5
    assert c.recall(label, prob) == 0.5
    assert c.precision(label, prob) == 0.5
    assert c.prevalence(label) == 0.5
    assert c.auroc(label, prob) == 0.75
    assert c.accuracy(label, prob, threshold=0.3) == 0.75


def test_weights_count():
    assert c.prevalence([1, 0], sample_weight=[3, 1]) == 0.75
    assert c.precision([1, 0], [0.9, 0.9], sample_weight=[3, 1]) == 0.75


def test_nothing_to_divide_by_has_no_value():
    assert c.recall([0], [0.9]) is None
    assert c.precision([1], [0.1]) is None
    assert c.auroc([1, 1], [0.1, 0.2]) is None
    assert c.auprc([0], [0.1]) is None
    assert c.accuracy([], []) is None
    assert c.prevalence([]) is None


def test_lengths_must_fit():
    with pytest.raises(MetricInputError, match="y_true 2, y_prob 1"):
        c.accuracy([0, 1], [0.5])


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


@given(rows, times)
def test_whole_weights_repeat_rows_of_the_model(drawn, times):
    other = repeated(drawn, times)
    for metric in METRICS:
        value = metric(*columns(drawn)[:2], sample_weight=times[: len(drawn)])
        expected = metric(*columns(other)[:2]) if other else None
        assert value == (None if expected is None else pytest.approx(expected, abs=1e-12))


@pytest.mark.parametrize("metric", METRICS)
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
