"""The second stage of an audit goes where the first one, or the score, has reason to look."""

import numpy as np
import pytest
from audit_drawing import counts
from hypothesis import given
from hypothesis import strategies as st

from modwatch.statistics.audit.stages import next_stage, spread
from modwatch.statistics.audit.stratified import StratumCounts


@given(counts(most=12), st.integers(0, 10_000))
def test_the_labels_are_spent_on_what_is_left(made, more):
    left = made.population - made.labels
    if not left.any():
        return
    labels = int(np.minimum(left, 2).sum()) + more
    found = next_stage(made, labels)
    assert found.sum() == min(labels, left.sum())
    assert (found <= left).all()
    assert (found[left > 0] >= 1).all()


def test_a_few_positives_and_nothing_else_do_not_settle_a_stratum():
    first = StratumCounts.from_arrays(
        population=[1_000] * 2, labels=[3, 60], positives=[3, 30], score=[0.5, 0.5]
    )
    assert spread(first)[0] == pytest.approx(np.sqrt(0.8 * 0.2))


def test_more_labels_go_where_positives_were_found():
    population, labels, score = [1_000] * 3, [50] * 3, [0.05] * 3
    found = next_stage(
        StratumCounts.from_arrays(
            population=population, labels=labels, positives=[0, 10, 0], score=score
        ),
        300,
    )
    # All that the promise leaves: an eleventh of the labels.
    assert found[1] > found[0] + 20
    assert found[0] == pytest.approx(found[2], abs=1)


def test_where_nothing_was_found_the_score_decides():
    found = next_stage(
        StratumCounts.from_arrays(
            population=[1_000] * 2, labels=[50] * 2, positives=[0, 0], score=[0.001, 0.4]
        ),
        200,
    )
    assert found[1] > found[0] + 10


def test_a_stratum_labelled_whole_gets_none():
    first = StratumCounts.from_arrays(
        population=[900, 20], labels=[30, 20], positives=[1, 9], score=[0.01, 0.5]
    )
    assert next_stage(first, 100).tolist() == [100, 0]
