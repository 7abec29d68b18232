"""Dismiss many waiting items at once, without decisions, and restore them."""

from typing import Annotated, Any

from fastapi import APIRouter, BackgroundTasks, Form, HTTPException, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError
from sqlalchemy import select

from modwatch.common.errors import LeaseConflictError, QueueError
from modwatch.review.console.decision_choices import reasons_of
from modwatch.review.console.i18n import N_
from modwatch.review.console.render import render
from modwatch.review.console.request_context import LeadForm, LeadSession, Session
from modwatch.review.console.schemas import FormFields, FormId, FormText, RecordId, problem_of
from modwatch.review.people.accounts import Moderator
from modwatch.review.policy.tree import check_reason
from modwatch.review.queue import dismissal
from modwatch.review.queue.dismissal import CRITERIA, Criteria, Dismissal
from modwatch.review.tables import lane


def check_queue_access(person: Moderator, criteria: Criteria) -> None:
    """Raise 403 if a lead of some queues would dismiss items of others."""
    if person.queues is not None and criteria.queue not in person.queues:
        raise HTTPException(403, "choose one of your own queues")


def dismissal_of(session: Session, closing_id: int) -> Dismissal:
    """Return a dismissal in this lead's queues; 403 for one in others."""
    closing = dismissal.progress(session.engine, closing_id)
    check_queue_access(session.person, closing.criteria)
    return closing


pages = APIRouter(include_in_schema=False)

#: Fields of the form with their labels, in order; `comment_ids` comes last.
FIELDS = {
    "queue": N_("Queue"),
    "reason": N_("Reason"),
    "language": N_("Language"),
    "platform": N_("Platform"),
    "first_day": N_("Comments from"),
    "last_day": N_("Comments to"),
    "queued_before": N_("Queued before (UTC)"),
}

#: What is typed in those that are no text.
KINDS = {"first_day": "date", "last_day": "date", "queued_before": "datetime-local"}

LongText = Annotated[str, Form(max_length=900_000)]


@pages.get("/lead/close")
def show(session: LeadSession) -> Response:
    """Return the empty form and the latest dismissals."""
    return _page(session, {})


@pages.post("/lead/close/count")
def count(session: LeadForm, sent: FormFields) -> Response:
    """Return the number of matching items, to confirm; nothing changes."""
    form = {name: sent.get(name, "") for name in (*FIELDS, "comment_ids")}
    try:
        return _confirmation(session, form, _criteria(form))
    except (QueueError, ValidationError) as exc:
        return _page(session, form, problem=problem_of(exc))


@pages.post("/lead/close")
def start(
    session: LeadForm, after: BackgroundTasks, criteria: LongText, expected: FormId, why: FormText
) -> Response:
    """Dismiss the matching items unless their number has changed, and show the progress."""
    try:
        asked = CRITERIA.validate_json(criteria)
    except ValidationError as exc:
        raise QueueError(problem_of(exc)) from None
    check_queue_access(session.person, asked)
    check_reason(session.policy, "close", why)
    try:
        started = dismissal.start(session.engine, session.person.id, asked, why, expected)
    except LeaseConflictError as exc:
        return _confirmation(session, {}, asked, str(exc), 409)
    after.add_task(dismissal.resume, session.engine, started.id)
    return RedirectResponse(f"./close/{started.id}", 303)


@pages.get("/lead/close/{closing_id}")
def follow(closing_id: RecordId, session: LeadSession) -> Response:
    """Return the progress of a dismissal."""
    return render(
        session,
        "dismissal.html",
        fields=FIELDS,
        dismissal=dismissal_of(session, closing_id),
        why=reasons_of(session.policy, "close", session.locale),
    )


@pages.post("/lead/close/{closing_id}/resume")
def resume(closing_id: RecordId, session: LeadForm, after: BackgroundTasks) -> Response:
    """Resume a dismissal whose process died; idempotent."""
    dismissal_of(session, closing_id)
    after.add_task(dismissal.resume, session.engine, closing_id)
    return RedirectResponse(f"../{closing_id}", 303)


@pages.post("/lead/close/{closing_id}/cancel")
def cancel(closing_id: RecordId, session: LeadForm, after: BackgroundTasks) -> Response:
    """Cancel a running or finished dismissal: all its items return to the queue."""
    dismissal_of(session, closing_id)
    dismissal.stop(session.engine, session.person.id, closing_id)
    after.add_task(dismissal.resume, session.engine, closing_id)
    return RedirectResponse(f"../{closing_id}", 303)


def _criteria(form: dict[str, str]) -> Criteria:
    typed: dict[str, Any] = {name: value.strip() for name, value in form.items() if value.strip()}
    if "queued_before" in typed:
        typed["queued_before"] += "+00:00"
    if "comment_ids" in typed:
        typed["comment_ids"] = tuple(dict.fromkeys(typed["comment_ids"].split()))
    return CRITERIA.validate_python(typed)


def _confirmation(
    session: Session,
    form: dict[str, str],
    asked: Criteria,
    problem: str | None = None,
    status: int | None = None,
) -> Response:
    check_queue_access(session.person, asked)
    matching = dismissal.matching(session.engine, asked)
    criteria = CRITERIA.dump_json(asked, exclude_none=True).decode()
    return _page(session, form, status, problem=problem, matching=matching, criteria=criteria)


def _page(
    session: Session,
    form: dict[str, str],
    status: int | None = None,
    *,
    problem: str | None = None,
    matching: int | None = None,
    criteria: str = "",
) -> Response:
    """Return the form, the number of items that match `criteria`, to confirm, and the latest."""
    queues, reasons = lanes_of(session)
    every, mine = dismissal.latest(session.engine), session.person.queues
    return render(
        session,
        "dismissals.html",
        status,
        problem=problem,
        matching=matching,
        criteria=criteria,
        fields=FIELDS,
        kinds=KINDS,
        form={name: form.get(name, "") for name in (*FIELDS, "comment_ids")},
        queues=queues,
        reasons=reasons,
        why=reasons_of(session.policy, "close", session.locale),
        dismissals=[one for one in every if mine is None or one.criteria.queue in mine],
    )


def lanes_of(session: Session) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return this person's queues, and the reasons that occur."""
    with session.engine.connect() as connection:
        rows = connection.execute(select(lane.c.queue, lane.c.reason)).all()
    mine = session.person.queues
    queues = {row.queue for row in rows if mine is None or row.queue in mine}
    return tuple(sorted(queues)), tuple(sorted({row.reason for row in rows}))
