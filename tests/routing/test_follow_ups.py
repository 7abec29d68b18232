"""Which routed comments without a label are followed up."""

import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lake_days import batch, put_scores

from modwatch.common.errors import DesignError
from modwatch.data.lake.day_scores import day_scores
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import ROUTED
from modwatch.routing.design import RoutingPolicy
from modwatch.routing.follow_ups import draw_follow_ups, follow_up_parts, follow_up_rows

DAY = datetime.date(2026, 1, 5)


def keys(size, seed=0):
    return np.random.default_rng(seed).integers(0, 2**64, size, dtype=np.uint64)


@given(st.lists(st.integers(0, 2), max_size=80), st.floats(0, 1), st.integers(1, 5))
def test_each_part_has_its_minimum_and_a_known_probability(parts, share, minimum):
    part = np.array(parts, np.int64)
    drawn, probability = draw_follow_ups(part, keys(part.size), share=share, minimum=minimum)
    for here in (part == number for number in range(3)):
        assert drawn[here].sum() >= min(minimum, here.sum()) * (share > 0)
        assert np.allclose(probability[here], drawn[here].sum() / max(here.sum(), 1))
    assert drawn.sum() <= np.ceil(share * part.size) + 3 * minimum


@given(st.integers(0, 50), st.integers(0, 50))
def test_nothing_is_drawn_at_share_0_and_all_of_the_top_at_share_1(flagged, others):
    part = np.repeat([1, 2], [flagged, others])
    assert not draw_follow_ups(part, keys(part.size), share=0)[0].any()
    assert draw_follow_ups(part, keys(part.size), share=1)[0].all()


def test_the_slice_is_followed_up_first_up_to_half_of_all():
    drawn, _ = draw_follow_ups(np.repeat([0, 1, 2], [10, 30, 60]), keys(100), share=0.24)
    assert [drawn[:10].sum(), drawn[10:40].sum(), drawn[40:].sum()] == [10, 5, 9]


def test_all_comments_of_a_part_are_drawn_equally_often():
    part, often = np.repeat([0, 1, 2], [8, 6, 14]), np.zeros(28)
    for seed in range(2000):
        often += draw_follow_ups(part, keys(28, seed), share=0.25)[0]
    _, chance = draw_follow_ups(part, keys(28), share=0.25)
    spread = np.sqrt(2000 * chance * (1 - chance))
    assert (np.abs(often - 2000 * chance) < 4.5 * spread).all()


def test_the_draw_depends_on_the_keys_alone():
    part, key = follow_up_parts(np.repeat([0, 3], [40, 10]), np.arange(50) % 3 == 0), keys(50)
    order = np.random.default_rng(1).permutation(50)
    drawn, _ = draw_follow_ups(part, key, share=0.3)
    assert (draw_follow_ups(part[order], key[order], share=0.3)[0] == drawn[order]).all()


def test_a_comment_without_a_key_is_refused():
    with pytest.raises(DesignError, match="pass one each"):
        draw_follow_ups(np.zeros(3, np.int64), keys(2), share=0.2)


def test_what_a_lead_dismissed_is_kept_with_its_reason_and_never_drawn(tmp_path):
    lake = Lake(root=str(tmp_path / "lake"))
    put_scores(lake, DAY, np.linspace(0, 1, 12))
    ids = [f"c{number}" for number in range(12)]
    design = {"reason": "uncertainty", "stratum": 0, "rank": 1, "model_version": "3"}
    design |= {"inclusion_probability": 1.0, "review_score": 0.1}
    lake.replace("routed", DAY, [batch(ROUTED, 12, dt=DAY, comment_id=ids, **design)])
    reasons = dict(zip(ids[:10], ["skipped", "dismissed"] * 5, strict=False))
    policy = RoutingPolicy(review_fraction=0.5, follow_up_share=1.0)
    rows = follow_up_rows(lake, DAY, day_scores(lake, DAY), reasons, policy, "salt").to_pandas()
    assert dict(zip(rows["comment_id"], rows["reason"], strict=True)) == reasons
    assert set(rows.loc[rows["drawn"], "reason"]) == {"skipped"}
    assert rows["drawn"].sum() == 5
    assert not rows.loc[rows["reason"] == "dismissed", "probability"].any()
