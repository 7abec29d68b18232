"""What files hold: rows by UTC day, found by reading each file once until it changes."""

import datetime as dt
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from modwatch.common.account import Account
from modwatch.common.days import can_have_comments

_NAMED_DAY = re.compile(r"(?<!\d)(\d{4})[-_.]?(\d\d)[-_.]?(\d\d)(?!\d)")


@dataclass(kw_only=True)
class Content:
    """The rows of a file by day, and its lines that are no rows."""

    #: By UTC day, in the order of the file: rows, and the line of the first.
    days: dict[dt.date, tuple[int, int]] = field(default_factory=dict)
    #: Its lines and records; places are those of lines that are no rows.
    account: Account = field(default_factory=Account)

    def count(self, day: dt.date, line: int) -> None:
        """Count a row."""
        rows, first = self.days.get(day, (0, line))
        self.days[day] = rows + 1, first

    def of_other_days(self, path: Path) -> Account:
        """Return the account of a file without rows of the day that is read.

        >>> content = Content(account=Account(read=2, places={"header": 1}))
        >>> content.count(dt.date(2026, 1, 5), 2)
        >>> content.of_other_days(Path("a.csv")).places["other_day"]
        1
        """
        left = Account(read=self.account.read, places=self.account.places)
        for day, (rows, line) in self.days.items():
            if can_have_comments(day):
                left.count("other_day", rows)
            else:
                left.count("unusual_day", rows, where=f"{path}:{line}")
        return left


@dataclass(frozen=True)
class FileIndex:
    """A folder with one small file for the content of each file; None: nothing is kept.

    It may be deleted, and several processes may use it: an entry is written whole or not at all.
    """

    folder: Path | None

    def content(self, path: Path, scan: Callable[[], Content], of: str) -> Content:
        """Return the content of a file: as it was kept if the file is unchanged, else by `scan`.

        `of` is how the file is read: another reading has other contents.
        """
        before = _state(path)
        if self.folder is None or before is None:
            return scan()
        named = repr((of, os.fsencode(path.absolute()))).encode(errors="surrogatepass")
        place = self.folder / f"{hashlib.blake2b(named, digest_size=16).hexdigest()}.json"
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            kept = json.loads(place.read_bytes())
            if kept["state"] == before:
                days = {dt.date.fromisoformat(day): (n, line) for day, n, line in kept["days"]}
                return Content(days=days, account=Account(read=kept["read"], places=kept["places"]))
        found = scan()
        if _state(path) == before:  # else it has changed while it was read
            held = [(str(day), rows, line) for day, (rows, line) in found.days.items()]
            with suppress(OSError):  # without an entry, the file is read again
                _write(place, {"state": before, "days": held, **vars(found.account)})
        return found


def named_days(path: Path, known: Mapping[Path, Collection[dt.date]]) -> set[dt.date]:
    """Return the days that a file may hold by the day in its name; none: it names no day.

    Files of local days, or that are named after the day of an export, hold other days than they
    name: as most of the `known` files do.

    >>> known = {Path("2026-01-05.csv"): [dt.date(2026, 1, 4), dt.date(2026, 1, 5)]}
    >>> sorted(day.day for day in named_days(Path("2026-01-06.csv"), known))
    [5, 6]
    """
    if (named := _named_day(path)) is None:
        return set()
    others = {other: day for other in known if (day := _named_day(other)) and known[other]}
    apart = Counter(day - named for other, named in others.items() for day in known[other])
    usual = [offset for offset, files in apart.items() if 2 * files >= len(others)]
    return {named + offset for offset in usual or [dt.timedelta()]}


def _named_day(path: Path) -> dt.date | None:
    with suppress(ValueError):
        found = _NAMED_DAY.search(path.name)
        return dt.date(*map(int, found.groups())) if found else None
    return None


def _state(path: Path) -> list[int] | None:
    """Return what changes with a file, also when it is replaced by one of the same size and time.

    None: there is none.
    """
    with suppress(OSError):
        found = path.stat()
        return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]
    return None


def _write(place: Path, entry: Mapping[str, object]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(entry))
    draft.replace(place)
