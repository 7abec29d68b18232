"""Review scores: who comes first under each strategy."""

import numpy as np
import pytest
from brute_force import repeated, times
from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.errors import MetricInputError
from modwatch.statistics.collaboration import review_strategies
from modwatch.statistics.collaboration.review_strategies import (
    REVIEW_SCORES,
    STRATEGIES,
    ReviewScore,
    all_review_scores,
    available,
    review_score,
    review_scores,
    score_columns,
    style,
)

pytestmark = pytest.mark.usefixtures("floating_point_errors_raise")

probs = st.lists(st.integers(0, 16).map(lambda k: k / 16), min_size=1, max_size=24)


def test_the_ends_of_uncertainty_and_toxicity():
    assert review_scores([0, 0.5, 1, 0.25, 0.75], "predictive_variance").tolist() == [
        0, 0.25, 0, 0.1875, 0.1875
    ]  # fmt: skip
    assert review_scores([0, 0.5, 1], "uncertainty").tolist() == [0, 0.5, 0]
    assert review_scores([0, 0.5, 1], "toxicity").tolist() == [0, 0.5, 1]


@given(probs)
def test_at_one_half_the_decision_is_as_uncertain_as_the_label(probs):
    scores = [review_scores(probs, name) for name in ("uncertainty", "predictive_variance")]
    ranks = [np.unique(score, return_inverse=True)[1].tolist() for score in scores]
    assert ranks[0] == ranks[1]


@pytest.mark.parametrize("threshold", [0, 1])
def test_where_all_or_none_is_flagged_the_most_likely_errors_come_first(threshold):
    score = review_scores([0.1, 0.9, 0.5], threshold=threshold)
    assert score.argsort().tolist() == ([1, 2, 0] if threshold == 0 else [0, 2, 1])


@given(probs, st.sampled_from([0.2, 0.5, 0.9]))
def test_the_costs_of_a_threshold_are_highest_at_it(probs, threshold):
    p = np.array(probs)
    score = review_scores(p, "cost", threshold=threshold)
    peak = threshold * (1 - threshold)
    assert (score <= peak + 1e-12).all()
    near = review_scores([threshold, threshold + 1e-9], "cost", threshold=threshold)
    assert near == pytest.approx([peak, peak], abs=1e-8)


def test_decisions_costs_and_calibration_of_each_comment_count():
    prob, flagged = [0.4, 0.4, 0.4], [True, False, False]
    assert review_scores(prob, flagged=flagged).tolist() == [0.6, 0.4, 0.4]
    costs = (np.array([9, 1, 5]), 2)
    assert review_scores(prob, "cost", flagged=flagged, costs=costs).tolist() == [1.2, 0.4, 2.0]
    calibrated = [0.1, 0.2, 0.3]
    found = review_scores(prob, flagged=flagged, calibrated=calibrated)
    assert found.tolist() == [0.9, 0.2, 0.3]
    for apart in ("toxicity", "predictive_variance"):
        plain = review_scores(prob, apart)
        assert review_scores(prob, apart, calibrated=calibrated).tolist() == plain.tolist()


@given(st.integers(0, 2**32 - 1), st.floats(0.02, 0.98), st.integers(1, 9))
def test_no_order_leaves_less_than_that_of_what_is_expected(seed, threshold, missed):
    """Of calibrated scores: the expected error for OC-Acc, the expected cost for costs."""
    rng = np.random.default_rng(seed)
    p = rng.random(40).round(2)
    wrong = np.where(p > threshold, 1 - p, p)
    cost = wrong * np.where(p > threshold, 1, missed)
    options = {"threshold": threshold, "costs": (missed, 1)}
    for name, expected in (("uncertainty", wrong), ("cost", cost)):
        caught = {
            strategy: expected[np.argsort(-review_scores(p, strategy, **options))[:10]].sum()
            for strategy in STRATEGIES
        }
        assert caught[name] == pytest.approx(max(caught.values()))


def test_the_hybrid_splits_the_capacity_between_two_lists():
    prob = np.array([0.99, 0.98, 0.97, 0.5, 0.45, 0.4, 0.01])
    assert set(np.argsort(-review_scores(prob, "hybrid"))[:4]) == {0, 1, 3, 4}


@given(probs, st.randoms(use_true_random=False))
def test_the_hybrid_does_not_depend_on_the_order(probs, random):
    order = random.sample(range(len(probs)), len(probs))
    score = review_scores(probs, "hybrid")
    shuffled = review_scores(np.array(probs)[order], "hybrid")
    assert shuffled.tolist() == score[order].tolist()


