"""Gives up many items at once: counted first, watched, stopped, and brought back.

A closing is a row of `bulk_close`. Its items go in batches, each a transaction that also writes a
row of the log for every item; a process that dies leaves whole batches, and `resume` goes on from
there. Whatever somebody holds, or has decided meanwhile, is left alone.
"""

import datetime as dt
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    RowMapping,
    Select,
    and_,
    func,
    insert,
    or_,
    select,
    tuple_,
    update,
)

from modwatch.errors import ItemNotFoundError, LeaseConflictError, QueueError
from modwatch.review.log.decision_log import append, entry_of
from modwatch.review.queue.items import storable
from modwatch.review.tables import (
    NO_LEASE,
    bulk_close,
    decision,
    decision_chain,
    review_item,
    waiting,
)

#: The others are measurements: given up, they would bend an estimate.
CLOSABLE = ("review", "imported")

#: Comment ids that one closing may name.
MOST_IDS = 10_000


@dataclass(frozen=True, kw_only=True)
class Criteria:
    """Which waiting items to give up: those that fit every field that is set.

    >>> Criteria(queue="de", last_day=dt.date(2026, 1, 31)).chosen
    {'queue': 'de', 'last_day': datetime.date(2026, 1, 31)}
    """

    queue: str | None = None
    #: Why they were sent: uncertainty | toxicity | hybrid | random_slice | imported
    reason: str | None = None
    language: str | None = None
    platform: str | None = None
    #: The days of the comments, both included.
    first_day: dt.date | None = None
    last_day: dt.date | None = None
    #: In the queue since before this moment.
    queued_before: dt.datetime | None = None
    comment_ids: tuple[str, ...] | None = None

    @property
    def chosen(self) -> dict[str, Any]:
        """The fields that are set."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def as_json(self) -> dict[str, Any]:
        """Return what `of_json` reads."""
        return {
            name: value.isoformat() if isinstance(value, dt.date) else value
            for name, value in self.chosen.items()
        }

    @classmethod
    def of_json(cls, content: dict[str, Any]) -> "Criteria":
        """Return the criteria that `as_json` wrote down."""
        read: dict[str, Any] = {
            "first_day": dt.date.fromisoformat,
            "last_day": dt.date.fromisoformat,
            "queued_before": dt.datetime.fromisoformat,
            "comment_ids": tuple,
        }
        return cls(**{name: read.get(name, str)(value) for name, value in content.items()})


def matches(criteria: Criteria) -> ColumnElement[bool]:
    """Return the condition of what to give up. Raises `QueueError` for no criteria, or odd ones."""
    _check(criteria)
    item = review_item.c
    ranges: dict[str, Callable[[Any], ColumnElement[bool]]] = {
        "first_day": lambda day: item.dt >= day,
        "last_day": lambda day: item.dt <= day,
        "queued_before": lambda moment: item.queued_at < moment,
        "comment_ids": lambda ids: item.comment_id.in_(list(ids)),
    }
    return and_(
        waiting,
        item.kind.in_(CLOSABLE),
        or_(item.leased_until.is_(None), item.leased_until <= func.now()),
        *(
            ranges[name](value) if name in ranges else item[name] == value
            for name, value in criteria.chosen.items()
        ),
    )


def _check(criteria: Criteria) -> None:
    chosen = criteria.chosen
    if not chosen:
        raise QueueError("a closing without criteria would give up the whole queue; choose some")
    for name, value in chosen.items():
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, str):
                storable(each, name, "this closing")
    if len(criteria.comment_ids or ()) > MOST_IDS:
        raise QueueError(f"a closing names at most {MOST_IDS} comments; make several of it")
    moment = criteria.queued_before
    if moment is not None and moment.tzinfo is None:
        raise QueueError("the moment of queued_before has no time zone; say which it is in")


logger = logging.getLogger(__name__)

#: Items closed, or brought back, in one transaction.
BATCH = 1_000

LONGEST_REASON = 400

State = Literal["closing", "closed", "bringing back", "brought back"]


@dataclass(frozen=True, kw_only=True)
class Dismissal:
    """How far a closing is."""

    id: int
    moderator_id: int
    criteria: Criteria
    reason: str
    #: How many items it was to be, as the person was told.
    matched: int
    #: How many are closed by it now; they go down again while they are brought back.
    closed: int
    started_at: dt.datetime
    finished_at: dt.datetime | None
    cancelled_at: dt.datetime | None
    cancelled_by: int | None

    @property
    def state(self) -> State:
        """Where it stands; `closing` and `bringing back` go on with `resume`."""
        if self.cancelled_at is None:
            return "closing" if self.finished_at is None else "closed"
        return "bringing back" if self.finished_at is None else "brought back"


def matching(engine: Engine, criteria: Criteria) -> int:
    """Return how many items a closing would give up now. Raises `QueueError` for no criteria."""
    with engine.connect() as connection:
        return _count(connection, criteria)


def start(
    engine: Engine, moderator_id: int, criteria: Criteria, reason: str, expected: int
) -> Dismissal:
    """Return a closing that `resume` carries out.

    The same call twice, while the first is under way, is one closing. Raises `LeaseConflictError`
    when not `expected` items match any more, `QueueError` when the criteria or the reason (1 to
    400 characters) cannot be.
    """
    reason = (storable(reason, "reason", "this closing") or "").strip()
    if not 0 < len(reason) <= LONGEST_REASON:
        raise QueueError(f"say in 1 to {LONGEST_REASON} characters why these items are given up")
    values = {
        "moderator_id": moderator_id,
        "criteria": criteria.as_json(),
        "reason": reason,
        "matched": expected,
    }
    with engine.begin() as connection:
        take_turn(connection, moderator_id)
        under_way = and_(bulk_close.c.finished_at.is_(None), bulk_close.c.cancelled_at.is_(None))
        same = [bulk_close.c[name] == value for name, value in values.items()]
        twice = connection.scalar(select(bulk_close.c.id).where(under_way, *same))
        id_ = twice or _begin(connection, criteria, values)
    return progress(engine, id_)


def resume(engine: Engine, id: int, *, batch: int = BATCH) -> Dismissal:
    """Carry a closing, or its cancelling, on to the end, and return it.

    May be called again at any time, by several processes at once.
    """
    last: int | None = 0
    while last is not None:
        last = step(engine, id, last, batch)
    return progress(engine, id)


def cancel(engine: Engine, moderator_id: int, id: int, *, batch: int = BATCH) -> Dismissal:
    """Stop a closing, or take a finished one back: bring back all it closed, and return it."""
    stop(engine, moderator_id, id)
    return resume(engine, id, batch=batch)


def stop(engine: Engine, moderator_id: int, id: int) -> Dismissal:
    """Let a closing close nothing more; `resume` then brings back what it closed."""
    with engine.begin() as connection:
        row = locked(connection, id)
        if row["cancelled_at"] is None:
            connection.execute(
                update(bulk_close)
                .where(bulk_close.c.id == id)
                .values(cancelled_at=func.now(), cancelled_by=moderator_id, finished_at=None)
            )
    return progress(engine, id)


def progress(engine: Engine, id: int) -> Dismissal:
    """Return how far a closing is. Raises `ItemNotFoundError` when there is none of this id."""
    with engine.connect() as connection:
        row = connection.execute(_closings().where(bulk_close.c.id == id)).mappings().one_or_none()
    if row is None:
        raise unknown(id)
    return _closing(row)


def closings(engine: Engine, limit: int = 20) -> list[Dismissal]:
    """Return the latest closings, newest first."""
    with engine.connect() as connection:
        rows = connection.execute(_closings().order_by(bulk_close.c.id.desc()).limit(limit))
        return [_closing(row) for row in rows.mappings()]


def _begin(connection: Connection, criteria: Criteria, values: dict[str, Any]) -> int:
    found = _count(connection, criteria)
    if found != values["matched"]:
        raise LeaseConflictError(
            f"{found} items match now, and you were told {values['matched']}; look at the new "
            "number and confirm again"
        )
    id_ = connection.execute(
        insert(bulk_close).values(values).returning(bulk_close.c.id)
    ).scalar_one()
    logger.info(
        "A closing was started.",
        extra={
            "event": "closing_started",
            "closing": id_,
            "items": found,
            "moderator": values["moderator_id"],
        },
    )
    return int(id_)


def _count(connection: Connection, criteria: Criteria) -> int:
    found = select(func.count()).select_from(review_item).where(matches(criteria))
    return connection.scalar(found) or 0


def _closings() -> Select[Any]:
    closed = (
        select(func.count())
        .where(review_item.c.bulk_close_id == bulk_close.c.id, review_item.c.status == "closed")
        .scalar_subquery()
    )
    return select(bulk_close, closed.label("closed"))


def _closing(row: RowMapping) -> Dismissal:
    values = {field.name: row[field.name] for field in fields(Dismissal)}
    return Dismissal(**values | {"criteria": Criteria.of_json(row["criteria"])})


def step(engine: Engine, id: int, last: int, batch: int) -> int | None:
    """Do one batch of items after the id `last`; return the last id done, None at the end."""
    with engine.begin() as connection:
        row = locked(connection, id)
        if row["finished_at"] is not None:
            return None
        take_turn(connection, row["cancelled_by"] or row["moderator_id"])
        if row["cancelled_at"] is None:
            items = _take(connection, _open(row), last, batch)
            _close(connection, row, items)
        else:
            mine = and_(review_item.c.bulk_close_id == id, review_item.c.status == "closed")
            items = _take(connection, mine, 0, batch, wait=True)
            _bring_back(connection, row, items)
        if len(items) < batch:
            connection.execute(
                update(bulk_close).where(bulk_close.c.id == id).values(finished_at=func.now())
            )
            return None
    return int(items[-1]["id"])


def locked(connection: Connection, id: int) -> RowMapping:
    """Return the row of a closing; batches and a cancel take turns at it."""
    found = select(bulk_close, func.now().label("now")).where(bulk_close.c.id == id)
    row = connection.execute(found.with_for_update()).mappings().one_or_none()
    if row is None:
        raise unknown(id)
    return row


def _open(row: RowMapping) -> ColumnElement[bool]:
    """Return the condition of what the closing of `row` has still to give up."""
    # Nothing that came after the person looked.
    return and_(
        matches(Criteria.of_json(row["criteria"])), review_item.c.queued_at <= row["started_at"]
    )


def _take(
    connection: Connection,
    condition: ColumnElement[bool],
    last: int,
    batch: int,
    *,
    wait: bool = False,
) -> Sequence[RowMapping]:
    item = review_item.c
    found = (
        select(item.id, item.dt, item.comment_id, item.kind, item.version)
        .where(condition, item.id > last)
        .order_by(item.id)
        .limit(batch)
        # An item that somebody takes at this moment is theirs.
        .with_for_update(skip_locked=not wait)
    )
    return connection.execute(found).mappings().all()


def _close(connection: Connection, row: RowMapping, items: Sequence[RowMapping]) -> None:
    _set(connection, items, status="closed", bulk_close_id=row["id"])
    blocked = review_item.c.status == "blocked"
    _set_second_opinions(connection, items, blocked, status="withdrawn", bulk_close_id=row["id"])
    entries = [_entry(row, item, "close") for item in items]
    append(connection, row["moderator_id"], entries)


def _bring_back(connection: Connection, row: RowMapping, items: Sequence[RowMapping]) -> None:
    closed_by = _close_rows(connection, row["id"], items)
    _set(connection, items, status="waiting", bulk_close_id=None)
    mine = review_item.c.bulk_close_id == row["id"]
    _set_second_opinions(connection, items, mine, status="blocked", bulk_close_id=None)
    entries = [_entry(row, item, "reopen", refers_to=closed_by.get(item["id"])) for item in items]
    append(connection, row["cancelled_by"], entries)


def _close_rows(
    connection: Connection,
    id: int,
    items: Sequence[RowMapping],
) -> dict[int, int]:
    """Return for each item the decision by which this closing closed it."""
    rows = select(decision.c.item_id, func.max(decision.c.id)).where(
        decision.c.item_id.in_([item["id"] for item in items]),
        decision.c.action == "close",
        decision.c.idempotency_key.startswith(f"close-{id}-", autoescape=True),
    )
    return {row[0]: row[1] for row in connection.execute(rows.group_by(decision.c.item_id))}


def _set(connection: Connection, items: Sequence[RowMapping], **values: Any) -> None:
    connection.execute(
        update(review_item)
        .where(review_item.c.id.in_([item["id"] for item in items]))
        .values(
            version=review_item.c.version + 1,
            **NO_LEASE,
            **values,
        )
    )


def _set_second_opinions(
    connection: Connection,
    items: Sequence[RowMapping],
    condition: ColumnElement[bool],
    **values: Any,
) -> None:
    twins = [(item["dt"], item["comment_id"]) for item in items if item["kind"] == "review"]
    if twins:
        found = select(review_item.c.id).where(
            condition,
            review_item.c.kind == "second_opinion",
            tuple_(review_item.c.dt, review_item.c.comment_id).in_(twins),
        )
        # Who decides locks an item and then its twins: waiting for them here could be a circle.
        chosen = found.with_for_update(skip_locked=True)
        connection.execute(
            update(review_item)
            .where(review_item.c.id.in_(chosen))
            .values(version=review_item.c.version + 1, **values)
        )


def _entry(row: RowMapping, item: RowMapping, action: str, **more: Any) -> dict[str, Any]:
    key = f"{action}-{row['id']}-{item['id']}-{item['version']}"
    said = {"reason": row["reason"], "idempotency_key": key, "decided_at": row["now"]}
    return entry_of(item, action=action, **said, **more)


def take_turn(connection: Connection, moderator_id: int) -> None:
    """Wait until no one else writes to the chain of this person.

    Taken before any item is, as whoever decides takes it after: so nobody waits in a circle.
    """
    chain = select(decision_chain.c.length).where(decision_chain.c.moderator_id == moderator_id)
    connection.execute(chain.with_for_update())


def unknown(id: int) -> ItemNotFoundError:
    """Return the refusal of an id that no closing has."""
    return ItemNotFoundError(f"there is no closing {id}; look at the list of closings")
