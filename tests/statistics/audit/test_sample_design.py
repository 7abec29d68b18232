"""From scores to strata and labels: what may be asked for, and what comes out."""

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.errors import DesignError
from modwatch.statistics.audit.allocation import MINIMUM
from modwatch.statistics.audit.sample_design import (
    EVEN_SHARE,
    FLAGGED_LEAST,
    FLAGGED_MOST,
    DesignOptions,
    ScoreCounts,
    design,
    strata,
)
from modwatch.statistics.recalibration import KnownLabels, shrunk
from modwatch_lab.audit_designs import hostile, quantile_strata, routed_labels

SCORES = st.lists(st.floats(0, 1), max_size=60)
OPTIONS = st.builds(
    DesignOptions,
    bins=st.integers(1, 12),
    worst_case=st.floats(1, 50),
    flagged_share=st.none() | st.floats(0.01, 0.99),
)


def counted(scores, times=1):
    made = ScoreCounts.from_scores(scores)
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
            chance = side.calibration.probability(given_.score)
            mean = np.bincount(stratum, given_.count * chance) / side.population
            assert side.score == pytest.approx(mean)


@examples(40)
@given(st.floats(0.2, 6), st.floats(0.5, 0.99), st.integers(200, 5000))
def test_flagged_comments_get_their_part(power, precise, labels):
    unflagged = ScoreCounts.from_scores(np.linspace(0.001, 0.8, 20_000) ** power)
    flagged = ScoreCounts.from_scores(np.linspace(precise, 1, 10_000))
    made = design(flagged, unflagged, labels)
    share = made.flagged.labels.sum() / labels
    assert FLAGGED_LEAST - 1 / labels <= share <= FLAGGED_MOST + 1 / labels


def test_the_part_of_the_flagged_is_the_one_with_the_closest_recall():
    """By the scores alone, and the rules of both sides: no other part of 5 to 60 % does better."""
    flagged = ScoreCounts.from_scores(np.linspace(0.3, 1, 3_000))
    unflagged = ScoreCounts.from_scores(np.linspace(0, 0.8, 30_000) ** 3)

    def error(part):
        options = DesignOptions(flagged_share=part, worst_case=1e9)
        made = design(flagged, unflagged, 1_000, options)
        return sum(
            float(
                ((weight := side.population / side.population.sum()) ** 2
                 * side.score * (1 - side.score) / side.labels).sum()
            ) / float(weight @ side.score) ** 2
            for side in (made.flagged, made.unflagged)
        )  # fmt: skip

    made = design(flagged, unflagged, 1_000, DesignOptions(worst_case=1e9))
    chosen = error(float(made.flagged.labels.sum() / 1_000))
    assert chosen <= 1.03 * min(error(part) for part in np.linspace(0.05, 0.6, 23))


def test_a_wanted_part_is_taken():
    scores = ScoreCounts.from_scores(np.linspace(0, 1, 5_000))
    made = design(scores, scores, 1_000, DesignOptions(flagged_share=0.3))
    assert made.flagged.labels.sum() == 300


def test_scores_are_recalibrated_to_what_is_expected():
    flagged, unflagged = (
        ScoreCounts.from_scores([0.9] * 50),
        ScoreCounts.from_scores(np.linspace(0.01, 0.99, 999)),
    )
    made = design(flagged, unflagged, 200, DesignOptions(expected_prevalence=0.01))
    side = made.unflagged
    assert side.score @ side.population / 999 == pytest.approx(0.01)
    assert made.flagged.score[0] < 0.9


def known_labels(rows):
    """Return labels known beforehand, of (score, label, weight)."""
    score, label, weight = (np.array(column) for column in zip(*rows, strict=True))
    return KnownLabels(score=score, label=label, weight=weight, source="slice")


LABELLED = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=2, max_size=300)
KNOWN = st.none() | st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 1), st.floats(1, 1e4)), min_size=1, max_size=30
).map(known_labels)


@given(
    LABELLED, st.integers(1, 40), st.integers(16, 3000), KNOWN,
    st.builds(DesignOptions, bins=st.integers(1, 12),
              expected_prevalence=st.none() | st.floats(1e-5, 0.9)),
)  # fmt: skip
def test_no_labels_make_it_much_worse_than_a_random_sample(rows, times, labels, known, options):
    """A theorem: whatever scores, labels, ties, and labels known beforehand say."""
    score, label = (np.repeat(column, times) for column in zip(*rows, strict=True))
    scores = ScoreCounts.from_scores(score)
    labels = max(labels, MINIMUM * min(options.bins, scores.score.size))
    slice_ = {} if known is None else {"unflagged": known}
    made = design(ScoreCounts.from_scores([]), scores, labels, options, slice_).unflagged
    drawn, whole = made.labels.sum(), score.size
    if drawn == whole or np.ptp(label) == 0:
        return
    stratum = made.strata.assign(score)
    within = sum(
        (size / whole) ** 2 * np.var(label[stratum == number], ddof=1) * (1 / n - 1 / size)
        for number, (size, n) in enumerate(zip(made.population, made.labels, strict=True))
        if size > 1
    )
    assert within <= 1.1 * np.var(label, ddof=1) * (1 / drawn - 1 / whole) * (1 + 1e-9)


