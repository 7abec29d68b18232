"""Which routed comments are labelled twice: sizes, chances, places."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.errors import DesignError
from modwatch.routing.second_opinions import draw_second_opinions


def keys(size, seed=0):
    return np.random.default_rng(seed).integers(0, 2**64, size, dtype=np.uint64)


@given(st.lists(st.integers(0, 3), max_size=60), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_sizes_chances_and_places_are_right(strata, share, seed):
    stratum = np.array(strata, dtype=np.int32)
    drawn = draw_second_opinions(stratum, keys(stratum.size, seed), share)
    top = stratum == 0
    groups = int(top.any()) + int((~top).any())
    wanted = max(int(np.ceil(share * stratum.size - 1e-9)), groups) if share else 0
    assert drawn.row.size == np.unique(drawn.row).size == min(wanted, stratum.size)
    assert (drawn.rank > drawn.row + 1).all()
    assert (drawn.rank <= stratum.size + 1).all()
    for group in (top, ~top):
        if group.any() and share:
            inside = group[drawn.row]
            assert inside.any()
            assert drawn.inclusion_probability[inside] == pytest.approx(inside.sum() / group.sum())


@pytest.mark.parametrize(
    ("share", "top", "in_slice"),
    [(0, 0, 0), (0.001, 1, 1), (0.1, 5, 5), (0.5, 40, 10), (1, 90, 10)],
)
def test_top_and_slice_get_half_each_while_there_are_so_many(share, top, in_slice):
    stratum = np.repeat([0, 1], [90, 10])
    drawn = draw_second_opinions(stratum, keys(100), share)
    assert ((drawn.row < 90).sum(), (drawn.row >= 90).sum()) == (top, in_slice)


def test_everybody_of_a_group_is_as_likely_and_may_stand_anywhere_behind():
    stratum = np.tile([0, 0, 0, 1], 5)
    hits, places = np.zeros(20), []
    for seed in range(4000):
        drawn = draw_second_opinions(stratum, keys(20, seed), 0.2)
        hits[drawn.row] += 1
        places.extend(drawn.rank[drawn.row == 0])
    for group in (stratum == 0, stratum == 1):
        chance = 2 / group.sum()
        error = np.sqrt(chance * (1 - chance) / 4000)
        assert np.abs(hits[group] / 4000 - chance).max() < 4 * error
    shares = np.bincount(places, minlength=22)[2:] / len(places)
    assert shares.size == 20
    assert shares.min() > 0
    assert shares.max() < 0.1


def test_the_draw_is_by_key_alone():
    drawn = draw_second_opinions(np.array([0, 0, 1, 1]), np.array([5, 4, 3, 9], np.uint64), 0.5)
    assert drawn.row.tolist() == [1, 2]
    again = draw_second_opinions(np.array([0, 1, 0, 1]), np.array([4, 9, 5, 3], np.uint64), 0.5)
    assert again.row.tolist() == [0, 3]


def test_keys_must_fit():
    with pytest.raises(DesignError, match="one key per comment"):
        draw_second_opinions(np.zeros(2, np.int32), keys(1), 0.5)
