"""Metrics of the model alone."""

import pytest

from modwatch.errors import MetricInputError
from modwatch.metrics import classification as c


def test_values_in_the_head():
    label, prob = [1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1]
    assert c.accuracy(label, prob) == 0.5
    assert c.recall(label, prob) == 0.5
    assert c.precision(label, prob) == 0.5
    assert c.prevalence(label) == 0.5
    assert c.auroc(label, prob) == 0.75
    assert c.accuracy(label, prob, threshold=0.3) == 0.75


def test_weights_count():
    assert c.prevalence([1, 0], weight=[3, 1]) == 0.75
    assert c.precision([1, 0], [0.9, 0.9], weight=[3, 1]) == 0.75


def test_nothing_to_divide_by_has_no_value():
    assert c.recall([0], [0.9]) is None
    assert c.precision([1], [0.1]) is None
    assert c.auroc([1, 1], [0.1, 0.2]) is None
    assert c.auprc([0], [0.1]) is None
    assert c.accuracy([], []) is None
    assert c.prevalence([]) is None


def test_lengths_must_fit():
    with pytest.raises(MetricInputError, match="label 2, prob 1"):
        c.accuracy([0, 1], [0.5])
