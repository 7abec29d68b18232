"""Primary labels: identities of the paper, and the bias of Eq. 2."""

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from modwatch.statistics.disagreement import (
    Annotations,
    fixed_flip_rate,
    majority,
    primary_labels,
    primary_shares,
)

SHARES = arrays(
    np.float64, st.tuples(st.integers(1, 5), st.integers(2, 5)), elements=st.floats(0, 1)
)


@given(counts=SHARES)
def test_without_flips_the_shares_stay(counts):
    share = (counts + 0.1) / (counts + 0.1).sum(axis=1, keepdims=True)
    assert primary_labels(share, 0.0) == pytest.approx(share)


@given(counts=SHARES, flip=st.floats(0, 0.49))
def test_they_are_distributions_that_sharpen_the_majority(counts, flip):
    share = (counts + 0.1) / (counts + 0.1).sum(axis=1, keepdims=True)
    primary = primary_labels(share, flip)
    assert primary.sum(axis=1) == pytest.approx(1)
    assert (primary.max(axis=1) >= share.max(axis=1) - 1e-12).all()
    assert np.array_equal(majority(primary)[0], majority(share)[0])


def test_a_rate_of_the_minoritys_share_leaves_the_majority():
    assert primary_labels([[0.6, 0.3, 0.1]], [0.6]).tolist() == [[1.0, 0.0, 0.0]]
    assert primary_labels([[0.6, 0.4], [0.9, 0.1]], 0.4).tolist() == [[1.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize("opinion", [0.0, 0.6])
@pytest.mark.parametrize("people", [3, 10])
def test_primary_shares_are_unbiased_and_eq_2_is_not(opinion, people):
    """Exactly: over all samples of annotators, each with a probability of being counted."""
    flip = 0.1
    seen = flip + (1 - 2 * flip) * opinion
    chance = [comb(people, k) * seen**k * (1 - seen) ** (people - k) for k in range(people + 1)]
    shares = np.array([[1 - k / people, k / people] for k in range(people + 1)])
    annotations = Annotations.from_columns(
        item=np.repeat(np.arange(people + 1), people),
        annotator=np.tile(np.arange(people), people + 1),
        label=np.tril(np.ones((people + 1, people), int), -1).ravel(),
    )
    unbiased = primary_shares(annotations, fixed_flip_rate(annotations, flip))
    assert np.dot(chance, unbiased[:, 1]) == pytest.approx(opinion)
    if opinion == 0:
        assert abs(np.dot(chance, primary_labels(shares, flip)[:, 1]) - opinion) > 0.02
