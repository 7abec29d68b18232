"""Review scores: who comes first under each strategy."""

import numpy as np
import pytest
from brute_force import repeated, times
from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.errors import MetricInputError
from modwatch.statistics.collaboration.review_strategies import STRATEGIES, review_scores

pytestmark = pytest.mark.usefixtures("floating_point_errors_raise")

probs = st.lists(st.integers(0, 16).map(lambda k: k / 16), min_size=1, max_size=24)


def test_the_ends_of_uncertainty_and_toxicity():
    assert review_scores([0, 0.5, 1], "uncertainty").tolist() == [0, 0.25, 0]
    assert review_scores([0, 0.5, 1], "toxicity").tolist() == [0, 0.5, 1]


@given(probs)
def test_uncertainty_does_not_tell_the_classes_apart(probs):
    turned = review_scores(1 - np.array(probs), "uncertainty")
    assert review_scores(probs, "uncertainty").tolist() == turned.tolist()


def test_the_hybrid_splits_the_capacity_between_two_lists():
    prob = np.array([0.99, 0.98, 0.97, 0.5, 0.45, 0.4, 0.01])
    for share, expected in ((0.5, {0, 1, 3, 4}), (0.25, {0, 3, 4, 5}), (1, {0, 1, 2, 3})):
        score = review_scores(prob, "hybrid", toxic_share=share)
        assert set(np.argsort(-score)[:4]) == expected


@given(probs)
def test_the_hybrid_ends_in_the_pure_strategies(probs):
    for share, pure in ((1, "toxicity"), (0, "uncertainty"), (1e-320, "uncertainty")):
        hybrid = review_scores(probs, "hybrid", toxic_share=share)
        ranks = [np.unique(s, return_inverse=True)[1] for s in (hybrid, review_scores(probs, pure))]
        assert ranks[0].tolist() == ranks[1].tolist()


@given(probs, st.floats(0, 1), st.randoms(use_true_random=False))
def test_the_hybrid_does_not_depend_on_the_order(probs, share, random):
    order = random.sample(range(len(probs)), len(probs))
    score = review_scores(probs, "hybrid", toxic_share=share)
    shuffled = review_scores(np.array(probs)[order], "hybrid", toxic_share=share)
    assert shuffled.tolist() == score[order].tolist()


@given(probs, st.floats(0, 1), times)
def test_whole_weights_repeat_rows_of_the_hybrid(probs, share, times):
    weight = times[: len(probs)]
    if not any(weight):
        return
    score = review_scores(probs, "hybrid", toxic_share=share, sample_weight=weight)
    other = review_scores(repeated(probs, times), "hybrid", toxic_share=share)
    assert repeated(score, times) == pytest.approx(other.tolist())


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_rows_have_no_scores(strategy):
    assert review_scores([], strategy).tolist() == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"strategy": "chance"}, "strategy must be one of .* got 'chance'"),
        ({"y_prob": [2]}, "y_prob"),
        ({"y_prob": [np.nan]}, "y_prob"),
        ({"toxic_share": 1.5}, "toxic_share"),
        ({"sample_weight": [1, 1]}, "sample_weight 2"),
        ({"sample_weight": [-1]}, "negative"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    with pytest.raises(MetricInputError, match=message):
        review_scores(**({"y_prob": [0.5], "strategy": "hybrid"} | change))
