"""Workload: the state of each lane, leases and escalations, and what each person has done.

All numbers describe this moment, by the clock of the database. Cache them for some seconds where
they are shown often.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Literal

from sqlalchemy import (
    ColumnElement,
    Double,
    Engine,
    and_,
    case,
    cast,
    false,
    func,
    or_,
    select,
    text,
    true,
    update,
)

from modwatch.review.database import at_once
from modwatch.review.events import record_event
from modwatch.review.log.labels import decided_between, in_force
from modwatch.review.queue.metrics import leased, seconds, to_do, undoable, within
from modwatch.review.tables import (
    ACTIONABLE_KINDS,
    KINDS,
    NO_LEASE,
    decision,
    is_open,
    moderator,
    review_item,
)

Grain = Literal["hour", "day"]

#: Actions on items that people are served, and undos of them.
_WORK = ("label", "adjudicate", "skip", "escalate", "undo")


@dataclass(frozen=True, kw_only=True)
class LaneWork:
    """One queue and reason. Ages in seconds since the item was first queued, None if no item."""

    queue: str
    reason: str
    #: See `metrics.to_do`: leased ones, and decided ones while that can be undone, count.
    waiting: int
    #: Waiting for a lead, not leased.
    escalated: int
    #: Waiting or escalated past the deadline.
    overdue: int
    oldest_seconds: float | None
    median_seconds: float | None
    oldest_escalated_seconds: float | None
    #: Decided since midnight UTC, without decisions that were or can be undone.
    decided_today: int


@dataclass(frozen=True, kw_only=True)
class Throughput:
    """The decisions of one person in one hour or day."""

    #: Start of the hour or day, UTC.
    at: datetime
    moderator_id: int
    pseudonym: str
    #: Labels that were not undone.
    labels: int
    skips: int
    undos: int
    #: Skips, undos and escalations, those that were undone included, of all that the person did; in
    #: [0, 1]. Who does these often chooses comments.
    share_picked: float
    escalations: int
    #: Of the labels; None if there is none.
    median_seconds: float | None
    share_toxic: float | None


#: Maximum number of rows of a list.
MOST_ROWS = 500


@dataclass(frozen=True, kw_only=True)
class Holding:
    """An item that is leased."""

    item_id: int
    queue: str
    status: str
    moderator_id: int
    pseudonym: str
    claimed_at: datetime
    leased_until: datetime


@dataclass(frozen=True, kw_only=True)
class Escalation:
    """An item that waits for a lead."""

    item_id: int
    comment_id: str
    dt: date
    queue: str
    #: Why and by whom it was escalated; None if its labels disagreed.
    reason: str | None
    note: str | None = field(repr=False)
    pseudonym: str | None
    escalated_at: datetime | None
    #: Deadline of a severe escalation; None: it is not severe.
    severe_due_at: datetime | None
    #: Time since it was first queued.
    age_seconds: float
    overdue: bool
    #: Who has leased it.
    held_by: str | None


def measurements_left(engine: Engine) -> list[LaneWork]:
    """Return what `work_left` does not count: items for figures and audits, by queue and reason.

    They are counted alike, but for escalations, which `work_left` has. Not for people who may be
    served items.
    """
    kinds = [kind for kind in KINDS if kind not in ACTIONABLE_KINDS]
    done = and_(review_item.c.kind.in_(kinds), ~undoable())
    waiting = to_do(kinds)
    return _lanes(engine, waiting, waiting, done, false(), review_item.c.reason)


def work_left(
    engine: Engine, *, queues: Collection[str] | None = None, viewer: int = 0
) -> list[LaneWork]:
    """Return the work of every queue and reason, by name; only of `queues`, or of all if None.

    For people who may be served items: only escalations count over all kinds. No number changes
    when `viewer` leases an item, nor while they can undo its decision, so none tells whether that
    item is a measurement.
    """
    item = review_item.c
    done = and_(item.kind.in_(ACTIONABLE_KINDS), ~undoable(), within(queues))
    escalated = _escalated(viewer)
    left = and_(or_(to_do(), escalated), within(queues))
    # Measurements are escalated under a reason that others have.
    reason = case((item.kind.in_(("gold", "retest")), "uncertainty"), else_=item.reason)
    return _lanes(engine, to_do(), left, done, escalated, reason)


def _lanes(
    engine: Engine,
    waiting: ColumnElement[bool],
    left: ColumnElement[bool],
    done: ColumnElement[bool],
    escalated: ColumnElement[bool],
    reason: ColumnElement[str],
) -> list[LaneWork]:
    """Return the lanes of the items of `left`, and of those of `done` that were decided today."""
    item = review_item.c
    of_day = decision.c.decided_at >= func.date_trunc("day", func.now(), "UTC")
    labels = decision.c.action.in_(["label", "adjudicate"])
    decided = item.id.in_(select(decision.c.item_id).where(of_day, labels))
    done = and_(item.status == "decided", decided, done)
    # An array, so that indexes find the items: most were decided long ago.
    recent = select(decision.c.item_id).where(decision.c.decided_at > func.now() - timedelta(1))
    read = or_(is_open, item.id == func.any(func.array(recent.scalar_subquery())))
    waited = func.now() - item.queued_at
    median = func.percentile_cont(0.5).within_group(waited).filter(left)
    lanes = (
        select(
            item.queue,
            reason.label("reason"),
            func.count().filter(waiting).label("waiting"),
            func.count().filter(escalated, leased.isnot(True)).label("escalated"),
            func.count().filter(left, item.due_at < func.now()).label("overdue"),
            seconds(func.max(waited).filter(left)).label("oldest_seconds"),
            seconds(median).label("median_seconds"),
            seconds(func.max(waited).filter(escalated)).label("oldest_escalated_seconds"),
            func.count().filter(done).label("decided_today"),
        )
        .where(read, or_(left, done))
        .group_by(text("1, 2"))
        .order_by(text("1, 2"))
    )
    return [LaneWork(**row) for row in at_once(engine, lanes)]


def throughput(
    engine: Engine,
    first: date,
    last: date,
    *,
    grain: Grain = "day",
    queues: Collection[str] | None = None,
) -> list[Throughput]:
    """Return the decisions of all people from `first` to `last` (included) by hour or day (UTC)."""
    label = in_force("label", "adjudicate")
    skips, undos, escalated = (
        func.count().filter(decision.c.action == action) for action in ("skip", "undo", "escalate")
    )
    at = func.date_trunc(grain, decision.c.decided_at, "UTC").label("at")
    statement = (
        select(
            at,
            moderator.c.id.label("moderator_id"),
            moderator.c.pseudonym,
            func.count().filter(label).label("labels"),
            skips.label("skips"),
            undos.label("undos"),
            cast(1.0 * (skips + undos + escalated) / func.count(), Double).label("share_picked"),
            func.count().filter(in_force("escalate")).label("escalations"),
            func.percentile_cont(0.5)
            .within_group(decision.c.seconds)
            .filter(label)
            .label("median_seconds"),
            func.avg(cast(decision.c.label, Double)).filter(label).label("share_toxic"),
        )
        .join(moderator, moderator.c.id == decision.c.moderator_id)
        .where(decided_between(first, last), decision.c.action.in_(_WORK))
        .group_by(at, moderator.c.id, moderator.c.pseudonym)
        .order_by(at.desc(), moderator.c.pseudonym)
    )
    if queues is not None:
        statement = statement.join(review_item, review_item.c.id == decision.c.item_id)
        statement = statement.where(within(queues))
    return [Throughput(**row) for row in at_once(engine, statement)]


def holders(engine: Engine, *, queues: Collection[str] | None = None) -> list[Holding]:
    """Return the leased items, longest first; at most `MOST_ROWS`."""
    held_by = moderator.c.id == review_item.c.leased_by
    statement = (
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
    return [Holding(**row) for row in at_once(engine, statement)]


def release_all(
    engine: Engine,
    moderator_id: int,
    *,
    actor_id: int | None = None,
    item_id: int | None = None,
    queues: Collection[str] | None = None,
) -> int:
    """End the leases of a person, or that of one item; return how many.

    Recorded as an event of the account, by `actor_id` (None: the command line).
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


