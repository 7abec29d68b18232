"""What is on record: the log's check and export, the policy in force, and what did not arrive."""

import datetime as dt
from dataclasses import dataclass
from typing import Annotated, ClassVar

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from modwatch.errors import QueueError
from modwatch.review.console.api.decisions import refuse_part
from modwatch.review.console.desk import DeskDep, FormText, Visit, page_visit
from modwatch.review.console.exporting import export_answer
from modwatch.review.console.i18n import N_
from modwatch.review.console.pages.parts import ListPage
from modwatch.review.console.render import render, shell_of
from modwatch.review.log.export import Format
from modwatch.review.log.verification import LogReport, verify_log
from modwatch.review.outbox.delivery_status import (
    DeadLetter,
    DeliveryState,
    dead_letters,
    delivery_state,
    resend,
)
from modwatch.review.policy.tree import Policy
from modwatch.review.queue.items import storable

router = APIRouter(include_in_schema=False)

RecordsVisit = Annotated[Visit, Depends(page_visit("decisions:read"))]
CheckVisit = Annotated[Visit, Depends(page_visit("audit", "admin"))]
DeliveriesVisit = Annotated[Visit, Depends(page_visit("deliveries"))]

NOTICES = {"resent": N_("Due again. They are sent with the next round.")}

#: Dead letters of a channel on one page.
_LETTERS = 100


@dataclass(frozen=True, kw_only=True)
class RecordsPage(ListPage):
    """`admin_records.html`."""

    template: ClassVar[str] = "admin_records.html"

    policy: Policy
    #: Of each code: code, title, description, label, and the code above it.
    codes: list[tuple[str, str, str, int, str | None]]
    may_check: bool
    may_read_notes: bool
    #: Not a person of some queues: the log is of all.
    may_export: bool
    problem: str | None
    report: LogReport | None


@dataclass(frozen=True, kw_only=True)
class DeliveriesPage(ListPage):
    """`admin_deliveries.html`."""

    template: ClassVar[str] = "admin_deliveries.html"

    notice: str | None
    states: dict[str, DeliveryState]
    #: The first dead letters of each channel.
    dead: dict[str, list[DeadLetter]]


@router.get("/records")
def show_records(request: Request, desk: DeskDep, visit: RecordsVisit) -> Response:
    """Return what can be exported and checked, and what people decide by."""
    return render(_records_page(request, desk, visit), request, visit)


@router.post("/records/check")
def check_log(
    request: Request,
    desk: DeskDep,
    visit: CheckVisit,
    csrf: FormText,
    witness: Annotated[str, Form(max_length=900_000)] = "",
) -> Response:
    """Walk along the whole log, and tell what was found."""
    visit.check(csrf)
    report, problem = None, None
    try:
        report = verify_log(desk.engine, witness.strip() or None)
    except QueueError as refusal:
        problem = str(refusal)
    page = _records_page(request, desk, visit, report=report, problem=problem)
    return render(page, request, visit, 422 if problem else 200)


@router.post("/records/export")
def export_log(
    desk: DeskDep,
    visit: RecordsVisit,
    csrf: FormText,
    format: Annotated[Format, Form()],
    first: FormText = "",
    last: FormText = "",
    with_notes: FormText = "",
) -> Response:
    """Stream the decision log; a form, since it is written down who took it."""
    visit.check(csrf)
    refuse_part(visit.person)
    return export_answer(
        desk,
        visit.person,
        format,
        first=_day(first),
        last=_day(last),
        with_notes=bool(with_notes),
    )


@router.get("/deliveries")
def show_deliveries(
    request: Request,
    desk: DeskDep,
    visit: DeliveriesVisit,
    notice: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """Return how many messages wait, and which were given up."""
    states = delivery_state(desk.engine)
    page = DeliveriesPage(
        notice=NOTICES.get(notice),
        states=states,
        dead={
            name: dead_letters(desk.engine, name, limit=_LETTERS)
            for name, state in states.items()
            if state.dead
        },
    )
    return render(page, request, visit)


@router.post("/deliveries/resend")
def send_again(
    desk: DeskDep,
    visit: DeliveriesVisit,
    csrf: FormText,
    channel: FormText,
    message_id: Annotated[int | None, Form(ge=1, le=2**63 - 1)] = None,
) -> Response:
    """Make dead letters of a channel due again: one, or all."""
    visit.check(csrf)
    storable(channel, "name", "the channel")
    resend(desk.engine, channel, None if message_id is None else [message_id])
    return RedirectResponse("../deliveries?notice=resent", 303)


def _day(typed: str) -> dt.date | None:
    try:
        return dt.date.fromisoformat(typed) if typed else None
    except ValueError:
        raise QueueError("a day of the export is not a date; write it as 2026-01-31") from None


def _records_page(
    request: Request,
    desk: DeskDep,
    visit: Visit,
    *,
    report: LogReport | None = None,
    problem: str | None = None,
) -> RecordsPage:
    locale, person = shell_of(request, visit).locale, visit.person
    return RecordsPage(
        policy=desk.policy,
        codes=[
            (node.code, node.title.of(locale), node.description.of(locale), node.label, node.parent)
            for node in desk.policy.nodes
        ],
        may_check=person.may("audit") or person.may("admin"),
        may_read_notes=person.may("lead") or person.may("admin"),
        may_export=person.may("decisions:read") and person.queues is None,
        problem=problem,
        report=report,
    )
