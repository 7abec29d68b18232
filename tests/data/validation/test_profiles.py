import datetime

import numpy as np
import pyarrow as pa
import pytest

from modwatch.common.columns import grouped, profiled
from modwatch.common.errors import CheckError
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import DRIFT, PROFILES
from modwatch.data.validation.profiles import (
    MOST_CATEGORIES,
    profile_comments,
    profile_scores,
    read_profile,
    read_profiles,
    save_profile,
    seasonal_volumes,
)
from modwatch.data.validation.result import InvalidRows
from modwatch.monitoring.measurements.drift import drift_rows
from modwatch.statistics.drift.day_comparison import day_metrics
from modwatch.statistics.drift.profile import Profile, histogram
from modwatch.statistics.drift.seasons import Volume

DAYS = [datetime.date(2026, 1, 5) + datetime.timedelta(days=number) for number in range(5)]
SPRING = datetime.date(2026, 3, 2)
MONDAY, TUESDAY, TODAY = DAYS[0], DAYS[1], DAYS[-1]


@pytest.fixture
def lake(tmp_path):
    return Lake(root=str(tmp_path / "lake"))


def invalid(reason: list[int]) -> InvalidRows:
    return InvalidRows(day=MONDAY, reason=np.array(reason, np.int16), reasons=("blank_text",))


def assert_same(one: Profile, other: Profile) -> None:
    for name in ("comments", "quarantined", "missing", "categories", "flagged", "model_version"):
        assert getattr(one, name) == getattr(other, name), name
    for name, counts in one.scores.items():
        assert (counts == other.scores[name]).all()


def scores(*prob: float, version: str = "3") -> Profile:
    p = np.array(prob, np.float32)
    return profile_scores(p, p > 0.5, [version])


def test_comments_in_counts(landed):
    batches = [
        landed(
            4,
            language=["de-AT", "DE", "", None],
            platform=["forum", "forum", None, "chat"],
            parent_text=["an invented answer", "", None, None],
            groups=[["women"], [], None, None],
            author_id=["a"] * 4,
        ),
        landed(2, start=4, language=["<b>", "fr"]),
    ]
    made = profile_comments(batches, invalid([0, 0, 0, 0, 1, 1]))
    assert (made.comments, made.quarantined, made.landed, made.scored) == (4, 2, 6, 0)
    assert made.categories == {
        **{name: {"(none)": 4} for name in grouped()},
        "language": {"de": 2, "und": 2},
        "platform": {"forum": 2, "chat": 1, "(none)": 1},
        "length": {"0-49": 4},
        "script": {"Latin": 4},
        "detected_language": {"und": 2},  # of those for which the source names none
    }
    assert made.missing == {
        **dict.fromkeys(profiled(), 4),
        "platform": 1,
        "parent_text": 3,
        "language": 2,
        "author_id": 0,
        "groups": 2,
    }


def test_scores_in_counts():
    made = scores(0.0, 0.2, 0.7, 1.0)
    prob = np.array([0.0, 0.2, 0.7, 1.0], np.float32).astype(np.float64)
    assert (made.scores["prob"] == histogram(prob, 1.0)).all()
    assert (made.scores["uncertainty"] == histogram(prob * (1 - prob), 0.25)).all()
    assert (made.scored, made.flagged, made.model_version, made.comments) == (4, 2, "3", 0)
    assert (
        profile_scores(np.ones(1, np.float32), np.ones(1, bool), ["1", "2"]).model_version is None
    )


def test_a_column_that_is_not_there_is_missing(landed):
    made = profile_comments([landed(2).drop_columns(["language"])], invalid([0, 0]))
    assert made.missing["language"] == made.categories["language"]["und"] == 2


def test_rows_that_were_not_validated_are_an_error(landed):
    with pytest.raises(CheckError, match="changed during validation"):
        profile_comments([landed(2)], invalid([0]))


def test_the_rarest_categories_are_counted_together(landed):
    names = ["forum"] * 10 + [f"platform {number:03}" for number in range(1_050)]
    made = profile_comments([landed(1_060, platform=names)], invalid([0] * 1_060))
    kept = made.categories["platform"]
    assert len(kept) == MOST_CATEGORIES + 1
    assert (kept["forum"], kept["platform 000"], kept["(other)"]) == (10, 1, 51)


def test_each_part_is_kept_next_to_the_other(lake, landed):
    comments = profile_comments([landed(3)], invalid([0, 1, 0]))
    save_profile(lake, MONDAY, comments=comments)
    assert_same(read_profile(lake, MONDAY), comments)
    save_profile(lake, MONDAY, scores=scores(0.2, 0.9))
    assert_same(read_profile(lake, MONDAY), comments.with_scores_of(scores(0.2, 0.9)))
    fewer = profile_comments([landed(1)], invalid([0]))
    save_profile(lake, MONDAY, comments=fewer)
    assert_same(read_profile(lake, MONDAY), fewer.with_scores_of(scores(0.2, 0.9)))
    assert lake.table("profiles", MONDAY).schema == PROFILES


def test_an_empty_day_is_kept_as_empty(lake):
    made = profile_comments([], invalid([]))
    save_profile(lake, MONDAY, comments=made)
    assert (made.comments, made.scored, made.model_version) == (0, 0, None)
    assert set(made.missing) == set(profiled())
    assert list(read_profiles(lake, DAYS)) == [MONDAY]
    assert_same(read_profile(lake, MONDAY), made)


def test_a_day_without_a_profile_is_all_zeros(lake):
    assert read_profile(lake, MONDAY).landed == 0
    assert read_profiles(lake, []) == read_profiles(lake, [MONDAY]) == {}


def test_asked_days_come_in_order(lake):
    for day in (TUESDAY, DAYS[2], MONDAY):
        save_profile(lake, day, comments=Profile(comments=day.day))
    found = read_profiles(lake, [DAYS[2], MONDAY])
    assert {day: profile.comments for day, profile in found.items()} == {MONDAY: 5, DAYS[2]: 7}
    assert list(found) == [MONDAY, DAYS[2]]


def put(lake: Lake, day: datetime.date, rows: int, usual: int = 100) -> None:
    before = [Profile(comments=usual)] * 3
    lake.replace("drift", day, [drift_rows(day, day_metrics(Profile(comments=rows), before))])


def test_five_weeks_and_the_week_a_year_before_are_read(lake):
    last_year = [datetime.date(2025, 3, day) for day in range(1, 5)]
    kept = [SPRING - datetime.timedelta(days=35), SPRING, *last_year[1:3]]
    for number, day in enumerate(kept):
        put(lake, day, rows=10 * (number + 1))
    others = SPRING - datetime.timedelta(days=36), datetime.date(2024, 3, 2)
    for day in (*others, last_year[0], last_year[3]):
        put(lake, day, rows=99)

    expected = {day: Volume(rows=10 * (n + 1), ratio=(n + 1) / 10) for n, day in enumerate(kept)}
    assert seasonal_volumes(lake, SPRING, SPRING) == expected


def test_a_day_without_a_reference_has_rows_only(lake):
    assert seasonal_volumes(lake, SPRING, SPRING) == {}
    lake.replace("drift", SPRING, [pa.RecordBatch.from_pylist([], schema=DRIFT)])
    assert seasonal_volumes(lake, SPRING, SPRING) == {}
    lake.replace("drift", SPRING, [drift_rows(SPRING, day_metrics(Profile(comments=7), []))])
    assert seasonal_volumes(lake, SPRING, SPRING) == {SPRING: Volume(rows=7, ratio=None)}
