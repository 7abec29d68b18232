import datetime as dt
import zoneinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.errors import SourceError
from modwatch.data.sources.timestamps import check_format, read_moment, zone

NOON = dt.datetime(2024, 3, 1, 12, tzinfo=dt.UTC)
EARLIEST, LATEST = (dt.datetime(year, 1, 1) for year in (1975, 2100))  # noqa: DTZ001 – hypothesis adds it
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    "written",
    [
        "2024-03-01T12:00:00Z",
        "2024-03-01 13:00:00+01:00",
        "2024-03-01 12:00:00+00",
        "2024-03-01 12:00:00 UTC",
        " 2024-03-01T12:00:00.000000000Z ",
        "2024-03-01T12:00:00.000000999Z",
        "2024-03-01 12:00:00 +0000 UTC",
        "2024-03-01 12:00:00.000000999 +0000 UTC m=+0.1",
        "2024-03-01 13:00:00 +0100 CET m=-2.5",
        "2024-03-01 13:00:00 +0100 +01",
        "1709294400000000000",
        "1709294400",
        "1709294400.0",
        1709294400,
        1709294400.0,
        1709294400000,
        1709294400000000,
        NOON,
    ],
)
def test_times_with_a_zone_become_utc(written):
    assert read_moment(written, None).created_at == NOON


@pytest.mark.parametrize(
    "written",
    ["", "soon", None, True, "2024-13-01T00:00:00Z", float("nan"), 1e300, "9" * 400, [1],
     "0001-01-01T00:00:00+10:00", "2024-03-01T12:00:00+99:00", "²³"],
)  # fmt: skip
def test_what_is_no_time_is_unreadable(written):
    moment = read_moment(written, None)
    assert (moment.created_at, moment.day, moment.problem) == (None, None, "unreadable_timestamp")


def test_a_time_without_zone_keeps_its_wall_clock_day_only():
    moment = read_moment("2024-03-01 23:59", None)
    assert moment.created_at is None
    assert moment.day == dt.date(2024, 3, 1)
    assert moment.problem == "timestamp_without_zone"


def test_an_assumed_zone_is_applied_with_its_summer_time():
    assert read_moment("2024-07-01 00:30", BERLIN).created_at == dt.datetime(
        2024, 6, 30, 22, 30, tzinfo=dt.UTC
    )


def test_an_hour_that_occurs_twice_is_its_first_occurrence():
    assert read_moment("2024-10-27 02:30", BERLIN).created_at == dt.datetime(
        2024, 10, 27, 0, 30, tzinfo=dt.UTC
    )


def test_a_plain_date_is_its_midnight():
    assert read_moment(dt.date(2024, 3, 1), dt.UTC).created_at == NOON.replace(hour=0)
    assert read_moment("20240301", dt.UTC).created_at == NOON.replace(hour=0)


@given(st.datetimes(EARLIEST, LATEST, timezones=st.timezones(), allow_imaginary=False))
def test_any_written_time_is_read_back(moment):
    read = read_moment(moment.isoformat(), None)
    assert read.created_at == moment.astimezone(dt.UTC)
    assert read.problem is None


def test_an_unknown_zone_is_refused():
    with pytest.raises(SourceError, match=r"Time zone 'Mars/Olympus' does not exist.*IANA"):
        zone("Mars/Olympus")


@pytest.mark.parametrize(
    ("written", "form", "expected"),
    [
        ("31.03.2026 23:59:58", "%d.%m.%Y %H:%M:%S", "2026-03-31T23:59:58+00:00"),
        ("3/31/26 11:59 PM", "%m/%d/%y %I:%M %p", "2026-03-31T23:59:00+00:00"),
        (" 2026/03/31 ", "%Y/%m/%d", "2026-03-31T00:00:00+00:00"),
        ("Tue Mar 31 12:00:00 +0200 2026", "%a %b %d %H:%M:%S %z %Y", "2026-03-31T10:00:00+00:00"),
        ("Tue Mar 31 10:00:00 UTC 2026", "%a %b %d %H:%M:%S %z %Y", "2026-03-31T10:00:00+00:00"),
        ("Tuesday, 31-March-26 10:00 GMT", "%A, %d-%B-%y %H:%M %z", "2026-03-31T10:00:00+00:00"),
        ("31 Mar 2026 10:00 +0000 (UTC)", "%d %b %Y %H:%M %z", "2026-03-31T10:00:00+00:00"),
        ("31.03.2026 10:00:00.000000999", "%d.%m.%Y %H:%M:%S.%f", "2026-03-31T10:00:00+00:00"),
        ("31.03.2026 12:00 +0200", "%d.%m.%Y %H:%M %z", "2026-03-31T10:00:00+00:00"),
    ],
)
def test_a_format_reads_times_that_are_not_iso(written, form, expected):
    check_format(form)
    assert read_moment(written, dt.UTC, form).created_at.isoformat() == expected


def test_a_format_reads_nothing_else():
    assert read_moment("2026-03-31T12:00:00Z", None, "%d.%m.%Y").problem == "unreadable_timestamp"
    assert read_moment("31.3.2026", None, "%d.%m.%Y").problem == "timestamp_without_zone"


@pytest.mark.parametrize("form", ["", "%H:%M", "%d.%m.", "iso", "%", "%d.%d.%Y"])
def test_a_format_without_a_day_is_refused(form):
    with pytest.raises(SourceError, match="MODWATCH_SOURCE__TIMESTAMP_FORMAT"):
        check_format(form)
