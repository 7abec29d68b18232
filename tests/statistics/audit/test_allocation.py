"""Allocations: whole labels, as the rule wants them, never beyond the population."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from modwatch.statistics.audit import allocation

SPREADS = st.just(0.0) | st.floats(1e-6, 0.5)
STRATA = st.lists(st.tuples(st.integers(1, 10**7), SPREADS, st.floats(0, 1)), min_size=1)


def every_rule(population, spread, labels):
    yield allocation.proportional(population, labels)
    for worst in (1.0, 1.1, 1e9):
        yield allocation.neyman(population, spread, labels, worst_case=worst)


@given(STRATA, st.integers(0, 10**5))
def test_labels_are_spent_between_minimum_and_population(rows, more):
    population, spread, _ = (np.array(column) for column in zip(*rows, strict=True))
    least = np.minimum(population, allocation.MINIMUM)
    labels = int(least.sum()) + more
    for found in every_rule(population, spread, labels):
        assert found.sum() == min(labels, population.sum())
        assert (found >= least).all()
        assert (found <= population).all()


def test_without_ties_the_order_of_the_strata_moves_nothing():
    population, spread = np.array([50_000, 7_000, 900, 30]), np.array([0.05, 0.21, 0.43, 0.37])
    expected = allocation.neyman(population, spread, 613)
    for order in itertools.permutations(range(4)):
        chosen = list(order)
        found = allocation.neyman(population[chosen], spread[chosen], 613)
        assert found.tolist() == expected[chosen].tolist()


def test_shares_are_those_of_the_rules():
    population = np.array([90_000, 9_000, 1_000])
    spread = np.array([0.03, 0.2, 0.5])
    even, by_score = population / population.sum(), population * spread
    found = allocation.neyman(population, spread, 900, worst_case=1e9)
    assert found == pytest.approx(900 * by_score / by_score.sum(), abs=2)
    # The first stratum keeps what a random sample would give it, less an eleventh.
    found = allocation.neyman(population, spread, 900)
    assert found[0] == pytest.approx(900 * even[0] / 1.1, abs=2)
    assert found[1] / found[2] == pytest.approx(by_score[1] / by_score[2], rel=0.05)
    assert allocation.proportional(population, 900) == pytest.approx(900 * even, abs=2)


def test_a_full_stratum_leaves_its_labels_to_the_others():
    found = allocation.neyman([10, 1000], [0.5, 0.001], 200, worst_case=1e9)
    assert found.tolist() == [10, 190]


class TestPromise:
    """However wrong the scores are: at most `worst_case` times the variance of a random sample."""

    @given(st.lists(st.integers(2, 400), min_size=2, max_size=8), st.data())
    def test_a_label_fewer_breaks_it_for_some_comments(self, sizes, data):
        labels = data.draw(st.integers(1, sum(sizes) - 1))
        least = allocation.safe_minima(sizes, labels)
        number = data.draw(st.integers(0, len(sizes) - 1))
        if least[number] < 2:
            return
        # All of the variance within that stratum, whose mean is that of the others.
        size = sizes[number]
        values = np.zeros(size)
        values[:2] = 1, -1
        plain = values.var(ddof=1) * (size - 1) / (sum(sizes) - 1) * (1 / labels - 1 / sum(sizes))
        fewer = (size / sum(sizes)) ** 2 * values.var(ddof=1) * (1 / (least[number] - 1) - 1 / size)
        assert fewer > 1.1 * plain
        kept = (size / sum(sizes)) ** 2 * values.var(ddof=1) * (1 / least[number] - 1 / size)
        assert kept <= 1.1 * plain * (1 + 1e-6)

    @given(st.lists(st.integers(1, 10**6), min_size=1, max_size=8), st.integers(1, 10**5))
    @example([4, 10, 2], 4)  # a share of exactly 1, of which 1 label is not enough
    def test_it_costs_at_most_a_label_a_stratum_beyond_its_share(self, sizes, labels):
        least = allocation.safe_minima(sizes, labels)
        if labels < sum(sizes):
            assert (least <= np.ceil(labels * np.array(sizes) / sum(sizes)) + 1).all()
        if len(sizes) == 1:
            assert least.sum() <= min(labels, sizes[0])

    def test_too_few_labels_for_so_many_strata_are_spread_evenly(self):
        sizes = [1000] * 8
        assert allocation.safe_minima(sizes, 20).sum() > 20
        found = allocation.neyman(sizes, [0.5, *[0.01] * 7], 20)
        assert found.tolist() == allocation.proportional(sizes, 20).tolist()
