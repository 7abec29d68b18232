"""Puts one day of routed comments into the queue."""

import datetime as dt
import logging
import zlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields

import psycopg
from sqlalchemy import (
    Connection,
    Engine,
    Update,
    and_,
    case,
    column,
    exists,
    func,
    literal,
    or_,
    select,
    table,
    text,
    update,
)
from sqlalchemy.dialects import postgresql

from modwatch.errors import QueueError
from modwatch.review.items import LONGEST_ID, NewItem, storable
from modwatch.review.tables import KINDS, review_item, waiting

logger = logging.getLogger(__name__)

_COLUMNS = tuple(field.name for field in fields(NewItem))

#: The kinds of item that `route` makes.
ROUTED_KINDS = ("review", "second_opinion")

_incoming = table("incoming", *(column(name) for name in _COLUMNS))

_LEASE = ("lease_digest", "leased_by", "leased_until")


@dataclass(frozen=True, kw_only=True)
class Enqueued:
    """What `enqueue` did to the queue."""

    #: Items handed over.
    routed: int
    #: Of these, new in the queue or different from before; 0 when nothing changed.
    changed: int
    #: Items of the day that were no longer among them.
    withdrawn: int


def enqueue(
    engine: Engine,
    items: Iterable[NewItem],
    day: dt.date,
    *,
    kinds: Collection[str] = ROUTED_KINDS,
) -> Enqueued:
    """Make the undecided items of `day` and `kinds` exactly `items`; return what changed.

    One transaction: an item that was queued before keeps its id and, if its text is the same, its
    lease; an undecided one that is missing from `items` is withdrawn; a decided one stays as it
    is. So the same call twice changes nothing the second time. Items of all kinds get their ids in
    the order of their ranks, so that an id tells nobody of what kind an item is. Constant memory.
    Raises `QueueError` naming the comment whose text or id cannot be stored, that comes twice, or
    that is of none of `kinds`.
    """
    for kind in kinds:
        if kind not in KINDS:
            raise QueueError(f"unknown kind of item {kind!r}; choose one of {', '.join(KINDS)}")
    with engine.begin() as connection:
        _take_turn(connection, day)
        routed = _copy(connection, items, kinds)
        _refuse_duplicates(connection)
        changed = _upsert(connection, day)
        withdrawn = _withdraw(connection, day, kinds)
    done = Enqueued(routed=routed, changed=changed, withdrawn=withdrawn)
    logger.info(
        "Items were queued.",
        extra={
            "event": "items_queued",
            "day": str(day),
            "kinds": sorted(kinds),
            "routed": routed,
            "changed": changed,
            "withdrawn": withdrawn,
        },
    )
    return done


def retire_second_opinions(engine: Engine, before: dt.date) -> int:
    """Withdraw the second opinions of the days before `before` that nobody gave; return how many.

    No estimate asks for them any more, and a queue in which they pile up grows slow: those that a
    moderator may not decide are passed over at every lease.
    """
    with engine.begin() as connection:
        return connection.execute(
            _withdrawal().where(
                review_item.c.dt < before, review_item.c.kind == "second_opinion", waiting
            )
        ).rowcount


def _take_turn(connection: Connection, day: dt.date) -> None:
    """Wait for another run that queues the same day, a retry of a task that still runs, say."""
    key = zlib.crc32(str(day).encode())
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})


def _copy(connection: Connection, items: Iterable[NewItem], kinds: Collection[str]) -> int:
    names = ", ".join(_COLUMNS)
    connection.execute(
        text(
            f"CREATE TEMPORARY TABLE incoming ON COMMIT DROP AS "  # noqa: S608 - our own names
            f"SELECT {names} FROM review_item WITH NO DATA"
        )
    )
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)  # noqa: S101 - narrows the driver's type
    routed = 0
    with driver.cursor() as cursor, cursor.copy(f"COPY incoming ({names}) FROM STDIN") as copy:
        for item in items:
            copy.write_row(_checked_row(item, kinds))
            routed += 1
    return routed


def _checked_row(item: NewItem, kinds: Collection[str]) -> tuple[object, ...]:
    if not 0 < len(item.comment_id) <= LONGEST_ID:
        raise QueueError(
            f"a comment id has 1 to {LONGEST_ID} characters, and one of "
            f"{len(item.comment_id)} came; shorten it at its source"
        )
    owner = f"comment {item.comment_id!r}"
    if item.kind not in kinds:
        raise QueueError(
            f"{owner} is of kind {item.kind!r}, not of {', '.join(kinds)}; queue each by itself"
        )
    if not 0 < item.inclusion_probability <= 1:
        raise QueueError(
            f"the inclusion probability of {owner} is {item.inclusion_probability}, not in (0, 1]"
        )
    row = tuple(getattr(item, name) for name in _COLUMNS)
    for name, value in zip(_COLUMNS, row, strict=True):
        if isinstance(value, str):
            storable(value, name, owner)
    return row


def _refuse_duplicates(connection: Connection) -> None:
    ids, kinds = _incoming.c.comment_id, _incoming.c.kind
    twice = connection.scalar(select(ids).group_by(ids, kinds).having(func.count() > 1).limit(1))
    if twice is not None:
        raise QueueError(f"comment {twice!r} was routed twice for one day; route each once")


def _upsert(connection: Connection, day: dt.date) -> int:
    source = select(literal(day).label("dt"), *_incoming.c).order_by(
        _incoming.c.rank, _incoming.c.kind
    )
    insertion = postgresql.insert(review_item).from_select(["dt", *_COLUMNS], source)
    new = insertion.excluded
    differs = or_(
        review_item.c.status == "withdrawn",
        *(review_item.c[name].is_distinct_from(new[name]) for name in _COLUMNS),
    )
    same_text = review_item.c.text == new.text
    return connection.execute(
        insertion.on_conflict_do_update(
            index_elements=["dt", "comment_id", "kind"],
            set_={
                **{name: new[name] for name in _COLUMNS if name not in ("comment_id", "kind")},
                # Nobody shall decide a text that they have not read.
                **{name: case((same_text, review_item.c[name])) for name in _LEASE},
                "status": "waiting",
                "version": review_item.c.version + 1,
            },
            where=and_(review_item.c.status != "decided", differs),
        ),
        execution_options={"preserve_rowcount": True},
    ).rowcount


def _withdraw(connection: Connection, day: dt.date, kinds: Collection[str]) -> int:
    still_routed = exists().where(
        _incoming.c.comment_id == review_item.c.comment_id, _incoming.c.kind == review_item.c.kind
    )
    return connection.execute(
        _withdrawal().where(
            review_item.c.dt == day, review_item.c.kind.in_(kinds), waiting, ~still_routed
        )
    ).rowcount


def _withdrawal() -> Update:
    return update(review_item).values(
        status="withdrawn", version=review_item.c.version + 1, **dict.fromkeys(_LEASE)
    )
