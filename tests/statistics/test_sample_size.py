"""How many labels a proportion takes: as the textbook says where it says something."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from modwatch.common.errors import MetricInputError
from modwatch.statistics.sample_size import (
    labels_for_width,
    optimal_shares,
    required_labels,
    required_labels_stratified,
)


@pytest.mark.parametrize(("rate", "width"), [(0.5, 0.1), (0.2, 0.05), (0.05, 0.02)])
def test_labels_for_a_share_are_near_the_normal_approximation(rate, width):
    wald = rate * (1 - rate) * (2 * stats.norm.ppf(0.975) / width) ** 2
    assert labels_for_width(rate, width) == pytest.approx(wald, rel=0.05)


def test_nothing_to_be_seen_takes_labels_all_the_same():
    none = labels_for_width(0.0, 0.01)
    assert 1 - 0.05 ** (1 / none) == pytest.approx(0.01, rel=0.01)  # mid-P: ½(1−p)ⁿ = 2.5 %


def test_a_small_population_needs_fewer_labels():
    assert labels_for_width(0.5, 0.1, population=500) < labels_for_width(0.5, 0.1)
    assert labels_for_width(0.5, 1e-6, population=500) == 500


def test_more_labels_than_anybody_can_have_are_refused():
    assert labels_for_width(0.5, 0.0005) > 10**7
    with pytest.raises(MetricInputError, match="pass a larger width"):
        labels_for_width(0.5, 1e-7)


Z = stats.norm.ppf(0.975)
STRATA = st.lists(st.tuples(st.integers(1, 10**6), st.floats(0.001, 0.999)), min_size=1)


@given(STRATA, st.sampled_from([0.05, 0.2, 1.0]))
def test_equal_allocation_is_eq_11(rows, relative):
    population, rate = zip(*rows, strict=True)
    total = sum(population)
    prevalence = sum(N / total * p for N, p in rows)
    error = relative * prevalence / Z
    number = len(rows) / error**2 * sum((N / total) ** 2 * p * (1 - p) for N, p in rows)
    share = [1 / len(rows)] * len(rows)
    found = required_labels_stratified(population, rate, share, relative_error=relative)
    assert found == pytest.approx(number, rel=1e-9, abs=1)


@given(STRATA)
def test_optimal_allocation_is_eq_8_and_13(rows):
    population, rate = zip(*rows, strict=True)
    total = sum(population)
    spread = [N * (p * (1 - p)) ** 0.5 for N, p in rows]
    share = [item / sum(spread) for item in spread]
    assert optimal_shares(population, rate) == pytest.approx(share)
    error = 0.2 * sum(N / total * p for N, p in rows) / Z
    number = 0.0
    for (size, p), c in zip(rows, share, strict=True):
        number += (size / total) ** 2 * p * (1 - p) / c / error**2
    found = required_labels_stratified(population, rate, optimal_shares(population, rate))
    assert found == pytest.approx(number, rel=1e-9, abs=1)
    assert found <= required_labels_stratified(population, rate, [1 / len(rows)] * len(rows))


@given(STRATA)
def test_proportional_allocation_needs_no_more_than_a_random_sample(rows):
    population, rate = (np.array(column) for column in zip(*rows, strict=True))
    share = population / population.sum()
    found = required_labels_stratified(population, rate, share)
    assert found <= required_labels(min(float(share @ rate), 1.0)) + 1


@given(st.floats(1e-6, 1), st.floats(0.01, 1), st.floats(0.01, 0.99))
def test_labels_are_the_least_whole_number_that_does(prevalence, relative, confidence):
    labels = required_labels(prevalence, relative_error=relative, confidence=confidence)
    exact = (1 - prevalence) / prevalence * (stats.norm.ppf((1 + confidence) / 2) / relative) ** 2
    assert labels >= max(1, exact - 1e-6)
    assert labels - 1 <= exact + 1e-6
