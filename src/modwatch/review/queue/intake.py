"""Intake: makes the open items of a day those that were routed; withdraws or advances items."""

import datetime as dt
import logging
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import psycopg
from psycopg.types.json import Jsonb
from sqlalchemy import (
    Connection,
    Engine,
    Interval,
    Select,
    SmallInteger,
    Text,
    and_,
    case,
    cast,
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

from modwatch.common.errors import QueueError
from modwatch.common.text import ERASED, LONGEST_ID
from modwatch.review.database import at_once, take_turn
from modwatch.review.log.recorded_state import day_of
from modwatch.review.queue.items import NewItem, facts_of, storable
from modwatch.review.queue.lanes import Lanes, load_lanes, place, register_lanes
from modwatch.review.queue.statements import settle
from modwatch.review.tables import (
    KINDS,
    NO_LEASE,
    ROUTED_KINDS,
    is_open,
    review_item,
)

logger = logging.getLogger(__name__)

_COLUMNS = tuple(field.name for field in fields(NewItem) if field.name != "labels_wanted")

#: Values that the lanes give an item, with their types in the temporary table.
_PLACED = {"queue": Text, "promised": Interval, "labels_wanted": SmallInteger}

#: No estimate uses answers to these that come later than its window of days.
_EXPIRING_KINDS = ("confirmation", "retest", "gold")

#: Columns that name an item of a day.
_KEY = ("comment_id", "kind", "round")

_incoming = table("incoming", *(column(name) for name in (*_COLUMNS, *_PLACED)))


@dataclass(frozen=True, kw_only=True)
class Enqueued:
    """The changes that `enqueue` made."""

    #: Number of items passed in.
    routed: int
    #: How many of them are new or different.
    changed: int
    #: Open items of the day that were not among them.
    withdrawn: int


def enqueue(
    engine: Engine,
    items: Iterable[NewItem],
    day: dt.date,
    *,
    kinds: Collection[str] = ROUTED_KINDS,
    lanes: Lanes | None = None,
) -> Enqueued:
    """Make the open items of `day` and `kinds` exactly `items`; return the changes.

    One transaction. An item that was queued before keeps its id and, if its text is the same, its
    lease. An open item that is missing from `items` is withdrawn, as is one whose text was erased;
    decided and dismissed items are left as they are. So the same call again changes nothing.
    `lanes` decide in which queue each item is served, by when, and how many people label it.
    Constant memory. Raises `QueueError` naming the comment whose text or id cannot be stored, that
    occurs twice, or whose kind is not one of `kinds`; `DatabaseError` for an impossible round or
    probability.
    """
    for kind in kinds:
        if kind not in KINDS:
            raise QueueError(f"unknown kind of item {kind!r}; choose one of {', '.join(KINDS)}")
    with engine.begin() as connection:
        # Another run may queue the same day: a retry of a task that is still running.
        take_turn(connection, zlib.crc32(str(day).encode()))
        lanes = lanes or load_lanes()
        erased = recorded_erasures(engine, day)
        routed = _copy(connection, items, kinds, lanes, day, erased)
        _check_duplicates(connection)
        register_lanes(connection, select(_incoming.c.queue, _incoming.c.reason).distinct())
        changed = _upsert(connection, day, lanes)
        item = review_item.c
        routed_again = exists().where(*(_incoming.c[name] == item[name] for name in _KEY))
        gone = (item.dt == day, item.kind.in_(kinds), item.audit.is_(None), ~routed_again)
        withdrawn = withdraw(connection, *gone)
        settle(connection, day)
    done = Enqueued(routed=routed, changed=changed, withdrawn=withdrawn)
    logger.info(
        "Items were queued.",
        extra={"event": "items_queued", "day": str(day), "kinds": sorted(kinds), **asdict(done)},
    )
    return done


_ERASURES = text(
    """
    SELECT one->>0 AS day, one->>1 AS comment_id, min(one->>2) AS part
    FROM event, jsonb_path_query(details, '$.comments[*]') AS one
    WHERE action = 'erase' AND (CAST(:day AS text) IS NULL OR one->>0 = :day) GROUP BY 1, 2
    """
)


def recorded_erasures(engine: Engine, day: dt.date | None = None) -> dict[tuple[dt.date, str], str]:
    """Return the comments (of a day) that the log says were erased, and what of them.

    `comment` is all of it, `parent` the text that it answers; `log.verification` names what is
    malformed.
    """
    rows = at_once(engine, _ERASURES, {"day": day and str(day)})
    return {
        (past, row["comment_id"]): row["part"]
        for row in rows
        if (past := day_of(row["day"] or "")) > dt.date.min and row["comment_id"] and row["part"]
    }


def withdraw(connection: Connection, *conditions: Any) -> int:
    """Withdraw the open items that meet `conditions`, leased or not; return how many."""
    return connection.execute(
        update(review_item)
        .where(is_open, *conditions)
        .values(status="withdrawn", version=review_item.c.version + 1, **NO_LEASE)
    ).rowcount


def withdraw_expired(engine: Engine, before: dt.date) -> int:
    """Withdraw open confirmations, retests and gold items of days before `before`.

    Returns how many. They slow the queue down if they accumulate: every lease passes over those
    that its moderator may not decide.
    """
    item = review_item.c
    with engine.begin() as connection:
        return withdraw(connection, item.dt < before, item.kind.in_(_EXPIRING_KINDS))


def serve_first(engine: Engine, day: dt.date, comment_ids: Collection[str]) -> int:
    """Serve these open items of `day` before all others of their lane; return how many they are.

    Escalated ones come first among those that leads resolve, after severe ones.
    """
    item = review_item.c
    chosen = (
        select(item.id)
        .where(item.dt == day, item.kind == "review", item.comment_id.in_(list(comment_ids)))
        .where(item.status.in_(["waiting", "escalated"]))
        .with_for_update(skip_locked=True)  # a locked item is being leased or decided
    )
    first = item.queued_at - text("interval '10 years'")
    with engine.begin() as connection:
        return connection.execute(
            update(review_item).where(item.id.in_(chosen)).values(serve_by=first)
        ).rowcount


def _copy(
    connection: Connection,
    items: Iterable[NewItem],
    kinds: Collection[str],
    lanes: Lanes,
    day: dt.date,
    erased: Mapping[tuple[dt.date, str], str],
) -> int:
    connection.execute(
        text(
            f"CREATE TEMPORARY TABLE incoming ON COMMIT DROP AS "  # noqa: S608 - our own names
            f"SELECT {', '.join(_COLUMNS)}, queue, due_at - queued_at AS promised, labels_wanted "
            "FROM review_item WITH NO DATA"
        )
    )
    names = ", ".join((*_COLUMNS, *_PLACED))
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)  # noqa: S101 - narrows the driver's type
    routed = 0
    with driver.cursor() as cursor, cursor.copy(f"COPY incoming ({names}) FROM STDIN") as copy:
        for item in items:
            part = erased.get((day, item.comment_id))  # the caller read it before, or the source
            if part == "comment":
                continue
            if part and item.parent_text:
                item = replace(item, parent_text=ERASED)
            row, there = _checked_row(item, kinds), place(item, lanes)
            copy.write_row((*row, *(getattr(there, name) for name in _PLACED)))
            routed += 1
    # Autovacuum never sees the table. Without an index, PostgreSQL 15 reads it once for every item.
    connection.execute(text(f"CREATE INDEX ON incoming ({', '.join(_KEY)})"))
    connection.execute(text("ANALYZE incoming"))
    return routed


