"""The desk: decide the comment shown, and go on to the next.

It works as a plain form. Where scripts run, `static/console.js` takes over: it holds the next item
beforehand, sends decisions in the background, and remembers, for its tab alone, what it holds. The
cookie that remembers the one item of a plain form is for everybody else.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from fastapi import APIRouter, Cookie, Depends, Form, Header, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import Field

from modwatch.errors import ItemNotFoundError, LeaseConflictError
from modwatch.review import queue
from modwatch.review.console.api.queue import lease_for, settle
from modwatch.review.console.choices import ACTIONS, preferences_of
from modwatch.review.console.day import toxic_today
from modwatch.review.console.desk import (
    CSRF_HEADER,
    Desk,
    DeskDep,
    FormText,
    LeaseToken,
    Visit,
    forget,
    page_visit,
    refuse_without,
    set_cookie,
)
from modwatch.review.console.i18n import N_
from modwatch.review.console.render import Page, render, shell_of
from modwatch.review.console.shapes import Asked
from modwatch.review.console.tickets import Held, again, ticket_of
from modwatch.review.console.verdicts import Choices, choices_of, request_of
from modwatch.review.console.why import Why, why
from modwatch.review.people import Moderator
from modwatch.review.queue import LONGEST_NOTE, amendments
from modwatch.review.queue.items import Lease
from modwatch.review.queue.metrics import QueueCounts

router = APIRouter(include_in_schema=False)

LEASE = "modwatch_lease"

#: Items that a page with a script holds: the one shown and the next.
HELD = 2

NOTICES = {
    "conflict": N_(
        "That one is not yours any more: its time ran out, it was withdrawn, or it is decided "
        "already. Nothing was lost; here is the next."
    ),
    "undone": N_("Taken back. Decide it anew."),
    "late": N_("That can no longer be undone. Correct it in My day instead."),
}

AnyVisit = Annotated[Visit, Depends(page_visit())]
ReviewVisit = Annotated[Visit, Depends(page_visit("review"))]
LeaseCookie = Annotated[str, Cookie(alias=LEASE)]
CsrfHeader = Annotated[str, Header(alias=CSRF_HEADER, max_length=400)]
PageItemId = Annotated[int, Form(ge=1, le=2**63 - 1)]


class Wanted(Asked):
    """What a tab remembers, and how many items it wants to hold."""

    held: Annotated[tuple[Held, ...], Field(max_length=5)] = ()
    count: Annotated[int, Field(ge=0, le=HELD + 1)] = 1


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """One item as the page shows it."""

    lease: Lease
    #: Opens the same item again for the same session, once it was given back.
    ticket: str
    #: One key a lease: a double click, or a second tab, makes one decision.
    key: str
    #: None where the label is blind.
    why: Why | None
    masked: bool


@dataclass(frozen=True, kw_only=True)
class ReviewPage(Page):
    """`review.html`."""

    template: ClassVar[str] = "review.html"

    notice: str | None
    #: Whether this person decides at all.
    reviews: bool
    counts: QueueCounts
    #: None when nothing waits for this person.
    sheet: Sheet | None
    choices: Choices
    #: Name and key of every action.
    actions: dict[str, tuple[str, str]]
    #: Comments called toxic today.
    toxic_today: int
    #: A decision just made, which can be taken back.
    done: int | None
    require_code: bool


@dataclass(frozen=True, kw_only=True)
class SheetsPage(Page):
    """`sheets.html`: items alone, for the script."""

    template: ClassVar[str] = "sheets.html"

    sheets: Sequence[Sheet]
    choices: Choices


@router.get("/")
def show(
    request: Request,
    desk: DeskDep,
    visit: AnyVisit,
    held: LeaseCookie = "",
    notice: Annotated[str, Query(max_length=20)] = "",
    done: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
    reveal: Annotated[int, Query()] = 0,
) -> Response:
    """Return the next item."""
    person = visit.person
    chosen = preferences_of(person.preferences)
    lease = _current(desk, person, held) if person.reviews else None
    page = ReviewPage(
        notice=NOTICES.get(notice),
        reviews=person.reviews,
        counts=request.app.state.glance(),
        sheet=None if lease is None else _sheet(desk, visit, lease, reveal),
        choices=choices_of(desk.policy, shell_of(request, visit).locale),
        actions={name: (ACTIONS[name][1], key) for name, key in chosen.all_keys.items()},
        toxic_today=toxic_today(desk.engine, person.id, chosen.timezone),
        done=done,
        require_code=desk.options.require_code,
    )
    response = render(page, request, visit)
    if lease is not None:
        set_cookie(request, response, LEASE, f"{lease.item.id}.{lease.token}")
    return response


@router.post("/decide")
def decide(
    desk: DeskDep,
    visit: ReviewVisit,
    csrf: FormText,
    item_id: PageItemId,
    lease_token: LeaseToken,
    verdict: Annotated[str, Form(max_length=100)],
    exact: Annotated[str, Form(max_length=100)] = "",
    version: Annotated[int | None, Form(ge=1, le=2**31 - 1)] = None,
    note: Annotated[str, Form(max_length=LONGEST_NOTE)] = "",
) -> Response:
    """Decide the item shown, and go on to the next."""
    visit.check(csrf)
    chosen = exact if verdict == "exact" else verdict
    request = request_of(chosen, lease_token, version, note.replace("\r\n", "\n"))
    try:
        done = settle(desk, visit.person, item_id, request, _key(lease_token))
    except (LeaseConflictError, ItemNotFoundError):
        return _home("notice=conflict")
    return _home(f"done={done.id}")


@router.post("/undo")
def undo(
    request: Request,
    desk: DeskDep,
    visit: ReviewVisit,
    csrf: FormText,
    decision_id: PageItemId,
    held: LeaseCookie = "",
    fragment: Annotated[str, Header(alias="X-Modwatch-Fragment")] = "",
) -> Response:
    """Take a decision back, and show its item again."""
    visit.check(csrf)
    try:
        lease = amendments.undo(
            desk.engine,
            moderator_id=visit.person.id,
            decision_id=decision_id,
            idempotency_key=f"undo-{decision_id}",
            length=desk.options.lease_length,
        )
    except (LeaseConflictError, ItemNotFoundError):
        if fragment:
            raise
        return _home("notice=late")
    if fragment:
        return _sheets(request, desk, visit, [lease])
    item_id, token = _remembered(held)
    queue.release(desk.engine, visit.person.id, item_id, token)
    response = _home("notice=undone")
    set_cookie(request, response, LEASE, f"{lease.item.id}.{lease.token}")
    return response


@router.post("/next")
def next_items(
    request: Request, desk: DeskDep, visit: AnyVisit, wanted: Wanted, csrf: CsrfHeader = ""
) -> Response:
    """Return what a tab held, as far as it can have it again, and the next items after that."""
    visit.check(csrf)
    refuse_without(visit.person, "review")
    resumed = [each for each in (again(desk, visit, one) for one in wanted.held) if each]
    more = max(0, wanted.count - len(resumed))
    response = _sheets(request, desk, visit, [*resumed, *lease_for(desk, visit.person, more)])
    forget(request, response, LEASE)  # from here on the tab remembers
    counts = request.app.state.glance()
    response.headers["X-Modwatch-Counts"] = f"{counts.waiting} {counts.leased}"
    return response


@router.post("/leave", status_code=204)
def leave(desk: DeskDep, visit: ReviewVisit, wanted: Wanted, csrf: CsrfHeader = "") -> None:
    """Give back what a tab holds, as it is left."""
    visit.check(csrf)
    for each in wanted.held:
        queue.release(desk.engine, visit.person.id, each.item_id, each.lease_token)


def _sheets(request: Request, desk: Desk, visit: Visit, leases: Sequence[Lease]) -> Response:
    page = SheetsPage(
        sheets=[_sheet(desk, visit, lease) for lease in leases],
        choices=choices_of(desk.policy, shell_of(request, visit).locale),
    )
    return render(page, request, visit)


def _sheet(desk: Desk, visit: Visit, lease: Lease, revealed: int = 0) -> Sheet:
    chosen = preferences_of(visit.person.preferences)
    return Sheet(
        lease=lease,
        ticket=ticket_of(visit, lease.item.id),
        key=_key(lease.token),
        why=why(desk.engine, lease.item.id) if desk.options.show_reasons else None,
        masked=chosen.masking == "blur" and revealed != lease.item.id,
    )


def _current(desk: Desk, person: Moderator, held: str) -> Lease | None:
    item_id, token = _remembered(held)
    lease = queue.resume(desk.engine, person.id, item_id, token)
    return lease or next(iter(lease_for(desk, person, 1)), None)


def _remembered(held: str) -> tuple[int, str]:
    """Return item and token of the cookie; item 0, which is none, of any other."""
    item_id, _, token = held.partition(".")
    known = item_id.isascii() and item_id.isdigit() and len(item_id) < 19
    return (int(item_id), token) if known else (0, "")


def _key(lease_token: str) -> str:
    return f"page-{hashlib.sha256(lease_token.encode(errors='surrogatepass')).hexdigest()}"


def _home(query: str) -> Response:
    return RedirectResponse(f"./?{query}", 303)
