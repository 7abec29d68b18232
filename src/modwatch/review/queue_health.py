"""How long the queue is, and how old."""

import datetime as dt
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Double, Engine, and_, case, cast, func, select

from modwatch.review.tables import decision, review_item, waiting


@dataclass(frozen=True, kw_only=True)
class QueueCounts:
    """How many items stand where; each is in one place."""

    waiting: int
    leased: int
    decided: int
    withdrawn: int


@dataclass(frozen=True, kw_only=True)
class QueueAges:
    """How long undecided items, leased or not, have been in the queue, in seconds."""

    items: int
    #: None when there is no item.
    median_seconds: float | None
    oldest_seconds: float | None


@dataclass(frozen=True, kw_only=True)
class DayQueue:
    """Where the items that the estimates of one day need stand; times in seconds, None of none."""

    #: Undecided, leased or not.
    waiting: int
    decided: int
    #: How long the waiting ones have been in the queue.
    age_median: float | None
    age_oldest: float | None
    #: From queued to the first label, of the decided ones.
    decision_median: float | None


def counts(engine: Engine, day: dt.date | None = None) -> QueueCounts:
    """Return how many items of `day`, or of all days, wait, are leased, decided, withdrawn."""
    leased = review_item.c.leased_until > func.now()
    statement = select(
        *(
            func.count().filter(condition).label(name)
            for name, condition in {
                "waiting": and_(waiting, leased.isnot(True)),
                "leased": and_(waiting, leased),
                "decided": review_item.c.status == "decided",
                "withdrawn": review_item.c.status == "withdrawn",
            }.items()
        )
    )
    if day is not None:
        statement = statement.where(review_item.c.dt == day)
    with engine.connect() as connection:
        return QueueCounts(**connection.execute(statement).mappings().one())


def queue_ages(engine: Engine) -> QueueAges:
    """Return how long the undecided items have been in the queue."""
    age = func.extract("epoch", func.now() - review_item.c.queued_at)
    statement = select(
        func.count().label("items"),
        func.percentile_cont(0.5).within_group(age).label("median_seconds"),
        func.max(age).label("oldest_seconds"),
    ).where(waiting)
    with engine.connect() as connection:
        row = connection.execute(statement).one()
    return QueueAges(
        items=row.items,
        median_seconds=row.median_seconds,
        oldest_seconds=None if row.oldest_seconds is None else float(row.oldest_seconds),
    )


def day_queue(engine: Engine, day: dt.date) -> DayQueue:
    """Return how far the review of `day` is, at this moment of the database's clock."""
    first = (
        select(decision.c.item_id, func.min(decision.c.decided_at).label("at"))
        .where(decision.c.dt == day, decision.c.action == "label")
        .group_by(decision.c.item_id)
        .subquery()
    )
    is_decided = review_item.c.status == "decided"
    age = case((waiting, _seconds_since_queued(func.now())))
    took = case((is_decided, _seconds_since_queued(first.c.at)))
    statement = (
        select(
            func.count().filter(waiting).label("waiting"),
            func.count().filter(is_decided).label("decided"),
            func.percentile_cont(0.5).within_group(age).label("age_median"),
            func.max(age).label("age_oldest"),
            func.percentile_cont(0.5).within_group(took).label("decision_median"),
        )
        .join_from(review_item, first, first.c.item_id == review_item.c.id, isouter=True)
        .where(review_item.c.dt == day, review_item.c.kind == "review")
    )
    with engine.connect() as connection:
        return DayQueue(**connection.execute(statement).mappings().one())


def _seconds_since_queued(moment: ColumnElement[dt.datetime]) -> ColumnElement[float]:
    return cast(func.extract("epoch", moment - review_item.c.queued_at), Double)
