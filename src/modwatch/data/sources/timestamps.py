"""Reads the timestamps of sources into UTC."""

import datetime as dt
import math
import re
import zoneinfo
from dataclasses import dataclass
from decimal import Decimal

from modwatch.common.errors import SourceError
from modwatch.data.sources.values import plain, text_of

#: Units a second of numbers since 1970, from a size on; seconds reach 1e11 in the year 5138.
_SCALES = ((1e17, 1_000_000_000), (1e14, 1_000_000), (1e11, 1_000))

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

#: How Go ends a time: the zone as a number and by its name, and a monotonic clock.
_GO = re.compile(r" ([+-]\d{4})( [A-Z]{2,5}| [+-]\d{2,4})?( m=[+-][\d.]+)?$")
#: Names of days from Sunday and of months, in English whatever the locale of the process is.
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NUMBERS = {
    name: f"{number}" for names in (DAYS, ("", *_MONTHS)) for number, name in enumerate(names)
}
TIME_NAMES = re.compile(rf"\b({'|'.join((*DAYS, *_MONTHS))})[a-z]*", re.IGNORECASE)


#: A date without separators: such numbers of seconds are of August and September 1970.
_EIGHT_DIGITS = re.compile(r"(199\d|20\d\d|2100)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A timestamp, as far as it could be read."""

    #: UTC; None when it could not be read or has no zone.
    created_at: dt.datetime | None
    #: UTC day, or without zone the wall-clock day; None when it could not be read.
    day: dt.date | None
    #: `unreadable_timestamp`, `timestamp_without_zone` or None.
    problem: str | None


_UNREADABLE = Moment(created_at=None, day=None, problem="unreadable_timestamp")


def zone(name: str | None) -> zoneinfo.ZoneInfo | None:
    """Return the time zone of an IANA name; SourceError when it does not exist.

    >>> zone("Europe/Berlin").key
    'Europe/Berlin'
    """
    if name is None:
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as exc:
        raise SourceError(
            f"Time zone {name!r} does not exist; set MODWATCH_SOURCE__ASSUME_TIMEZONE to an IANA "
            "name such as 'Europe/Berlin' or 'UTC'."
        ) from exc


def check_format(written: str | None) -> None:
    """Raise SourceError unless times can be read by a format, in the notation of strptime.

    >>> check_format("%d.%m.%Y %H:%M")
    """
    if written is None:
        return
    probe = dt.datetime(2026, 3, 25, tzinfo=dt.UTC)
    if read_moment(probe.strftime(_numeric(written)), None, written).day != probe.date():
        raise SourceError(
            f"MODWATCH_SOURCE__TIMESTAMP_FORMAT {written!r} gives no day; write day, month and "
            "year as in '%d.%m.%Y %H:%M:%S'."
        )


def read_moment(value: object, assume: dt.tzinfo | None, written: str | None = None) -> Moment:
    """Return the moment of `value`: ISO 8601 text, a datetime, or seconds since 1970.

    With `written`, a format of strptime, text and numbers are read by it alone; names of days and
    months are English. Of a fraction of a second, six digits are read.

    Numbers from 1e11 on are milliseconds, from 1e14 on microseconds, from 1e17 on nanoseconds;
    those of eight digits that are a date of 1990 to 2100 (20260301) are this date. A
    time without zone is in the zone `assume`; of an hour that occurs twice, it is in the first.
    Without `assume` it is a problem, and its day is that of the wall clock.

    >>> read_moment("2024-03-01T23:30:00-02:00", None).created_at.isoformat()
    '2024-03-02T01:30:00+00:00'
    >>> read_moment("2024-03-01 12:00", None).problem
    'timestamp_without_zone'
    >>> read_moment("yesterday", None).problem
    'unreadable_timestamp'
    >>> read_moment("1.3.2026 12:00", dt.UTC, "%d.%m.%Y %H:%M").created_at.isoformat()
    '2026-03-01T12:00:00+00:00'
    """
    try:
        stamp = _stamp(value, written)
        if stamp is None:
            return _UNREADABLE
        if stamp.tzinfo is None and assume is None:
            return Moment(created_at=None, day=stamp.date(), problem="timestamp_without_zone")
        aware = stamp if stamp.tzinfo else stamp.replace(tzinfo=assume)
        utc = aware.astimezone(dt.UTC)
    except (ValueError, OverflowError, re.error):  # re.error: a directive occurs twice
        return _UNREADABLE
    return Moment(created_at=utc, day=utc.date(), problem=None)


def epoch_scale(number: float) -> int:
    """Return how many units of a number since 1970 a second has.

    >>> epoch_scale(1_767_600_000), epoch_scale(1_767_600_000_000)
    (1, 1000)
    """
    return next((scale for size, scale in _SCALES if abs(number) >= size), 1)


def is_eight_digit_date(value: object) -> bool:
    """Return whether a text or a whole number is a date of 1990 to 2100 without separators.

    >>> is_eight_digit_date(20260301), is_eight_digit_date("20261301")
    (True, False)
    """
    return _EIGHT_DIGITS.fullmatch(str(value).strip().removesuffix(".0")) is not None


def _stamp(value: object, form: str | None) -> dt.datetime | None:
    if isinstance(value, dt.datetime):
        return value
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001 – no zone
    value = plain(value)
    if isinstance(value, bool) or value is None:
        return None
    written = str(text_of(value)[0]).strip()
    if form is None and is_eight_digit_date(written):
        return dt.datetime.fromisoformat(written.removesuffix(".0"))
    if form is None and isinstance(value, int | float | Decimal):
        return _from_epoch(float(value))
    written = written.replace("\u202f", " ")  # before AM and PM, as browsers write it
    if form is not None:
        return _by_form(written, form)
    if len(written) > 8 and written.replace(".", "", 1).isdecimal():
        return _from_epoch(float(written))
    try:
        return dt.datetime.fromisoformat(written)
    except ValueError:
        ended = re.sub(" UTC$", "Z", _GO.sub(r"\1", written))
        return dt.datetime.fromisoformat(ended)


def _by_form(written: str, form: str) -> dt.datetime:
    if "%z" in form:
        written = re.sub(r" \([^()]*\)$", "", written)
        written = re.sub(r"\b(?:GMT|UTC)\b(?![+-])", "+0000", written)
    if "%f" in form:
        written = re.sub(r"(\.\d{6})\d+", r"\1", written)
    if (numeric := _numeric(form)) != form:
        written = TIME_NAMES.sub(lambda name: _NUMBERS[name[1].lower()], written)
    return dt.datetime.strptime(written, numeric)  # noqa: DTZ007 – the zone is added by the caller


def _numeric(form: str) -> str:
    """Return a format with numbers in place of names, which depend on the locale."""
    return re.sub("%([aAbB])", lambda name: "%w" if name[1] in "aA" else "%m", form)


def _from_epoch(number: float) -> dt.datetime | None:
    if not math.isfinite(number):
        return None
    return _EPOCH + dt.timedelta(seconds=number / epoch_scale(number))
