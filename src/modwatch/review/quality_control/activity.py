"""Who labels these days, how much, and at which times of day."""

import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, and_, distinct, func, select

from modwatch.review.people import REVIEWERS
from modwatch.review.tables import decision, decision_chain, moderator, moderator_queue

#: Who labelled in so many days is at work, and labels as many a day as then.
RECENT_DAYS = 7

#: What is labelled as it comes; checks and imports are not counted.
STREAM = ("review", "second_opinion")

#: Latest decisions from which the times of day are known.
_TIMES = 200

_ONE_DAY = dt.timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Person:
    """Somebody who may review, and labelled lately."""

    id: int
    #: Labels a day on which they labelled.
    pace: float
    #: Position in their chain before which all is as old as was asked for; 0 when nothing is.
    last_old: int
    #: Reasons that they are not served.
    opt_outs: tuple[str, ...]
    #: None: all.
    queues: tuple[str, ...] | None


def at_work(connection: Connection, least_days: float) -> list[Person]:
    """Return everybody at work, by id: one scan of the last days of the log.

    `last_old` is of decisions at least `least_days` ago.
    """
    lately = _lately(least_days).subquery()
    queues = (
        select(
            moderator_queue.c.moderator_id, func.array_agg(moderator_queue.c.queue).label("queues")
        )
        .group_by(moderator_queue.c.moderator_id)
        .subquery()
    )
    first_young = func.coalesce(lately.c.first_young, decision_chain.c.length + 1)
    mine = moderator.c.id
    found = connection.execute(
        select(mine, moderator.c.preferences, lately, queues.c.queues, first_young.label("young"))
        .join(lately, lately.c.moderator_id == mine)
        .join(decision_chain, decision_chain.c.moderator_id == mine)
        .join(queues, queues.c.moderator_id == mine, isouter=True)
        .where(
            moderator.c.disabled_at.is_(None),
            moderator.c.role.in_(sorted(REVIEWERS)),
            lately.c.labels > 0,
        )
        .order_by(mine)
    )
    return [
        Person(
            id=row.id,
            pace=row.labels / row.days,
            last_old=row.young - 1,
            opt_outs=tuple(row.preferences.get("opt_outs") or ()),
            queues=None if row.queues is None else tuple(row.queues),
        )
        for row in found
    ]


def times_of_work(connection: Connection, moderator_id: int) -> list[dt.datetime]:
    """Return when a person decided, the latest 200 times."""
    latest = (
        select(decision.c.decided_at)
        .where(decision.c.moderator_id == moderator_id)
        .order_by(decision.c.position.desc())
        .limit(_TIMES)
    )
    return list(connection.scalars(latest))


def wait_until_work(
    now: dt.datetime, times: Sequence[dt.datetime], chance: random.Random
) -> dt.timedelta:
    """Return how long from `now`, below 24 hours, to a time of day at which the person works.

    >>> noon = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
    >>> wait = wait_until_work(noon, [noon - dt.timedelta(hours=30)], random.Random(1))
    >>> abs(wait - dt.timedelta(hours=18)) <= dt.timedelta(minutes=10)
    True
    """
    minutes = chance.uniform(-10, 10)
    return (chance.choice(times) + dt.timedelta(minutes=minutes) - now) % _ONE_DAY


def _lately(least_days: float) -> Select[Any]:
    """Return labels, days, and the first decision that is too young, by person."""
    ago = func.now() - decision.c.decided_at
    work = and_(
        ago < dt.timedelta(days=RECENT_DAYS),
        decision.c.action == "label",
        decision.c.kind.in_(STREAM),
    )
    days = func.count(distinct(func.date_trunc("day", decision.c.decided_at, "UTC")))
    young = ago < dt.timedelta(days=least_days)
    return (
        select(
            decision.c.moderator_id,
            func.count().filter(work).label("labels"),
            days.filter(work).label("days"),
            func.min(decision.c.position).filter(young).label("first_young"),
        )
        .where(decision.c.decided_at > func.now() - dt.timedelta(days=max(least_days, RECENT_DAYS)))
        .group_by(decision.c.moderator_id)
    )