def _checked_row(item: NewItem, kinds: Collection[str]) -> tuple[object, ...]:
    if not 0 < len(item.comment_id) <= LONGEST_ID:
        raise QueueError(
            f"a comment id must have 1 to {LONGEST_ID} characters, got {len(item.comment_id)}; "
            "shorten it at its source"
        )
    owner = f"comment {item.comment_id!r}"
    if item.kind not in kinds:
        raise QueueError(
            f"{owner} is of kind {item.kind!r}, expected {', '.join(kinds)}; queue each kind by "
            "itself"
        )
    row = tuple(getattr(item, name) for name in _COLUMNS)
    for name, value in (*zip(_COLUMNS, row, strict=True), *facts_of(item.shown).items()):
        if isinstance(value, str):
            storable(value, name, owner)
    return tuple(Jsonb(value) if isinstance(value, Mapping) else value for value in row)


def _check_duplicates(connection: Connection) -> None:
    same = [_incoming.c[name] for name in _KEY]
    twice = connection.scalar(select(same[0]).group_by(*same).having(func.count() > 1).limit(1))
    if twice is not None:
        raise QueueError(f"comment {twice!r} was routed twice for one day; route each once")


def _upsert(connection: Connection, day: dt.date, lanes: Lanes) -> int:
    names = ["dt", *_COLUMNS, "queue", "labels_wanted", "serve_by", "due_at"]
    insertion = postgresql.insert(review_item).from_select(names, _source(day, lanes))
    new = insertion.excluded
    # `labels_wanted` does not change: it decides how the log is interpreted.
    compared = (*_COLUMNS, "queue")
    differs = or_(
        review_item.c.status == "withdrawn",
        *(review_item.c[name].is_distinct_from(new[name]) for name in compared),
    )
    same_text = and_(
        review_item.c.text == new.text,
        review_item.c.parent_text.is_not_distinct_from(new.parent_text),
    )
    waited = func.now() - review_item.c.queued_at  # deadlines count from the first intake
    return connection.execute(
        insertion.on_conflict_do_update(
            index_elements=["dt", "comment_id", "kind", "round", "reserved_for", "audit"],
            set_={
                **{name: new[name] for name in compared if name not in _KEY},
                **{name: new[name] - waited for name in ("serve_by", "due_at")},
                # Nobody may decide a text that they have not read.
                **{name: case((same_text, review_item.c[name])) for name in NO_LEASE},
                "status": case((review_item.c.status == "escalated", "escalated"), else_="waiting"),
                "version": review_item.c.version + 1,
            },
            # Decided and dismissed items stay as they are, and all labels of an item that several
            # people label are of the same text.
            where=and_(
                review_item.c.status.not_in(["decided", "closed"]),
                or_(review_item.c.labels_wanted == 1, same_text),
                differs,
            ),
        ),
        execution_options={"preserve_rowcount": True},
    ).rowcount


def _source(day: dt.date, lanes: Lanes) -> Select[Any]:
    """Return the incoming rows with their times; the higher the rank, the earlier the service."""
    of_the_day = func.greatest(func.max(_incoming.c.rank).over(), 1)
    ahead = 1.0 - (_incoming.c.rank - 1) * 1.0 / of_the_day  # 1 for the first, above 0 for the last
    # Confirmations open in the course of a day. Each round is served among the items of the next
    # day: at the end of their own they would be most of what is served.
    hours = dt.timedelta(hours=lanes.confirmations.after_hours)
    pulled = _incoming.c.promised * (1.0 - lanes.rank_pull * ahead)
    later = (_incoming.c.round - 1) * cast(literal(hours), Interval)
    return select(
        literal(day).label("dt"),
        *(_incoming.c[name] for name in (*_COLUMNS, "queue", "labels_wanted")),
        (func.now() + later + pulled).label("serve_by"),
        (func.now() + later + _incoming.c.promised).label("due_at"),
    ).order_by(_incoming.c.rank, _incoming.c.kind.desc())
