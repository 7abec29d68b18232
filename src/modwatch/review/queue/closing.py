"""Gives up many items at once: counted first, watched, stopped, and brought back.

A closing is a row of `bulk_close`. Its items go in batches, each a transaction that also writes a
row of the log for every item; a process that dies leaves whole batches, and `resume` goes on from
there. Whatever somebody holds, or has decided meanwhile, is left alone.
"""

import datetime as dt
import logging
from dataclasses import dataclass, fields
from typing import Any, Literal

from sqlalchemy import (
    Connection,
    Engine,
    RowMapping,
    Select,
    and_,
    func,
    insert,
    select,
    update,
)

from modwatch.errors import LeaseConflictError, QueueError
from modwatch.review.queue.closing_batches import locked, step, take_turn, unknown
from modwatch.review.queue.closing_criteria import Criteria, matches
from modwatch.review.queue.items import storable
from modwatch.review.tables import bulk_close, review_item

logger = logging.getLogger(__name__)

#: Items closed, or brought back, in one transaction.
BATCH = 1_000

LONGEST_REASON = 400

State = Literal["closing", "closed", "bringing back", "brought back"]


@dataclass(frozen=True, kw_only=True)
class Closing:
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
) -> Closing:
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


def resume(engine: Engine, id: int, *, batch: int = BATCH) -> Closing:
    """Carry a closing, or its cancelling, on to the end, and return it.

    May be called again at any time, by several processes at once.
    """
    last: int | None = 0
    while last is not None:
        last = step(engine, id, last, batch)
    return progress(engine, id)


def cancel(engine: Engine, moderator_id: int, id: int, *, batch: int = BATCH) -> Closing:
    """Stop a closing, or take a finished one back: bring back all it closed, and return it."""
    stop(engine, moderator_id, id)
    return resume(engine, id, batch=batch)


def stop(engine: Engine, moderator_id: int, id: int) -> Closing:
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


def progress(engine: Engine, id: int) -> Closing:
    """Return how far a closing is. Raises `ItemNotFoundError` when there is none of this id."""
    with engine.connect() as connection:
        row = connection.execute(_closings().where(bulk_close.c.id == id)).mappings().one_or_none()
    if row is None:
        raise unknown(id)
    return _closing(row)


def closings(engine: Engine, limit: int = 20) -> list[Closing]:
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


def _closing(row: RowMapping) -> Closing:
    values = {field.name: row[field.name] for field in fields(Closing)}
    return Closing(**values | {"criteria": Criteria.of_json(row["criteria"])})
