"""The routing design: sizes in the head, properties, and unbiasedness over many salts."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from modwatch.common.errors import DesignError
from modwatch.routing.design import RoutingPolicy, design_routing, strata_of
from modwatch.statistics.collaboration.review_strategies import STRATEGIES, review_scores
from modwatch.statistics.decisions import is_flagged
from modwatch.statistics.sampling import allocate

policies = st.builds(
    RoutingPolicy,
    review_fraction=st.sampled_from([0.01, 0.1, 0.29, 0.5, 1.0]),
    slice_share=st.sampled_from([0.0, 0.1, 0.5, 0.9]),
    strategy=st.sampled_from(STRATEGIES),
    strata=st.integers(1, 8),
    minimum=st.integers(1, 4),
)


@st.composite
def days(draw):
    """A day of a few distinct scores, or of many."""
    size, distinct = draw(st.integers(0, 150)), draw(st.sampled_from([1, 2, 5, 1000]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    prob = rng.integers(0, distinct + 1, size) / (distinct + 1)
    return prob, rng.integers(0, 2**64, size, dtype=np.uint64)


@given(days(), policies)
def test_sizes_are_exact_and_every_chance_is_positive(day, policy):
    prob, keys = day
    routing = design_routing(prob, keys, policy)
    capacity = int(policy.review_fraction * prob.size + 1e-9)
    table = routing.strata
    assert len(routing.row) == len(set(routing.row.tolist())) == capacity
    assert table["sample"].sum() == capacity
    assert table["population"].sum() == prob.size
    assert (table["sample"] <= table["population"]).all()
    assert sorted(routing.rank.tolist()) == list(range(1, capacity + 1))
    counts = np.bincount(routing.stratum, minlength=len(table))
    assert counts.tolist() == table["sample"].tolist()
    if policy.slice_share > 0 and capacity > 0:
        assert (table["sample"][1:] > 0).all()
        assert (table["population"][1:] > 0).all()
    in_slice = routing.stratum > 0
    if in_slice.any():
        rest = prob.size - int((~in_slice).sum())
        assert (1 / routing.inclusion_probability[in_slice]).sum() == pytest.approx(rest)
    assert (routing.inclusion_probability[~in_slice] == 1).all()


@given(days(), policies, st.integers(0, 2**32 - 1))
def test_the_order_of_the_rows_decides_nothing(day, policy, seed):
    prob, keys = day
    moved = np.random.default_rng(seed).permutation(prob.size)
    here, there = (
        design_routing(prob, keys, policy),
        design_routing(prob[moved], keys[moved], policy),
    )
    assert here.strata.equals(there.strata)
    assert keys[here.row].tolist() == keys[moved][there.row].tolist()
    assert here.stratum.tolist() == there.stratum.tolist()


@pytest.mark.parametrize(
    ("size", "fraction", "routed", "in_slice"),
    [(0, 0.1, 0, 0), (9, 0.1, 0, 0), (10, 0.1, 1, 1), (100, 0.29, 29, 3), (5, 1.0, 5, 1)],
)
def test_small_days(size, fraction, routed, in_slice):
    prob, keys = np.linspace(0.1, 0.9, size), np.arange(size, dtype=np.uint64)
    routing = design_routing(prob, keys, RoutingPolicy(review_fraction=fraction))
    assert len(routing.row) == routed
    assert (routing.reason == "random_slice").sum() == in_slice


def test_reasons_and_strata_of_an_ordinary_day():
    rng = np.random.default_rng(3)
    prob, keys = rng.beta(0.3, 3, 2000), rng.integers(0, 2**64, 2000, dtype=np.uint64)
    routing = design_routing(prob, keys, RoutingPolicy(review_fraction=0.1, strategy="toxicity"))
    assert (routing.reason == "toxicity").sum() == 180
    assert routing.strata["population"].tolist()[:2] == [180, 20]  # 20 lost their place
    assert len(routing.strata) == 6
    top = routing.stratum == 0
    assert (np.diff(routing.review_score[top]) <= 0).all()


@given(days(), policies, st.sampled_from([0.0, 0.3, 0.5, 0.9]))
def test_the_table_tells_what_each_stratum_contains(day, policy, threshold):
    prob, keys = day
    routing = design_routing(prob, keys, policy, threshold=threshold)
    assert len(routing.strata) <= 1 + policy.strata
    top = routing.stratum == 0
    if top.any() and not top.all():
        assert routing.review_score[top].min() >= routing.review_score[~top].max()
    score = review_scores(prob, policy.strategy, threshold=threshold)
    assert routing.review_score.tolist() == score[routing.row].tolist()
    for row in routing.strata.itertuples():
        here = routing.row[routing.stratum == row.stratum]
        assert ((row.lower <= score[here]) & (score[here] <= row.upper)).all()
        if row.flagged is not pd.NA:
            assert ((prob[here] > threshold) == row.flagged).all()


def test_flagged_comments_outside_the_top_have_labels_every_day():
    rng, threshold = np.random.default_rng(11), 0.8
    prob = expit(2.5 * (rng.normal(0, 2, 5000) - 4.2))
    policy = RoutingPolicy(review_fraction=0.1)
    for _ in range(5):
        keys = rng.integers(0, 2**64, prob.size, dtype=np.uint64)
        routing = design_routing(prob, keys, policy, threshold=threshold)
        flagged = routing.strata[1:][routing.strata["flagged"][1:].fillna(False)]
        assert 2 < flagged["population"].sum() < 0.01 * prob.size
        drawn = prob[routing.row[routing.stratum > 0]] > threshold
        assert drawn.sum() >= flagged["sample"].sum() >= policy.minimum


def test_a_small_slice_is_not_divided_by_the_threshold():
    rng = np.random.default_rng(12)
    prob, keys = rng.random(400), rng.integers(0, 2**64, 400, dtype=np.uint64)
    routing = design_routing(prob, keys, RoutingPolicy(review_fraction=0.1))  # 4 places, 2 strata
    assert routing.strata["flagged"].isna().all()
    assert routing.strata["population"].tolist() == [36, 4, 360]


def test_slice_comments_lie_anywhere_in_the_queue():
    rng = np.random.default_rng(5)
    policy = RoutingPolicy(review_fraction=0.5)
    places = []
    for _ in range(200):
        keys = rng.integers(0, 2**64, 200, dtype=np.uint64)
        routing = design_routing(rng.random(200), keys, policy)
        places.extend(routing.rank[routing.stratum > 0])
    share = np.bincount(np.array(places) - 1, minlength=100) / 200
    assert abs(share.mean() - 0.1) < 1e-9
    assert share.max() < 0.25  # no place gives a slice comment away
    assert share.min() > 0


@pytest.mark.simulation
def test_the_weighted_slice_is_unbiased_over_draws():
    rng = np.random.default_rng(7)
    prob = rng.beta(0.5, 2, 400).round(2)  # ties everywhere, at the capacity too
    label = rng.random(400) < prob
    policy = RoutingPolicy(review_fraction=0.15, slice_share=0.4)
    totals, drawn = [], np.zeros(400)
    for _ in range(600):
        routing = design_routing(prob, rng.integers(0, 2**64, 400, dtype=np.uint64), policy)
        totals.append((label[routing.row] / routing.inclusion_probability).sum())
        drawn[routing.row] += 1
    error = np.std(totals) / np.sqrt(len(totals))
    assert abs(np.mean(totals) - label.sum()) < 4 * error
    assert drawn.min() > 0


def test_allocation_respects_floor_and_population():
    mass, population = np.array([10.0, 1.0, 0.0]), np.array([4, 100, 50])
    assert allocate(mass, population, 20, minimum=2).tolist() == [4, 14, 2]
    assert allocate(mass, population, 154, minimum=2).tolist() == [4, 100, 50]
    assert allocate(np.zeros(2), np.array([1, 9]), 5, minimum=1).sum() == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"review_fraction": 0.0}, "review_fraction"),
        ({"review_fraction": float("nan")}, "review_fraction"),
        ({"slice_share": 1.0}, "slice_share"),
        ({"strategy": "chance"}, "uncertainty"),
        ({"strata": 0}, "strata"),
        ({"minimum": 0}, "minimum"),
        ({"false_negative_cost": 1, "false_positive_cost": float("inf")}, "costs"),
        ({"false_negative_cost": 0, "false_positive_cost": 0}, "one cost above 0"),
        ({"false_negative_cost": 1}, "both, or neither"),
        ({"platform_costs": {"kids": float("nan")}}, "costs"),
        ({"confirmation_share": 1.1}, "confirmation_share"),
    ],
)
def test_an_impossible_policy_is_refused(change, message):
    with pytest.raises(DesignError, match=message):
        RoutingPolicy(**({"review_fraction": 0.1} | change))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_stratum_of_every_comment_follows_from_the_stored_design(strategy):
    rng = np.random.default_rng(2)
    prob = rng.beta(0.4, 2.0, 3_000).round(2).astype(np.float32)
    keys = rng.integers(0, 2**63, prob.size, dtype=np.uint64)
    policy = RoutingPolicy(review_fraction=0.1, strategy=strategy)
    routing = design_routing(prob, keys, policy, threshold=0.3)
    top = np.isin(np.arange(prob.size), routing.row[routing.stratum == 0])
    score = review_scores(prob, strategy, threshold=0.3)
    found = strata_of(score, routing.strata, top, flagged=is_flagged(prob, 0.3))
    assert np.bincount(found).tolist() == routing.strata["population"].tolist()
    assert (found[routing.row] == routing.stratum).all()
    with pytest.raises(DesignError, match="do not divide into the strata"):
        strata_of(score[::-1] * 0.9, routing.strata, top, flagged=is_flagged(prob, 0.3))


def contradicting(prob: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return decisions of a rule engine: one in ten has nothing to do with the score."""
    return np.where(rng.random(prob.size) < 0.1, rng.random(prob.size) < 0.5, prob > 0.7)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_decisions_that_no_threshold_gives_have_strata_of_their_own(strategy):
    rng = np.random.default_rng(5)
    prob = rng.beta(0.4, 2.0, 3_000).astype(np.float32)
    flagged = contradicting(prob, rng)
    keys = rng.integers(0, 2**63, prob.size, dtype=np.uint64)
    policy = RoutingPolicy(review_fraction=0.1, strategy=strategy)
    routing = design_routing(prob, keys, policy, flagged=flagged)
    sides = routing.strata["flagged"].to_numpy()[2:]  # after the top and what the slice replaced
    assert set(sides) == {True, False}
    for stratum, side in enumerate(sides, start=2):
        assert (flagged[routing.row[routing.stratum == stratum]] == side).all()
    top = np.isin(np.arange(prob.size), routing.row[routing.stratum == 0])
    score = review_scores(prob, strategy, flagged=flagged)
    found = strata_of(score, routing.strata, top, flagged=flagged)
    assert np.bincount(found).tolist() == routing.strata["population"].tolist()
    assert (found[routing.row] == routing.stratum).all()
    with pytest.raises(DesignError, match="scores, decisions or the routing policy have changed"):
        strata_of(score, routing.strata, top, flagged=prob > 0.7)


