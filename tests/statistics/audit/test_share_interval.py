"""Estimates against svy, the survey package, and the interval on any counts."""

import itertools

import numpy as np
import polars
import pytest
import svy
from audit_drawing import counts
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from modwatch.statistics.audit.share_interval import (
    SIDES,
    IntervalOptions,
    interval,
)
from modwatch.statistics.audit.stratified import StratumCounts
from modwatch_lab.audit_designs import draw_positives


def sampled(population, labels, positives):
    return StratumCounts.from_arrays(
        population=population, labels=labels, positives=positives, score=[0.1] * len(population)
    ).weighted()


def svy_estimate(population, labels, positives):
    """Return what svy tells of the positives, given one row a label."""
    rows = [
        (number, N, N / n, int(place < k))
        for number, (N, n, k) in enumerate(zip(population, labels, positives, strict=True))
        for place in range(n)
    ]
    table = polars.DataFrame(rows, schema=["stratum", "size", "weight", "label"], orient="row")
    sample = svy.Sample(table, svy.Design(stratum="stratum", wgt="weight", pop_size="size"))
    (found,) = (
        estimate for estimate in sample.estimation.prop("label").estimates if estimate.y_level == 1
    )
    return found


SURVEYS = {
    "rare": ([90_000, 9_000, 1_000], [100, 90, 80], [0, 4, 40]),
    "one stratum": ([5_000], [200], [7]),
    "one labelled whole": ([900, 300, 50], [30, 20, 50], [1, 4, 20]),
    "eight strata": ([1_000] * 8, [12] * 8, [0, 0, 0, 1, 0, 2, 5, 9]),
}


class TestAgainstSvy:
    """svy, too, takes 1 − n/N to the first power."""

    @pytest.mark.parametrize("survey", SURVEYS)
    def test_estimate_and_error(self, survey):
        ours, theirs = sampled(*SURVEYS[survey]), svy_estimate(*SURVEYS[survey])
        assert float(ours.rate) == pytest.approx(theirs.est, rel=1e-12)
        assert float(ours.variance) == pytest.approx(theirs.se**2, rel=1e-9)


RULES = [
    IntervalOptions(level=level, sides=sides)
    for level, sides in itertools.product((0.6, 0.95), SIDES)
]


def test_the_ends_of_few_comments_do_not_exclude_the_share():
    """One comment is not labelled: 13 or 14 of 16 are positive, and 13/15 lies between."""
    low, high = interval(sampled([16], [15], [13]), IntervalOptions(level=0.6, sides="lower"))
    assert low == 13 / 15 < high


@examples(60)
@given(counts(most=20), st.sampled_from(RULES))
def test_any_counts_have_an_interval_around_the_estimate(made, rule):
    weighted = made.weighted()
    low, high = interval(weighted, rule)
    assert 0 <= low <= high <= 1
    if (weighted.unseen > 0).all():
        # The end that is not asked for is the furthest that the labels of few comments allow.
        few = weighted.unseen.min() < 1
        assert rule.sides != "lower" or few or high == pytest.approx(1)
        assert rule.sides != "upper" or few or low == 0
    assert low - 1e-9 <= weighted.rate <= high + 1e-9


@pytest.mark.parametrize("sides", SIDES)
def test_a_census_has_no_width(sides):
    made = sampled([7, 5], [7, 5], [3, 5])
    low, high = interval(made, IntervalOptions(sides=sides))
    assert low == high == pytest.approx(8 / 12)


@pytest.mark.parametrize("sides", ["both", "upper"])
def test_no_positive_among_the_labels_is_no_certainty(sides):
    _, high = interval(sampled([100_000], [300], [0]), IntervalOptions(sides=sides))
    assert 0.005 < high < 0.05


def test_a_bound_at_the_level_is_the_end_of_the_interval_at_twice_the_tail():
    made = sampled([4_000, 400], [100, 90], [6, 40])
    low, high = interval(made, IntervalOptions(level=0.9))
    bound, _ = interval(made, IntervalOptions(level=0.95, sides="lower"))
    _, above = interval(made, IntervalOptions(level=0.95, sides="upper"))
    assert [float(bound), float(above)] == pytest.approx([float(low), float(high)])


@pytest.mark.simulation
def test_the_interval_holds_the_truth():
    """100 audits of eight strata, each 95 %, less two standard errors.

    `benchmarks/audit.py` has 108 populations.
    """
    population, labels = [8_000] * 6 + [1_000] * 2, [60] * 6 + [40] * 2
    positives = [16, 40, 80, 160, 240, 400, 300, 700]
    found = draw_positives(population, positives, labels, np.random.default_rng(7), repetitions=100)
    truth, rule = sum(positives) / sum(population), IntervalOptions()
    low, high = interval(sampled(population, labels, found), rule)
    assert np.mean((low <= truth) & (truth <= high)) >= 0.9


def test_repetitions_at_once_are_those_one_by_one():
    population, labels = [9_000, 900, 90], [60, 50, 40]
    found = np.array([[0, 0, 0], [1, 4, 20], [0, 0, 40], [60, 50, 40]])
    rule = IntervalOptions()
    low, high = interval(sampled(population, labels, found), rule)
    assert low.shape == high.shape == (4,)
    for number, item in enumerate(found):
        alone = interval(sampled(population, labels, item), rule)
        assert [low[number], high[number]] == pytest.approx(np.array(alone), abs=1e-9)
