"""What a lead looks at: where items stand and how old they are, who holds what, who did how much.

Every figure is of this moment and by the clock of the database; whoever shows them often keeps
them for some seconds.
"""

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal

from sqlalchemy import (
    ColumnElement,
    Double,
    Engine,
    Select,
    and_,
    case,
    cast,
    distinct,
    func,
    select,
    true,
    update,
)

from modwatch.review.log.labels import stands
from modwatch.review.people import record_event
from modwatch.review.queue.metrics import leased, seconds, undecided
from modwatch.review.tables import NO_LEASE, decision, moderator, review_item

__all__ = [
    "Escalation",
    "Grain",
    "Holding",
    "LaneState",
    "Throughput",
    "escalations",
    "holders",
    "overview",
    "release_all",
    "throughput",
]

Grain = Literal["hour", "day"]

#: What people do with items that they are served.
_WORK = ("label", "adjudicate", "skip", "escalate")

_UNSETTLED = ("waiting", "blocked", "escalated")


@dataclass(frozen=True, kw_only=True)
class LaneState:
    """One queue and reason. Ages in seconds since the item was first queued, None of none."""

    queue: str
    reason: str
    #: For anybody; neither leased nor escalated.
    waiting: int
    leased: int
    #: For a lead, and held by none.
    escalated: int
    #: They wait for the label of another item; no age and no promise counts them.
    blocked: int
    #: Of waiting, leased and escalated: those past what was promised.
    overdue: int
    oldest_seconds: float | None
    median_seconds: float | None
    oldest_escalated_seconds: float | None
    #: Settled since midnight UTC, less what was taken back.
    decided_today: int

    @property
    def undecided(self) -> int:
        """Waiting, leased or escalated."""
        return self.waiting + self.leased + self.escalated


@dataclass(frozen=True, kw_only=True)
class Throughput:
    """What one person did in one hour or day."""

    #: When the hour or day begins, UTC.
    at: dt.datetime
    moderator_id: int
    pseudonym: str
    #: Labels, less those taken back.
    labels: int
    skips: int
    escalations: int
    #: Of the labels; None without any.
    median_seconds: float | None
    share_toxic: float | None


def overview(engine: Engine, *, queues: Collection[str] | None = None) -> list[LaneState]:
    """Return every queue and reason with something undecided or decided today, by name.

    Only of `queues`, or of all when None. One scan of what is not settled.
    """
    now, today = _unsettled(queues).subquery(), _decided_today(queues).subquery()
    counted = [
        func.coalesce(now.c[name], 0).label(name)
        for name in ("waiting", "leased", "escalated", "blocked", "overdue")
    ]
    same = and_(now.c.queue == today.c.queue, now.c.reason == today.c.reason)
    found = (
        select(
            func.coalesce(now.c.queue, today.c.queue).label("queue"),
            func.coalesce(now.c.reason, today.c.reason).label("reason"),
            *counted,
            *(now.c[f"{which}_seconds"] for which in ("oldest", "median", "oldest_escalated")),
            func.coalesce(today.c.decided_today, 0).label("decided_today"),
        )
        .select_from(now.join(today, same, full=True))
        .order_by("queue", "reason")
    )
    with engine.connect() as connection:
        return [LaneState(**row) for row in connection.execute(found).mappings()]


def throughput(
    engine: Engine,
    first: dt.date,
    last: dt.date,
    *,
    grain: Grain = "day",
    queues: Collection[str] | None = None,
) -> list[Throughput]:
    """Return what everybody did from `first` to `last`, both included, by hour or day (UTC)."""
    label = stands("label", "adjudicate")
    at = func.date_trunc(grain, decision.c.decided_at, "UTC").label("at")
    found = (
        select(
            at,
            moderator.c.id.label("moderator_id"),
            moderator.c.pseudonym,
            func.count().filter(label).label("labels"),
            func.count().filter(stands("skip")).label("skips"),
            func.count().filter(stands("escalate")).label("escalations"),
            func.percentile_cont(0.5)
            .within_group(decision.c.seconds)
            .filter(label)
            .label("median_seconds"),
            func.avg(cast(decision.c.label, Double)).filter(label).label("share_toxic"),
        )
        .join(moderator, moderator.c.id == decision.c.moderator_id)
        .where(*_within_days(first, last), decision.c.action.in_(_WORK))
        .group_by(at, moderator.c.id, moderator.c.pseudonym)
        .order_by(at.desc(), moderator.c.pseudonym)
    )
    if queues is not None:
        found = found.join(review_item, review_item.c.id == decision.c.item_id)
        found = found.where(within(queues))
    with engine.connect() as connection:
        return [Throughput(**row) for row in connection.execute(found).mappings()]


def _unsettled(queues: Collection[str] | None) -> Select[Any]:
    item = review_item.c
    by_status = {
        status: and_(item.status == status, leased.isnot(True))
        for status in ("waiting", "escalated")
    }
    waited = func.now() - item.queued_at
    median = func.percentile_cont(0.5).within_group(waited).filter(undecided)
    escalated = func.max(waited).filter(item.status == "escalated")
    columns: list[ColumnElement[Any]] = [
        item.queue,
        item.reason,
        *(func.count().filter(place).label(name) for name, place in by_status.items()),
        func.count().filter(leased).label("leased"),
        func.count().filter(item.status == "blocked").label("blocked"),
        func.count().filter(undecided, item.due_at < func.now()).label("overdue"),
        seconds(func.max(waited).filter(undecided)).label("oldest_seconds"),
        seconds(median).label("median_seconds"),
        seconds(escalated).label("oldest_escalated_seconds"),
    ]
    return (
        select(*columns)
        .where(item.status.in_(_UNSETTLED), within(queues))
        .group_by(item.queue, item.reason)
    )


def _decided_today(queues: Collection[str] | None) -> Select[Any]:
    item = review_item.c
    return (
        select(item.queue, item.reason, func.count(distinct(item.id)).label("decided_today"))
        .join(decision, decision.c.item_id == item.id)
        .where(
            decision.c.decided_at >= func.date_trunc("day", func.now(), "UTC"),
            decision.c.action.in_(["label", "adjudicate"]),
            item.status == "decided",
            within(queues),
        )
        .group_by(item.queue, item.reason)
    )


def _within_days(first: dt.date, last: dt.date) -> tuple[ColumnElement[bool], ...]:
    begin, end = (
        dt.datetime.combine(day, dt.time.min, dt.UTC) for day in (first, last + dt.timedelta(1))
    )
    return decision.c.decided_at >= begin, decision.c.decided_at < end


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
