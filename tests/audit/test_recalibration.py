"""Scores brought to another prevalence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from modwatch.audit.recalibration import prior_shift, shifted
from modwatch.errors import DesignError, MetricInputError

INSIDE = st.floats(1e-12, 1 - 1e-12)


@given(st.lists(INSIDE, min_size=1), st.floats(0.001, 0.999))
def test_the_mean_is_what_was_expected(score, prevalence):
    assert shifted(score, prior_shift(score, prevalence)).mean() == pytest.approx(prevalence)


@given(st.lists(st.tuples(INSIDE, st.integers(0, 9)), min_size=1), st.floats(0.001, 0.999))
def test_counts_are_as_scores_written_out(rows, prevalence):
    score, count = zip(*rows, strict=True)
    if not sum(count):
        return
    written = np.repeat(score, count)
    assert prior_shift(score, prevalence, counts=count) == pytest.approx(
        prior_shift(written, prevalence), abs=1e-9
    )


@given(st.lists(st.floats(0, 1)), st.floats(-50, 50))
def test_the_order_of_scores_is_kept(score, shift):
    moved = shifted(score, shift)
    assert ((moved >= 0) & (moved <= 1)).all()
    assert (np.diff(moved[np.argsort(score, kind="stable")]) >= 0).all()


def test_odds_are_multiplied():
    assert special.logit(shifted([0.2, 0.7], 1.5)) == pytest.approx(special.logit([0.2, 0.7]) + 1.5)


def test_training_on_as_many_of_both_is_undone():
    """Scores of a model trained at 1/2, used at 1 %: the shift is the logit of the prevalence."""
    generator = np.random.default_rng(0)
    label = generator.random(400_000) < 0.01
    latent = generator.normal(2.0 * label, 1.0)
    balanced = special.expit(2.0 * latent - 2.0)
    assert prior_shift(balanced, 0.01) == pytest.approx(special.logit(0.01), abs=0.05)


def test_scores_close_to_0_are_moved_all_the_way():
    score = np.full(10, 1e-300)
    assert shifted(score, prior_shift(score, 0.5)).mean() == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("score", "prevalence", "counts", "message"),
    [
        ([0.5], 0.0, None, r"must be in \(0, 1\)"),
        ([0.5], 1.0, None, r"must be in \(0, 1\)"),
        ([0.5], np.nan, None, r"must be in \(0, 1\)"),
        ([], 0.1, None, "There are no comments"),
        ([0.5], 0.1, [0], "There are no comments"),
        ([1.0, 0.5], 0.1, None, "exactly 0 or 1"),
        ([0.0, 0.5], 0.6, None, "exactly 0 or 1"),
        ([0.0], 0.6, None, "exactly 0 or 1"),
    ],
)
def test_a_prevalence_that_cannot_be_reached_is_refused(score, prevalence, counts, message):
    with pytest.raises(DesignError, match=message):
        prior_shift(score, prevalence, counts=counts)


@pytest.mark.parametrize(
    ("score", "counts"), [([1.5], None), ([np.nan], None), ([0.5], [1, 2]), ([0.5], [-1])]
)
def test_arrays_that_do_not_fit_are_refused(score, counts):
    with pytest.raises(MetricInputError):
        prior_shift(score, 0.1, counts=counts)


@pytest.mark.parametrize(("score", "shift"), [([1.5], 0.0), ([0.5], np.nan), ([0.5], np.inf)])
def test_a_shift_of_nothing_sensible_is_refused(score, shift):
    with pytest.raises(MetricInputError):
        shifted(score, shift)
