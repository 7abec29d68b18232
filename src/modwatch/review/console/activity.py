"""A moderator's own decisions today, and which of them can be undone."""

import datetime as dt
from zoneinfo import ZoneInfo

from pydantic import Field
from sqlalchemy import ColumnElement, Connection, Engine, Select, and_, func, or_, select

from modwatch.review.console.schemas import DayDecisionSchema, DaySchema
from modwatch.review.log.labels import undone
from modwatch.review.queue.amendments import UNDO_WITHIN, UNDOABLE
from modwatch.review.tables import FINAL_ACTIONS, decision, review_item

#: Maximum length of a comment in the list, in characters.
EXCERPT = 120

_SHOWN = 50

#: Labels per hour are undefined before.
_SHORTEST = dt.timedelta(minutes=10)


class ActivityDecision(DayDecisionSchema):
    """One decision, without what would show the purpose of its item."""

    #: Beginning of the comment; the API leaves it out.
    excerpt: str = Field(repr=False)


class Activity(DaySchema):
    """One person's decisions since midnight in their time zone; undone ones are not counted."""

    decisions: tuple[ActivityDecision, ...]


def activity_today(engine: Engine, moderator_id: int, timezone: str = "UTC") -> Activity:
    """Return a person's activity since midnight in `timezone`, by the database's clock."""
    with engine.connect() as connection:
        now, midnight, mine = _today(connection, moderator_id, timezone)
        totals = connection.execute(_totals(mine)).one()
        rows = connection.execute(_list(mine)).mappings().all()
    worked = now - totals.first if totals.first else dt.timedelta()
    per_hour = totals.decided / (worked / dt.timedelta(hours=1)) if worked >= _SHORTEST else None
    return Activity(
        date=midnight.date(),
        decided=totals.decided,
        toxic=totals.toxic,
        skipped=totals.skipped,
        escalated=totals.escalated,
        per_hour=per_hour,
        median_seconds=totals.median_seconds,
        decisions=tuple(ActivityDecision(**row) for row in rows),
    )


def toxic_today(engine: Engine, moderator_id: int, timezone: str = "UTC") -> int:
    """Return how many comments this person labelled toxic since midnight in `timezone`."""
    with engine.connect() as connection:
        _, _, mine = _today(connection, moderator_id, timezone)
        return connection.execute(_totals(mine)).one().toxic  # type: ignore[no-any-return]


def _today(
    connection: Connection, moderator_id: int, timezone: str
) -> tuple[dt.datetime, dt.datetime, ColumnElement[bool]]:
    """Return now, midnight in `timezone`, and the condition for this person's decisions since."""
    now: dt.datetime = connection.execute(select(func.now())).scalar_one()
    local = now.astimezone(ZoneInfo(timezone))
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    mine = and_(decision.c.moderator_id == moderator_id, decision.c.decided_at >= midnight)
    return now, midnight, mine


def _totals(mine: ColumnElement[bool]) -> Select[tuple[int, int, int, int, float, dt.datetime]]:
    standing = and_(mine, ~undone())
    labels = decision.c.action.in_(("label", "adjudicate"))
    return select(
        func.count().filter(labels).label("decided"),
        func.count().filter(labels, decision.c.label == 1).label("toxic"),
        func.count().filter(decision.c.action == "skip").label("skipped"),
        func.count().filter(decision.c.action == "escalate").label("escalated"),
        func.percentile_cont(0.5).within_group(decision.c.seconds).label("median_seconds"),
        func.min(decision.c.decided_at).label("first"),
    ).where(standing)


def _list(mine: ColumnElement[bool]) -> Select[tuple[object, ...]]:
    untouched = and_(
        review_item.c.version == decision.c.item_version + 1,
        review_item.c.status.in_(("waiting", "escalated", "decided")),
        or_(review_item.c.leased_until.is_(None), review_item.c.leased_until <= func.now()),
    )
    in_time = decision.c.decided_at > func.now() - UNDO_WITHIN
    gone = undone()
    columns = ("id", "item_id", "action", "label", "policy_code", "reason", "seconds", "decided_at")
    return (
        select(
            *(decision.c[name] for name in columns),
            review_item.c.version.label("item_version"),
            gone.label("undone"),
            and_(decision.c.action.in_(UNDOABLE), untouched, in_time, ~gone).label("undoable"),
            func.left(review_item.c.text, EXCERPT).label("excerpt"),
        )
        .join(review_item, review_item.c.id == decision.c.item_id)
        .where(mine, decision.c.action.in_((*FINAL_ACTIONS, "skip", "escalate")))
        .order_by(decision.c.id.desc())
        .limit(_SHOWN)
    )
