"""Leases: the exclusive right of one person to decide one item for a limited time.

`LeaseLimit` limits the leases that one person holds at once, so that no one withholds the queue,
and `HourlyLimit` how often they skip, escalate and undo, so that no one chooses from it.
"""

import datetime as dt
import random
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from sqlalchemy import Engine, func, select

from modwatch.common.errors import (
    ItemNotFoundError,
    LeaseConflictError,
    QueueError,
    TooManyActionsError,
    TooManyLeasesError,
)
from modwatch.review.database import DriverSql, at_once, digest_of
from modwatch.review.log.labels import in_force
from modwatch.review.queue.items import Item, Lease, Opinion
from modwatch.review.queue.lanes import Confirmations, Lanes, Limits, load_lanes
from modwatch.review.queue.statements import (
    CLAIM,
    HELD,
    LEASE,
    LEASE_COLUMNS,
    LEASE_ESCALATED,
    LONGEST_HOLD,
    RENEW,
)
from modwatch.review.tables import OPEN_STATUSES, decision, moderator, review_item

LEASE_LENGTH = dt.timedelta(minutes=10)

#: How long a decision can be undone, which leases its item again; later it can only be corrected.
UNDO_WITHIN = dt.timedelta(minutes=10)

_Taken = TypeVar("_Taken", Lease, Lease | None)

#: The order of turns need not be secret.
_TURNS = random.Random()  # noqa: S311

_LEASE, _LEASE_ESCALATED = DriverSql(LEASE), DriverSql(LEASE_ESCALATED)
_CLAIM, _RENEW = DriverSql(CLAIM), DriverSql(RENEW)

_EXTEND = DriverSql(
    f"""
    UPDATE review_item SET leased_until = greatest(leased_until, least(
        now() + make_interval(secs => CAST(:seconds AS double precision)),
        claimed_at + interval '{LONGEST_HOLD}'
    ))
    WHERE {HELD} RETURNING leased_until
    """  # noqa: S608 - our own text
)

# The lease ends as if it had expired: whose it was is what `renew` goes by.
_RELEASE = DriverSql(
    f"UPDATE review_item SET leased_until = now() WHERE {HELD} RETURNING id"  # noqa: S608
)

_RESUME = DriverSql(f"SELECT {LEASE_COLUMNS} FROM review_item WHERE {HELD}")  # noqa: S608


def lease(
    engine: Engine,
    moderator_id: int,
    length: dt.timedelta = LEASE_LENGTH,
    *,
    queues: Collection[str] | None = None,
    opt_outs: Collection[str] = (),
    lanes: Lanes | None = None,
) -> Lease | None:
    """Return a lease of the next item for this moderator, or None if there is none.

    Reasons take turns, weighted by `lanes`; within a reason the order is by deadline, moved forward
    for a high rank, but for chance among the next few, as `lanes` say. Only items of `queues` are
    served, or of all queues if None, and none whose reason is in `opt_outs`. Nobody is served an
    item that they skipped or labelled before, nor another item of the same comment; a confirmation
    waits for the labels before it, and for as long as `lanes` say. Without `lanes` nothing waits
    longer, and the order is exact. Concurrent calls never return the same item and never wait for
    each other. An expired lease ends by itself. Who takes an item again has it for an hour since
    they first had it, and is not served it in the hour after that.
    """
    rules = lanes.confirmations if lanes else Confirmations(after_hours=0, among=1)
    turn = {
        "order": (lanes or load_lanes()).order(_TURNS),
        "opt_outs": list(opt_outs),
        "confirm_after": rules.after_hours * 3600,
        "among": rules.among,
    }
    return _take(engine, _LEASE, moderator_id, length, queues=queues, **turn)


def lease_escalated(
    engine: Engine,
    moderator_id: int,
    length: dt.timedelta = LEASE_LENGTH,
    *,
    queues: Collection[str] | None = None,
) -> Lease | None:
    """Return a lease of the next escalated item, with earlier opinions; None if there is none."""
    taken = _take(engine, _LEASE_ESCALATED, moderator_id, length, queues=queues)
    return None if taken is None else _with_opinions(engine, taken)


