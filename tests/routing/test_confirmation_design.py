"""Which first labels are confirmed: probabilities, the draw, ranks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.errors import DesignError
from modwatch.routing.confirmation_design import confirmation_probabilities, draw_confirmations

THRESHOLD = 0.6


def keys(size, seed=0):
    return np.random.default_rng(seed).integers(0, 2**64, size, dtype=np.uint64)


def drawn(probability, seed=0):
    size = len(probability)
    return draw_confirmations(
        np.asarray(probability, float), keys(size, seed), keys(size, 2**40 + seed)
    )


comments = st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1)), max_size=60)


@given(comments, st.floats(0, 1))
def test_heavy_labels_are_always_confirmed_and_nothing_at_share_0(rows, share):
    stratum = np.array([row[0] for row in rows], dtype=np.int32)
    prob = np.array([row[1] for row in rows])
    chance = confirmation_probabilities(prob, stratum, threshold=THRESHOLD, share=share)
    assert chance.shape == (len(rows), 2)
    assert ((chance >= 0) & (chance <= 1)).all()
    if share:
        assert (chance > 0).all()
        assert (chance[stratum > 0, 1] == 1).all()
        assert (chance[(stratum > 0) & (prob > THRESHOLD), 0] == 1).all()
    else:
        assert not chance.any()


@pytest.mark.parametrize("share", [0.05, 0.12, 0.5])
def test_the_expected_number_is_the_budget_where_the_certain_ones_leave_room(share):
    rng = np.random.default_rng(1)
    stratum = np.repeat([0, 1, 2], [900, 60, 40])
    prob = np.where(stratum == 0, rng.uniform(0.2, 0.8, 1000), rng.beta(0.2, 8, 1000))
    chance = confirmation_probabilities(prob, stratum, threshold=THRESHOLD, share=share)
    positive = 0.9 * prob + 0.02 * (1 - prob)
    # A third person follows where two differ: 1.2 labels a confirmation.
    expected = 1.2 * (chance * np.column_stack([1 - positive, positive])).sum()
    assert expected == pytest.approx(share * 1000, rel=0.01)


def test_recent_labels_tell_how_many_toxic_ones_to_expect():
    stratum = np.repeat([0, 1], [900, 100])
    prob = np.full(1000, 0.001)  # an over-confident model: a tenth of its top is toxic
    options = {"threshold": THRESHOLD, "share": 0.1}
    blind = confirmation_probabilities(prob, stratum, **options)
    knowing = confirmation_probabilities(prob, stratum, toxic_labels=(0.1, 0.02), **options)
    positive = np.where(stratum == 0, 0.1, 0.02)
    labels = np.column_stack([1 - positive, positive])
    assert 1.2 * (knowing * labels).sum() == pytest.approx(100, rel=0.01)
    assert (blind * labels).sum() > 1.1 * (knowing * labels).sum()


def test_probabilities_and_keys_must_fit():
    with pytest.raises(DesignError, match="pass one each"):
        confirmation_probabilities(np.array([0.5]), np.zeros(2, int), threshold=0.5, share=0.1)
    for share in (-0.1, 1.5, np.nan):
        with pytest.raises(DesignError, match=r"in \[0, 1\]"):
            confirmation_probabilities(
                np.array([0.5]), np.zeros(1, int), threshold=0.5, share=share
            )
    with pytest.raises(DesignError, match="one key per comment"):
        draw_confirmations(np.zeros((2, 2)), keys(1), keys(2))


def test_each_label_is_confirmed_as_often_as_its_probability_says():
    assert drawn(np.zeros((0, 2))).row.size == 0
    probability = np.tile([[0.1, 0.4], [0.0, 1.0], [0.3, 0.3], [0.9, 0.2]], (5000, 1))
    draw = drawn(probability)
    confirmed = np.zeros((20_000, 2), bool)
    confirmed[draw.row] = draw.confirmed
    for kind in range(4):
        wanted = probability[kind]
        error = np.sqrt(wanted * (1 - wanted) / 5000) + 1e-12
        assert (np.abs(confirmed[kind::4].mean(axis=0) - wanted) <= 4 * error).all()


@given(st.integers(0, 2**32 - 1), st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_a_higher_probability_loses_no_confirmation(seed, chances):
    low = np.column_stack([chances, chances])
    high = np.minimum(1, low + np.array([0.1, 0.3]))
    before, after = drawn(low, seed), drawn(high, seed)
    assert set(before.row) <= set(after.row)
    confirmed = dict(zip(after.row.tolist(), after.confirmed, strict=True))
    for row, labels in zip(before.row.tolist(), before.confirmed, strict=True):
        assert (confirmed[row] >= labels).all()


def test_rounds_are_served_anywhere_in_their_day():
    ranks = np.stack([drawn(np.ones((20, 2)), seed).rank for seed in range(1500)])
    error = np.sqrt(0.05 * 0.95 / 1500)
    for row, number in ((0, 0), (0, 1), (19, 0), (19, 1)):
        shares = np.bincount(ranks[:, row, number], minlength=21)[1:] / 1500
        assert shares.size == 20
        assert np.abs(shares - 0.05).max() < 4 * error
    first, second = ranks[:, 0].T
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(1500)  # independent


def test_labels_that_contradict_the_decision_are_confirmed_whatever_the_score():
    prob = np.array([0.9, 0.9, 0.1, 0.1])
    flagged = np.array([True, False, True, False])
    chance = confirmation_probabilities(prob, np.ones(4, int), flagged=flagged, share=0.3)
    assert (chance[:, 0] == 1).tolist() == flagged.tolist()
    with pytest.raises(DesignError, match="3 decisions for 4 comments"):
        confirmation_probabilities(prob, np.ones(4, int), flagged=flagged[1:], share=0.3)
