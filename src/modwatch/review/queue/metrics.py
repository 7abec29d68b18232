"""Metrics of the queue: items by status, their ages, and the time to decision."""

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Double,
    Engine,
    and_,
    case,
    cast,
    exists,
    func,
    or_,
    select,
    text,
    true,
    union_all,
)

from modwatch.review.database import at_once
from modwatch.review.log.labels import in_force
from modwatch.review.queue.leases import UNDO_WITHIN
from modwatch.review.tables import ACTIONABLE_KINDS, decision, review_item
from modwatch.statistics.drift.day_comparison import Queue

#: Leased now, as `statements` defines it.
leased = and_(
    review_item.c.status.in_(["waiting", "escalated"]),
    review_item.c.leased_until > func.now(),
    review_item.c.claimed_at <= func.now() + text("interval '1 minute'"),
)

#: What people can decide at this moment; a blocked item is not served.
undecided = review_item.c.status.in_(["waiting", "escalated"])


def undoable(by: int | None = None) -> ColumnElement[bool]:
    """Return the condition that an item was decided, by one person or any, within `UNDO_WITHIN`."""
    recent = decision.c.decided_at > func.now() - UNDO_WITHIN
    if by is not None:
        recent = and_(recent, decision.c.moderator_id == by)
    return review_item.c.id.in_(select(decision.c.item_id).where(recent))


def to_do(kinds: Collection[str] = ACTIONABLE_KINDS) -> ColumnElement[bool]:
    """Return the condition of the items that every page counts as waiting.

    By default, those that people who may be served items see counted. Whether an item is a
    measurement must not show when a person leases it, nor while they can undo its decision:
    measurements do not count, leased items do, and decided ones for that time.
    """
    item = review_item.c
    decided = and_(item.status.in_(["decided", "escalated"]), undoable())
    return and_(item.kind.in_(kinds), or_(item.status == "waiting", decided))


def within(queues: Collection[str] | None) -> ColumnElement[bool]:
    """Return the condition that an item is in one of `queues`, in any if None."""
    return true() if queues is None else review_item.c.queue.in_(list(queues))


@dataclass(frozen=True, kw_only=True)
class ShownCounts:
    """The counts that people who may be served items see."""

    #: See `to_do`.
    waiting: int
    #: Items of all kinds.
    leased: int


def shown_counts(engine: Engine, *, queues: Collection[str] | None = None) -> ShownCounts:
    """Return the counts of `queues`, by default all, that people who may be served items see."""
    counted = [
        select(func.count()).where(which, within(queues)).scalar_subquery()
        for which in (to_do(), leased)
    ]
    row = select(counted[0].label("waiting"), counted[1].label("leased"))
    return ShownCounts(**at_once(engine, row)[0])


def newest_model(engine: Engine) -> str:
    """Return the model that sent the newest comment to review, with its origin; may be empty."""
    of_review = review_item.c.kind == "review"
    newest = select(review_item.c.model_version).where(of_review)
    with engine.connect() as connection:
        return connection.scalar(newest.order_by(review_item.c.id.desc()).limit(1)) or ""


@dataclass(frozen=True, kw_only=True)
class QueueCounts:
    """Number of items by state; each item counts once."""

    #: Neither leased nor escalated.
    waiting: int
    #: Leased now, including escalated items.
    leased: int
    decided: int
    withdrawn: int
    #: Confirmations of labels that no one has given yet, or that are not confirmed.
    blocked: int
    #: Waiting for a lead.
    escalated: int
    #: Dismissed by a lead.
    closed: int


def counts(engine: Engine, day: dt.date | None = None) -> QueueCounts:
    """Return the number of items of `day`, or of all days, by state."""
    held = case((leased, "leased"), else_=review_item.c.status)
    in_use = select(held.label("place"), func.count().label("items")).where(undecided)
    others = select(review_item.c.status, func.count()).where(~undecided)
    of_day = true() if day is None else review_item.c.dt == day
    # Most items are in the second part, which an index alone can count.
    statement = union_all(
        in_use.where(of_day).group_by("place"),
        others.where(of_day).group_by(review_item.c.status),
    )
    items = {row["place"]: row["items"] for row in at_once(engine, statement)}
    return QueueCounts(**{field.name: items.get(field.name, 0) for field in fields(QueueCounts)})


def day_queue(engine: Engine, day: dt.date) -> Queue:
    """Return the progress of the review of `day` at this moment.

    Waiting are all undecided items, leased or escalated or neither.
    """
    return Queue(**at_once(engine, _DAY_QUEUE, {"day": day})[0])


_DAY_QUEUE = text(
    """
    SELECT count(age) AS waiting, count(*) FILTER (WHERE status = 'decided') AS decided,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY age) AS age_median, max(age) AS age_oldest,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY took) AS decision_median
    FROM (
        SELECT status,
            CASE WHEN status IN ('waiting', 'escalated')
                THEN CAST(extract(epoch FROM now() - queued_at) AS double precision) END AS age,
            CASE WHEN status = 'decided' THEN (
                SELECT CAST(extract(epoch FROM min(decided_at) - queued_at) AS double precision)
                FROM decision WHERE item_id = review_item.id AND action IN ('label', 'adjudicate')
            ) END AS took
        FROM review_item WHERE dt = :day AND kind = 'review'
    ) AS item
    """
)


def unlabelled(engine: Engine, day: dt.date) -> dict[str, str] | None:
    """Return why each routed comment of `day` has no label, by its id; None: the review goes on.

    The review of a day is over when the last of its items is due. The reason is `escalated` (a lead
    has not resolved it), `dismissed`, `skipped`, or `waiting` for the first decision.
    """
    item = review_item.c
    of_day = and_(item.dt == day, item.kind == "review", item.status != "withdrawn")
    skipped = exists().where(decision.c.item_id == item.id, in_force("skip"))
    reason = case(
        (item.status == "escalated", "escalated"),
        (item.status == "closed", "dismissed"),
        (skipped, "skipped"),
        else_="waiting",
    )
    over = select(func.max(item.due_at) <= func.now()).where(of_day)
    rows = select(item.comment_id, reason.label("reason")).where(of_day, item.status != "decided")
    with engine.connect() as connection:
        if not connection.scalar(over):
            return None
        return {row.comment_id: row.reason for row in connection.execute(rows)}


def days_since_routed(engine: Engine, first: dt.date, last: dt.date) -> dict[dt.date, int]:
    """Return how long ago the days `first` … `last` were routed, in days: 1 from 12 hours on.

    The first item of a day that is not withdrawn counts; days without one are absent.
    """
    statement = text(
        """
        SELECT dt, CAST(round(extract(epoch FROM now() - min(queued_at)) / 86400) AS int) AS days
        FROM review_item
        WHERE dt BETWEEN :first AND :last AND kind = 'review' AND status <> 'withdrawn'
        GROUP BY dt
        """
    )
    rows = at_once(engine, statement, {"first": first, "last": last})
    return {row["dt"]: row["days"] for row in rows}


def seconds(interval: ColumnElement[Any]) -> ColumnElement[float]:
    """Return an interval in seconds. Apply it to the result of an aggregate: it is slow per row."""
    return cast(func.extract("epoch", interval), Double)