def claim(
    engine: Engine,
    moderator_id: int,
    item_id: int,
    length: dt.timedelta = LEASE_LENGTH,
    *,
    queues: Collection[str] | None = None,
    escalated_only: bool = False,
) -> Lease | None:
    """Return a lease of one item; None if it is leased, decided, or not for this person.

    With `escalated_only` an escalated item is leased, otherwise one that waits for any moderator.
    Leases of escalated items contain earlier opinions, so callers must allow this to leads only.
    """
    status = "escalated" if escalated_only else "waiting"
    more = {"item_id": item_id, "status": status}
    taken = _take(engine, _CLAIM, moderator_id, length, queues=queues, **more)
    return None if taken is None else _with_opinions(engine, taken)


def resume(engine: Engine, moderator_id: int, item_id: int, lease_token: str) -> Lease | None:
    """Return a lease that is still valid again, as after a page reload; None if it is not."""
    rows = at_once(engine, _RESUME, _held(moderator_id, item_id, lease_token))
    return _with_opinions(engine, lease_of(rows[0], lease_token)) if rows else None


def renew(
    engine: Engine,
    moderator_id: int,
    item_id: int,
    lease_token: str,
    length: dt.timedelta = LEASE_LENGTH,
    *,
    queues: Collection[str] | None = None,
    escalated: bool = False,
) -> Lease | None:
    """Return a new lease of an item whose last lease this person had; None if it is not so.

    The last lease may be valid, expired or released. Its token proves it, so that no one leases an
    item that the queue did not serve them. The new token follows from the old one: a request that
    is sent again, since its response was lost, gets the same lease. The first claim counts: an hour
    after it the person no longer gets the item this way. With `escalated` an item that
    was escalated meanwhile counts, too; callers must allow this to leads only.
    """
    more = {
        "item_id": item_id,
        "before": digest_of(lease_token),
        "statuses": ["waiting", "escalated"] if escalated else ["waiting"],
    }
    # Only those who know the last token can compute it.
    token = digest_of(f"renewed {lease_token}").hex()
    taken = _take(engine, _RENEW, moderator_id, length, token, queues=queues, **more)
    return None if taken is None else _with_opinions(engine, taken)


def extend(
    engine: Engine,
    moderator_id: int,
    item_id: int,
    lease_token: str,
    length: dt.timedelta = LEASE_LENGTH,
) -> dt.datetime:
    """Extend a lease to `length` from now, at most an hour after the claim; return when it ends.

    Raises `LeaseConflictError` or `ItemNotFoundError` if the lease is not valid.
    """
    held = _held(moderator_id, item_id, lease_token)
    rows = at_once(engine, _EXTEND, held | {"seconds": length.total_seconds()})
    if not rows:
        raise conflict(engine, item_id)
    until: dt.datetime = rows[0]["leased_until"]
    return until


def release(engine: Engine, moderator_id: int, item_id: int, lease_token: str) -> bool:
    """End a lease without a decision; return False if it was no longer valid."""
    return bool(at_once(engine, _RELEASE, _held(moderator_id, item_id, lease_token)))


def conflict(engine: Engine, item_id: int) -> QueueError:
    """Return the error that explains why a lease of this item is not valid."""
    rows = at_once(engine, select(review_item.c.status).where(review_item.c.id == item_id))
    status = rows[0]["status"] if rows else None
    if status in (None, "withdrawn", "closed"):
        return ItemNotFoundError(
            f"item {item_id} was withdrawn, dismissed or never queued; lease the next one"
        )
    return LeaseConflictError(
        f"the lease of item {item_id} is not yours, has expired or was used, or the item has "
        "changed; lease the next one"
    )


def lease_of(row: Mapping[Any, Any], token: str) -> Lease:
    """Return the lease of a row of `review_item`, with its `token`."""
    return Lease(
        item=Item(**{name: row[name] for name in Item.__dataclass_fields__}),
        token=token,
        claimed_at=row["claimed_at"],
        expires_at=row["leased_until"],
    )


