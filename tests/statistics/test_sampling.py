"""Permanent random numbers."""

import numpy as np
import pytest
from scipy import stats

from modwatch.statistics.sampling import random_keys

IDS = [f"comment-{i}" for i in range(70_000)]  # more than one chunk
HOW = {"day": "2026-01-01", "design_digest": "d", "salt": "secret"}


def test_a_key_depends_on_its_comment_alone():
    keys = random_keys(IDS, **HOW)
    assert keys.dtype == np.uint64
    assert (random_keys(IDS[::-1], **HOW)[::-1] == keys).all()
    assert (random_keys(IDS[:10], **HOW) == keys[:10]).all()


@pytest.mark.parametrize("name", HOW)
def test_day_design_and_salt_change_every_key(name):
    other = random_keys(IDS[:100], **(HOW | {name: "other"}))
    assert not (other == random_keys(IDS[:100], **HOW)).any()


def test_day_and_design_cannot_be_shifted_into_one_another():
    first = random_keys(["x"], day="ab", design_digest="c", salt="s")
    second = random_keys(["x"], day="a", design_digest="bc", salt="s")
    assert first[0] != second[0]


def test_keys_are_uniform_in_both_halves():
    keys = random_keys(IDS, **HOW)
    for half in (keys >> np.uint64(32), keys & np.uint64(0xFFFFFFFF)):
        assert stats.kstest(half / 2**32, "uniform").pvalue > 1e-4
    assert np.unique(keys).size == keys.size


def test_odd_ids_are_keyed():
    assert random_keys(["", "\x00", "😀", "\ud800"], **HOW).size == 4
    assert random_keys([], **HOW).size == 0
