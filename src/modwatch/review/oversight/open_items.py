"""What is open now: held by somebody, or handed to a lead."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import date, datetime

from sqlalchemy import (
    ColumnElement,
    Engine,
    and_,
    case,
    func,
    select,
    true,
    update,
)

from modwatch.review.log.standing import stands
from modwatch.review.people import record_event
from modwatch.review.queue.health import leased, seconds
from modwatch.review.tables import NO_LEASE, decision, moderator, review_item

#: Rows of a list at most; a person reads no more.
MOST_ROWS = 500


@dataclass(frozen=True, kw_only=True)
class Holding:
    """An item that somebody holds."""

    item_id: int
    queue: str
    status: str
    moderator_id: int
    pseudonym: str
    claimed_at: datetime
    leased_until: datetime


@dataclass(frozen=True, kw_only=True)
class Escalation:
    """An item that a lead is to settle."""

    item_id: int
    comment_id: str
    dt: date
    queue: str
    #: Why and by whom it was handed over; None when its labels disagreed.
    reason: str | None
    note: str | None = field(repr=False)
    pseudonym: str | None
    escalated_at: datetime | None
    #: Since it was first queued.
    age_seconds: float
    overdue: bool
    #: Who holds it now.
    held_by: str | None


def holders(engine: Engine, *, queues: Collection[str] | None = None) -> list[Holding]:
    """Return what is held now, longest first; at most `MOST_ROWS`."""
    held_by = moderator.c.id == review_item.c.leased_by
    found = (
        select(
            review_item.c.id.label("item_id"),
            *(review_item.c[name] for name in ("queue", "status", "claimed_at", "leased_until")),
            moderator.c.id.label("moderator_id"),
            moderator.c.pseudonym,
        )
        .join(moderator, held_by)
        .where(leased, within(queues))
        .order_by(review_item.c.claimed_at, review_item.c.id)
        .limit(MOST_ROWS)
    )
    with engine.connect() as connection:
        return [Holding(**row) for row in connection.execute(found).mappings()]


def release_all(
    engine: Engine,
    moderator_id: int,
    *,
    actor_id: int | None = None,
    item_id: int | None = None,
    queues: Collection[str] | None = None,
) -> int:
    """Give back what a person holds, undecided, or one item of it; return how many items.

    Written down as an event of the account, by `actor_id` (None: the command line).
    """
    theirs = and_(leased, review_item.c.leased_by == moderator_id, within(queues))
    if item_id is not None:
        theirs = and_(theirs, review_item.c.id == item_id)
    with engine.begin() as connection:
        released = connection.execute(
            update(review_item).where(theirs).values(**NO_LEASE).returning(review_item.c.id)
        ).scalars()
        items = sorted(released)
        if items:
            record_event(
                connection,
                "leases_released",
                actor_id=actor_id,
                subject_id=moderator_id,
                items=items,
            )
    return len(items)


def escalations(engine: Engine, *, queues: Collection[str] | None = None) -> list[Escalation]:
    """Return what a lead is to settle, oldest first; at most `MOST_ROWS`."""
    said = (
        select(decision.c.reason, decision.c.note, decision.c.decided_at, moderator.c.pseudonym)
        .join(moderator, moderator.c.id == decision.c.moderator_id)
        .where(decision.c.item_id == review_item.c.id, stands("escalate"))
        .order_by(decision.c.id.desc())
        .limit(1)
        .lateral("said")
    )
    holder = moderator.alias("holder")
    found = (
        select(
            review_item.c.id.label("item_id"),
            *(review_item.c[name] for name in ("comment_id", "dt", "queue")),
            *(said.c[name] for name in ("reason", "note", "pseudonym")),
            said.c.decided_at.label("escalated_at"),
            age().label("age_seconds"),
            (review_item.c.due_at < func.now()).label("overdue"),
            case((leased, holder.c.pseudonym)).label("held_by"),
        )
        .select_from(review_item)
        .join(said, true(), isouter=True)
        .join(holder, holder.c.id == review_item.c.leased_by, isouter=True)
        .where(review_item.c.status == "escalated", within(queues))
        .order_by(review_item.c.queued_at, review_item.c.id)
        .limit(MOST_ROWS)
    )
    with engine.connect() as connection:
        return [Escalation(**row) for row in connection.execute(found).mappings()]


def within(queues: Collection[str] | None) -> ColumnElement[bool]:
    """Return the condition that an item is of `queues`; None: of any."""
    return true() if queues is None else review_item.c.queue.in_(list(queues))


def age() -> ColumnElement[float]:
    """Return for how many seconds an item has been in the queue."""
    return seconds(func.now() - review_item.c.queued_at)
