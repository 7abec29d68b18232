"""The calendar of an installation: a TOML file, validated when it is loaded."""

import datetime
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from modwatch.common.days import between
from modwatch.common.errors import SettingsError
from modwatch.settings.file import read_toml, validated
from modwatch.statistics.drift.seasons import NO_CALENDAR, WEEKENDS, Calendar

_Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_Volume = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]

#: Days of one entry; what lasts longer is a new normal, which a person accepts.
_MOST_DAYS = 60


class _Days(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[^\x00-\x1f]{1,80}$")
    first: datetime.date
    last: datetime.date | None = None
    volume: _Volume

    @property
    def span(self) -> list[datetime.date]:
        return between(self.first, self.last or self.first)


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    days: tuple[_Days, ...] = ()
    weekdays: dict[_Weekday, _Volume] = {}


def load_calendar(path: Path | None = None) -> Calendar:
    """Return the calendar in the file `path`; None: only weekends are unusual.

    An entry of `[[days]]` may lie within a longer one, and counts in its place.

    Raises:
        SettingsError: the file cannot be read, an entry is invalid, or entries overlap otherwise;
            the message names the entry.

    >>> load_calendar().weekdays[6]
    0.3
    """
    if path is None:
        return NO_CALENDAR
    origin = str(path)
    file = validated(_File, read_toml(path), origin)
    found: dict[datetime.date, _Days] = {}
    for entry in sorted(file.days, key=lambda entry: -len(entry.span)):
        around = {found.get(day) for day in entry.span}
        other = next(filter(None, around), None)
        problem = ""
        if not 1 <= len(entry.span) <= _MOST_DAYS:
            problem = f"last must be 0 to {_MOST_DAYS - 1} days after first"
        elif other and (len(around) > 1 or len(other.span) == len(entry.span)):
            problem = f"overlaps {other.name!r}, {other.first}, and lies not within it"
        if problem:
            raise SettingsError(f"{origin}: day {entry.name!r}, {entry.first}: {problem}")
        found |= dict.fromkeys(entry.span, entry)
    named = {get_args(_Weekday).index(name): volume for name, volume in file.weekdays.items()}
    unusual = {day: (entry.name, entry.volume) for day, entry in found.items()}
    return Calendar(days=unusual, weekdays=WEEKENDS | named)
