"""Users: accounts, their tokens and sessions, and the audit log."""

import datetime as dt
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Query, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from modwatch.common.errors import QueueError
from modwatch.review import database, people
from modwatch.review.console.api import RecordId
from modwatch.review.console.api import people as api
from modwatch.review.console.forms import FormText, OptionalId, problem_of
from modwatch.review.console.render import Page, render
from modwatch.review.console.request_context import (
    Session,
    form_session,
    page_session,
)
from modwatch.review.events import Event, recent_events
from modwatch.review.people import (
    LONGEST_PASSWORD,
    LONGEST_PSEUDONYM,
    ROLE_SCOPES,
    SHORTEST_PASSWORD,
    Account,
    Token,
    second_factor,
)

router = APIRouter(include_in_schema=False)

AdminSession = Annotated[Session, Depends(page_session("admin"))]
AdminForm = Annotated[Session, Depends(form_session("admin"))]

_EVENTS_PER_PAGE = 100


@dataclass(frozen=True, kw_only=True)
class PeoplePage(Page, template="people.html"):
    """All accounts, and the form for a new one."""

    problem: str | None
    people: list[Account]
    roles: tuple[str, ...] = tuple(ROLE_SCOPES)
    longest: int = LONGEST_PSEUDONYM


@dataclass(frozen=True, kw_only=True)
class PersonPage(Page, template="person.html"):
    """One account with its tokens and events."""

    person: Account
    problem: str | None
    #: A token that was just issued; shown only here.
    new_token: str | None
    tokens: list[Token]
    now: dt.datetime
    events: list[Event]
    #: Scopes that a token of this person may have.
    scopes: tuple[str, ...]
    second_factor: bool
    #: Whether it is the admin's own account.
    own: bool
    roles: tuple[str, ...] = tuple(ROLE_SCOPES)
    shortest_password: int = SHORTEST_PASSWORD
    longest_password: int = LONGEST_PASSWORD

    def state(self, token: Token) -> str:
        """Return the state of a token: valid, revoked or expired."""
        if token.revoked_at is not None:
            return "revoked"
        expired = token.expires_at is not None and token.expires_at <= self.now
        return "expired" if expired else "valid"


@dataclass(frozen=True, kw_only=True)
class AuditLogPage(Page, template="audit_log.html"):
    """Changes of accounts, and exports."""

    events: list[Event]
    #: Last event of this page, if there are more; otherwise None.
    before: int | None


@router.get("/admin")
def show_people(session: AdminSession) -> Response:
    """Return all accounts."""
    return _people(session)


@router.post("/admin/people")
def create(session: AdminForm, pseudonym: FormText, role: FormText) -> Response:
    """Create an account, and show it."""
    try:
        made = people.create_moderator(session.engine, pseudonym, role, actor_id=session.person.id)
    except QueueError as exc:
        return _people(session, str(exc))
    return RedirectResponse(f"./people/{made.id}", 303)


@router.get("/admin/people/{person_id}")
def show_person(person_id: RecordId, session: AdminSession) -> Response:
    """Return one account, its tokens and its events."""
    return _person(session, person_id)


@router.post("/admin/people/{person_id}")
def change(
    person_id: RecordId,
    session: AdminForm,
    role: FormText = "",
    queues: Annotated[str | None, Form(max_length=20_000)] = None,
    disabled: FormText = "",
    password: Annotated[str, Form(max_length=LONGEST_PASSWORD)] = "",
    second_factor: FormText = "",
) -> Response:
    """Change the role, queues, password, second factor or access, whichever the form names."""
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
    if second_factor:
        asked["second_factor"] = second_factor
    try:
        change = api.PersonChange.model_validate(asked)
        api.change_account(session.context, session.person, person_id, change)
    except (QueueError, ValidationError) as exc:
        return _person(session, person_id, 422, problem=problem_of(exc))
    return RedirectResponse(f"./{person_id}?notice=saved", 303)


@router.post("/admin/people/{person_id}/tokens")
def issue(
    person_id: RecordId,
    session: AdminForm,
    name: FormText = "",
    days: Annotated[int | None, Form(ge=1, le=3_650)] = None,
    scopes: Annotated[list[str] | None, Form(max_length=20)] = None,
) -> Response:
    """Issue a token, and show it."""
    api.account_of(session.context, person_id)
    try:
        token = people.issue_token(
            session.engine,
            person_id,
            lifetime=None if days is None else dt.timedelta(days=days),
            name=name.strip() or None,
            scopes=scopes or None,
            actor_id=session.person.id,
        )
    except QueueError as exc:
        return _person(session, person_id, 422, problem=str(exc))
    return _person(session, person_id, 201, new_token=token)


@router.post("/admin/people/{person_id}/revoke")
def revoke(person_id: RecordId, session: AdminForm, token_id: OptionalId = None) -> Response:
    """Revoke one token or session of a person, or without an id all their sessions."""
    tokens = people.tokens(session.engine, person_id)
    sessions = [each.id for each in tokens if each.purpose == "session"]
    revoked = sessions if token_id is None else [token_id]
    api.revoke_tokens(session.context, session.person, person_id, revoked)
    return RedirectResponse(f"../{person_id}?notice=revoked", 303)


@router.get("/admin/events")
def show_events(
    session: AdminSession,
    before: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
) -> Response:
    """Return changes of accounts and exports, newest first."""
    events = recent_events(session.engine, before=before, limit=_EVENTS_PER_PAGE)
    more = len(events) == _EVENTS_PER_PAGE
    page = AuditLogPage(events=events, before=events[-1].id if more else None)
    return render(page, session)


def _people(session: Session, problem: str | None = None) -> Response:
    page = PeoplePage(problem=problem, people=people.people(session.engine))
    return render(page, session, 422 if problem else 200)


def _person(
    session: Session,
    person_id: int,
    status: int = 200,
    *,
    problem: str | None = None,
    new_token: str | None = None,
) -> Response:
    account = api.account_of(session.context, person_id)
    page = PersonPage(
        person=account,
        problem=problem,
        new_token=new_token,
        tokens=people.tokens(session.engine, person_id),
        now=database.now(session.engine),
        events=recent_events(session.engine, subject_id=person_id, limit=50),
        scopes=tuple(sorted(ROLE_SCOPES[account.role])),
        second_factor=second_factor.enrolled(session.engine, person_id),
        own=session.person.id == person_id,
    )
    return render(page, session, status)