def escalations(
    engine: Engine, *, queues: Collection[str] | None = None, viewer: int = 0
) -> list[Escalation]:
    """Return the escalated items, severe ones first, then the oldest; at most `MOST_ROWS`.

    Without what `viewer` escalated and can undo: day and id tell what kind of item that is.
    """
    last = (
        select(decision.c.reason, decision.c.note, decision.c.decided_at, moderator.c.pseudonym)
        .join(moderator, moderator.c.id == decision.c.moderator_id)
        .where(decision.c.item_id == review_item.c.id, in_force("escalate"))
        .order_by(decision.c.id.desc())
        .limit(1)
        .lateral("last_escalation")
    )
    holder = moderator.alias("holder")
    statement = (
        select(
            review_item.c.id.label("item_id"),
            *(review_item.c[name] for name in ("comment_id", "dt", "queue")),
            *(last.c[name] for name in ("reason", "note", "pseudonym")),
            last.c.decided_at.label("escalated_at"),
            seconds(func.now() - review_item.c.queued_at).label("age_seconds"),
            review_item.c.severe_due_at,
            (func.coalesce(review_item.c.severe_due_at, review_item.c.due_at) < func.now()).label(
                "overdue"
            ),
            case((leased, holder.c.pseudonym)).label("held_by"),
        )
        .select_from(review_item)
        .join(last, true(), isouter=True)
        .join(holder, holder.c.id == review_item.c.leased_by, isouter=True)
        .where(_escalated(viewer), within(queues))
        .order_by(review_item.c.severe_due_at, review_item.c.queued_at, review_item.c.id)
        .limit(MOST_ROWS)
    )
    return [Escalation(**row) for row in at_once(engine, statement)]


def _escalated(viewer: int) -> ColumnElement[bool]:
    """Return the condition that an item is escalated, and not just now by `viewer`."""
    return and_(review_item.c.status == "escalated", ~undoable(by=viewer))
