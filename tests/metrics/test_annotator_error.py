"""The error rate behind two people's labels: closed forms, properties, coverage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.errors import MetricInputError
from modwatch.metrics.annotator_error import (
    GoldAnswers,
    LabelPairs,
    annotator_error_rate,
    assumed_error_rates,
    error_of,
    error_rates_from_gold,
    error_rates_from_pairs,
    gold_error_rate,
)


def pairs_of(top_differ, top, rest_differ, rest, weight=1.0):
    """Return so many pairs of top and rest, of which so many differ."""
    differ = np.concatenate([np.arange(top) < top_differ, np.arange(rest) < rest_differ])
    in_top = np.arange(top + rest) < top
    return LabelPairs(
        first=np.zeros(differ.size),
        second=differ.astype(float),
        top=in_top,
        weight=np.where(in_top, 1.0, weight),
    )


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


def test_top_and_rest_have_rates_of_their_own_when_their_pairs_suffice():
    found = error_rates_from_pairs(pairs_of(18, 100, 2, 100, weight=0.1))
    assert found.top.value == pytest.approx(0.1)
    assert found.rest.value == pytest.approx(error_of(np.array([0.02]))[0])
    assert found.pooled.value == pytest.approx(error_of(np.array([18.2 / 110]))[0])


def test_where_pairs_are_few_the_pooled_rate_stands_for_them():
    found = error_rates_from_pairs(pairs_of(18, 100, 0, 10))
    assert found.rest is found.pooled
    assert found.top.n == 100
    neither = error_rates_from_pairs(pairs_of(2, 20, 0, 20))
    assert neither.top is neither.rest is neither.pooled
    assert neither.pooled.status == "ok"
    none = error_rates_from_pairs(pairs_of(0, 20, 0, 9))
    assert {none.top.status, none.rest.status, none.pooled.status} == {"insufficient"}


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


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"first": [0, 2]}, "0 and 1"),
        ({"second": [0, 0.5]}, "0 and 1"),
        ({"first": [0, np.nan]}, "NaN"),
        ({"second": [0, np.inf]}, "NaN or infinity"),
        ({"second": [0, 1, 1]}, "inconsistent numbers of samples"),
        ({"weight": [1, -1]}, "negative"),
        ({"weight": [1, np.nan]}, "NaN"),
        ({"weight": [1.0]}, "inconsistent numbers of samples"),
    ],
)
def test_bad_pairs_are_refused(change, told):
    columns = {"first": [0, 1], "second": [0, 1], "weight": [1, 1]} | change
    with pytest.raises(MetricInputError, match=told):
        annotator_error_rate(columns["first"], columns["second"], sample_weight=columns["weight"])
    with pytest.raises(MetricInputError, match=told):
        LabelPairs(
            top=np.array([True, False]), **{name: np.array(each) for name, each in columns.items()}
        )


def test_groups_are_truth_values():
    ones = np.ones(2)
    with pytest.raises(MetricInputError, match="top should be boolean"):
        LabelPairs(first=ones, second=ones, top=ones, weight=ones)


@pytest.mark.parametrize("rate", [-0.01, 0.5, float("nan")])
def test_impossible_rates_are_refused(rate):
    with pytest.raises(MetricInputError, match=r"\[0, 0.5\)"):
        assumed_error_rates(rate)


def test_gold_tells_the_rate_itself():
    found = gold_error_rate(95, 100)
    assert (found.value, found.n, found.effective_n, found.status) == (0.05, 100, 100, "ok")
    assert found.low < 0.05 < found.high
    few, coins = gold_error_rate(29, 29), gold_error_rate(50, 100)
    assert (few.status, few.value, few.reason) == (
        "insufficient",
        None,
        "29 answers; 30 are needed",
    )
    assert (coins.status, coins.high) == ("insufficient", None)
    assert gold_error_rate(0, 0, minimum=0).status == "insufficient"
    for right, n in ((-1, 40), (41, 40)):
        with pytest.raises(MetricInputError, match=r"n_correct must be in \[0, 40\]"):
            gold_error_rate(right, n)


def test_the_interval_of_gold_holds_the_rate_as_often_as_it_says():
    rng = np.random.default_rng(8)
    for error, n in ((0.02, 60), (0.1, 200)):
        wrong = rng.binomial(n, error, 2000)
        found = {int(k): gold_error_rate(n - int(k), n) for k in np.unique(wrong)}
        held = np.mean([found[k].low <= error <= found[k].high for k in wrong.tolist()])
        assert held >= 0.94


@pytest.mark.simulation
@given(st.floats(0, 0.4), st.floats(0, 0.4), st.floats(0, 1))
def test_gold_of_any_make_up_tells_the_rate_of_the_comments_measured(toxic, other, share):
    n = 10**6
    right = [round(n * (1 - rate)) for rate in (toxic, other)]
    answers = GoldAnswers(toxic=n, toxic_right=right[0], other=n, other_right=right[1])
    seen = share * (1 - toxic) + (1 - share) * other
    found = error_rates_from_gold(answers, prevalence=seen).pooled
    assert found.value == pytest.approx(share * toxic + (1 - share) * other, abs=1e-4)
    assert found.low <= found.value <= found.high <= 0.5


def test_gold_by_label_takes_answers_enough_of_either():
    answers = GoldAnswers(toxic=29, toxic_right=20, other=200, other_right=198)
    assert error_rates_from_gold(answers, prevalence=0.05).pooled.value == pytest.approx(11 / 229)
    enough = GoldAnswers(toxic=30, toxic_right=21, other=200, other_right=198)
    by_label = error_rates_from_gold(enough, prevalence=0.05)
    assert by_label.pooled.value < 0.03
    assert by_label.top is by_label.rest is by_label.pooled
    assert by_label.pooled.n == 230
    assert error_rates_from_gold(enough).pooled.value == pytest.approx(11 / 230)
    none = GoldAnswers(toxic=0, toxic_right=0, other=0, other_right=0)
    assert error_rates_from_gold(none, prevalence=0.05).pooled.status == "insufficient"


@pytest.mark.simulation
def test_the_interval_by_label_holds_the_rate_as_often_as_it_says():
    rng, held = np.random.default_rng(3), []
    toxic, other, share = 0.1, 0.02, 0.1
    error = share * toxic + (1 - share) * other
    seen = share * (1 - toxic) + (1 - share) * other
    for _ in range(400):
        right = rng.binomial(100, 1 - toxic), rng.binomial(100, 1 - other)
        answers = GoldAnswers(
            toxic=100, toxic_right=int(right[0]), other=100, other_right=int(right[1])
        )
        found = error_rates_from_gold(answers, prevalence=seen).pooled
        held.append(found.low <= error <= found.high)
    assert np.mean(held) >= 0.92
