"""Accounts: who there is, what they may, how they come in, and what was done to whom."""

import datetime as dt
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from modwatch.errors import QueueError
from modwatch.review import database, people
from modwatch.review.console.api import ItemId
from modwatch.review.console.api.admin import account_of, change_account, revoke_of
from modwatch.review.console.api.admin_shapes import PersonChange
from modwatch.review.console.desk import DeskDep, FormText, Visit, page_visit
from modwatch.review.console.i18n import N_
from modwatch.review.console.pages.parts import ListPage
from modwatch.review.console.render import render
from modwatch.review.people import (
    LONGEST_PASSWORD,
    LONGEST_PSEUDONYM,
    ROLE_SCOPES,
    SHORTEST_PASSWORD,
    Account,
    AccountEvent,
    Token,
)

router = APIRouter(include_in_schema=False)

AdminVisit = Annotated[Visit, Depends(page_visit("admin"))]

NOTICES = {
    "saved": N_("Saved."),
    "revoked": N_("Revoked. It opens nothing any more."),
}

#: Events on one page.
_EVENTS = 100


@dataclass(frozen=True, kw_only=True)
class PeoplePage(ListPage):
    """`admin.html`."""

    template: ClassVar[str] = "admin.html"

    problem: str | None
    people: list[Account]
    roles: tuple[str, ...]
    longest: int = LONGEST_PSEUDONYM


@dataclass(frozen=True, kw_only=True)
class PersonPage(ListPage):
    """`admin_person.html`."""

    template: ClassVar[str] = "admin_person.html"

    person: Account
    notice: str | None
    problem: str | None
    #: A token that was just issued: shown this once.
    new_token: str | None
    tokens: list[Token]
    now: dt.datetime
    events: list[AccountEvent]
    roles: tuple[str, ...]
    #: What a token of this person may be used for.
    scopes: tuple[str, ...]
    #: Whether it is the admin's own account.
    own: bool
    shortest_password: int = SHORTEST_PASSWORD
    longest_password: int = LONGEST_PASSWORD

    def state(self, token: Token) -> str:
        """Return whether a token holds: valid, revoked or expired."""
        if token.revoked_at is not None:
            return "revoked"
        expired = token.expires_at is not None and token.expires_at <= self.now
        return "expired" if expired else "valid"


@dataclass(frozen=True, kw_only=True)
class EventsPage(ListPage):
    """`admin_events.html`."""

    template: ClassVar[str] = "admin_events.html"

    events: list[AccountEvent]
    #: For the next page; None at the end.
    before: int | None


@router.get("/admin")
def show_people(request: Request, desk: DeskDep, visit: AdminVisit) -> Response:
    """Return all accounts."""
    return render(_people_page(desk, None), request, visit)


@router.post("/admin/people")
def create(
    request: Request,
    desk: DeskDep,
    visit: AdminVisit,
    csrf: FormText,
    pseudonym: FormText,
    role: FormText,
) -> Response:
    """Create an account, and go to it."""
    visit.check(csrf)
    try:
        made = people.create_moderator(desk.engine, pseudonym, role, actor_id=visit.person.id)
    except QueueError as refusal:
        return render(_people_page(desk, str(refusal)), request, visit, 422)
    return RedirectResponse(f"./people/{made.id}", 303)


@router.get("/admin/people/{person_id}")
def show_person(
    request: Request,
    person_id: ItemId,
    desk: DeskDep,
    visit: AdminVisit,
    notice: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """Return one account, its tokens and its events."""
    page = _person_page(desk, visit, person_id, notice=NOTICES.get(notice))
    return render(page, request, visit)


@router.post("/admin/people/{person_id}")
def change(
    request: Request,
    person_id: ItemId,
    desk: DeskDep,
    visit: AdminVisit,
    csrf: FormText,
    role: FormText = "",
    queues: Annotated[str | None, Form(max_length=20_000)] = None,
    disabled: FormText = "",
    password: Annotated[str, Form(max_length=LONGEST_PASSWORD)] = "",
) -> Response:
    """Change what the form names: role, queues, password, or whether the person may come in."""
    visit.check(csrf)
    asked: dict[str, Any] = {}
    if role:
        asked["role"] = role
    if queues is not None:
        names = tuple(filter(None, (line.strip() for line in queues.splitlines())))
        asked["queues"] = names or "all"
    if disabled:
        asked["disabled"] = disabled == "yes"
    if password:
        asked["password"] = password
    try:
        change_account(desk, visit.person, person_id, PersonChange.model_validate(asked))
    except (QueueError, ValidationError) as refusal:
        problem = str(refusal) if isinstance(refusal, QueueError) else "that cannot be; try again"
        page = _person_page(desk, visit, person_id, problem=problem)
        return render(page, request, visit, 422)
    return RedirectResponse(f"./{person_id}?notice=saved", 303)


@router.post("/admin/people/{person_id}/tokens")
def issue(
    request: Request,
    person_id: ItemId,
    desk: DeskDep,
    visit: AdminVisit,
    csrf: FormText,
    name: FormText = "",
    days: Annotated[int | None, Form(ge=1, le=3_650)] = None,
    scopes: Annotated[list[str] | None, Form(max_length=20)] = None,
) -> Response:
    """Issue a token, and show it this once."""
    visit.check(csrf)
    account_of(desk, person_id)
    token, problem = None, None
    try:
        token = people.issue_token(
            desk.engine,
            person_id,
            lifetime=None if days is None else dt.timedelta(days=days),
            name=name.strip() or None,
            scopes=scopes or None,
            actor_id=visit.person.id,
        )
    except QueueError as refusal:
        problem = str(refusal)
    page = _person_page(desk, visit, person_id, problem=problem, new_token=token)
    return render(page, request, visit, 422 if problem else 201)


@router.post("/admin/people/{person_id}/revoke")
def revoke(
    person_id: ItemId,
    desk: DeskDep,
    visit: AdminVisit,
    csrf: FormText,
    token_id: Annotated[int | None, Form(ge=1, le=2**63 - 1)] = None,
) -> Response:
    """Revoke one token or session of a person, or without an id all their sessions."""
    visit.check(csrf)
    held = people.tokens(desk.engine, person_id)
    sessions = [each.id for each in held if each.purpose == "session"]
    revoke_of(desk, visit.person, person_id, sessions if token_id is None else [token_id])
    return RedirectResponse(f"../{person_id}?notice=revoked", 303)


@router.get("/admin/events")
def show_events(
    request: Request,
    desk: DeskDep,
    visit: AdminVisit,
    before: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
) -> Response:
    """Return who changed which account, and who took what out."""
    found = people.events(desk.engine, before=before, limit=_EVENTS)
    page = EventsPage(events=found, before=found[-1].id if len(found) == _EVENTS else None)
    return render(page, request, visit)


def _people_page(desk: DeskDep, problem: str | None) -> PeoplePage:
    return PeoplePage(problem=problem, people=people.people(desk.engine), roles=tuple(ROLE_SCOPES))


def _person_page(
    desk: DeskDep,
    visit: Visit,
    person_id: int,
    *,
    notice: str | None = None,
    problem: str | None = None,
    new_token: str | None = None,
) -> PersonPage:
    account = account_of(desk, person_id)
    return PersonPage(
        person=account,
        notice=notice,
        problem=problem,
        new_token=new_token,
        tokens=people.tokens(desk.engine, person_id),
        now=database.now(desk.engine),
        events=people.events(desk.engine, subject_id=person_id, limit=50),
        roles=tuple(ROLE_SCOPES),
        scopes=tuple(sorted(ROLE_SCOPES[account.role])),
        own=visit.person.id == person_id,
    )
