import datetime as dt

import numpy as np
import pytest

from modwatch.data.sources.community.metadata import (
    HOURLY,
    WEEKLY,
    authors,
    comment_ids,
    day_size,
    parse_id,
    threads,
    times_of_day,
)


def test_a_week_holds_seven_mean_days():
    assert sum(WEEKLY) == pytest.approx(7)
    assert len(HOURLY) == 24


def test_weekdays_differ_by_their_factor():
    saturdays = [
        day_size(2000, dt.date(2024, 3, 2), np.random.default_rng(seed)) for seed in range(300)
    ]
    assert np.mean(saturdays) == pytest.approx(2000 * WEEKLY[5], rel=0.005)
    assert day_size(0, dt.date(2024, 3, 2), np.random.default_rng(0)) == 0


def test_times_follow_the_hours_and_stay_inside_the_day():
    times = times_of_day((np.arange(100_000) + 0.5) / 100_000)
    assert (np.diff(times) >= 0).all()
    hours = np.bincount(times // 3_600_000_000, minlength=24)
    assert hours / 100_000 == pytest.approx(np.array(HOURLY) / sum(HOURLY), abs=1e-4)
    assert times_of_day(np.array([np.nextafter(1, 0)]))[0] < 24 * 3_600_000_000


DAY = dt.date(2024, 3, 1)


def test_ids_tell_their_day_and_row():
    assert [parse_id(c) for c in comment_ids(DAY, 9_999_999, 2)] == [
        ("c", DAY, 9_999_999),
        ("c", DAY, 10_000_000),
    ]


@pytest.mark.parametrize(
    "wrong", ["", "c1", "c20240301-", "a20240301-0000001", "c20240230-0000001"]
)
def test_other_ids_are_none(wrong):
    with pytest.raises(ValueError):  # noqa: PT011 – the caller says what it means
        parse_id(wrong)


def test_answers_come_after_what_they_answer_and_share_its_thread():
    roots, parents = threads(500, np.random.default_rng(0))
    for i, parent in enumerate(parents):
        assert roots[i] == (i if parent is None else roots[parent])
        assert parent is None or i - 20 <= parent < i
    assert 0.5 < np.mean([parent is not None for parent in parents]) < 0.7


def test_a_few_authors_write_most():
    _, counts = np.unique(authors(10_000, np.random.default_rng(0)), return_counts=True)
    assert np.sort(counts)[::-1][:200].sum() > 3_000
