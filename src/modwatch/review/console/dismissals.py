"""Dismiss many waiting items at once, without decisions, and restore them."""

import datetime as dt
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, BackgroundTasks, Form, HTTPException, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field, ValidationError
from sqlalchemy import select

from modwatch.common.errors import LeaseConflictError, QueueError
from modwatch.review.console.decision_choices import reasons_of
from modwatch.review.console.i18n import N_
from modwatch.review.console.render import Page, render
from modwatch.review.console.request_context import (
    ContextDep,
    LeadDep,
    LeadForm,
    LeadSession,
    Session,
)
from modwatch.review.console.schemas import (
    FormFields,
    FormId,
    FormText,
    RecordId,
    RecordSchema,
    RequestSchema,
    error_responses,
    problem_of,
)
from modwatch.review.people.accounts import Moderator
from modwatch.review.policy.tree import check_reason
from modwatch.review.queue import dismissal
from modwatch.review.queue.dismissal import CRITERIA, Criteria, Dismissal
from modwatch.review.tables import lane

api = APIRouter(
    prefix="/api/v1/lead/closings", tags=["lead"], responses=error_responses(401, 403, 503)
)

_Word = Annotated[str, Field(min_length=1, max_length=200)]


class MatchingSchema(BaseModel):
    """Number of items that match now."""

    matching: int


class ClosingRequest(RequestSchema):
    """A dismissal; a conflict if the number of matching items has changed since the count."""

    criteria: Criteria
    reason: _Word = Field(description="One of the policy's reasons for the action `close`.")
    expected: Annotated[int, Field(ge=1, le=2**63 - 1, description="As returned by the count.")]


class ClosingSchema(RecordSchema):
    """Progress of a dismissal."""

    id: int
    criteria: Criteria
    reason: str
    matched: int
    closed: int
    state: str = Field(description="closing, closed, bringing back or brought back")
    started_at: dt.datetime
    finished_at: dt.datetime | None
    cancelled_at: dt.datetime | None


@api.post("/count", responses=error_responses(413, 422))
def count_matching(request: Criteria, context: ContextDep, person: LeadDep) -> MatchingSchema:
    """Return how many items match; nothing changes."""
    check_queue_access(person, request)
    return MatchingSchema(matching=dismissal.matching(context.engine, request))


@api.get("", response_model=list[ClosingSchema])
def read_closings(context: ContextDep, person: LeadDep) -> list[Dismissal]:
    """Return the latest dismissals in this lead's queues, newest first."""
    every, mine = dismissal.latest(context.engine), person.queues
    return [one for one in every if mine is None or one.criteria.queue in mine]


@api.post("", status_code=202, responses=error_responses(409, 413, 422))
def start_closing(
    request: ClosingRequest, context: ContextDep, person: LeadDep, after: BackgroundTasks
) -> ClosingSchema:
    """Dismiss the matching items in the background; follow the progress by the id."""
    criteria = request.criteria
    check_queue_access(person, criteria)
    check_reason(context.options.policy, "close", request.reason)
    started = dismissal.start(context.engine, person.id, criteria, request.reason, request.expected)
    after.add_task(dismissal.resume, context.engine, started.id)
    return ClosingSchema.model_validate(started)


@api.get("/{closing_id}", responses=error_responses(404, 422))
def read_closing(closing_id: RecordId, context: ContextDep, person: LeadDep) -> ClosingSchema:
    """Return the progress of a dismissal."""
    return ClosingSchema.model_validate(dismissal_of(context, person, closing_id))


@api.post("/{closing_id}/resume", status_code=202, responses=error_responses(404, 422))
def resume_closing(
    closing_id: RecordId, context: ContextDep, person: LeadDep, after: BackgroundTasks
) -> ClosingSchema:
    """Resume a dismissal whose process died; idempotent."""
    closing = dismissal_of(context, person, closing_id)
    after.add_task(dismissal.resume, context.engine, closing_id)
    return ClosingSchema.model_validate(closing)


@api.post("/{closing_id}/cancel", status_code=202, responses=error_responses(404, 422))
def cancel_closing(
    closing_id: RecordId, context: ContextDep, person: LeadDep, after: BackgroundTasks
) -> ClosingSchema:
    """Cancel a running or finished dismissal: all its items return to the queue."""
    dismissal_of(context, person, closing_id)
    closing = dismissal.stop(context.engine, person.id, closing_id)
    after.add_task(dismissal.resume, context.engine, closing_id)
    return ClosingSchema.model_validate(closing)


