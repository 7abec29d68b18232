"""One batch of a closing: items closed, or brought back, with their rows of the log."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    RowMapping,
    and_,
    func,
    select,
    tuple_,
    update,
)

from modwatch.errors import ItemNotFoundError
from modwatch.review.log.decision_log import append, entry_of
from modwatch.review.queue.closing_criteria import Criteria, matches
from modwatch.review.tables import NO_LEASE, bulk_close, decision, decision_chain, review_item


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
