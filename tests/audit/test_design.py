"""From scores to strata and labels: what may be asked for, and what comes out."""

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from modwatch.audit.allocation import MINIMUM
from modwatch.audit.design import (
    ALLOCATIONS,
    FLAGGED_LEAST,
    FLAGGED_MOST,
    DesignOptions,
    ScoreCounts,
    design,
)
from modwatch.audit.strata import METHODS
from modwatch.errors import DesignError, MetricInputError

SCORES = st.lists(st.floats(0, 1), max_size=60)
OPTIONS = st.builds(
    DesignOptions,
    method=st.sampled_from(METHODS),
    bins=st.integers(1, 12),
    allocation=st.sampled_from(ALLOCATIONS),
    floor=st.floats(0, 1),
    flagged_share=st.none() | st.floats(0.01, 0.99),
)


def counted(scores, times=1):
    made = ScoreCounts.of(scores)
    return ScoreCounts(score=made.score, count=made.count * times)


@given(SCORES, SCORES, st.integers(1, 1000), st.integers(0, 3000), OPTIONS)
def test_labels_and_comments_are_all_accounted_for(flagged, unflagged, times, more, options):
    if not flagged and not unflagged:
        return
    sides = counted(flagged, times), counted(unflagged, times)
    # No side has more strata than distinct scores, or than it may.
    least = MINIMUM * (
        min(4, options.bins, sides[0].score.size) + min(options.bins, sides[1].score.size)
    )
    made = design(*sides, least + more, options)
    comments = sides[0].comments + sides[1].comments
    assert made.labels == min(least + more, comments)
    for side, given_ in zip((made.flagged, made.unflagged), sides, strict=True):
        assert (side is None) == (given_.comments == 0)
        if side:
            assert side.population.sum() == given_.comments
            assert side.population.shape == side.labels.shape == side.score.shape
            assert (side.labels >= np.minimum(side.population, MINIMUM)).all()
            assert (side.labels <= side.population).all()
            assert ((side.score >= 0) & (side.score <= 1)).all()
            stratum = side.strata.assign(given_.score)
            assert np.bincount(stratum, given_.count).tolist() == side.population.tolist()
            mean = np.bincount(stratum, given_.count * given_.score) / side.population
            assert side.score == pytest.approx(mean)


@examples(40)
@given(st.floats(0.2, 6), st.floats(0.5, 0.99), st.integers(200, 5000))
def test_flagged_comments_get_their_part(power, precise, labels):
    unflagged = ScoreCounts.of(np.linspace(0.001, 0.8, 20_000) ** power)
    flagged = ScoreCounts.of(np.linspace(precise, 1, 10_000))
    made = design(flagged, unflagged, labels)
    share = made.flagged.labels.sum() / labels
    assert FLAGGED_LEAST - 1 / labels <= share <= FLAGGED_MOST + 1 / labels


def test_the_part_of_the_flagged_is_the_one_with_the_closest_recall():
    """By the scores alone, and the rules of both sides: no other part of 5 to 60 % does better."""
    flagged = ScoreCounts.of(np.linspace(0.3, 1, 3_000))
    unflagged = ScoreCounts.of(np.linspace(0, 0.8, 30_000) ** 3)

    def error(part):
        options = DesignOptions(flagged_share=part, floor=0.0)
        made = design(flagged, unflagged, 1_000, options)
        return sum(
            float(
                ((weight := side.population / side.population.sum()) ** 2
                 * side.score * (1 - side.score) / side.labels).sum()
            ) / float(weight @ side.score) ** 2
            for side in (made.flagged, made.unflagged)
        )  # fmt: skip

    made = design(flagged, unflagged, 1_000, DesignOptions(floor=0.0))
    chosen = error(float(made.flagged.labels.sum() / 1_000))
    assert chosen <= 1.03 * min(error(part) for part in np.linspace(0.05, 0.6, 23))


def test_a_wanted_part_is_taken():
    scores = ScoreCounts.of(np.linspace(0, 1, 5_000))
    made = design(scores, scores, 1_000, DesignOptions(flagged_share=0.3))
    assert made.flagged.labels.sum() == 300