def check_queue_access(person: Moderator, criteria: Criteria) -> None:
    """Raise 403 if a lead of some queues would dismiss items of others."""
    if person.queues is not None and criteria.queue not in person.queues:
        raise HTTPException(403, "choose one of your own queues")


def dismissal_of(context: ContextDep, person: Moderator, closing_id: int) -> Dismissal:
    """Return a dismissal in this lead's queues; 403 for one in others."""
    closing = dismissal.progress(context.engine, closing_id)
    check_queue_access(person, closing.criteria)
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


@dataclass(frozen=True, kw_only=True)
class DismissalsPage(Page, template="dismissals.html"):
    """The form, its count to confirm, and the latest dismissals."""

    fields: ClassVar[dict[str, str]] = FIELDS
    kinds: ClassVar[dict[str, str]] = KINDS

    #: Content of the form.
    form: dict[str, str]
    problem: str | None = None
    #: Number of matching items; None before the count.
    matching: int | None = None
    #: The criteria to confirm, as JSON.
    criteria: str = ""
    queues: tuple[str, ...]
    reasons: tuple[str, ...]
    #: Reasons for a dismissal, with their titles.
    why: dict[str, str]
    dismissals: list[Dismissal]


@dataclass(frozen=True, kw_only=True)
class DismissalPage(Page, template="dismissal.html"):
    """Progress of one dismissal."""

    fields: ClassVar[dict[str, str]] = FIELDS

    dismissal: Dismissal
    why: dict[str, str]


@pages.get("/lead/close")
def show(session: LeadSession) -> Response:
    """Return the empty form and the latest dismissals."""
    return render(_page(session, {}), session)


@pages.post("/lead/close/count")
def count(session: LeadForm, sent: FormFields) -> Response:
    """Return the number of matching items, to confirm; nothing changes."""
    form = {name: sent.get(name, "") for name in (*FIELDS, "comment_ids")}
    try:
        return _confirmation(session, form, _criteria(form))
    except (QueueError, ValidationError) as exc:
        return render(replace(_page(session, form), problem=problem_of(exc)), session)


@pages.post("/lead/close")
def start(
    session: LeadForm, after: BackgroundTasks, criteria: LongText, expected: FormId, why: FormText
) -> Response:
    """Dismiss the matching items unless their number has changed, and show the progress."""
    try:
        asked = CRITERIA.validate_json(criteria)
        closing = ClosingRequest(criteria=asked, reason=why, expected=expected)
    except ValidationError as exc:
        raise QueueError(problem_of(exc)) from None
    try:
        started = start_closing(closing, session.context, session.person, after)
    except LeaseConflictError as exc:
        return _confirmation(session, {}, asked, str(exc), 409)
    return RedirectResponse(f"./close/{started.id}", 303)


@pages.get("/lead/close/{closing_id}")
def follow(closing_id: RecordId, session: LeadSession) -> Response:
    """Return the progress of a dismissal."""
    page = DismissalPage(
        dismissal=dismissal_of(session.context, session.person, closing_id),
        why=reasons_of(session.policy, "close", session.locale),
    )
    return render(page, session)


@pages.post("/lead/close/{closing_id}/resume")
def resume(closing_id: RecordId, session: LeadForm, after: BackgroundTasks) -> Response:
    """Resume a dismissal whose process died."""
    resume_closing(closing_id, session.context, session.person, after)
    return RedirectResponse(f"../{closing_id}", 303)


@pages.post("/lead/close/{closing_id}/cancel")
def cancel(closing_id: RecordId, session: LeadForm, after: BackgroundTasks) -> Response:
    """Cancel a dismissal, and restore its items."""
    cancel_closing(closing_id, session.context, session.person, after)
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
    matching = count_matching(asked, session.context, session.person).matching
    criteria = CRITERIA.dump_json(asked, exclude_none=True).decode()
    page = _page(session, form)
    page = replace(page, problem=problem, matching=matching, criteria=criteria)
    return render(page, session, status)


def _page(session: Session, form: dict[str, str]) -> DismissalsPage:
    queues, reasons = lanes_of(session)
    return DismissalsPage(
        form={name: form.get(name, "") for name in (*FIELDS, "comment_ids")},
        queues=queues,
        reasons=reasons,
        why=reasons_of(session.policy, "close", session.locale),
        dismissals=read_closings(session.context, session.person),
    )


def lanes_of(session: Session) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return this person's queues, and the reasons that occur."""
    with session.engine.connect() as connection:
        rows = connection.execute(select(lane.c.queue, lane.c.reason)).all()
    mine = session.person.queues
    queues = {row.queue for row in rows if mine is None or row.queue in mine}
    return tuple(sorted(queues)), tuple(sorted({row.reason for row in rows}))