def _take(
    engine: Engine,
    statement: DriverSql,
    moderator_id: int,
    length: dt.timedelta,
    token: str | None = None,
    /,
    *,
    queues: Collection[str] | None,
    **more: object,
) -> Lease | None:
    token = token or secrets.token_urlsafe(24)
    values = {
        "moderator_id": moderator_id,
        "digest": digest_of(token),
        "seconds": length.total_seconds(),
        "queues": None if queues is None else list(queues),
    }
    rows = at_once(engine, statement, values | more)
    return lease_of(rows[0], token) if rows else None


def _held(moderator_id: int, item_id: int, lease_token: str) -> dict[str, Any]:
    return {"moderator_id": moderator_id, "item_id": item_id, "digest": digest_of(lease_token)}


def _with_opinions(engine: Engine, lease: Lease) -> Lease:
    """Return `lease` with the earlier opinions on the item, if it is escalated."""
    names = ("action", "label", "policy_code", "reason", "note")
    earlier = (
        select(moderator.c.pseudonym, *(decision.c[name] for name in names))
        .join(moderator, moderator.c.id == decision.c.moderator_id)
        .join(review_item, review_item.c.id == decision.c.item_id)
        .where(
            decision.c.item_id == lease.item.id,
            review_item.c.status == "escalated",
            in_force("label", "escalate"),
        )
        .order_by(decision.c.id)
    )
    return replace(lease, opinions=tuple(Opinion(**row) for row in at_once(engine, earlier)))


#: Seconds in which the leases of a person who has no place left are counted once at most.
_PAUSE = 1.0


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
    """A limit on the leases that one person holds at once, in one process; thread-safe.

    An index on who holds an item would be written with every lease, and counting without one reads
    the table. So a process counts what it leases to a person, and reads the table only when its
    count reaches the limit: once in `most` leases of a person who decides as they go. The limit is
    exact for one process, whatever number of requests arrive at once. With several processes, each
    allows `most` beyond those that the others had leased when it last counted: a person holds at
    most `most` times the number of processes.
    """

    def __init__(self, engine: Engine, most: int) -> None:
        self._engine = engine
        self._most = most
        self._lock = threading.Lock()
        self._people: dict[int, _Person] = {}

    def within(self, moderator_id: int, take: Callable[[], _Taken]) -> _Taken:
        """Return what `take` leases; raise `TooManyLeasesError` if that would be one too many."""
        with self._lock:
            person = self._people.setdefault(moderator_id, _Person())
        with person.lock:
            self._check(moderator_id, person)
            person.waiting += 1
        taken: Lease | None = None
        try:
            return (taken := take())
        finally:
            with person.lock:
                person.waiting -= 1
                person.since += taken is not None

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
        return int(at_once(self._engine, held)[0]["held"])


class HourlyLimit:
    """A limit on the skips and escalations, and on the undos, of a person per hour; thread-safe.

    The decision log counts, with escalations that were undone. A process answers one of these
    requests of a person after the other, so that many at once are not too many.
    """

    def __init__(self, engine: Engine, rules: Limits) -> None:
        self._engine = engine
        self._most = {("skip", "escalate"): rules.skips_per_hour, ("undo",): rules.undos_per_hour}
        self._lock = threading.Lock()
        self._people: dict[int, threading.Lock] = {}

    @contextmanager
    def turn(self, moderator_id: int, action: str, key: str) -> Iterator[None]:
        """Yield while `action` may be recorded; raise `TooManyActionsError` if it may not.

        A request that is sent again, by its idempotency key, does not count.
        """
        with self._lock:
            person = self._people.setdefault(moderator_id, threading.Lock())
        alike, most = next(limit for limit in self._most.items() if action in limit[0])
        made = select(func.count().label("made")).where(
            decision.c.moderator_id == moderator_id,
            decision.c.action.in_(alike),
            decision.c.decided_at > func.now() - dt.timedelta(hours=1),
            decision.c.idempotency_key != key,
        )
        with person:
            if at_once(self._engine, made)[0]["made"] >= most:
                raise TooManyActionsError(
                    f"you may {' or '.join(alike)} {most} times in an hour; label the comment, or "
                    "ask a lead"
                )
            yield
