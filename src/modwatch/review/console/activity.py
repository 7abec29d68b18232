"""A moderator's own decisions today, to undo or correct."""

import datetime as dt
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import ColumnElement, Connection, Engine, Select, and_, case, func, select

from modwatch.common.errors import ItemNotFoundError, LeaseConflictError, QueueError
from modwatch.review.console.decision_choices import reasons_of, titles_of
from modwatch.review.console.render import render
from modwatch.review.console.request_context import ReviewForm, ReviewSession
from modwatch.review.console.review import correct
from modwatch.review.console.schemas import FormCode, FormId, FormLabel, FormVersion
from modwatch.review.log.labels import undone
from modwatch.review.policy.tree import check_reason
from modwatch.review.queue.deciding import UNDOABLE
from modwatch.review.queue.leases import UNDO_WITHIN
from modwatch.review.tables import FINAL_ACTIONS, decision, review_item, unleased

#: Maximum length of a comment in the list, in characters.
EXCERPT = 120
_SHOWN = 50

#: Labels per hour are undefined before.
_SHORTEST = dt.timedelta(minutes=10)


@dataclass(frozen=True, kw_only=True)
class ActivityDecision:
    """One decision, without what would show the purpose of its item."""

    id: int
    item_id: int
    action: str
    label: int | None
    policy_code: str | None
    reason: str | None
    seconds: float | None
    decided_at: dt.datetime
    #: Current, for a correction; None for a skip.
    item_version: int | None
    undone: bool
    #: Within the time limit, and the item has not changed since.
    undoable: bool
    #: Beginning of the comment.
    excerpt: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Activity:
    """One person's decisions since midnight in their time zone; undone ones are not counted."""

    date: dt.date
    decided: int
    toxic: int
    skipped: int
    escalated: int
    #: Labels per hour since the first; None in the first ten minutes.
    per_hour: float | None
    median_seconds: float | None
    #: The last fifty, newest first.
    decisions: tuple[ActivityDecision, ...]


def activity_today(engine: Engine, moderator_id: int, timezone: str = "UTC") -> Activity:
    """Return a person's activity since midnight in `timezone`, by the database's clock."""
    with engine.connect() as connection:
        now, midnight, mine = _today(connection, moderator_id, timezone)
        totals = connection.execute(_totals(mine)).one()
        rows = connection.execute(_list(mine)).mappings().all()
    worked = now - totals.first if totals.first else dt.timedelta()
    per_hour = totals.decided / (worked / dt.timedelta(hours=1)) if worked >= _SHORTEST else None
    counts = {name: n for name, n in totals._mapping.items() if name != "first"}
    decisions = tuple(ActivityDecision(**row) for row in rows)
    return Activity(date=midnight.date(), per_hour=per_hour, decisions=decisions, **counts)


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
        unleased,
    )
    in_time = decision.c.decided_at > func.now() - UNDO_WITHIN
    gone = undone()
    columns = ("id", "item_id", "action", "label", "policy_code", "reason", "seconds", "decided_at")
    return (
        select(
            *(decision.c[name] for name in columns),
            case((decision.c.action != "skip", review_item.c.version)).label("item_version"),
            gone.label("undone"),
            and_(decision.c.action.in_(UNDOABLE), untouched, in_time, ~gone).label("undoable"),
            func.left(review_item.c.text, EXCERPT).label("excerpt"),
        )
        .join(review_item, review_item.c.id == decision.c.item_id)
        .where(mine, decision.c.action.in_((*FINAL_ACTIONS, "skip", "escalate")))
        .order_by(decision.c.id.desc())
        .limit(_SHOWN)
    )


pages = APIRouter(include_in_schema=False)


@pages.get("/day")
def show(session: ReviewSession) -> Response:
    """Return your activity today."""
    locale, timezone = session.locale, session.preferences.timezone
    return render(
        session,
        "activity.html",
        activity=activity_today(session.engine, session.person.id, timezone),
        titles=titles_of(session.policy, locale),
        reasons=reasons_of(session.policy, "correct", locale),
    )


@pages.post("/correct")
def correct_own(
    session: ReviewForm,
    decision_id: FormId,
    item_id: FormId,
    version: FormVersion,
    label: FormLabel,
    reason: FormCode,
) -> Response:
    """Replace your own label."""
    check_reason(session.policy, "correct", reason)
    key = f"page-correct-{decision_id}-{version}"
    try:
        correct(session, item_id, key=key, label=label, version=version, reason=reason)
    except (LeaseConflictError, ItemNotFoundError):
        return RedirectResponse("./day?notice=conflict", 303)
    except QueueError:
        return RedirectResponse("./day?notice=refused", 303)
    return RedirectResponse("./day?notice=corrected", 303)
