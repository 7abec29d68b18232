"""Conformity deltas: against the definition, and their divergence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from modwatch.common.errors import MetricInputError
from modwatch.statistics.disagreement import Annotations, majority
from modwatch.statistics.divergence import conformity_delta, uncertainty_divergence

ROWS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=40
)


@given(rows=ROWS, seed=st.integers(0, 99))
def test_it_is_the_difference_of_two_brier_scores(rows, seed):
    item, annotator, label = zip(*rows, strict=True)
    annotations = Annotations.from_columns(
        item=item, annotator=annotator, label=label, classes=(0, 1, 2)
    )
    prob = np.random.default_rng(seed).dirichlet([1, 1, 1], len(annotations.items))
    found = conformity_delta(annotations, prob)

    def brier(place: int, given_label: int) -> float:
        return float(((np.eye(3)[given_label] - prob[place]) ** 2).mean())

    label_of, tied = majority(annotations.counts())
    wanted = [
        brier(i, y) - brier(i, label_of[i])
        for i, y, first in zip(annotations.item, annotations.label, annotations.first, strict=True)
        if first and not tied[i]
    ]
    assert found.delta == pytest.approx(wanted, abs=1e-6)
    assert found.tied_items == tied.sum()
    assert found.delta.size + found.tied_annotations == annotations.first.sum()
    assert found.signs().sum() == found.delta.size


def test_the_majority_may_be_that_of_a_group():
    annotations = Annotations.from_columns(
        item=[0] * 5, annotator=list("abcde"), label=[1, 1, 1, 0, 0], classes=(0, 1)
    )
    chosen = np.isin(annotations.annotators, ["c", "d", "e"])
    some = conformity_delta(annotations.of_annotators(chosen), [0.9])
    assert some.delta == pytest.approx([-0.8, 0, 0], abs=1e-6)
    assert some.total == pytest.approx(-0.8 / 3, abs=1e-6)
    none = conformity_delta(annotations.of_annotators(np.zeros(5, bool)), [0.9])
    assert none.total is None
    assert none.tied_items == 0


def test_the_divergence_is_scipys():
    signs = np.array([10, 80, 10])
    found = uncertainty_divergence(signs, np.array([20, 60, 20]), smoothing=1e-12)
    assert found == pytest.approx(entropy([0.1, 0.8, 0.1], [0.2, 0.6, 0.2]))
    assert uncertainty_divergence(signs, signs // 2, smoothing=1e-12) == pytest.approx(0)
    assert np.isfinite(uncertainty_divergence(signs, np.array([0, 60, 0])))


@pytest.mark.parametrize(
    ("prob", "message"),
    [
        ([float("nan"), 0.1], "y_prob contains NaN"),
        ([0.1, 1.5], "outside"),
        ([0.1], r"shape \(1,\) for 2 items|shape \(1, 2\) for 2 items"),
        ([[0.5, 0.6], [0.1, 0.9]], "does not sum to 1"),
    ],
)
def test_bad_probabilities_are_named(prob, message):
    annotations = Annotations.from_columns(item=[0, 1], annotator=[0, 0], label=[0, 1])
    with pytest.raises(MetricInputError, match=message):
        conformity_delta(annotations, prob)
