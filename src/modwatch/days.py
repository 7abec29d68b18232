"""Ranges of UTC days."""

import datetime

_ONE_DAY = datetime.timedelta(days=1)


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

    >>> [each.day for each in before(datetime.date(2026, 1, 7), 2)]
    [5, 6]
    """
    return trailing(day - _ONE_DAY, count)
