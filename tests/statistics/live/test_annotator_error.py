"""The error rate behind two people's labels: closed forms, properties, coverage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.statistics.live.annotator_error import annotator_error_rate, error_of


@pytest.mark.parametrize("error", [0.0, 0.01, 0.1, 0.3, 0.49])
def test_the_rate_solves_its_equation(error):
    assert error_of(np.array([2 * error * (1 - error)]))[0] == pytest.approx(error, abs=1e-12)


def test_people_who_agree_may_still_err():
    found = annotator_error_rate(np.ones(30), np.ones(30))
    assert (found.value, found.low, found.n, found.effective_n) == (0, 0, 30, 30)
    # The mid-P upper limit of none in 30 solves (1−r)³⁰/2 = 2.5 %.
    assert found.high == pytest.approx(error_of(np.array([1 - 0.05 ** (1 / 30)]))[0], abs=1e-3)


def test_too_few_pairs_and_coin_tosses_are_insufficient():
    few = annotator_error_rate(np.ones(29), np.ones(29))
    assert (few.status, few.value, few.low, few.high) == ("insufficient", None, None, None)
    assert few.reason == "29 pairs of labels; 30 are needed"
    assert annotator_error_rate([], [], minimum=0).status == "insufficient"
    half = np.arange(40) % 2
    assert annotator_error_rate(np.ones(40), half).reason.endswith("coin tosses")
    assert annotator_error_rate(np.ones(40), np.zeros(40)).status == "insufficient"
    weightless = annotator_error_rate(np.ones(40), np.ones(40), sample_weight=np.zeros(40))
    assert weightless.reason == "0 pairs of labels; 30 are needed"


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=60),
    st.integers(1, 5),
    st.integers(0, 2**32 - 1),
)
def test_order_sides_and_equal_weights_decide_nothing(labels, weight, seed):
    first, second = np.array(labels).T
    moved = np.random.default_rng(seed).permutation(first.size)
    found = annotator_error_rate(first, second, minimum=1)
    for other in (
        annotator_error_rate(second[moved], first[moved], minimum=1),
        annotator_error_rate(first, second, sample_weight=np.full(first.size, weight), minimum=1),
    ):
        assert other.status == found.status
        if found.status == "ok":
            assert found.low <= found.value <= found.high <= 0.5
            assert [other.value, other.low, other.high] == pytest.approx(
                [found.value, found.low, found.high]
            )


def test_weights_count_as_repetition_for_the_rate_and_not_for_its_precision():
    first, second = np.zeros(60), (np.arange(60) < 3).astype(float)
    weight = np.where(np.arange(60) < 30, 1.0, 3.0)
    repeated = annotator_error_rate(
        np.repeat(first, weight.astype(int)), np.repeat(second, weight.astype(int))
    )
    weighted = annotator_error_rate(first, second, sample_weight=weight)
    assert weighted.value == pytest.approx(repeated.value)
    assert weighted.effective_n == pytest.approx(120**2 / 300)
    assert weighted.high > repeated.high


def test_the_interval_covers():
    rng = np.random.default_rng(3)
    for error, n in ((0.01, 60), (0.05, 60), (0.05, 300), (0.2, 100)):
        differ = rng.binomial(n, 2 * error * (1 - error), 600)
        found = {
            k: annotator_error_rate(np.zeros(n), (np.arange(n) < k) * 1.0)
            for k in set(differ.tolist())
        }
        covered = [
            found[k].status == "ok" and found[k].low <= error <= found[k].high for k in differ
        ]
        assert np.mean(covered) >= 0.93
