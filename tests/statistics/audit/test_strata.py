"""Strata: ranges of the score that any machine cuts alike."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.errors import DesignError, MetricInputError
from modwatch.statistics.audit.strata import EVEN_SHARE, METHODS, Strata, strata

#: Few distinct values, so that ties are common, and the ends.
SCORES = st.lists(
    st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 0.9, 1.0]) | st.floats(0, 1), min_size=1
)


@given(SCORES, st.sampled_from(METHODS), st.integers(1, 12))
def test_no_stratum_is_empty_and_equal_scores_stay_together(score, method, bins):
    made = strata(score, method=method, bins=bins)
    stratum = made.assign(score)
    assert 1 <= len(made) <= bins
    assert np.unique(stratum).tolist() == list(range(len(made)))
    assert list(made.edges) == sorted(set(made.edges))
    assert set(made.edges) <= set(score)
    order = np.argsort(score, kind="stable")
    assert (np.diff(stratum[order]) >= 0).all()
    assert len({(value, number) for value, number in zip(score, stratum, strict=True)}) == len(
        set(score)
    )


@given(SCORES, st.sampled_from(METHODS), st.integers(1, 12), st.randoms(use_true_random=False))
def test_neither_order_nor_counting_changes_the_edges(score, method, bins, random):
    made = strata(score, method=method, bins=bins)
    shuffled = score.copy()
    random.shuffle(shuffled)
    assert strata(shuffled, method=method, bins=bins) == made
    value, count = np.unique(score, return_counts=True)
    assert strata(value, method=method, bins=bins, counts=count) == made
    nobody = np.append(count, 0)
    assert strata(np.append(value, 0.123), method=method, bins=bins, counts=nobody) == made


def test_quantiles_hold_as_many_comments_each():
    made = strata(np.arange(1000) / 1000, method="quantile", bins=8)
    assert np.bincount(made.assign(np.arange(1000) / 1000)).tolist() == [125] * 8


def test_equal_widths_are_tenths():
    assert strata(np.arange(100) / 100, method="equal_width", bins=10).edges == pytest.approx(
        np.arange(1, 10) / 10
    )


def test_an_equal_width_without_comments_is_left_out():
    assert strata([0.05, 0.95], method="equal_width", bins=10).edges == (0.95,)


def test_sqrt_mass_is_the_rule_of_dalenius_and_hodges():
    """Cumulative √f: classes of 1/1000 with f = 100, 400, 900 and 1,600 have √f 10, 20, 30, 40."""
    classes = [0.1, 0.2, 0.3, 0.4]
    made = strata(classes, method="sqrt_mass", bins=2, counts=[100, 400, 900, 1600])
    # Of 100, the first three have 60 and the middle of the third is at 45.
    assert made.edges == (0.4,)


def test_neyman_strata_have_as_much_spread_each():
    score = np.linspace(0, 1, 20_001) ** 3
    made = strata(score, method="neyman", bins=8)
    spread = np.sqrt(score * (1 - score))
    mass = (1 - EVEN_SHARE) * spread / spread.sum() + EVEN_SHARE / score.size
    assert np.bincount(made.assign(score), weights=mass) == pytest.approx([1 / 8] * 8, abs=1e-3)


def test_neyman_goes_by_what_is_expected_of_a_score():
    score = np.linspace(0, 1, 1001)
    sure = np.where(score < 0.5, 0.0, 0.5)
    edges = strata(score, method="neyman", bins=4, expected=sure).edges
    assert sum(edge >= 0.5 for edge in edges) == 3


def test_scores_that_are_sure_are_cut_as_quantiles():
    assert strata([0.0, 1.0], method="neyman", bins=2).edges == (1.0,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "kmeans"}, "Strata method must be one of .*got 'kmeans'"),
        ({"bins": 0}, "Number of strata must be at least 1, got 0"),
        ({"score": []}, "There are no comments"),
        ({"counts": [0, 0]}, "There are no comments"),
    ],
)
def test_impossible_strata_are_refused(changes, message):
    given = {"score": [0.1, 0.2]} | changes
    with pytest.raises(DesignError, match=message):
        strata(given.pop("score"), **given)


@pytest.mark.parametrize(
    "changes",
    [
        {"score": [0.1, 1.2]},
        {"score": [0.1, np.nan]},
        {"counts": [1]},
        {"counts": [1, -1]},
        {"counts": [1, 0.5]},
        {"counts": [1, np.nan]},
        {"expected": [0.5]},
        {"expected": [0.5, 2.0]},
    ],
)
def test_arrays_that_do_not_fit_are_refused(changes):
    given = {"score": [0.1, 0.2]} | changes
    with pytest.raises(MetricInputError):
        strata(given.pop("score"), **given)


@pytest.mark.parametrize("score", [[np.nan], [-0.1], [1.5]])
def test_a_score_outside_has_no_stratum(score):
    with pytest.raises(MetricInputError, match=r"score (must|contains)"):
        Strata(method="quantile", edges=(0.5,)).assign(score)