@given(probs, times)
def test_whole_weights_repeat_rows_of_the_hybrid(probs, times):
    weight = times[: len(probs)]
    if not any(weight):
        return
    score = review_scores(probs, "hybrid", sample_weight=weight)
    other = review_scores(repeated(probs, times), "hybrid")
    assert repeated(score, times) == pytest.approx(other.tolist())


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_rows_have_no_scores(strategy):
    assert review_scores([], strategy).tolist() == []


def doubtful() -> ReviewScore:
    """Return a review score of a package: half of a column of its scorer."""
    return ReviewScore(
        name="own",
        of=lambda scored: scored.columns["doubt"] / 2,
        meaning="half of the doubt",
        serves="doubters",
        reason="doubtful",
        explanation="The scorer doubts.",
        style=("#000000", "-", "o"),
        needs=("doubt",),
    )


class Entry:
    """An entry point of an installed package."""

    def __init__(self, name: str, found: object) -> None:
        self.name, self._found = name, found

    def load(self) -> object:
        return self._found


@pytest.fixture
def installed(monkeypatch):
    """Install packages with these entry points of review scores."""

    def install(*entries: Entry) -> None:
        monkeypatch.setattr(review_strategies, "entry_points", lambda group: entries)
        all_review_scores.cache_clear()

    yield install
    monkeypatch.undo()
    all_review_scores.cache_clear()


def test_a_package_adds_a_review_score_with_a_column_of_its_scorer(installed):
    installed(Entry("own", doubtful()))
    assert [*all_review_scores()] == [*REVIEW_SCORES, "own"]
    assert score_columns()[-1] == "doubt"
    assert "own" not in available(["model_variance"])
    found = review_scores([0.1, 0.2], "own", columns={"doubt": [0.8, 0.4]})
    assert found.tolist() == [0.4, 0.2]
    with pytest.raises(MetricInputError, match="own needs the column doubt"):
        review_scores([0.1], "own", columns={"model_variance": [0.1]})
    with pytest.raises(MetricInputError, match="doubt contains NaN"):
        review_scores([0.1], "own", columns={"doubt": [np.nan]})


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([Entry("own", doubtful()), Entry("own", doubtful())], "two review scores 'own'"),
        ([Entry("other", doubtful())], "must be a ReviewScore of that name"),
        ([Entry("own", print)], "must be a ReviewScore of that name"),
    ],
)
def test_a_package_that_does_not_fit_is_refused(installed, entries, message):
    installed(*entries)
    with pytest.raises(MetricInputError, match=message):
        review_score("uncertainty")


@given(probs, st.data())
def test_equal_scores_are_ordered_by_the_next_and_others_as_they_are(probs, data):
    few = st.integers(0, 3).map(lambda k: k / 8)
    spread = data.draw(st.lists(few, min_size=len(probs), max_size=len(probs)))
    score = review_scores(probs, "model_variance", columns={"model_variance": spread})
    wanted = sorted(zip(spread, review_scores(probs).tolist(), strict=True))
    order = np.argsort(score, kind="stable")
    found = [(spread[i], review_scores(probs)[i]) for i in order]
    assert found == wanted


def test_a_score_in_float32_keeps_its_order_and_ties_are_resolved_below_the_next():
    spread = np.float32([1e-20, np.nextafter(np.float32(1e-20), np.float32(1)), 1e-20, 0.25])
    columns = {"mutual_information": spread}
    score = review_scores([0.1, 0.5, 0.4, 0.5], "mutual_information", columns=columns)
    assert score.argsort().tolist() == [0, 2, 1, 3]


@given(probs)
def test_of_two_classes_the_entropy_orders_as_the_variance(probs):
    scores = [review_scores(probs, name) for name in ("predictive_entropy", "predictive_variance")]
    ranks = [np.unique(score.round(12), return_inverse=True)[1].tolist() for score in scores]
    assert ranks[0] == ranks[1]


def test_the_expected_error_follows_the_variance_where_labels_tell():
    options = {"columns": {"model_variance": [0.0, 0.1]}, "flagged": [False, True]}
    plain = review_scores([0.3, 0.6], "expected_error", **options)
    assert plain.tolist() == [0.3, 0.4]
    given = review_scores([0.3, 0.6], "expected_error", given_variance=[0.2, 0.9], **options)
    assert given == pytest.approx([0.2, 0.1])


def test_styles_and_names_are_apart():
    styles = [style(name) for name in (*REVIEW_SCORES, "of my own")]
    assert len(set(styles)) == len(styles)
    with pytest.raises(MetricInputError, match="identifier"):
        ReviewScore(**{**vars(REVIEW_SCORES["cost"]), "name": "no name"})
