"""A lead gives up many items at once: counts them, confirms, watches, takes it back."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, BackgroundTasks, Form, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError
from sqlalchemy import select

from modwatch.errors import LeaseConflictError, QueueError
from modwatch.review.console.api import ItemId
from modwatch.review.console.api.lead import (
    CriteriaRequest,
    of_own_queues,
    own_closings,
    refuse_other_queues,
)
from modwatch.review.console.desk import Desk, DeskDep, FormText, Visit
from modwatch.review.console.i18n import N_
from modwatch.review.console.pages.lead import LeadVisit
from modwatch.review.console.pages.parts import ListPage, reasons_of
from modwatch.review.console.render import render, shell_of
from modwatch.review.policy.tree import check_reason
from modwatch.review.queue import dismissal
from modwatch.review.queue.dismissal import Dismissal
from modwatch.review.tables import lane

router = APIRouter(include_in_schema=False)

#: The fields of the form, in their order, with their names; `comment_ids` comes last.
FIELDS = {
    "queue": N_("Queue"),
    "reason": N_("Sent because"),
    "language": N_("Language"),
    "platform": N_("Platform"),
    "first_day": N_("Comments from"),
    "last_day": N_("Comments to"),
    "queued_before": N_("In the queue since before (UTC)"),
}

Wide = Annotated[str, Form(max_length=900_000)]


@dataclass(frozen=True, kw_only=True)
class ClosePage(ListPage):
    """`lead_close.html`."""

    template: ClassVar[str] = "lead_close.html"
    fields: ClassVar[dict[str, str]] = FIELDS

    #: What is in the form.
    form: dict[str, str]
    problem: str | None
    #: How many items match; None before the count.
    matching: int | None
    #: The criteria as JSON, to be confirmed.
    criteria: str
    queues: tuple[str, ...]
    reasons: tuple[str, ...]
    #: Why one gives up: word and title.
    why: dict[str, str]
    closings: list[Dismissal]


@dataclass(frozen=True, kw_only=True)
class ClosingPage(ListPage):
    """`lead_closing.html`."""

    template: ClassVar[str] = "lead_closing.html"
    fields: ClassVar[dict[str, str]] = FIELDS

    closing: Dismissal
    why: dict[str, str]


@router.get("/lead/close")
def ask(request: Request, desk: DeskDep, visit: LeadVisit) -> Response:
    """Return the form, empty, and the latest closings."""
    return render(_page(request, desk, visit, {}), request, visit)


@router.post("/lead/close/count")
def count(
    request: Request,
    desk: DeskDep,
    visit: LeadVisit,
    csrf: FormText,
    queue: FormText = "",
    reason: FormText = "",
    language: FormText = "",
    platform: FormText = "",
    first_day: FormText = "",
    last_day: FormText = "",
    queued_before: FormText = "",
    comment_ids: Wide = "",
) -> Response:
    """Return how many items match, and ask whether to give them up; nothing changes."""
    visit.check(csrf)
    typed = (queue, reason, language, platform, first_day, last_day, queued_before)
    form = dict(zip(FIELDS, typed, strict=True)) | {"comment_ids": comment_ids}
    try:
        asked = _criteria(form)
        refuse_other_queues(visit.person, asked.criteria)
        matching = dismissal.matching(desk.engine, asked.criteria)
    except (QueueError, ValidationError) as refusal:
        problem = str(refusal) if isinstance(refusal, QueueError) else _problem(refusal)
        return render(_page(request, desk, visit, form, problem=problem), request, visit, 422)
    page = _page(request, desk, visit, form, matching=matching, criteria=_json(asked))
    return render(page, request, visit)


@router.post("/lead/close")
def begin(
    request: Request,
    desk: DeskDep,
    visit: LeadVisit,
    after: BackgroundTasks,
    csrf: FormText,
    criteria: Wide,
    expected: Annotated[int, Form(ge=1, le=2**63 - 1)],
    why: FormText,
) -> Response:
    """Begin to give up what matches, if it is still as many; go and watch it."""
    visit.check(csrf)
    check_reason(desk.policy, "close", why)
    try:
        asked = CriteriaRequest.model_validate_json(criteria)
    except ValidationError as refusal:
        raise QueueError(_problem(refusal)) from None
    refuse_other_queues(visit.person, asked.criteria)
    try:
        begun = dismissal.start(desk.engine, visit.person.id, asked.criteria, why, expected)
    except LeaseConflictError as refusal:
        page = _page(
            request,
            desk,
            visit,
            {},
            problem=str(refusal),
            matching=dismissal.matching(desk.engine, asked.criteria),
            criteria=_json(asked),
        )
        return render(page, request, visit, 409)
    after.add_task(dismissal.resume, desk.engine, begun.id)
    return RedirectResponse(f"./close/{begun.id}", 303)


@router.get("/lead/close/{closing_id}")
def watch(request: Request, closing_id: ItemId, desk: DeskDep, visit: LeadVisit) -> Response:
    """Return how far a closing is."""
    page = ClosingPage(
        closing=of_own_queues(desk, visit.person, closing_id),
        why=reasons_of(desk.policy, "close", shell_of(request, visit).locale),
    )
    return render(page, request, visit)


@router.post("/lead/close/{closing_id}/resume")
def go_on(
    closing_id: ItemId, desk: DeskDep, visit: LeadVisit, after: BackgroundTasks, csrf: FormText
) -> Response:
    """Carry on what a process left behind."""
    visit.check(csrf)
    of_own_queues(desk, visit.person, closing_id)
    after.add_task(dismissal.resume, desk.engine, closing_id)
    return RedirectResponse(f"../{closing_id}", 303)


@router.post("/lead/close/{closing_id}/cancel")
def cancel(
    closing_id: ItemId, desk: DeskDep, visit: LeadVisit, after: BackgroundTasks, csrf: FormText
) -> Response:
    """Stop it, and bring back what it closed."""
    visit.check(csrf)
    of_own_queues(desk, visit.person, closing_id)
    dismissal.stop(desk.engine, visit.person.id, closing_id)
    after.add_task(dismissal.resume, desk.engine, closing_id)
    return RedirectResponse(f"../{closing_id}", 303)


def _criteria(form: dict[str, str]) -> CriteriaRequest:
    typed: dict[str, Any] = {name: value.strip() for name, value in form.items() if value.strip()}
    if "queued_before" in typed:
        typed["queued_before"] += "+00:00"
    if "comment_ids" in typed:
        typed["comment_ids"] = tuple(dict.fromkeys(typed["comment_ids"].split()))
    return CriteriaRequest.model_validate(typed)


def _json(asked: CriteriaRequest) -> str:
    return asked.model_dump_json(exclude_none=True)


def _problem(refusal: ValidationError) -> str:
    """Return which fields cannot be, without what stood in them."""
    names = sorted({str((*error["loc"], "criteria")[0]) for error in refusal.errors()})
    return f"these fields cannot be read: {', '.join(names)}; mend them and count again"


def _page(
    request: Request,
    desk: Desk,
    visit: Visit,
    form: dict[str, str],
    *,
    problem: str | None = None,
    matching: int | None = None,
    criteria: str = "",
) -> ClosePage:
    queues, reasons = _lanes(desk, visit)
    return ClosePage(
        form={name: form.get(name, "") for name in (*FIELDS, "comment_ids")},
        problem=problem,
        matching=matching,
        criteria=criteria,
        queues=queues,
        reasons=reasons,
        why=reasons_of(desk.policy, "close", shell_of(request, visit).locale),
        closings=own_closings(desk, visit.person),
    )


def _lanes(desk: Desk, visit: Visit) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the queues and reasons that there are, for this person."""
    with desk.engine.connect() as connection:
        rows = connection.execute(select(lane.c.queue, lane.c.reason)).all()
    mine = visit.person.queues
    queues = {row.queue for row in rows if mine is None or row.queue in mine}
    return tuple(sorted(queues)), tuple(sorted({row.reason for row in rows}))
