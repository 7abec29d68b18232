"""Differences of estimates, and corrected p-values."""

import numpy as np
import pytest
from scipy import stats

from modwatch.statistics.estimate import Estimate, difference, holm


def test_with_symmetric_intervals_it_is_the_normal_test():
    one = Estimate.from_interval(0.6, (0.5, 0.7), n=9)
    other = Estimate.from_interval(0.4, (0.3, 0.5), n=9)
    value, low, high, p_value = difference(one, other)
    error = 0.1 * np.sqrt(2) / stats.norm.ppf(0.975)
    assert value == pytest.approx(0.2)
    assert (low, high) == pytest.approx((0.2 - 0.1 * np.sqrt(2), 0.2 + 0.1 * np.sqrt(2)))
    assert p_value == pytest.approx(2 * stats.norm.sf(0.2 / error))


def test_the_interval_and_the_test_agree_and_turn_with_the_order():
    one, other = (
        Estimate.from_interval(0.9, (0.7, 0.95), n=9),
        Estimate.from_interval(0.5, (0.45, 0.8), n=9),
    )
    value, low, high, p_value = difference(one, other)
    assert (low > 0) == (p_value < 0.05)
    turned = difference(other, one)
    assert turned == pytest.approx((-value, -high, -low, p_value))


def test_what_is_known_exactly_differs_or_does_not():
    one = Estimate.from_interval(0.5, (0.5, 0.5), n=9)
    assert difference(one, one) == (0.0, 0.0, 0.0, 1.0)
    assert difference(one, Estimate.from_interval(0.25, (0.25, 0.25), n=9)) == (
        0.25,
        0.25,
        0.25,
        0.0,
    )


def test_without_an_estimate_there_is_no_difference():
    assert (
        difference(Estimate.from_interval(0.5, (0.4, 0.6), n=9), Estimate.insufficient("few", n=1))
        is None
    )


def test_holm_of_nothing_and_of_one():
    assert holm([]).size == 0
    assert holm([0.2]).tolist() == [0.2]
