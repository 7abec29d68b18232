"""UTC days: ranges of them, and which can be run."""

import datetime

from modwatch.common.errors import SettingsError

_ONE_DAY = datetime.timedelta(days=1)
#: Times before it are zeros of a calendar, such as 1899-12-30 of Excel.
_EARLIEST = datetime.date(1990, 1, 1)


def between(first: datetime.date, last: datetime.date) -> list[datetime.date]:
    """Return the days from `first` to `last`, both included; none when `last` is earlier.

    >>> [day.day for day in between(datetime.date(2026, 1, 5), datetime.date(2026, 1, 7))]
    [5, 6, 7]
    """
    return [first + number * _ONE_DAY for number in range((last - first).days + 1)]


def trailing(last: datetime.date, count: int) -> list[datetime.date]:
    """Return the `count` days that end with `last`, oldest first.

    >>> [day.day for day in trailing(datetime.date(2026, 1, 7), 2)]
    [6, 7]
    """
    return [last - back * _ONE_DAY for back in range(count - 1, -1, -1)]


def before(day: datetime.date, count: int) -> list[datetime.date]:
    """Return the `count` days before `day`, oldest first.

    >>> [day.day for day in before(datetime.date(2026, 1, 7), 2)]
    [5, 6]
    """
    return trailing(day - _ONE_DAY, count)


def can_have_comments(day: datetime.date) -> bool:
    """Return whether a day is one of comments: from 1990 on, and begun.

    >>> can_have_comments(datetime.date(1899, 12, 30)), can_have_comments(datetime.date(2024, 1, 5))
    (False, True)
    """
    first, last = possible_days()
    return first <= day <= last


def possible_days() -> tuple[datetime.date, datetime.date]:
    """Return the first and the last day that can have comments: of 1990, and today in UTC."""
    return _EARLIEST, datetime.datetime.now(datetime.UTC).date()


def require_possible(day: datetime.date, first: datetime.date) -> None:
    """Refuse a day that has not begun, or that is before the first day of the installation.

    Raises:
        SettingsError: the day cannot be run.

    >>> require_possible(datetime.date(2026, 1, 5), datetime.date(2026, 1, 5))
    """
    today = datetime.datetime.now(datetime.UTC).date()
    if day > today:
        raise SettingsError(
            f"{day} has not begun: today is {today} (UTC); run {today - _ONE_DAY}, the last whole "
            "day, or an earlier one"
        )
    if day < first:
        raise SettingsError(
            f"{day} is before {first}, the first day (MODWATCH_FIRST_DAY); run a later day, or set "
            f"MODWATCH_FIRST_DAY={day}"
        )