def test_labels_known_beforehand_decide_where_to_look():
    """As a shift to the prevalence does, and unlike the scores of a model trained balanced."""
    population = hostile("trained balanced")
    side = population.unflagged
    sides = ScoreCounts.from_scores(population.flagged.score), ScoreCounts.from_scores(side.score)
    routed = routed_labels(population, 1000, np.random.default_rng(2))

    def variance(options, known):
        made = design(*sides, 1000, options, known).unflagged
        rate = np.bincount(made.strata.assign(side.score), side.label) / made.population
        return (made.population**2 * rate * (1 - rate) / made.labels).sum() / made.labels.sum()

    plain, result = variance(DesignOptions(), {}), variance(DesignOptions(), routed)
    best = variance(DesignOptions(expected_prevalence=float(side.label.mean())), {})
    assert result < 0.75 * plain
    assert result < 1.6 * best


def test_what_is_known_of_one_side_says_nothing_of_the_other():
    scores = ScoreCounts.from_scores(np.linspace(0.01, 0.99, 999))
    known = {"flagged": known_labels([(0.5, 1, 1.0), (0.6, 0, 1.0)])}
    made = design(scores, scores, 200, known=known)
    assert made.flagged.calibration.labels == 2
    assert made.unflagged.calibration == shrunk(scores.score, scores.count)


def test_a_prevalence_that_is_given_takes_the_place_of_known_labels():
    scores = ScoreCounts.from_scores(np.linspace(0.01, 0.99, 999))
    known = {"unflagged": known_labels([(0.5, 1, 1.0), (0.6, 0, 1.0)])}
    made = design(
        ScoreCounts.from_scores([]), scores, 200, DesignOptions(expected_prevalence=0.01), known
    )
    assert made.unflagged.calibration.source == "expected prevalence"
    assert made.unflagged.score @ made.unflagged.population / 999 == pytest.approx(0.01)


def test_few_labels_are_drawn_in_fewer_strata():
    scores = ScoreCounts.from_scores(np.linspace(0, 0.5, 5_000))
    made = design(ScoreCounts.from_scores([]), scores, 30).unflagged
    assert 1 <= len(made.strata) < 8
    assert made.labels.sum() == 30


@pytest.mark.parametrize("labels", [-5, 0, 23])
def test_fewer_labels_than_the_strata_need_are_refused(labels):
    scores = ScoreCounts.from_scores(np.linspace(0, 1, 5_000))
    message = f"{labels} labels are too few for 12 strata with at least 2 each; use 24 or more"
    with pytest.raises(DesignError, match=message):
        design(scores, scores, labels)
    assert design(scores, scores, 24).labels == 24


#: Few distinct values, so that ties are common, and the ends.
DRAWN_SCORES = st.lists(
    st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 0.9, 1.0]) | st.floats(0, 1), min_size=1
)


@given(DRAWN_SCORES, st.integers(1, 12))
def test_no_stratum_is_empty_and_equal_scores_stay_together(score, bins):
    made = strata(score, bins=bins)
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


@given(DRAWN_SCORES, st.integers(1, 12), st.randoms(use_true_random=False))
def test_neither_order_nor_counting_changes_the_edges(score, bins, random):
    made = strata(score, bins=bins)
    shuffled = score.copy()
    random.shuffle(shuffled)
    assert strata(shuffled, bins=bins) == made
    value, count = np.unique(score, return_counts=True)
    assert strata(value, bins=bins, counts=count) == made
    empty = np.append(count, 0)
    assert strata(np.append(value, 0.123), bins=bins, counts=empty) == made


def test_quantiles_hold_as_many_comments_each():
    made = quantile_strata(np.arange(1000) / 1000, 8)
    assert np.bincount(made.assign(np.arange(1000) / 1000)).tolist() == [125] * 8


def test_neyman_strata_have_as_much_spread_each():
    score = np.linspace(0, 1, 20_001) ** 3
    made = strata(score, bins=8)
    spread = np.sqrt(score * (1 - score))
    mass = (1 - EVEN_SHARE) * spread / spread.sum() + EVEN_SHARE / score.size
    assert np.bincount(made.assign(score), weights=mass) == pytest.approx([1 / 8] * 8, abs=1e-3)


def test_neyman_goes_by_what_is_expected_of_a_score():
    score = np.linspace(0, 1, 1001)
    sure = np.where(score < 0.5, 0.0, 0.5)
    edges = strata(score, bins=4, expected=sure).edges
    assert sum(edge >= 0.5 for edge in edges) == 3


def test_scores_that_are_sure_are_cut_as_quantiles():
    assert strata([0.0, 1.0], bins=2).edges == (1.0,)