def test_what_one_side_cannot_spend_the_other_gets():
    few, many = ScoreCounts.of([0.9] * 20), ScoreCounts.of(np.linspace(0, 0.5, 5_000))
    assert design(few, many, 1_000, DesignOptions(flagged_share=0.5)).flagged.labels.sum() == 20
    made = design(many, few, 1_000, DesignOptions(flagged_share=0.1))
    assert made.unflagged.labels.sum() == 20
    assert made.labels == 1_000


@pytest.mark.parametrize("empty", [0, 1])
def test_one_side_may_be_empty(empty):
    sides = [ScoreCounts.of(np.linspace(0, 1, 500))] * 2
    sides[empty] = ScoreCounts.of([])
    made = design(*sides, 100)
    assert (made.flagged, made.unflagged)[empty] is None
    assert made.labels == 100


def test_scores_are_recalibrated_to_what_is_expected():
    flagged, unflagged = ScoreCounts.of([0.9] * 50), ScoreCounts.of(np.linspace(0.01, 0.99, 999))
    made = design(flagged, unflagged, 200, DesignOptions(expected_prevalence=0.01))
    side = made.unflagged
    assert side.score @ side.population / 999 == pytest.approx(0.01)
    assert made.flagged.score[0] < 0.9


def test_all_of_the_labels_are_spent_even_when_the_flagged_part_is_small():
    """A tenth of 30 labels is fewer than four strata need; they get what they need."""
    scores = ScoreCounts.of(np.linspace(0, 1, 5_000))
    made = design(scores, scores, 30, DesignOptions(flagged_share=0.05))
    assert made.flagged.labels.sum() == MINIMUM * 4
    assert made.labels == 30


@pytest.mark.parametrize("labels", [-5, 0, 23])
def test_fewer_labels_than_the_strata_need_are_refused(labels):
    scores = ScoreCounts.of(np.linspace(0, 1, 5_000))
    message = f"{labels} labels are too few for 12 strata with at least 2 each; use 24 or more"
    with pytest.raises(DesignError, match=message):
        design(scores, scores, labels)
    assert design(scores, scores, 24).labels == 24


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "kmeans"}, "Strata method must be one of .*got 'kmeans'"),
        ({"bins": 0}, "Number of strata must be at least 1, got 0"),
        ({"allocation": "pilot"}, "Allocation must be one of .*got 'pilot'"),
        ({"floor": 1.5}, "Floor of the allocation must be in .*got 1.5"),
        ({"floor": float("nan")}, "Floor of the allocation must be in .*got nan"),
        ({"flagged_share": 0.0}, "flagged_share must be in \\(0, 1\\), got 0.0"),
        ({"flagged_share": 1.0}, "flagged_share must be in \\(0, 1\\), got 1.0"),
        ({"expected_prevalence": 0.0}, "expected_prevalence must be in \\(0, 1\\), got 0.0"),
        ({"expected_prevalence": 1.5}, "expected_prevalence must be in \\(0, 1\\), got 1.5"),
    ],
)
def test_impossible_options_are_refused(changes, message):
    with pytest.raises(DesignError, match=message):
        DesignOptions(**changes)


@pytest.mark.parametrize(
    ("score", "count"),
    [([0.5], [1, 2]), ([1.5], [1]), ([np.nan], [1]), ([0.5], [-1]), ([0.5], [0.5])],
)
def test_counts_of_scores_that_do_not_fit_are_refused(score, count):
    with pytest.raises(MetricInputError):
        ScoreCounts(score=np.array(score), count=np.array(count))


def test_a_period_without_comments_is_refused():
    nobody = ScoreCounts.of([])
    with pytest.raises(DesignError, match="The period has no comments"):
        design(nobody, nobody, 100)


def test_a_budget_that_is_no_number_is_refused():
    some = ScoreCounts.of([0.5] * 100)
    with pytest.raises(DesignError, match="must be whole"):
        design(some, some, float("nan"))
