import numpy as np
import pytest

from modwatch.statistics.drift.profile import BINS, Profile, histogram, pooled, weighted_rows


def scored(prob: list[float], **fields: object) -> Profile:
    p = np.array(prob)
    scores = {"prob": histogram(p, 1.0), "uncertainty": histogram(p * (1 - p), 0.25)}
    return Profile(scores=scores, comments=len(prob), **fields)


def test_the_last_bin_holds_the_end_and_the_others_their_start():
    counts = histogram(np.array([0.0, 0.25, 0.125], np.float32), 0.25)
    assert np.flatnonzero(counts).tolist() == [0, BINS // 2, BINS - 1]
    assert counts.sum() == 3


def test_days_add_up():
    monday = scored(
        [0.1, 0.9],
        quarantined=1,
        flagged=1,
        missing={"language": 1},
        categories={"language": {"de": 1, "und": 1}},
        model_version="3",
    )
    tuesday = scored([0.5], categories={"language": {"de": 1}}, model_version="3")
    both = pooled([monday, tuesday])
    assert (both.comments, both.quarantined, both.flagged, both.scored) == (3, 1, 1, 3)
    assert both.missing == {"language": 1}
    assert both.categories == {"language": {"de": 2, "und": 1}}
    assert both.model_version == "3"


def test_days_of_two_models_have_none():
    days = [scored([0.1], model_version=version) for version in "34"]
    assert pooled(days).model_version is None
    assert pooled([days[0], Profile(comments=5)]).model_version == "3"


def test_no_days():
    assert pooled([]).scored == pooled([]).comments == 0


def test_the_scores_of_one_profile_with_the_comments_of_another():
    comments = scored([0.1], quarantined=2, model_version="3")
    both = comments.with_scores_of(scored([0.9, 0.8], flagged=2, model_version="4"))
    assert (both.comments, both.landed) == (1, 3)
    assert (both.scored, both.flagged, both.model_version) == (2, 2, "4")


@pytest.mark.parametrize("size", [1, 3, 1_000, 12_345])
def test_equal_weights_give_every_row_once(size):
    order = np.random.default_rng(size).random(size)
    assert weighted_rows(order, np.full(size, 0.7)).tolist() == list(range(size))


def test_weighted_rows_have_the_weighted_distribution():
    rng = np.random.default_rng(5)
    order, weights = rng.random(3_000), rng.exponential(size=3_000)
    rows = weighted_rows(order, weights)
    for at in (0.1, 0.5, 0.9):
        exact = weights[order <= at].sum() / weights.sum()
        assert (order[rows] <= at).mean() == pytest.approx(exact, abs=1 / len(rows))
