"""The default interval: what it equals, what it holds, and the distribution it rests on."""

import numpy as np
import pytest
from audit_drawing import counts
from hypothesis import given
from scipy import stats
from scipy.optimize import brentq

from modwatch.statistics.audit.inversion_interval import inversion_interval, pattern
from modwatch.statistics.audit.stratified import StratumCounts, WeightedCounts


def of(population, labels, positives, score):
    return StratumCounts.from_arrays(
        population=population, labels=labels, positives=positives, score=score
    ).weighted()


def random_sample(labels, positives):
    """Return a sample of a population without end."""
    return WeightedCounts(
        weight=np.array([1 / labels]),
        labels=np.array([labels]),
        positives=np.asarray(positives)[..., None],
        score=np.array([0.3]),
        unseen=np.array([1.0]),
    )


def mid_p(positives, labels, tail):
    """Return the ends of the mid-P Clopper–Pearson interval, found by search."""

    def below(p, level):
        at_most = stats.binom.cdf(positives, labels, p)
        return at_most - stats.binom.pmf(positives, labels, p) / 2 - level

    low = brentq(below, 1e-12, 1 - 1e-12, args=(1 - tail,), xtol=1e-13) if positives else 0.0
    high = brentq(below, 1e-12, 1 - 1e-12, args=(tail,), xtol=1e-13) if positives < labels else 1.0
    return low, high


@pytest.mark.parametrize(
    ("positives", "labels", "tail"),
    [(0, 1, 0.025), (1, 1, 0.025), (3, 10, 0.1), (12, 400, 0.025), (5, 50_000, 0.1)],
)
def test_of_a_random_sample_it_is_the_mid_p_interval(positives, labels, tail):
    found = inversion_interval(
        random_sample(labels, positives), tails=(tail, tail), hidden_share=0.0
    )
    assert [float(end) for end in found] == pytest.approx(
        mid_p(positives, labels, tail), rel=1e-6, abs=1e-9
    )


def test_a_part_of_few_comments_is_reported_more_closely():
    ends = [
        inversion_interval(of([size], [50], [5], [0.1])) for size in (10**6, 1000, 100, 60, 51, 50)
    ]
    widths = [float(high - low) for low, high in ends]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == 0


def test_with_more_positives_both_ends_rise():
    low, high = inversion_interval(random_sample(200, np.arange(201)))
    assert (np.diff(low) > 0).all()
    assert (np.diff(high[:-1]) > 0).all()
    assert (low[0], high[-1]) == (0, 1)


def test_the_blinder_the_score_may_be_the_wider_unless_the_labels_rule_it_out():
    """A third of the positives in the large stratum would be 12 of 500 labels: there is none."""
    for labels, wider in ((500, False), (20, True)):
        made = of([100_000, 10_000], [labels, 200], [0, 180], [0.001, 0.9])
        blind, seeing = (inversion_interval(made, hidden_share=part) for part in (0.3, 0.0))
        assert blind[0] == pytest.approx(seeing[0])
        assert (blind[1] > 1.05 * seeing[1]) == wider
        if not wider:
            assert blind[1] == pytest.approx(seeing[1])


def test_strata_that_are_labelled_whole_are_known():
    score = [0.001, 0.1, 0.9]
    low, high = inversion_interval(of([9_000, 500, 40], [200, 100, 40], [1, 9, 31], score))
    rest = inversion_interval(of([9_000, 500], [200, 100], [1, 9], score[:2]))
    expected = [(31 + 9_500 * float(end)) / 9_540 for end in rest]
    assert (low, high) == pytest.approx(expected)


def test_a_stratum_full_of_positives_does_not_open_the_interval():
    """What is found everywhere in a stratum cannot become more: the rest has to grow."""
    low, high = inversion_interval(of([4000, 1000], [50, 50], [0, 50], [0.0, 1.0]))
    # At the most 3 in 50 of the empty stratum, on its 80 % of the comments, and all of the other.
    assert 0.2 < high < 0.2 + 0.8 * stats.beta.ppf(0.975, 1, 50)
    assert 0.15 < low < 0.2


@given(counts())
def test_the_pattern_has_a_mean_of_one(made):
    weighted = made.weighted()
    shape = pattern(weighted)
    assert (shape >= 0).all()
    assert shape @ (weighted.weight * weighted.labels) == pytest.approx(1)