def test_keys_and_decisions_must_fit():
    policy, keys = RoutingPolicy(review_fraction=1), np.zeros(1, np.uint64)
    with pytest.raises(DesignError, match="one key per comment"):
        design_routing([0.5], keys[1:], policy)
    with pytest.raises(DesignError, match="one decision per comment"):
        design_routing([0.5], keys, policy, flagged=np.zeros(2, bool))


def test_every_value_that_decides_who_is_reviewed_changes_the_digest():
    policy = RoutingPolicy(review_fraction=0.1)
    others = [
        replace(policy, review_fraction=0.2),
        replace(policy, slice_share=0.2),
        replace(policy, strategy="toxicity"),
        replace(policy, strata=4),
        replace(policy, minimum=1),
    ]
    assert len({policy.digest, *(other.digest for other in others)}) == 6
    # Confirmations come on top.
    assert replace(policy, confirmation_share=0.5).digest == policy.digest


@given(
    cut=st.lists(st.booleans(), min_size=60, max_size=60),
    strategy=st.sampled_from(STRATEGIES),
    seed=st.integers(0, 99),
)
def test_comments_that_were_cut_come_first_and_others_keep_their_order(cut, strategy, seed):
    rng = np.random.default_rng(seed)
    prob, keys = rng.random(60), rng.integers(0, 2**64, 60, dtype=np.uint64)
    policy, first = RoutingPolicy(review_fraction=0.5, strategy=strategy), np.array(cut)
    routing = design_routing(prob, keys, policy, cut=first)
    plain = design_routing(prob, keys, policy)
    top, usual = (made.row[made.stratum == 0] for made in (routing, plain))
    ahead = min(int(first.sum()), top.size)
    assert first[top[:ahead]].all()
    score = review_scores(prob, strategy)
    for part in (top[:ahead], top[ahead:]):
        assert (np.diff(score[part]) <= 0).all()
    assert len(routing.row) == len(plain.row)
    if not first.any():
        assert top.tolist() == usual.tolist()
    inside = np.isin(np.arange(60), top)
    found = strata_of(score, routing.strata, inside, flagged=prob > 0.5)
    assert (found[routing.row] == routing.stratum).all()
    bounds = routing.strata.loc[0, ["lower", "upper"]].tolist()
    assert bounds == [score[top].min(), score[top].max()]
