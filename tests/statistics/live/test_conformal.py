"""Conformal prediction: the guarantee over distributions, against the textbook's quantile."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.errors import MetricInputError
from modwatch.statistics import (
    conformal_prediction,
    fully_labelled,
    measure_days,
)
from modwatch.statistics.live.conformal import crossed_sets, has_enough_labels, set_review_scores
from modwatch.statistics.live.labelled_day import LabelledDay
from modwatch.statistics.live.sample import Sample

PROB = st.lists(st.integers(0, 20).map(lambda k: k / 20), min_size=1, max_size=40)


@given(prob=PROB, new=PROB, coverage=st.sampled_from([0.5, 0.8, 0.9, 0.97]), seed=st.integers(0, 9))
def test_equal_weights_are_the_textbooks_quantile(prob, new, coverage, seed):
    """Labels whose score is at most the ⌈(m+1)·coverage⌉-th smallest (Angelopoulos & Bates)."""
    label = np.random.default_rng(seed).integers(0, 2, len(prob))
    score = np.sort(np.where(label == 1, 1 - np.array(prob), prob))
    rank = int(np.ceil(round((len(prob) + 1) * coverage, 9)))
    limit = score[rank - 1] if rank <= len(prob) else np.inf
    found = conformal_prediction(label, prob, new, coverage=coverage, by_label=False)
    scores = np.stack([np.array(new), 1 - np.array(new)], axis=1)
    assert np.array_equal(found.contains, scores <= limit)


def stream(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels, probabilities and groups; the model is worse for group 1."""
    group = (rng.random(size) < 0.2).astype(int)
    severity = rng.beta(0.5, 2, size)
    label = (rng.random(size) < severity).astype(int)
    noise = rng.normal(0, np.where(group == 1, 0.35, 0.1), size)
    return label, np.clip(severity + noise, 0, 1), group


@given(prob=PROB, new=PROB, coverage=st.sampled_from([0.5, 0.9]), seed=st.integers(0, 9))
def test_a_label_is_calibrated_with_the_comments_that_have_it(prob, new, coverage, seed):
    label = np.random.default_rng(seed).integers(0, 2, len(prob))
    found = conformal_prediction(label, prob, new, coverage=coverage)
    for one in (0, 1):
        own = label == one
        alone = conformal_prediction(
            label[own], np.array(prob)[own], new, coverage=coverage, by_label=False
        )
        assert np.array_equal(found.p_value[:, one], alone.p_value[:, one])


@pytest.mark.simulation
def test_weights_make_up_for_a_design():
    """All comments near the threshold are labelled, and a fiftieth of the others."""
    weighted, plain = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y, p, _ = stream(rng, 5_000)
        pi = np.where(np.abs(p - 0.5) < 0.1, 1.0, 0.05)
        labelled = rng.random(5_000) < pi
        new_y, new_p, _ = stream(rng, 2_000)
        new_pi = np.where(np.abs(new_p - 0.5) < 0.1, 1.0, 0.05)
        for found, expected in (
            (weighted, {"sample_weight": 1 / pi[labelled], "new_weight": 1 / new_pi}),
            (plain, {}),
        ):
            sets = conformal_prediction(y[labelled], p[labelled], new_p, by_label=False, **expected)
            found.append(sets.contains[np.arange(2_000), new_y].mean())
    assert np.mean(weighted) == pytest.approx(0.9, abs=0.01)
    assert abs(np.mean(plain) - 0.9) > 0.03


def test_a_group_that_no_one_labelled_gets_both_labels():
    found = conformal_prediction(
        [0, 1], [0.1, 0.9], [0.0, 0.0], groups=["a", "a"], new_groups=["a", "b"]
    )
    assert found.size.tolist() == [2, 2]
    sure = conformal_prediction(
        [0, 1] * 20, [0.1, 0.9] * 20, [0.0, 0.0], groups=["a"] * 40, new_groups=["a", "b"]
    )
    assert sure.size.tolist() == [1, 2]


@pytest.mark.parametrize("names", [["a", None], [1.0, np.nan], pd.Series(["a", None], dtype="str")])
def test_a_missing_group_is_refused(names):
    with pytest.raises(MetricInputError, match="1 values of new_groups are missing"):
        conformal_prediction([0, 1], [0.1, 0.9], [0.2, 0.8], groups=["a", "a"], new_groups=names)


def test_a_new_comment_without_weight_has_the_largest():
    y, p = [0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9]
    whole = conformal_prediction(y, p, [0.0, 1.0])
    assert (whole.p_value > 0).all()
    assert (
        conformal_prediction(y, p, [0.0, 1.0], new_weight=[0, 0]).p_value == whole.p_value
    ).all()


