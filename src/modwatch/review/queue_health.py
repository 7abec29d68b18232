"""How long the queue is, and how old."""

import datetime as dt
from dataclasses import dataclass

from sqlalchemy import Engine, and_, func, select

from modwatch.review.tables import review_item, waiting


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
