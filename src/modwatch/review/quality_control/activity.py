"""Activity of moderators: who labels at present, how much, and at which times of day."""

import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, and_, distinct, func, select

from modwatch.review.people import REVIEWERS
from modwatch.review.tables import (
    ROUTED_KINDS,
    decision,
    decision_chain,
    moderator,
    moderator_queue,
)

#: People who labelled within so many days are active; their pace is that of these days.
RECENT_DAYS = 7

#: Number of a person's latest decisions from which their times of day are taken.
_TIMES = 200

_ONE_DAY = dt.timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Person:
    """A person who may review and labelled recently."""

    id: int
    #: Labels per day on which they labelled.
    pace: float
    #: Last position in their chain before which all decisions are old enough; 0 if none is.
    last_old: int
    #: Reasons that they opted out of.
    opt_outs: tuple[str, ...]
    #: None: all.
    queues: tuple[str, ...] | None


def active_people(connection: Connection, least_days: float) -> list[Person]:
    """Return all active people by id; one scan of the last days of the log.

    `last_old` refers to decisions that are at least `least_days` old.
    """
    recent = _recent(least_days).subquery()
    queues = (
        select(
            moderator_queue.c.moderator_id, func.array_agg(moderator_queue.c.queue).label("queues")
        )
        .group_by(moderator_queue.c.moderator_id)
        .subquery()
    )
    first_young = func.coalesce(recent.c.first_young, decision_chain.c.length + 1)
    mine = moderator.c.id
    rows = connection.execute(
        select(mine, moderator.c.preferences, recent, queues.c.queues, first_young.label("young"))
        .join(recent, recent.c.moderator_id == mine)
        .join(decision_chain, decision_chain.c.moderator_id == mine)
        .join(queues, queues.c.moderator_id == mine, isouter=True)
        .where(
            moderator.c.disabled_at.is_(None),
            moderator.c.role.in_(sorted(REVIEWERS)),
            recent.c.labels > 0,
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
        for row in rows
    ]


def working_times(connection: Connection, moderator_id: int) -> list[dt.datetime]:
    """Return the times of a person's latest 200 decisions."""
    latest = (
        select(decision.c.decided_at)
        .where(decision.c.moderator_id == moderator_id)
        .order_by(decision.c.position.desc())
        .limit(_TIMES)
    )
    return list(connection.scalars(latest))


def time_until_work(
    now: dt.datetime, times: Sequence[dt.datetime], chance: random.Random
) -> dt.timedelta:
    """Return the time from `now` to a random time of day at which the person works, below 24 hours.

    >>> noon = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
    >>> wait = time_until_work(noon, [noon - dt.timedelta(hours=30)], random.Random(1))
    >>> abs(wait - dt.timedelta(hours=18)) <= dt.timedelta(minutes=10)
    True
    """
    minutes = chance.uniform(-10, 10)
    return (chance.choice(times) + dt.timedelta(minutes=minutes) - now) % _ONE_DAY


def _recent(least_days: float) -> Select[Any]:
    """Return the query of labels, days, and the first decision that is too recent, by person."""
    ago = func.now() - decision.c.decided_at
    work = and_(
        ago < dt.timedelta(days=RECENT_DAYS),
        decision.c.action == "label",
        decision.c.kind.in_(ROUTED_KINDS),
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
