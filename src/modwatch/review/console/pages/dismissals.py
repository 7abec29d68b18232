"""Dismissals: count matching items, confirm, follow the progress, restore them."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, BackgroundTasks, Form, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError
from sqlalchemy import select

from modwatch.common.errors import LeaseConflictError, QueueError
from modwatch.review.console.api import RecordId
from modwatch.review.console.api import dismissals as api
from modwatch.review.console.decision_choices import reasons_of
from modwatch.review.console.forms import FormId, FormText, problem_of
from modwatch.review.console.i18n import N_
from modwatch.review.console.render import Page, render
from modwatch.review.console.request_context import (
    LeadForm,
    LeadSession,
    Session,
)
from modwatch.review.queue.dismissal import Dismissal
from modwatch.review.tables import lane

router = APIRouter(include_in_schema=False)

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

LongText = Annotated[str, Form(max_length=900_000)]


@dataclass(frozen=True, kw_only=True)
class DismissalsPage(Page, template="dismissals.html"):
    """The form, its count to confirm, and the latest dismissals."""

    fields: ClassVar[dict[str, str]] = FIELDS

    #: Content of the form.
    form: dict[str, str]
    problem: str | None
    #: Number of matching items; None before the count.
    matching: int | None
    #: The criteria to confirm, as JSON.
    criteria: str
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


@router.get("/lead/close")
def show(session: LeadSession) -> Response:
    """Return the empty form and the latest dismissals."""
    return render(_page(session, {}), session)


@router.post("/lead/close/count")
def count(
    session: LeadForm,
    queue: FormText = "",
    reason: FormText = "",
    language: FormText = "",
    platform: FormText = "",
    first_day: FormText = "",
    last_day: FormText = "",
    queued_before: FormText = "",
    comment_ids: LongText = "",
) -> Response:
    """Return the number of matching items, to confirm; nothing changes."""
    typed = (queue, reason, language, platform, first_day, last_day, queued_before, comment_ids)
    form = dict(zip((*FIELDS, "comment_ids"), typed, strict=True))
    try:
        return _confirmation(session, form, _criteria(form))
    except (QueueError, ValidationError) as exc:
        return render(_page(session, form, problem=problem_of(exc)), session, 422)


@router.post("/lead/close")
def start(
    session: LeadForm, after: BackgroundTasks, criteria: LongText, expected: FormId, why: FormText
) -> Response:
    """Dismiss the matching items unless their number has changed, and show the progress."""
    try:
        asked = api.CriteriaRequest.model_validate_json(criteria)
        closing = api.ClosingRequest(criteria=asked, reason=why, expected=expected)
    except ValidationError as exc:
        raise QueueError(problem_of(exc)) from None
    try:
        started = api.start_closing(closing, session.context, session.person, after)
    except LeaseConflictError as exc:
        return _confirmation(session, {}, asked, str(exc), 409)
    return RedirectResponse(f"./close/{started.id}", 303)


@router.get("/lead/close/{closing_id}")
def follow(closing_id: RecordId, session: LeadSession) -> Response:
    """Return the progress of a dismissal."""
    page = DismissalPage(
        dismissal=api.dismissal_of(session.context, session.person, closing_id),
        why=reasons_of(session.policy, "close", session.locale),
    )
    return render(page, session)


@router.post("/lead/close/{closing_id}/resume")
def resume(closing_id: RecordId, session: LeadForm, after: BackgroundTasks) -> Response:
    """Resume a dismissal whose process died."""
    api.resume_closing(closing_id, session.context, session.person, after)
    return RedirectResponse(f"../{closing_id}", 303)


@router.post("/lead/close/{closing_id}/cancel")
def cancel(closing_id: RecordId, session: LeadForm, after: BackgroundTasks) -> Response:
    """Cancel a dismissal, and restore its items."""
    api.cancel_closing(closing_id, session.context, session.person, after)
    return RedirectResponse(f"../{closing_id}", 303)


def _criteria(form: dict[str, str]) -> api.CriteriaRequest:
    typed: dict[str, Any] = {name: value.strip() for name, value in form.items() if value.strip()}
    if "queued_before" in typed:
        typed["queued_before"] += "+00:00"
    if "comment_ids" in typed:
        typed["comment_ids"] = tuple(dict.fromkeys(typed["comment_ids"].split()))
    return api.CriteriaRequest.model_validate(typed)


def _confirmation(
    session: Session,
    form: dict[str, str],
    asked: api.CriteriaRequest,
    problem: str | None = None,
    status: int = 200,
) -> Response:
    matching = api.count_matching(asked, session.context, session.person).matching
    criteria = asked.model_dump_json(exclude_none=True)
    page = _page(session, form, problem=problem, matching=matching, criteria=criteria)
    return render(page, session, status)


def _page(
    session: Session,
    form: dict[str, str],
    *,
    problem: str | None = None,
    matching: int | None = None,
    criteria: str = "",
) -> DismissalsPage:
    queues, reasons = lanes_of(session)
    return DismissalsPage(
        form={name: form.get(name, "") for name in (*FIELDS, "comment_ids")},
        problem=problem,
        matching=matching,
        criteria=criteria,
        queues=queues,
        reasons=reasons,
        why=reasons_of(session.policy, "close", session.locale),
        dismissals=api.dismissals_of(session.context, session.person),
    )


def lanes_of(session: Session) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return this person's queues, and the reasons that occur."""
    with session.engine.connect() as connection:
        rows = connection.execute(select(lane.c.queue, lane.c.reason)).all()
    mine = session.person.queues
    queues = {row.queue for row in rows if mine is None or row.queue in mine}
    return tuple(sorted(queues)), tuple(sorted({row.reason for row in rows}))
