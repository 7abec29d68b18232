"""A limit on the leases that one person holds at once, so that nobody withholds the queue.

An index on who holds an item would be written with every lease, and counting without one reads the
table. So a process counts what it leases to a person, and reads the table only when its count
reaches the limit: once in `most` leases of a person who decides as they go. The limit is exact for
one process, whatever number of requests arrive at once. With several processes, each allows `most`
beyond those that the others had leased when it last counted: a person holds at most `most` times
the number of processes.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy import Engine, func, select

from modwatch.common.errors import TooManyLeasesError
from modwatch.review.database import at_once
from modwatch.review.tables import OPEN_STATUSES, review_item

#: Seconds in which the leases of a person who has no place left are counted once at most.
_PAUSE = 1.0


@dataclass
class Place:
    """A place for one lease; it is free again unless `taken`."""

    taken: bool = False


@dataclass
class _Person:
    lock: threading.Lock = field(default_factory=threading.Lock)
    #: Leases held when they were counted, and leased since then, whether they ended or not.
    held: int = 0
    since: int = 0
    #: Requests that have a place and may not have their lease yet.
    waiting: int = 0
    #: On the clock of `time.monotonic`; None: never.
    counted_at: float | None = None


class LeaseLimit:
    """The limit of one process, for the database of `engine`; thread-safe."""

    def __init__(self, engine: Engine, most: int) -> None:
        self._engine = engine
        self._most = most
        self._lock = threading.Lock()
        self._people: dict[int, _Person] = {}

    @contextmanager
    def place(self, moderator_id: int) -> Iterator[Place]:
        """Yield a place for one more lease; raise `TooManyLeasesError` if there is none."""
        with self._lock:
            person = self._people.setdefault(moderator_id, _Person())
        with person.lock:
            self._check(moderator_id, person)
            person.waiting += 1
        place = Place()
        try:
            yield place
        finally:
            with person.lock:
                person.waiting -= 1
                person.since += place.taken

    def _check(self, moderator_id: int, person: _Person) -> None:
        counted = person.counted_at is not None
        if counted and person.held + person.since + person.waiting < self._most:
            return
        full = person.held >= self._most
        if not full or time.monotonic() - (person.counted_at or 0.0) >= _PAUSE:
            person.held, person.since = self._count(moderator_id), 0
            person.counted_at = time.monotonic()
        if person.held + person.since + person.waiting >= self._most:
            raise TooManyLeasesError(
                f"you hold {self._most} items, the most that one person may; decide or release "
                "some of them first"
            )

    def _count(self, moderator_id: int) -> int:
        item = review_item.c
        held = select(func.count().label("held")).where(
            item.leased_by == moderator_id,
            item.leased_until > func.now(),
            item.status.in_(OPEN_STATUSES),
        )
        number: int = at_once(self._engine, held)[0]["held"]
        return number
