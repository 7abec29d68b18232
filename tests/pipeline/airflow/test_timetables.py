"""Which day is run next, after hours and weeks without Airflow."""

import datetime

import pytest
from airflow.timetables.base import DataInterval, TimeRestriction

from modwatch.pipeline.airflow import TASK_DEFAULTS
from modwatch.pipeline.airflow.timetables import DayTimetable, EveryDayTimetable

ONE_DAY = datetime.timedelta(days=1)


def next_day(kind: type[DayTimetable], last: int | None, *, catchup: bool = False) -> int:
    """Return how many days ago the next run begins, if the last one began `last` days ago."""
    now = datetime.datetime.now(datetime.UTC)
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    ran = last and DataInterval(today - last * ONE_DAY, today - (last - 1) * ONE_DAY)
    limits = TimeRestriction(earliest=today - 400 * ONE_DAY, latest=None, catchup=catchup)
    found = kind("@daily", timezone="UTC").next_dagrun_info(
        last_automated_data_interval=ran, restriction=limits
    )
    return (today - found.data_interval.start).days


@pytest.mark.parametrize(("last", "then"), [(1, 0), (2, 1), (4, 3), (20, 19), (300, 31), (None, 1)])
def test_no_day_of_a_month_is_left_out(last, then):
    """The first run is that of the newest day, whatever the first day is."""
    assert abs(next_day(EveryDayTimetable, last) - then) <= (
        last == 300
    )  # the 31 days end within a day


@pytest.mark.parametrize("last", [4, 300, None])
def test_other_schedules_go_on_with_the_newest_day(last):
    assert next_day(DayTimetable, last) == 1


@pytest.mark.parametrize("kind", [DayTimetable, EveryDayTimetable])
def test_a_backfill_begins_where_it_is_asked_to(kind):
    assert next_day(kind, None, catchup=True) == 400


def test_what_passes_by_itself_has_half_an_hour():
    """The pauses of Airflow without its jitter, which makes them longer."""
    first, most = TASK_DEFAULTS["retry_delay"], TASK_DEFAULTS["max_retry_delay"]
    factor = TASK_DEFAULTS["retry_exponential_backoff"]
    pauses = [min(first * factor**number, most) for number in range(TASK_DEFAULTS["retries"])]
    assert datetime.timedelta(minutes=30) <= sum(pauses, datetime.timedelta()) < most * 4
