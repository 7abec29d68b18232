"""Which routed comments without a label are followed up."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.errors import DesignError
from modwatch.routing.follow_up_design import draw_follow_ups


def keys(size, seed=0):
    return np.random.default_rng(seed).integers(0, 2**64, size, dtype=np.uint64)


@given(st.lists(st.integers(0, 3), max_size=80), st.floats(0, 1), st.integers(1, 5))
def test_each_part_has_its_minimum_and_a_known_probability(strata, share, minimum):
    stratum = np.array(strata, np.int32)
    draw = draw_follow_ups(stratum, keys(stratum.size), share=share, minimum=minimum)
    for part in (stratum == 0, stratum != 0):
        drawn = int(draw.drawn[part].sum())
        assert drawn >= min(minimum, part.sum()) * (share > 0)
        assert np.allclose(draw.probability[part], drawn / max(part.sum(), 1))
    assert draw.drawn.sum() <= np.ceil(share * stratum.size) + 2 * minimum


@given(st.integers(0, 50), st.integers(0, 50))
def test_nothing_is_drawn_at_share_0_and_all_at_share_1_of_the_top(top, rest):
    stratum = np.repeat([0, 1], [top, rest])
    assert not draw_follow_ups(stratum, keys(stratum.size), share=0).drawn.any()
    if not rest:
        assert draw_follow_ups(stratum, keys(stratum.size), share=1).drawn.all()


def test_the_slice_is_followed_up_first_up_to_half_of_all():
    draw = draw_follow_ups(np.repeat([0, 2], [90, 10]), keys(100), share=0.2)
    assert draw.drawn[90:].all()
    assert draw.drawn[:90].sum() == 10


def test_all_comments_of_a_part_are_drawn_equally_often():
    stratum, drawn = np.repeat([0, 1], [20, 8]), np.zeros(28)
    for seed in range(2000):
        drawn += draw_follow_ups(stratum, keys(28, seed), share=0.25).drawn
    chance = draw_follow_ups(stratum, keys(28), share=0.25).probability
    spread = np.sqrt(2000 * chance * (1 - chance))
    assert (np.abs(drawn - 2000 * chance) < 4.5 * spread).all()


def test_the_draw_depends_on_the_keys_alone():
    stratum, key = np.repeat([0, 3], [40, 10]), keys(50)
    order = np.random.default_rng(1).permutation(50)
    draw = draw_follow_ups(stratum, key, share=0.3)
    assert (draw_follow_ups(stratum[order], key[order], share=0.3).drawn == draw.drawn[order]).all()


def test_wrong_arguments_are_refused():
    with pytest.raises(DesignError, match="pass one each"):
        draw_follow_ups(np.zeros(3, np.int32), keys(2), share=0.2)
    for share in (-0.1, 1.1, float("nan")):
        with pytest.raises(DesignError, match="share of follow-ups"):
            draw_follow_ups(np.zeros(2, np.int32), keys(2), share=share)
