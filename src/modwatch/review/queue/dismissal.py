"""Bulk dismissal: a lead closes many waiting items without a decision.

The lead sees how many items match, starts the dismissal, watches its progress, and may cancel it,
which reopens the items. A dismissal is a row of `bulk_close`. Its items are closed in batches. Each
batch is one transaction that also writes a row of the decision log per item, so a process that dies
leaves whole batches, and `resume` continues from there. Items that are leased, or that were
decided in the meantime, are skipped.
"""

import datetime as dt
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, ConfigDict, Field, TypeAdapter
from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    RowMapping,
    Select,
    and_,
    func,
    insert,
    select,
    tuple_,
    update,
)

from modwatch.common.errors import ItemNotFoundError, LeaseConflictError, QueueError
from modwatch.common.text import ERASED, LONGEST_ID
from modwatch.review.database import at_once
from modwatch.review.log.decision_log import append, entry_of
from modwatch.review.queue.items import storable
from modwatch.review.queue.metrics import to_do
from modwatch.review.tables import (
    ACTIONABLE_KINDS,
    NO_LEASE,
    bulk_close,
    decision,
    decision_chain,
    review_item,
    unleased,
    waiting,
)

logger = logging.getLogger(__name__)

#: Maximum number of comment ids in the criteria of one dismissal.
MOST_IDS = 10_000

#: Items closed, or reopened, in one transaction.
BATCH = 1_000

LONGEST_REASON = 400

_Word = Annotated[str, Field(min_length=1, max_length=200)]
_CommentId = Annotated[str, Field(min_length=1, max_length=LONGEST_ID)]

State = Literal["closing", "closed", "bringing back", "brought back"]


