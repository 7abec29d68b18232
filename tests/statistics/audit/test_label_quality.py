"""What people's errors do to the figures, and undone again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.statistics.audit.label_quality import corrected, rogan_gladen

ERRORS = st.tuples(st.floats(0, 0.45), st.floats(0, 0.45))


@given(st.floats(0, 1), ERRORS)
def test_it_undoes_what_errors_do(truth, errors):
    false_positive, false_negative = errors
    seen = truth * (1 - false_negative) + (1 - truth) * false_positive
    found = float(rogan_gladen(seen, false_positive, false_negative))
    assert found == pytest.approx(truth, abs=1e-9)


def test_shares_of_many_audits_at_once():
    assert rogan_gladen(np.array([0.02, 0.5]), 0.02, 0.0) == pytest.approx([0.0, 0.48 / 0.98])


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.001, 0.999))
def test_without_errors_recall_stays_as_it_was_reported(precision, missed, recall):
    (row,) = corrected(precision, missed, (500, 9_500), errors=[(0.0, 0.0)], recall=recall)
    if precision > 1e-9 and missed > 1e-9:
        assert row.recall == pytest.approx(recall)


def test_recall_free_of_bias_keeps_its_distance_and_stays_a_share():
    (plain,) = corrected(0.8, 0.01, (100, 9_900), errors=[(0.002, 0.1)])
    (row,) = corrected(0.8, 0.01, (100, 9_900), errors=[(0.002, 0.1)], recall=0.44)
    assert 0 < plain.recall - row.recall < 0.01  # 80 / 179 is 0.447
    (all_found,) = corrected(0.8, 0.001, (100, 9_900), errors=[(0.002, 0.0)], recall=0.88)
    assert (all_found.recall, all_found.cut) == (1.0, True)


@given(
    st.floats(0.01, 1), st.floats(0.001, 1), st.integers(1, 10**6), st.integers(1, 10**6), ERRORS
)
def test_the_true_figures_come_back(precision, missed, flagged, unflagged, errors):
    false_positive, false_negative = errors

    def seen(truth):
        return min(truth * (1 - false_negative) + (1 - truth) * false_positive, 1.0)

    (row,) = corrected(seen(precision), seen(missed), (flagged, unflagged), errors=[errors])
    found, lost = flagged * precision, unflagged * missed
    assert row.precision == pytest.approx(precision, abs=1e-9)
    assert row.prevalence_unflagged == pytest.approx(missed, abs=1e-9)
    assert row.recall == pytest.approx(found / (found + lost), rel=1e-5)
    assert (row.false_positive, row.false_negative) == errors


def test_errors_that_explain_all_positives_are_reported():
    (row,) = corrected(0.8, 0.01, (100, 9900), errors=[(0.02, 0.0)])
    assert row.cut
    assert (row.prevalence_unflagged, row.recall) == (0.0, 1.0)


def test_of_no_positive_there_is_no_recall():
    (row,) = corrected(0.01, 0.001, (100, 9900), errors=[(0.02, 0.0)])
    assert row.cut
    assert row.recall is None
    (nothing,) = corrected(0.0, 0.0, (100, 9900), errors=[(0.0, 0.0)])
    assert nothing.recall is None
    assert not nothing.cut
