"""Scores brought to another prevalence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from modwatch.statistics.recalibration import (
    Calibration,
    KnownLabels,
    calibrated,
    shift_to_mean,
    shown_off,
    shrunk,
)

SCORE = st.floats(0, 1)


def shifted(score, shift):
    return Calibration(intercept=shift).probability(score)


@given(st.lists(SCORE, min_size=1), st.floats(0.001, 0.999))
def test_the_mean_is_what_was_expected(score, prevalence):
    assert shifted(score, shift_to_mean(score, prevalence)).mean() == pytest.approx(prevalence)


@given(st.lists(st.tuples(SCORE, st.integers(0, 9)), min_size=1), st.floats(0.001, 0.999))
def test_counts_are_as_scores_written_out(rows, prevalence):
    score, count = zip(*rows, strict=True)
    if not sum(count):
        return
    written = np.repeat(score, count)
    assert shift_to_mean(score, prevalence, counts=count) == pytest.approx(
        shift_to_mean(written, prevalence), abs=1e-6
    )


@given(st.lists(st.floats(0, 1)), st.floats(-50, 50))
def test_the_order_of_scores_is_kept(score, shift):
    moved = shifted(score, shift)
    assert ((moved >= 0) & (moved <= 1)).all()
    assert (np.diff(moved[np.argsort(score, kind="stable")]) >= 0).all()


def test_odds_are_multiplied():
    assert special.logit(shifted([0.2, 0.7], 1.5)) == pytest.approx(special.logit([0.2, 0.7]) + 1.5)


def test_scores_of_exactly_0_and_1_may_be_wrong():
    found = Calibration(intercept=1.0).probability([0.0, 1.0])
    assert 0 < found[0] < 1e-5
    assert 1 - 1e-5 < found[1] < 1


def labelled(score, chance, size, generator, weight=1.0):
    """Return labels of `size` random comments."""
    rows = generator.integers(0, score.size, size)
    return KnownLabels(
        score=score[rows],
        label=(generator.random(size) < chance[rows]).astype(np.int64),
        weight=np.full(size, weight),
        source="slice",
    )


@given(
    st.lists(st.tuples(SCORE, st.integers(1, 1000)), min_size=1, max_size=40),
    st.lists(st.tuples(SCORE, st.integers(0, 1), st.floats(0.1, 1e6)), min_size=1, max_size=40),
)
def test_any_labels_make_a_monotone_map(scores, known):
    score, count = (np.array(column) for column in zip(*scores, strict=True))
    place, label, weight = (np.array(column) for column in zip(*known, strict=True))
    made = calibrated(
        score, count, KnownLabels(score=place, label=label, weight=weight, source="slice")
    )
    assert (made.labels, made.positives) == (len(known), label.sum())
    moved = made.probability(np.sort(score))
    assert ((moved >= 0) & (moved <= 1)).all()
    assert (np.diff(moved) >= 0).all()


@given(st.lists(st.tuples(SCORE, st.integers(1, 1000)), min_size=1, max_size=40))
def test_without_labels_scores_are_drawn_together_and_keep_their_mean(rows):
    score, count = (np.array(column) for column in zip(*rows, strict=True))
    made = shrunk(score, count)
    assert (made.slope, made.source, made.labels) == (0.7, "scores", 0)
    found = np.average(made.probability(score), weights=count)
    assert found == pytest.approx(np.average(score, weights=count), abs=2e-3)


def test_what_was_wrong_with_the_scores_is_undone():
    generator = np.random.default_rng(0)
    chance = special.expit(generator.normal(-5, 2, 50_000))
    for intercept, slope in ((3.0, 1.0), (0.0, 0.6), (2.0, 1.6)):
        score = special.expit(intercept + slope * special.logit(chance))
        known = labelled(score, chance, 20_000, generator)
        made = calibrated(score, np.ones(score.size, int), known)
        assert made.slope == pytest.approx(1 / slope, rel=0.12)
        assert made.probability(score).mean() == pytest.approx(chance.mean(), rel=0.1)


def test_a_score_that_says_nothing_or_the_opposite_is_made_flat():
    generator = np.random.default_rng(0)
    score = special.expit(generator.normal(-3, 2, 50_000))
    for chance in (np.full(score.size, 0.05), 0.1 * (1 - score)):
        made = calibrated(
            score, np.ones(score.size, int), labelled(score, chance, 3_000, generator)
        )
        assert made.slope < 0.15


def test_few_labels_change_little():
    score = np.linspace(0.01, 0.5, 1_000)
    known = KnownLabels(
        score=np.array([0.4]), label=np.array([0]), weight=np.array([1.0]), source="slice"
    )
    made = calibrated(score, np.ones(1_000, int), known)
    assert made.slope == pytest.approx(0.7, abs=0.1)
    assert made.probability(score).mean() == pytest.approx(score.mean() * 10 / 11)


def test_labels_stand_for_as_many_comments_as_their_weight():
    """Two in three labels are of the few likely comments, as after routing by uncertainty."""
    generator = np.random.default_rng(3)
    score = np.repeat([0.02, 0.4], [98_000, 2_000])
    few = labelled(np.array([0.02]), np.array([0.01]), 2_000, generator, weight=49.0)
    many = labelled(np.array([0.4]), np.array([0.3]), 4_000, generator, weight=0.5)
    both = {
        name: np.concatenate([getattr(few, name), getattr(many, name)])
        for name in ("score", "label", "weight")
    }
    made = calibrated(score, np.ones(score.size, int), KnownLabels(**both, source="slice"))
    assert made.probability(score).mean() == pytest.approx(0.01 * 0.98 + 0.3 * 0.02, rel=0.2)


def test_labels_tell_that_scores_are_off_and_where_they_are():
    rng = np.random.default_rng(0)
    logit = rng.normal(-2, 2, 2000)
    line = Calibration(intercept=-1.0, slope=0.6)
    label = rng.random(2000) < line.probability(special.expit(logit))
    found = shown_off(special.expit(logit), label)
    assert found is not None
    assert found.probability([0.2]) == pytest.approx(line.probability([0.2]), abs=0.04)
    assert (found.labels, found.positives) == (2000, int(label.sum()))


def test_labels_of_calibrated_scores_tell_nothing():
    """At 1 % each: 200 times at most six, but once in 250 years."""
    rng = np.random.default_rng(0)
    told = 0
    for _ in range(200):
        score = rng.beta(0.4, 4, 300)
        told += shown_off(score, rng.random(300) < score) is not None
    assert told <= 6


@pytest.mark.parametrize(
    ("score", "label"),
    [
        (np.zeros(0), np.zeros(0)),
        (np.full(500, 0.3), np.zeros(500)),
        (np.linspace(0.99, 0.01, 500), np.arange(500) >= 250),
        (np.array([0.0, 1.0] * 100), np.array([1, 0] * 100)),
    ],
)
def test_any_scores_and_labels_give_a_rising_line_or_none(score, label):
    found = shown_off(score, label)
    assert found is None or (0 <= found.slope < 3.01 and np.isfinite(found.intercept))