@dataclass(frozen=True, kw_only=True)
class Criteria:
    """Which waiting items to dismiss: those that match every field that is set.

    >>> Criteria(queue="de", last_day=dt.date(2026, 1, 31)).chosen
    {'queue': 'de', 'last_day': datetime.date(2026, 1, 31)}
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    queue: _Word | None = None
    #: Why they were queued: a review strategy | random_slice | imported
    reason: _Word | None = None
    language: _Word | None = None
    platform: _Word | None = None
    #: Days of the comments, both included.
    first_day: dt.date | None = None
    last_day: dt.date | None = None
    #: Queued earlier than this time, which has a time zone.
    queued_before: AwareDatetime | None = None
    comment_ids: Annotated[tuple[_CommentId, ...], Field(max_length=MOST_IDS)] | None = None

    @property
    def chosen(self) -> dict[str, Any]:
        """The fields that are set."""
        return {name: value for name, value in asdict(self).items() if value is not None}


#: Validates criteria, and reads and writes them as JSON.
CRITERIA = TypeAdapter(Criteria)


@dataclass(frozen=True, kw_only=True)
class Dismissal:
    """The progress of a bulk dismissal."""

    id: int
    moderator_id: int
    criteria: Criteria
    reason: str
    #: How many items matched when the lead confirmed, with leased ones, which stay.
    matched: int
    #: How many items it has closed; the number falls while they are reopened.
    closed: int
    started_at: dt.datetime
    finished_at: dt.datetime | None
    cancelled_at: dt.datetime | None
    cancelled_by: int | None

    @property
    def state(self) -> State:
        """The state; `resume` continues a dismissal that is `closing` or `bringing back`."""
        if self.cancelled_at is None:
            return "closing" if self.finished_at is None else "closed"
        return "bringing back" if self.finished_at is None else "brought back"


def matching(engine: Engine, criteria: Criteria) -> int:
    """Return how many items a dismissal would close at most now; see `metrics.to_do`.

    Raises `QueueError` without criteria.
    """
    with engine.connect() as connection:
        return _count(connection, criteria)


def start(
    engine: Engine, moderator_id: int, criteria: Criteria, reason: str, expected: int
) -> Dismissal:
    """Return a new dismissal, which `resume` carries out.

    A repeated call returns the same dismissal until it is finished. Raises `LeaseConflictError` if
    the number of matching items is no longer `expected`, and `QueueError` for invalid criteria or
    an invalid reason (1 to 400 characters).
    """
    reason = (storable(reason, "reason", "this dismissal") or "").strip()
    if not 0 < len(reason) <= LONGEST_REASON:
        raise QueueError(
            f"the reason of a dismissal must have 1 to {LONGEST_REASON} characters, got "
            f"{len(reason)}"
        )
    values = {
        "moderator_id": moderator_id,
        "criteria": CRITERIA.dump_python(criteria, mode="json", exclude_none=True),
        "reason": reason,
        "matched": expected,
    }
    with engine.begin() as connection:
        _take_turn(connection, moderator_id)
        unfinished = and_(bulk_close.c.finished_at.is_(None), bulk_close.c.cancelled_at.is_(None))
        same = [bulk_close.c[name] == value for name, value in values.items()]
        earlier = connection.scalar(select(bulk_close.c.id).where(unfinished, *same))
        id_ = earlier or _begin(connection, criteria, values)
    return progress(engine, id_)


def resume(engine: Engine, id: int, *, batch: int = BATCH) -> Dismissal:
    """Carry out a dismissal, or its cancellation, to the end, and return it.

    May be called again at any time, and by several processes at once.
    """
    last: int | None = 0
    while last is not None:
        last = _step(engine, id, last, batch)
    return progress(engine, id)


def stop(engine: Engine, moderator_id: int, id: int) -> Dismissal:
    """Mark a dismissal, finished or not, as cancelled: `resume` reopens all items that it closed.

    It closes no more items.
    """
    with engine.begin() as connection:
        row = _locked(connection, id)
        if row["cancelled_at"] is None:
            connection.execute(
                update(bulk_close)
                .where(bulk_close.c.id == id)
                .values(cancelled_at=func.now(), cancelled_by=moderator_id, finished_at=None)
            )
    return progress(engine, id)


def progress(engine: Engine, id: int) -> Dismissal:
    """Return a dismissal. Raises `ItemNotFoundError` for an unknown id."""
    for row in at_once(engine, _rows().where(bulk_close.c.id == id)):
        return _dismissal(row)
    raise _unknown(id)


def latest(engine: Engine, limit: int = 20) -> list[Dismissal]:
    """Return the latest dismissals, newest first."""
    rows = at_once(engine, _rows().order_by(bulk_close.c.id.desc()).limit(limit))
    return [_dismissal(row) for row in rows]


def _begin(connection: Connection, criteria: Criteria, values: dict[str, Any]) -> int:
    count = _count(connection, criteria)
    if count != values["matched"]:
        raise LeaseConflictError(
            f"{count} items match now instead of {values['matched']}; check the new number and "
            "confirm again"
        )
    id_ = connection.execute(
        insert(bulk_close).values(values).returning(bulk_close.c.id)
    ).scalar_one()
    about = {"closing": id_, "items": count, "moderator": values["moderator_id"]}
    logger.info("A bulk dismissal was started.", extra={"event": "closing_started", **about})
    return int(id_)


def _count(connection: Connection, criteria: Criteria) -> int:
    # No condition on leases, as in the counts of the queue: a lead who holds an item, or has just
    # decided it, must not see by this number whether it is one that can be dismissed.
    matched = select(func.count()).select_from(review_item).where(to_do(), _matches(criteria))
    return connection.scalar(matched) or 0


def _rows() -> Select[Any]:
    closed = (
        select(func.count())
        .where(review_item.c.bulk_close_id == bulk_close.c.id, review_item.c.status == "closed")
        .scalar_subquery()
    )
    return select(bulk_close, closed.label("closed"))


def _dismissal(row: Mapping[Any, Any]) -> Dismissal:
    return Dismissal(**{**row, "criteria": CRITERIA.validate_python(row["criteria"])})


def _matches(criteria: Criteria) -> ColumnElement[bool]:
    """Return the condition of the items to dismiss. Raises `QueueError` for invalid criteria."""
    _check(criteria)
    item = review_item.c
    ranges: dict[str, Callable[[Any], ColumnElement[bool]]] = {
        "first_day": lambda day: item.dt >= day,
        "last_day": lambda day: item.dt <= day,
        "queued_before": lambda moment: item.queued_at < moment,
        "comment_ids": lambda ids: item.comment_id.in_(list(ids)),
    }
    return and_(
        *(
            ranges[name](value)
            if name in ranges
            else (item[name] if name in item else item.shown[name].astext) == value
            for name, value in criteria.chosen.items()
        ),
    )


def _check(criteria: Criteria) -> None:
    chosen = criteria.chosen
    if not chosen:
        raise QueueError(
            "a dismissal without criteria would close the whole queue; set at least one"
        )
    for name, value in chosen.items():
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, str):
                storable(part, name, "this dismissal")


def _step(engine: Engine, id: int, last: int, batch: int) -> int | None:
    """Process one batch of items after the id `last`; return the last id, None at the end."""
    with engine.begin() as connection:
        row = _locked(connection, id)
        if row["finished_at"] is not None:
            return None
        _take_turn(connection, row["cancelled_by"] or row["moderator_id"])
        if row["cancelled_at"] is None:
            # Only items that were in the queue when the lead confirmed.
            queued = review_item.c.queued_at <= row["started_at"]
            # All other kinds are measurements: without them, an estimate would be biased.
            closable = and_(waiting, review_item.c.kind.in_(ACTIONABLE_KINDS), unleased)
            matches = _matches(CRITERIA.validate_python(row["criteria"]))
            to_close = and_(closable, matches, queued)
            items = _lock_items(connection, to_close, last, batch, skip_locked=True)
            _close(connection, row, items)
        else:
            closed, left = review_item.c.status == "closed", review_item.c.text != ERASED
            mine = and_(review_item.c.bulk_close_id == id, closed, left)
            items = _lock_items(connection, mine, 0, batch, skip_locked=False)
            _reopen(connection, row, items)
        if len(items) < batch:
            connection.execute(
                update(bulk_close).where(bulk_close.c.id == id).values(finished_at=func.now())
            )
            return None
    return int(items[-1]["id"])


def _locked(connection: Connection, id: int) -> RowMapping:
    """Return the row of a dismissal; batches and `stop` take turns at it."""
    query = select(bulk_close).where(bulk_close.c.id == id)
    row = connection.execute(query.with_for_update()).mappings().one_or_none()
    if row is None:
        raise _unknown(id)
    return row


def _lock_items(
    connection: Connection,
    condition: ColumnElement[bool],
    last: int,
    batch: int,
    *,
    skip_locked: bool,
) -> Sequence[RowMapping]:
    item = review_item.c
    query = (
        select(item.id, item.dt, item.comment_id, item.kind, item.version)
        .where(condition, item.id > last)
        .order_by(item.id)
        .limit(batch)
        # A locked item is being leased or decided at this moment.
        .with_for_update(skip_locked=skip_locked)
    )
    return connection.execute(query).mappings().all()


def _close(connection: Connection, row: RowMapping, items: Sequence[RowMapping]) -> None:
    _set(connection, items, status="closed", bulk_close_id=row["id"])
    unread = and_(review_item.c.status.in_(["blocked", "waiting"]), unleased)
    _set_confirmations(connection, items, unread, status="withdrawn", bulk_close_id=row["id"])
    append(
        connection,
        row["moderator_id"],
        [_entry(row, item, "close", outcome="closed") for item in items],
    )


def _reopen(connection: Connection, row: RowMapping, items: Sequence[RowMapping]) -> None:
    closed = decision.c.item_id.in_([item["id"] for item in items]), decision.c.action == "close"
    last = select(decision.c.item_id, func.max(decision.c.id)).where(*closed)
    closed_by = dict(connection.execute(last.group_by(decision.c.item_id)).all())
    _set(connection, items, status="waiting", bulk_close_id=None)
    mine = review_item.c.bulk_close_id == row["id"]
    _set_confirmations(connection, items, mine, status="blocked", bulk_close_id=None)
    entries = [
        _entry(row, item, "reopen", outcome="waiting", refers_to=closed_by.get(item["id"]))
        for item in items
    ]
    append(connection, row["cancelled_by"], entries)


def _set(connection: Connection, items: Sequence[RowMapping], **values: Any) -> None:
    connection.execute(
        update(review_item)
        .where(review_item.c.id.in_([item["id"] for item in items]))
        .values(version=review_item.c.version + 1, **NO_LEASE, **values)
    )


def _set_confirmations(
    connection: Connection,
    items: Sequence[RowMapping],
    condition: ColumnElement[bool],
    **values: Any,
) -> None:
    comments = [(item["dt"], item["comment_id"]) for item in items if item["kind"] == "review"]
    if comments:
        chosen = select(review_item.c.id).where(
            condition,
            review_item.c.kind == "confirmation",
            tuple_(review_item.c.dt, review_item.c.comment_id).in_(comments),
        )
        # A decision locks an item first and its confirmations later: waiting here could deadlock.
        unlocked = chosen.with_for_update(skip_locked=True)
        connection.execute(
            update(review_item)
            .where(review_item.c.id.in_(unlocked))
            .values(version=review_item.c.version + 1, **values)
        )


def _entry(row: RowMapping, item: RowMapping, action: str, **more: Any) -> dict[str, Any]:
    key = f"{action}-{row['id']}-{item['id']}-{item['version']}"
    values = {"reason": row["reason"], "idempotency_key": key}
    return entry_of(item, action=action, **values, **more)


def _take_turn(connection: Connection, moderator_id: int) -> None:
    """Wait for other transactions that write to the chain of this person.

    Locked before any item, because a decision locks the chain after its item: otherwise the two
    could deadlock.
    """
    chain = select(decision_chain.c.length).where(decision_chain.c.moderator_id == moderator_id)
    connection.execute(chain.with_for_update())


def _unknown(id: int) -> ItemNotFoundError:
    return ItemNotFoundError(f"dismissal {id} does not exist; see the list of dismissals")
