"""Flip rates from retests, against closed forms and planted rates."""

import numpy as np
import pytest
from disagreeing_people import world
from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.errors import MetricInputError
from modwatch.statistics.disagreement import (
    Annotations,
    estimate_flip_rates,
    fixed_flip_rate,
    flip_rate,
    retest_flip_rates,
)


def test_the_papers_example():
    """Section 5.2.1: r = 0.291 gives 0.176."""
    assert flip_rate(0.291) == pytest.approx(0.1767, abs=1e-4)


@given(rate=st.floats(0, 1), classes=st.integers(2, 20))
def test_it_inverts_the_disagreement_of_two_labels(rate, classes):
    p = rate * (1 - 1 / classes)
    r = 1 - ((1 - p) ** 2 + p**2 / (classes - 1))
    assert flip_rate(min(r, 1 - 1 / classes), classes=classes) == pytest.approx(p, abs=1e-6)


@pytest.mark.parametrize(("r", "classes"), [(0.51, 2), (-0.1, 2), (0.7, 3), (float("nan"), 2)])
def test_labels_that_differ_by_chance_have_no_flip_rate(r, classes):
    with pytest.raises(MetricInputError, match="have no flip rate"):
        flip_rate(r, classes=classes)


@pytest.mark.simulation
def test_planted_rates_are_found_within_a_hundredth():
    """With 2,000 retests a stratum, over 12 seeds: the mean has a standard error of 0.001."""
    misses = []
    for seed in range(12):
        made = world(seed, items=2_500, annotators=4, retests=0.2)
        misses.append(retest_flip_rates(made.annotations, strata=1).mean - made.flip_rate)
    assert np.abs(misses).mean() < 0.01
    assert abs(np.mean(misses)) < 0.003


def test_strata_that_do_not_differ_are_pooled():
    found = estimate_flip_rates(world(3).annotations)
    assert found.method == "pooled"
    assert len(found.table) == 1
    assert "do not differ" in found.reason


def test_hard_items_have_higher_rates():
    made = world(4, annotators=20, hard=True)
    found = estimate_flip_rates(made.annotations)
    assert found.method == "strata"
    easy, hard = found.table["flip_rate"].iloc[[0, -1]]
    assert easy < 0.08 < 0.15 < hard
    assert (found.table["flip_rate_low"] <= found.table["flip_rate"]).all()
    assert (found.table["flip_rate"] <= found.table["flip_rate_high"]).all()


def test_few_annotators_are_stratified_by_what_their_labels_do_not_influence():
    made = world(5, hard=True)
    found = estimate_flip_rates(made.annotations, by=made.prob)
    assert "`by`" in found.reason
    assert len(found.table) == 10


def test_the_percentiles_hold_the_rate():
    """Both together leave out 10 %."""
    held = 0
    for seed in range(40):
        made = world(seed, items=600, annotators=3, retests=0.3)
        row = retest_flip_rates(made.annotations, strata=1).table.iloc[0]
        held += row["flip_rate_low"] <= made.flip_rate <= row["flip_rate_high"]
    assert held >= 32


def test_a_stratum_without_retests_borrows_from_the_nearest_and_says_so():
    people = list(range(9))
    agreed = [(i, p, int(p == 0 and i % 4 == 0)) for i in range(400) for p in people]
    split = [(1000 + i, p, p % 2) for i in range(5) for p in people]
    again = [(i, 8, int(i % 10 == 0)) for i in range(400)]
    item, annotator, label = zip(*agreed, *split, *again, strict=True)
    annotations = Annotations.from_columns(item=item, annotator=annotator, label=label)
    table = retest_flip_rates(annotations, strata=10).table
    assert table["borrowed"].iloc[-1]
    assert table["flip_rate"].iloc[-1] == table["flip_rate"][~table["borrowed"]].iloc[-1]


def test_a_stratum_at_chance_is_named():
    item = np.tile(np.arange(200), 4)
    annotator = np.repeat([0, 1, 0, 1], 200)
    label = np.r_[np.zeros(400), np.ones(400)].astype(int)
    annotations = Annotations.from_columns(item=item, annotator=annotator, label=label)
    with pytest.raises(MetricInputError, match="stratum 0: 400 of 400 labels given again differ"):
        retest_flip_rates(annotations, strata=1)


def test_too_few_retests_are_an_error():
    with pytest.raises(MetricInputError, match=r"there are . retests; at least 100"):
        retest_flip_rates(world(0, items=40, retests=0.02).annotations)
    with pytest.raises(MetricInputError, match="by has 3 values for 200 items"):
        retest_flip_rates(world(0, items=200).annotations, by=[1, 2, 3])


def test_a_known_rate():
    annotations = world(0, items=50).annotations
    assert set(fixed_flip_rate(annotations, 0.1).rates("high")) == {0.1}
