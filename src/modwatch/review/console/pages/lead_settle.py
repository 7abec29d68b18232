"""A lead settles what was handed over: sees what others said, and decides."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from fastapi import APIRouter, Cookie, Form, Request, Response
from fastapi.responses import RedirectResponse

from modwatch.errors import ItemNotFoundError, LeaseConflictError, QueueError
from modwatch.review import queue
from modwatch.review.console.api.queue import lease_for, settle
from modwatch.review.console.desk import (
    Desk,
    DeskDep,
    FormText,
    LeaseToken,
    Visit,
    forget,
    set_cookie,
)
from modwatch.review.console.pages.lead import LeadVisit
from modwatch.review.console.pages.parts import FormId, ListPage, codes_of, new_key, titles_of
from modwatch.review.console.render import render, shell_of
from modwatch.review.console.shapes import DecisionRequest
from modwatch.review.queue import LONGEST_NOTE
from modwatch.review.queue.items import Lease

router = APIRouter(include_in_schema=False)

SETTLING = "modwatch_settle"

SettleCookie = Annotated[str, Cookie(alias=SETTLING, max_length=200)]
Note = Annotated[str, Form(max_length=LONGEST_NOTE)]


@dataclass(frozen=True, kw_only=True)
class SettlePage(ListPage):
    """`lead_settle.html`."""

    template: ClassVar[str] = "lead_settle.html"

    lease: Lease
    problem: str | None
    #: Sent back with the form, so that a double click is one decision.
    key: str
    #: Codes and titles of each label.
    codes: dict[int, tuple[tuple[str, str], ...]]
    titles: dict[str, str]
    longest_note: int = LONGEST_NOTE


@router.post("/lead/take")
def take(
    request: Request,
    desk: DeskDep,
    visit: LeadVisit,
    csrf: FormText,
    item_id: Annotated[int | None, Form(ge=1, le=2**63 - 1)] = None,
    held: SettleCookie = "",
) -> Response:
    """Lease one escalated item, or the next, and go there; or to the one not settled yet."""
    visit.check(csrf)
    if item_id is None and _held(desk, visit, held) is not None:
        return RedirectResponse("./settle", 303)
    lease = _lease(desk, visit, item_id)
    if lease is None:
        return RedirectResponse("../lead?notice=gone", 303)
    response = RedirectResponse("./settle", 303)
    set_cookie(request, response, SETTLING, f"{lease.item.id}.{lease.token}")
    return response


@router.get("/lead/settle")
def show(request: Request, desk: DeskDep, visit: LeadVisit, held: SettleCookie = "") -> Response:
    """Return the item that this lead took, with what others said of it."""
    lease = _held(desk, visit, held)
    if lease is None:
        response: Response = RedirectResponse("../lead", 303)
        forget(request, response, SETTLING)
        return response
    return render(_page(request, desk, visit, lease, None), request, visit)


@router.post("/lead/settle")
def decide(
    request: Request,
    desk: DeskDep,
    visit: LeadVisit,
    csrf: FormText,
    item_id: FormId,
    lease_token: LeaseToken,
    key: Annotated[str, Form(min_length=1, max_length=200)],
    label: Annotated[Literal["0", "1"], Form()],
    policy_code: Annotated[str, Form(max_length=60)] = "",
    note: Note = "",
) -> Response:
    """Decide it, and go back to the list."""
    visit.check(csrf)
    decision = DecisionRequest(
        lease_token=lease_token,
        action="label",
        label=1 if label == "1" else 0,
        policy_code=policy_code or None,
        note=note.strip() or None,
    )
    try:
        settle(desk, visit.person, item_id, decision, key)
    except (LeaseConflictError, ItemNotFoundError):
        return _back(request, "gone")
    except QueueError as refusal:
        lease = queue.resume(desk.engine, visit.person.id, item_id, lease_token)
        if lease is None:
            return _back(request, "gone")
        page = _page(request, desk, visit, lease, str(refusal))
        return render(page, request, visit, 422)
    return _back(request, "settled")


@router.post("/lead/leave")
def leave(
    request: Request, desk: DeskDep, visit: LeadVisit, csrf: FormText, held: SettleCookie = ""
) -> Response:
    """Give the item back undecided."""
    visit.check(csrf)
    lease = _held(desk, visit, held)
    if lease is not None:
        queue.release(desk.engine, visit.person.id, lease.item.id, lease.token)
    return _back(request, "back")


def _lease(desk: Desk, visit: Visit, item_id: int | None) -> Lease | None:
    person = visit.person
    if item_id is None:
        return next(iter(lease_for(desk, person, 1, escalated=True)), None)
    return queue.claim(
        desk.engine,
        person.id,
        item_id,
        desk.options.lease_length,
        queues=person.queues,
        escalated_only=True,
    )


def _held(desk: Desk, visit: Visit, held: str) -> Lease | None:
    item_id, _, token = held.partition(".")
    if not (item_id.isascii() and item_id.isdigit() and len(item_id) < 19):
        return None
    return queue.resume(desk.engine, visit.person.id, int(item_id), token)


def _back(request: Request, notice: str) -> Response:
    response = RedirectResponse(f"../lead?notice={notice}", 303)
    forget(request, response, SETTLING)
    return response


def _page(
    request: Request, desk: Desk, visit: Visit, lease: Lease, problem: str | None
) -> SettlePage:
    locale = shell_of(request, visit).locale
    return SettlePage(
        lease=lease,
        problem=problem,
        key=new_key(),
        codes={label: codes_of(desk.policy, label, locale) for label in (1, 0)},
        titles=titles_of(desk.policy, locale),
    )
