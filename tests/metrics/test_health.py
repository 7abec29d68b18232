import pytest

from modwatch.metrics.health import Queue, day_health, queue_health, volume_ratio
from modwatch.metrics.profile import Profile, histogram

WEEK = [Profile(comments=size) for size in (100, 110, 90, 105, 95, 100, 9_000)]


@pytest.mark.parametrize(
    ("comments", "ratio", "way"), [(50, 0.5, "lower"), (200, 2.0, "higher"), (100, 1.0, None)]
)
def test_volume_against_the_median_which_one_storm_leaves_alone(
    comments: int, ratio: float, way: str | None
) -> None:
    found = volume_ratio(Profile(comments=comments), WEEK)
    assert (found.value, found.direction, found.n) == (ratio, way, comments)


def test_the_volume_of_an_empty_day_is_none_at_all() -> None:
    assert volume_ratio(Profile(), WEEK).value == 0


@pytest.mark.parametrize(
    ("days", "reason"),
    [(WEEK[:2], "2 trailing days; 3 are needed"), ([Profile()] * 3, "half of the trailing")],
)
def test_no_usual_volume(days: list[Profile], reason: str) -> None:
    found = volume_ratio(Profile(comments=5), days)
    assert found.status == "insufficient"
    assert found.reason.startswith(reason)


def test_shares_of_a_day() -> None:
    today = Profile(
        comments=90,
        quarantined=10,
        missing={"language": 45, "groups": 0},
        scores={"prob": histogram([0.5] * 80, 1.0)},
        flagged=20,
    )
    found = {(each.metric, each.feature): each for each in day_health(today, WEEK)}
    shares = {name: (each.value, each.n) for name, each in found.items() if "share" in name[0]}
    assert shares == {
        ("flagged_share", "flagged"): (0.25, 80),
        ("quarantined_share", "quarantined"): (0.1, 100),
        ("missing_share", "language"): (0.5, 90),
        ("missing_share", "groups"): (0.0, 90),
    }
    none = found["missing_share", "groups"]
    assert (none.low, none.high) == (0, pytest.approx(0.041, abs=1e-3))


def test_an_empty_day_has_no_shares() -> None:
    found = list(day_health(Profile(missing={"language": 0}), WEEK))[1:]
    assert len(found) == 3
    assert {each.reason for each in found} == {"an empty day"}
    assert {each.status for each in found} == {"insufficient"}


def test_queue_in_hours() -> None:
    queue = Queue(waiting=1, decided=3, age_median=5_400, age_oldest=7_200, decision_median=1_000)
    found = {each.metric: (each.value, each.n) for each in queue_health(queue)}
    assert found == {
        "queue_completion": (0.75, 4),
        "queue_waiting": (1.0, 4),
        "queue_age_median_hours": (1.5, 1),
        "queue_age_oldest_hours": (2.0, 1),
        "queue_decision_median_hours": (0.3, 3),
    }


def test_an_empty_queue() -> None:
    found = {each.metric: each for each in queue_health(Queue(waiting=0, decided=0))}
    assert found.pop("queue_waiting").value == 0
    assert all(each.value is None and each.reason for each in found.values())