def test_review_scores_put_ambiguous_comments_first():
    y = np.append(np.tile([0, 0, 0, 1, 1, 1, 0, 1], 10), 1)
    p = np.append(np.tile([0.1, 0.2, 0.3, 0.7, 0.8, 0.9, 0.6, 0.4], 10), 0.2)
    found = conformal_prediction(y, p, [0.05, 0.55, 0.25], by_label=False)
    assert found.size.tolist() == [1, 2, 1]
    assert np.argsort(-found.review_score).tolist() == [1, 2, 0]
    assert (found.review_score < 3).all()


@pytest.mark.parametrize(("coverage", "weight"), [(0.6, 1.0), (0.99, 1.0), (0.9, 30.0)])
def test_without_groups_the_review_score_never_contradicts_the_uncertainty(coverage, weight):
    """Why the what-if table has no row without groups, whatever the weights by design."""
    rng = np.random.default_rng(3)
    prob, new = rng.beta(0.4, 1.2, 400), rng.random(600)
    label = (rng.random(400) < prob**2).astype(int)
    made = conformal_prediction(
        label, prob, new, coverage=coverage, by_label=False,
        sample_weight=np.where(rng.random(400) < 0.5, 1.0, weight),
    )  # fmt: skip
    order = np.argsort(new * (1 - new))
    assert (np.diff(made.review_score[order]) >= -1e-9).all()
    result = measure_days([fully_labelled(label, prob)], groups=[np.zeros(400, int)])
    assert "conformal" not in set(result["strategy"])


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


def test_half_a_toxic_comment_counts_half_for_either_label():
    """A label that is not told calibrates as one comment of each kind at half the weight."""
    prob = np.linspace(0.05, 0.95, 40)
    day = fully_labelled(np.zeros(40), prob)
    (score,) = set_review_scores([day], Sample([day]), np.full(40, 0.5), [np.zeros(40, int)])
    twice = conformal_prediction(
        np.repeat([0, 1], 40), np.tile(prob, 2), prob, by_label=False,
        sample_weight=np.full(80, 0.5), new_weight=np.full(40, 0.5),
    )  # fmt: skip
    assert score == pytest.approx(twice.review_score)


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
    score = conformal_prediction(
        label, prob, prob, groups=group, new_groups=group, by_label=False
    ).review_score
    reviewed = np.argsort(-score, kind="stable")[:400]
    exact = wrong[reviewed].sum() / wrong.sum()
    # Comments of equal score at the boundary are reviewed in part.
    assert caught.loc[("conformal", 0.2), "value"] == pytest.approx(exact, abs=0.01)
    assert abs(caught.loc[("uncertainty", 0.2), "value"] - exact) > 0.02


@pytest.mark.parametrize("of_group", [False, True])
def test_a_rows_set_is_the_one_that_all_others_make(of_group):
    day, group, _ = designed(np.random.default_rng(5), size=1_000)
    sample, codes = Sample([day]), group[np.flatnonzero(day.labelled)]
    toxic = np.random.default_rng(0).random(codes.size)
    found = crossed_sets(sample, toxic, codes if of_group else None)
    for row in range(0, codes.size, 7):
        rest = np.delete(np.arange(codes.size), row)
        if of_group:
            rest = rest[codes[rest] == codes[row]]
        part = toxic[rest], sample.prob[rest], sample.weight[rest]
        made = conformal_prediction(
            np.repeat([0, 1], rest.size), np.tile(part[1], 2), sample.prob[[row]],
            sample_weight=np.r_[part[2] * (1 - part[0]), part[2] * part[0]],
            new_weight=sample.weight[[row]],
        )  # fmt: skip
        assert made.contains[0].tolist() == found[row].tolist()


def test_a_group_with_few_labels_of_a_kind_takes_those_of_all_groups():
    rng = np.random.default_rng(0)
    prob = np.r_[rng.uniform(0, 0.5, 200), rng.uniform(0.4, 1, 200)]
    label, group = np.repeat([0, 1], 200), np.tile([0, 1], 200)
    label[(group == 1) & (np.arange(400) > 214)] = 0  # leaves seven toxic ones
    sample = Sample([fully_labelled(label, prob)])
    enough = has_enough_labels(sample.weight, sample.label, group)
    assert enough.tolist() == [[True, True], [True, False]]
    apart, together = (crossed_sets(sample, sample.label, of) for of in (group, None))
    few = group == 1
    assert np.array_equal(apart[few, 1], together[few, 1])
    assert not np.array_equal(apart[few, 0], together[few, 0])
