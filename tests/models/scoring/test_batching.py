import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.models.batches import length_buckets

lengths = st.lists(st.integers(1, 60), max_size=80)


def test_nothing_gives_no_batch():
    assert list(length_buckets([], token_budget=8, most=8)) == []


def test_comment_longer_than_the_budget_is_alone():
    batches = [rows.tolist() for rows in length_buckets([99, 2, 99], token_budget=10, most=8)]
    assert batches == [[1], [0], [2]]


def test_equal_lengths_fill_batches_in_order():
    batches = [rows.tolist() for rows in length_buckets([2] * 5, token_budget=4, most=8)]
    assert batches == [[0, 1], [2, 3], [4]]


@given(lengths=lengths, budget=st.integers(1, 200), most=st.integers(1, 20))
def test_each_row_once_within_budget(lengths, budget, most):
    batches = list(length_buckets(lengths, token_budget=budget, most=most))
    rows = np.concatenate([*batches, np.zeros(0, int)])
    assert sorted(rows.tolist()) == list(range(len(lengths)))
    for batch in batches:
        longest = max(lengths[i] for i in batch)
        assert len(batch) <= most
        assert len(batch) == 1 or len(batch) * longest <= budget


@pytest.mark.parametrize("seed", range(3))
def test_sorting_saves_padding(seed):
    lengths = np.random.default_rng(seed).integers(1, 256, 4_000)
    padded = sum(
        len(rows) * lengths[rows].max()
        for rows in length_buckets(lengths.tolist(), token_budget=8_192, most=256)
    )
    assert padded < 1.05 * lengths.sum()
