"""Seasons of the volume: weekends before their weekday is known, and the same days a year before.

A day is compared with the same weekdays as soon as there are three of them, and before that with
the days before, most of which are no weekend. On many platforms fewer people write on weekends and
at the turn of the year, which is no reason for an alert. A calendar names days that people know to
be unusual. How far a volume may be from the usual one follows from how far it was on other days.
"""

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median

from modwatch.statistics.drift.day_comparison import MINIMUM_DAYS

#: Volume of Saturdays and Sundays over that of the days before, until one has been seen.
WEEKENDS = {5: 0.3, 6: 0.3}

#: A volume that is lower than this part of what is expected, or higher than its inverse, differs,
#: however far volumes usually vary.
DIFFERS = 1 / 3

#: The closest bound: a volume of 1/1.6 to 1.6 times the usual one never differs.
_CLOSEST = 1.6

#: Days whose ratios are needed for a spread, and how many of its standard deviations are usual.
_SPREAD_DAYS, _DEVIATIONS = 14, 4.0

#: Standard deviation over the median absolute deviation, of normal values.
_MAD = 1.4826

#: A lower volume than this part of the usual one a year before was a failure, not a season; so was
#: its inverse.
_FAILURE = 0.1

#: Weeks in which the same weekday is looked for, as for the trailing reference.
WEEKS = 5


@dataclass(frozen=True, kw_only=True)
class Volume:
    """Rows that landed on a day."""

    rows: int
    #: Over the median of the day's trailing reference; None: not known.
    ratio: float | None


@dataclass(frozen=True, kw_only=True)
class Calendar:
    """The days whose volume people know to be unusual."""

    #: Name, and expected volume over the usual one; 0: the platform is closed.
    days: Mapping[datetime.date, tuple[str, float]] = field(default_factory=dict)
    #: Expected volume of weekdays, 0 for Monday, over that of the days before.
    weekdays: Mapping[int, float] = field(default_factory=WEEKENDS.copy)

    def explanation(self, day: datetime.date, ratio: float) -> str:
        """Return what explains a volume of `ratio` times the usual one; "" if nothing does.

        It lies between the usual one and what is expected, or is at most three times as far.

        >>> calendar = Calendar(days={datetime.date(2026, 12, 25): ("Christmas", 0.3)})
        >>> calendar.explanation(datetime.date(2026, 12, 25), 0.25)
        'Christmas, when 0.3 times the usual volume is expected'
        >>> calendar.explanation(datetime.date(2026, 12, 25), 0.02)
        ''
        """
        if day not in self.days and self.weekdays.get(day.weekday()) != 0:
            return ""
        name, volume = self.days.get(day, ("a closed weekday", 0.0))
        if not min(1, volume * DIFFERS) <= ratio <= max(1, volume / DIFFERS):
            return ""
        return f"{name}, when {volume:g} times the usual volume is expected"


#: Of an installation without one.
NO_CALENDAR = Calendar()


#: Volumes of earlier days.
Past = Mapping[datetime.date, Volume]


def usual_factor(day: datetime.date, past: Past) -> float:
    """Return by what factor a day's volume may be above or below the usual one, in [1.6, 3].

    Four standard deviations of the logarithm of the ratios of the five weeks before, which are
    taken from their median absolute deviation; 3 with fewer than 14 known ratios.

    >>> monday = datetime.date(2026, 2, 2)
    >>> weeks = [monday - datetime.timedelta(days=back) for back in range(1, 36)]
    >>> steady = {day: Volume(rows=1000, ratio=1 + day.day % 3 / 20) for day in weeks}
    >>> usual_factor(monday, steady), usual_factor(monday, {})
    (1.6, 3.0)
    """
    begin = day - datetime.timedelta(weeks=WEEKS)
    known = [
        math.log(volume.ratio)
        for one, volume in past.items()
        if begin <= one < day and volume.ratio
    ]
    if len(known) < _SPREAD_DAYS:
        return 1 / DIFFERS
    middle = median(known)
    spread = _MAD * median(abs(one - middle) for one in known)
    return min(max(math.exp(_DEVIATIONS * spread), _CLOSEST), 1 / DIFFERS)


def season(day: datetime.date, today: Volume, past: Past, calendar: Calendar = NO_CALENDAR) -> str:
    """Return the season that explains an unusual volume of a day; "" if there is none.

    A volume within `usual_factor` of the usual one does not differ. Seasons are:

    - What the calendar says of the day.
    - A weekend day, or one of another weekday of the calendar, whose weekday has fewer than three
      days to be compared with: unless it has less than a third of the same weekdays seen so far or,
      if none was, of the calendar's part of the days before.
    - The same weekday of the same week, or the same date, a year before differed in the same
      direction, and the day is within a third and three times what that would make of it. A tenth
      or ten times the usual volume a year before is taken for a failure. Feasts that move by weeks,
      such as Easter, are not known.

    Args:
        day: the day.
        today: its volume.
        past: volumes of earlier days, as far as they are known: the five weeks before `day`, and
            the week a year before.
        calendar: the days that people know to be unusual.

    >>> christmas = {datetime.date(2024, 12, 25): Volume(rows=290, ratio=0.29)}
    >>> season(datetime.date(2025, 12, 25), Volume(rows=310, ratio=0.25), christmas)
    '0.29 times the usual volume on 2024-12-25, too'
    >>> season(datetime.date(2025, 12, 25), Volume(rows=80, ratio=0.08), christmas)
    ''
    """
    factor = usual_factor(day, past)
    if today.ratio is None or 1 / factor <= today.ratio <= factor:
        return ""
    return (
        calendar.explanation(day, today.ratio)
        or _new_weekend(day, today.rows, today.ratio, past, calendar.weekdays.get(day.weekday()))
        or _year_before(day, today.ratio, past)
    )


def year_before(day: datetime.date) -> tuple[datetime.date, datetime.date]:
    """Return the days of the year before that a day is compared with, the earlier one first.

    They are the same date and the same weekday of the same week.
    """
    same_date = day.replace(year=day.year - 1, day=min(day.day, 28) if day.month == 2 else day.day)
    return same_date, day - datetime.timedelta(weeks=52)


def _new_weekend(
    day: datetime.date, rows: int, ratio: float, past: Past, share: float | None
) -> str:
    if share is None or not 0 < ratio <= 1:
        return ""
    weeks = (day - datetime.timedelta(weeks=week) for week in range(1, WEEKS + 1))
    seen = [past[week].rows for week in weeks if week in past]
    if len(seen) >= MINIMUM_DAYS:
        return ""
    usual = rows / ratio
    expected = min(median(seen), usual) if seen else share * usual
    if rows < DIFFERS * expected:
        return ""
    return f"a weekday with fewer comments, of which {len(seen)} of {MINIMUM_DAYS} are known"


def _year_before(day: datetime.date, ratio: float, past: Past) -> str:
    for earlier in year_before(day):
        then = past[earlier].ratio if earlier in past else None
        if not then or (then < 1) != (ratio < 1) or not _FAILURE < then < 1 / _FAILURE:
            continue
        if DIFFERS <= ratio / then <= 1 / DIFFERS:
            return f"{then:.2f} times the usual volume on {earlier}, too"
    return ""
