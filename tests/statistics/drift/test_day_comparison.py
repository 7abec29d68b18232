import math
from dataclasses import replace

import numpy as np
import pytest

from modwatch.statistics.drift.day_comparison import (
    MINIMUM_COMMENTS,
    Finding,
    Queue,
    Reference,
    compare,
    day_metrics,
    quantile_bins,
    queue_metrics,
    volume_ratio,
)
from modwatch.statistics.drift.profile import Profile, histogram, pooled


def day_of(
    size: int, *, mean: float = 0.1, seed: int = 0, german: float = 0.5, version: str = "3"
) -> Profile:
    """Return the profile of a day of scores around a mean."""
    p = np.random.default_rng(seed).beta(6 * mean / (1 - mean), 6, size)
    return of_scores(p, german=german, version=version)


def of_scores(p: np.ndarray, *, german: float = 0.5, version: str = "3") -> Profile:
    de = int(german * p.size)
    return Profile(
        comments=p.size,
        quarantined=p.size // 100,
        missing={"author_id": p.size // 10},
        categories={"language": {"de": de, "en": p.size - de}},
        scores={"prob": histogram(p, 1.0), "uncertainty": histogram(p * (1 - p), 0.25)},
        flagged=int((p > 0.2).sum()),
        model_version=version,
    )


WEEK = [day_of(1_000, seed=seed) for seed in range(1, 8)]


def compared(today: Profile, days: list[Profile] = WEEK) -> dict[str, Finding]:
    """Return the findings against one reference, by metric and feature."""
    found = list(compare(today, [Reference.from_days("trailing", days)]))
    for match in found:
        numbers = [match.value, match.low, match.high]
        assert all(value is None or math.isfinite(value) for value in numbers)
        assert (match.status == "insufficient") == (match.value is None)
        assert match.value is not None or (match.reason and numbers == [None] * 3)
        assert match.reference == "trailing"
    by_name = {f"{item.metric} {item.feature}": item for item in found}
    assert len(by_name) == len(found)
    return by_name


def test_a_usual_day_shows_nothing():
    found = compared(day_of(1_000))
    assert {match.status for match in found.values()} == {"ok"}
    assert found["psi prob"].value < 0.02
    assert found["psi prob"].reference_n == 7_000


@pytest.mark.parametrize(("mean", "sign"), [(0.2, 1), (0.05, -1)])
def test_scores_that_moved(mean, sign):
    found = compared(day_of(1_000, mean=mean))
    assert found["psi prob"].low > 0.1
    assert np.sign(found["flagged_share_change flagged"].value) == sign
    assert found["jensen_shannon language"].value == 0


def test_a_new_mix_of_languages():
    found = compared(day_of(1_000, german=0.8))
    changed = found["jensen_shannon language"]
    assert changed.low > 0.02
    assert found["psi prob"].low == 0
    of_one_side_only = replace(day_of(1_000), categories={"language": {"fr": 1_000}})
    assert compared(of_one_side_only)["jensen_shannon language"].value == 1


def test_gaps_and_quarantine():
    today = replace(day_of(1_000), quarantined=500, missing={"author_id": 1_000})
    found = compared(today)
    gaps, refused = (
        found["missing_share_change author_id"],
        found["quarantined_share_change quarantined"],
    )
    assert gaps.value == pytest.approx(0.9)
    assert refused.value == pytest.approx(500 / 1_500 - 10 / 1_010)
    assert (refused.n, refused.reference_n) == (1_500, 7_070)


@pytest.mark.parametrize(
    ("today", "days", "reason"),
    [
        (Profile(), WEEK, "0 comments of the day; 200 are needed"),
        (day_of(MINIMUM_COMMENTS - 1), WEEK, "199 comments of the day; 200 are needed"),
        (day_of(1_000), [], "0 comments of the reference; 200 are needed"),
        (day_of(1_000), [Profile()], "0 comments of the reference; 200 are needed"),
        (day_of(1_000), [day_of(199)], "199 comments of the reference; 200 are needed"),
    ],
)
def test_too_little_to_compare(today, days, reason):
    found = compared(today, days)
    result = {item.reason for name, item in found.items() if "quarantined" not in name}
    assert result == {reason}
    assert found["psi prob"].value is None


def test_scores_of_two_models_are_not_compared_and_comments_are():
    found = compared(day_of(1_000, version="4"))
    assert found["psi prob"].status == "insufficient"
    assert found["flagged_share_change flagged"].status == "insufficient"
    assert "7 reference days left out, scored by another model version" in found["psi prob"].reason
    assert found["jensen_shannon language"].status == "ok"


def test_days_of_another_model_are_left_out_and_stated():
    other = day_of(1_000, mean=0.4, version="2")
    found = compared(day_of(1_000), [*WEEK, other])
    psi, same = found["psi prob"], compared(day_of(1_000))["psi prob"]
    assert (psi.value, psi.reference_n) == (same.value, 7_000)
    assert psi.reason == "1 reference days left out, scored by another model version"
    assert found["jensen_shannon language"].reference_n == 8_000


@pytest.mark.parametrize(("score", "differs"), [(0.3, False), (0.4, True), (0.2, True)])
def test_constant_scores(score, differs):
    found = compared(of_scores(np.full(500, score)), [of_scores(np.full(500, 0.3))])
    assert (found["psi prob"].value > 1) == differs


def test_quantile_bins_hold_like_mass():
    reference = pooled(WEEK).scores["prob"]
    mass = np.bincount(quantile_bins(reference), reference) / reference.sum()
    assert mass == pytest.approx(np.full(10, 0.1), abs=0.02)


VOLUMES = [Profile(comments=size) for size in (100, 110, 90, 105, 95, 100, 9_000)]


@pytest.mark.parametrize(("comments", "ratio"), [(50, 0.5), (200, 2.0), (100, 1.0)])
def test_volume_against_the_median_which_one_storm_leaves_alone(comments, ratio):
    found = volume_ratio(Profile(comments=comments), VOLUMES)
    assert (found.value, found.n) == (ratio, comments)
    assert volume_ratio(Profile(comments=50, quarantined=50), VOLUMES).value == 1
    assert volume_ratio(Profile(), VOLUMES).value == 0


@pytest.mark.parametrize(
    ("days", "reason"),
    [(VOLUMES[:2], "2 trailing days; 3 are needed"), ([Profile()] * 3, "half of the trailing")],
)
def test_no_usual_volume(days, reason):
    found = volume_ratio(Profile(comments=5), days)
    assert found.status == "insufficient"
    assert found.reason.startswith(reason)


def test_shares_of_a_day():
    today = Profile(
        comments=90,
        quarantined=10,
        missing={"language": 45, "groups": 0},
        scores={"prob": histogram([0.5] * 80, 1.0)},
        flagged=20,
    )
    found = {(item.metric, item.feature): item for item in day_metrics(today, VOLUMES)}
    shares = {name: (item.value, item.n) for name, item in found.items() if "share" in name[0]}
    assert shares == {
        ("flagged_share", "flagged"): (0.25, 80),
        ("quarantined_share", "quarantined"): (0.1, 100),
        ("missing_share", "language"): (0.5, 90),
        ("missing_share", "groups"): (0.0, 90),
    }
    none = found["missing_share", "groups"]
    assert (none.low, none.high) == (0, pytest.approx(0.041, abs=1e-3))


def test_an_empty_day_has_no_shares():
    found = list(day_metrics(Profile(missing={"language": 0}), VOLUMES))[1:]
    assert len(found) == 3
    assert {match.reason for match in found} == {"an empty day"}
    assert {match.status for match in found} == {"insufficient"}


def test_queue_in_hours():
    queue = Queue(waiting=1, decided=3, age_median=5_400, age_oldest=7_200, decision_median=1_000)
    found = {item.metric: (item.value, item.n) for item in queue_metrics(queue)}
    assert found == {
        "queue_completion": (0.75, 4),
        "queue_waiting": (1.0, 4),
        "queue_age_median_hours": (1.5, 1),
        "queue_age_oldest_hours": (2.0, 1),
        "queue_decision_median_hours": (0.3, 3),
    }


def test_an_empty_queue():
    found = {item.metric: item for item in queue_metrics(Queue(waiting=0, decided=0))}
    assert found.pop("queue_waiting").value == 0
    assert all(match.value is None and match.reason for match in found.values())
