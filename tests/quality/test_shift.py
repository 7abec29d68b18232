import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.quality import Thresholds
from modwatch.quality.shift import (
    PROBABILITY_EDGES,
    population_stability_index,
    probability_histogram,
    total_variation,
)

COUNTS = st.lists(st.integers(0, 1000), min_size=4, max_size=4).filter(any)


def test_histogram_counts_every_probability_once():
    prob = np.linspace(0, 1, 1001)

    counts = probability_histogram(prob)

    assert len(counts) == len(PROBABILITY_EDGES) - 1
    assert sum(counts) == 1001


def test_psi_by_hand():
    # Half a count on each side: (1.5, 0.5) / 2 against (0.5, 1.5) / 2.
    assert population_stability_index([1, 0], [0, 1]) == pytest.approx(math.log(3))


@given(COUNTS, COUNTS)
def test_psi_is_symmetric_and_not_negative(p, q):
    value = population_stability_index(p, q)

    assert value >= 0
    assert value == pytest.approx(population_stability_index(q, p))
    assert population_stability_index(p, p) == 0


def test_psi_does_not_grow_with_n():
    rng = np.random.default_rng(0)
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.3, 0.3])
    exact = float(np.sum((p - q) * np.log(p / q)))
    for n in (10_000, 1_000_000):
        observed, reference = rng.multinomial(n, p), rng.multinomial(n, q)
        value = population_stability_index(observed.tolist(), reference.tolist())
        assert value == pytest.approx(exact, abs=0.015)


def test_a_steady_model_raises_no_alarm_at_the_smallest_day_that_is_judged():
    rng, bounds = np.random.default_rng(0), Thresholds()
    day, before = bounds.min_scores, bounds.min_scores * bounds.min_trailing_days

    values = [
        population_stability_index(
            probability_histogram(rng.beta(0.3, 3, day)),
            probability_histogram(rng.beta(0.3, 3, before)),
        )
        for _ in range(1000)
    ]

    assert max(values) < bounds.score_shift


def test_total_variation_extremes():
    assert total_variation({"en": 7}, {"en": 700}) == 0
    assert total_variation({"en": 7}, {"de": 1}) == 1
