"""Prediction sets from the labels of a window: by halves, by group, and as a review score."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.statistics import conformal_prediction, fully_labelled, measure_days
from modwatch.statistics.live.labelled_day import LabelledDay
from modwatch.statistics.live.prediction_sets import crossed_sets, set_review_scores
from modwatch.statistics.live.sample import Sample


def designed(rng, size=4_000, *, wrong=0.0):
    """Return a day, and which comments are of a group about which the model is wrong.

    The most uncertain tenth has labels, and a hundredth of the others.
    """
    prob = rng.beta(0.5, 2, size)
    group = (rng.random(size) < 0.4).astype(np.int64)
    label = (rng.random(size) < prob).astype(int)
    label = np.where((group == 1) & (rng.random(size) < wrong), 1 - label, label)
    order = np.argsort(-prob * (1 - prob))
    stratum = np.ones(size, int)
    stratum[order[: size // 10]] = 0
    labelled = stratum == 0
    labelled[rng.choice(np.flatnonzero(stratum), size // 20, replace=False)] = True
    day = LabelledDay(
        prob=prob, stratum=stratum, label=label, labelled=labelled,
        population=np.bincount(stratum), sample=np.bincount(stratum[labelled]),
    )  # fmt: skip
    return day, group, label


def test_no_row_tells_of_its_own_set():
    day, group, _ = designed(np.random.default_rng(0))
    sample = Sample([day])
    rows = np.flatnonzero(day.labelled)
    before = crossed_sets(sample, sample.label, group[rows])
    for row in (0, 17, 300):
        changed = sample.label.copy()
        changed[row] = 1 - changed[row]
        after = crossed_sets(sample, changed, group[rows])
        assert np.array_equal(after[row], before[row])
    everyone = crossed_sets(sample, 1 - sample.label, group[rows])
    assert not np.array_equal(everyone, before)


def test_the_order_of_rows_does_not_matter():
    rng = np.random.default_rng(1)
    prob = rng.random(200)
    label = (rng.random(200) < prob).astype(int)
    shuffled = rng.permutation(200)
    one, other = (
        crossed_sets(Sample([fully_labelled(label[rows], prob[rows])]), label[rows].astype(float))
        for rows in (np.arange(200), shuffled)
    )
    assert np.array_equal(one[shuffled], other)


def test_half_a_toxic_comment_counts_half_for_either_label():
    """A label that is not told calibrates as one comment of each kind at half the weight."""
    prob = np.linspace(0.05, 0.95, 40)
    day = fully_labelled(np.zeros(40), prob)
    (score,) = set_review_scores([day], Sample([day]), np.full(40, 0.5), [np.zeros(40, int)])
    twice = conformal_prediction(
        np.repeat([0, 1], 40), np.tile(prob, 2), prob, coverage=0.9,
        sample_weight=np.full(80, 0.5), new_weight=np.full(40, 0.5),
    )  # fmt: skip
    assert score == pytest.approx(twice.review_score)


@given(seed=st.integers(0, 20), weights=st.sampled_from([1.0, 30.0, 300.0]))
def test_with_one_group_weights_by_design_change_no_order(seed, weights):
    """Why the what-if table has no row without groups: new comments all have the same weight."""
    rng = np.random.default_rng(seed)
    prob, new = rng.beta(0.4, 1.2, 200), rng.random(300)
    label = (rng.random(200) < prob**2).astype(int)
    weight = np.where(rng.random(200) < 0.5, 1.0, weights)
    found = conformal_prediction(label, prob, new, sample_weight=weight)
    order = np.argsort(new * (1 - new))
    assert (np.diff(found.review_score[order]) >= -1e-9).all()
    told = measure_days([fully_labelled(label, prob)], groups=[np.zeros(200, int)])
    assert "conformal" not in set(told["strategy"])


def test_two_groups_are_another_order():
    day, group, _ = designed(np.random.default_rng(2), wrong=0.3)
    sample = Sample([day])
    (score,) = set_review_scores([day], sample, sample.label, [group])
    prob = np.sort(day.prob)
    order = np.argsort(prob * (1 - prob))
    assert (np.diff(score[order]) < -0.01).any()


def test_where_every_label_is_known_the_conformal_row_is_what_its_order_reviews():
    rng = np.random.default_rng(3)
    prob = rng.beta(0.5, 2, 2_000)
    group = (rng.random(2_000) < 0.4).astype(np.int64)
    label = (rng.random(2_000) < prob).astype(int)
    label = np.where((group == 1) & (rng.random(2_000) < 0.3), 1 - label, label)
    table = measure_days(
        [fully_labelled(label, prob)], groups=[group], review_fractions=[0.2, 1.0],
        strategies=["uncertainty"],
    )  # fmt: skip
    caught = table[table["metric"] == "review_effectiveness"].set_index(["strategy", "alpha"])
    assert caught.loc[("conformal", 1.0), "value"] == 1
    wrong = (prob > 0.5) != label
    score = conformal_prediction(label, prob, prob, groups=group, new_groups=group).review_score
    reviewed = np.argsort(-score, kind="stable")[:400]
    exact = wrong[reviewed].sum() / wrong.sum()
    # Comments of equal score at the boundary are reviewed in part.
    assert caught.loc[("conformal", 0.2), "value"] == pytest.approx(exact, abs=0.01)
    assert abs(caught.loc[("uncertainty", 0.2), "value"] - exact) > 0.02


def test_estimates_by_design_are_those_of_all_comments():
    day, group, label = designed(np.random.default_rng(4), size=20_000, wrong=0.3)
    table = measure_days(
        [day], groups=[group], review_fractions=[0.1], strategies=["uncertainty"]
    ).set_index(["metric", "strategy"])
    sample = Sample([day])
    (score,) = set_review_scores([day], sample, sample.label, [group])
    order = np.argsort(day.prob, kind="stable")
    wrong = ((day.prob > 0.5) != label)[order]
    reviewed = np.argsort(-score, kind="stable")[:2_000]
    row = table.loc[("review_effectiveness", "conformal")]
    assert row["low"] <= wrong[reviewed].sum() / wrong.sum() <= row["high"]


@pytest.mark.simulation
def test_sets_cover_what_they_promise_and_apart_in_each_group():
    together, apart = [], []
    for seed in range(60):
        day, group, label = designed(np.random.default_rng(seed), wrong=0.3)
        sample = Sample([day])
        rows = np.flatnonzero(day.labelled)
        for found, of in ((together, None), (apart, group[rows])):
            sets = crossed_sets(sample, sample.label, of, seed=seed)
            hit = sets[np.arange(rows.size), label[rows]]
            every = np.average(hit, weights=sample.weight)
            inside = group[rows] == 1
            found.append([every, np.average(hit[inside], weights=sample.weight[inside])])
    assert np.mean(together, axis=0)[0] == pytest.approx(0.9, abs=0.01)
    assert np.mean(together, axis=0)[1] < 0.82
    assert np.mean(apart, axis=0) == pytest.approx([0.9, 0.9], abs=0.02)
