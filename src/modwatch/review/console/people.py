"""Users: accounts, tokens and sessions, and the audit log of accounts."""

import datetime as dt
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Form, Query, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field, SecretStr, ValidationError

from modwatch.common.errors import ItemNotFoundError, QueueError
from modwatch.review import database
from modwatch.review.console.render import Page, render
from modwatch.review.console.request_context import (
    Context,
    ContextDep,
    PersonDep,
    Session,
    form_session,
    page_session,
    require,
)
from modwatch.review.console.schemas import (
    FormText,
    OptionalId,
    RecordId,
    RequestSchema,
    error_responses,
    problem_of,
)
from modwatch.review.events import Event, recent_events
from modwatch.review.people import access_tokens, accounts, changes, passwords, second_factor
from modwatch.review.people.access_tokens import Token
from modwatch.review.people.accounts import ROLE_SCOPES, Account, Moderator
from modwatch.review.people.passwords import LONGEST_PASSWORD, SHORTEST_PASSWORD
from modwatch.review.people.pseudonyms import LONGEST_PSEUDONYM

api = APIRouter(
    prefix="/api/v1/people",
    tags=["admin"],
    responses=error_responses(401, 403, 503),
    dependencies=[Depends(require("admin"))],
)

Role = Literal["moderator", "lead", "auditor", "ops", "admin"]

_Queues = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(max_length=200)
]


class NewPerson(RequestSchema):
    """A new account."""

    pseudonym: Annotated[str, Field(min_length=1, max_length=LONGEST_PSEUDONYM)]
    role: Role


class PersonChange(RequestSchema):
    """Changes to an account; fields that are left out stay as they are."""

    role: Role | None = None
    queues: _Queues | Literal["all"] | None = None
    disabled: bool | None = None
    second_factor: Annotated[
        Literal["reset"] | None, Field(description="Take it away: the device is lost.")
    ] = None
    password: Annotated[SecretStr, Field(max_length=LONGEST_PASSWORD)] | None = None


class TokenRequest(RequestSchema):
    """A new token."""

    name: Annotated[str | None, Field(max_length=100)] = None
    days: Annotated[int | None, Field(ge=1, le=3_650, description="Null: until revoked.")] = None
    scopes: Annotated[tuple[str, ...], Field(max_length=20)] | None = None


class IssuedSchema(BaseModel):
    """An issued token."""

    token: str = Field(description="Returned only here.")


@api.get("")
def read_people(context: ContextDep) -> list[Account]:
    """Return all accounts."""
    return accounts.people(context.engine)


@api.post("", status_code=201, responses=error_responses(413, 422))
def create_person(request: NewPerson, context: ContextDep, person: PersonDep) -> Account:
    """Create an account, or return the one of this pseudonym and role."""
    made = accounts.create_moderator(
        context.engine, request.pseudonym, request.role, actor_id=person.id
    )
    return account_of(context, made.id)


@api.get("/events", responses=error_responses(422))
def read_events(
    context: ContextDep,
    before: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> list[Event]:
    """Return changes of accounts and exports, newest first."""
    return recent_events(context.engine, before=before, limit=limit)


@api.get("/{person_id}", responses=error_responses(404, 422))
def read_person(person_id: RecordId, context: ContextDep) -> Account:
    """Return one account."""
    return account_of(context, person_id)


@api.patch("/{person_id}", responses=error_responses(404, 413, 422))
def change_person(
    person_id: RecordId, request: PersonChange, context: ContextDep, person: PersonDep
) -> Account:
    """Change role, queues or password, disable or enable."""
    account_of(context, person_id)
    change_account(context, person, person_id, request)
    return account_of(context, person_id)


@api.get("/{person_id}/tokens", responses=error_responses(404, 422))
def read_tokens(person_id: RecordId, context: ContextDep) -> list[Token]:
    """Return a person's tokens and sessions."""
    account_of(context, person_id)
    return access_tokens.tokens(context.engine, person_id)


@api.post("/{person_id}/tokens", status_code=201, responses=error_responses(404, 413, 422))
def issue_token(
    person_id: RecordId, request: TokenRequest, context: ContextDep, person: PersonDep
) -> IssuedSchema:
    """Issue a token; it is returned only here."""
    account_of(context, person_id)
    token = access_tokens.issue_token(
        context.engine,
        person_id,
        lifetime=None if request.days is None else dt.timedelta(days=request.days),
        name=request.name,
        scopes=request.scopes,
        actor_id=person.id,
    )
    return IssuedSchema(token=token)


@api.delete("/{person_id}/tokens/{token_id}", status_code=204, responses=error_responses(404, 422))
def revoke(person_id: RecordId, token_id: RecordId, context: ContextDep, person: PersonDep) -> None:
    """Revoke a token or session of a person, and all sessions opened with it."""
    revoke_tokens(context, person, person_id, [token_id])


def account_of(context: Context, person_id: int) -> Account:
    """Return an account. Raises `ItemNotFoundError` for an unknown id."""
    for account in accounts.people(context.engine):
        if account.id == person_id:
            return account
    raise ItemNotFoundError(f"person {person_id} does not exist; see the list of people")


def change_account(
    context: Context, actor: Moderator, person_id: int, change: PersonChange
) -> None:
    """Apply a change. Raises `QueueError` for one's own role or account: an admin must remain."""
    if actor.id == person_id and (change.disabled or change.role not in (None, actor.role)):
        raise QueueError("you cannot disable yourself or change your own role; ask another admin")
    engine, by = context.engine, {"actor_id": actor.id}
    if change.role is not None:
        changes.change_role(engine, person_id, change.role, **by)
    if change.queues is not None:
        queues = None if change.queues == "all" else change.queues
        changes.set_queues(engine, person_id, queues, lanes=context.options.lanes, **by)
    if change.password is not None:
        passwords.set_password(engine, person_id, change.password.get_secret_value(), **by)
    if change.second_factor is not None:
        second_factor.reset(engine, person_id, **by)
    if change.disabled is not None:
        (changes.disable if change.disabled else changes.enable)(engine, person_id, **by)


def revoke_tokens(context: Context, actor: Moderator, person_id: int, token_ids: list[int]) -> None:
    """Revoke tokens of a person. Raises `ItemNotFoundError` for a token of another person."""
    account_of(context, person_id)
    theirs = {token.id for token in access_tokens.tokens(context.engine, person_id)}
    for token_id in token_ids:
        if token_id not in theirs:
            raise ItemNotFoundError(f"person {person_id} has no token {token_id}; see the list")
        access_tokens.revoke_token_by_id(context.engine, token_id, actor_id=actor.id)


def revoke_access(session: Session, person_id: int, token_id: int | None) -> None:
    """Revoke one token or session of a person, or without an id all their sessions."""
    tokens = access_tokens.tokens(session.engine, person_id)
    sessions = [token.id for token in tokens if token.purpose == "session"]
    revoked = sessions if token_id is None else [token_id]
    revoke_tokens(session.context, session.person, person_id, revoked)


pages = APIRouter(include_in_schema=False)
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


@dataclass(frozen=True, kw_only=True)
class AuditLogPage(Page, template="audit_log.html"):
    """Changes of accounts, and exports."""

    events: list[Event]
    #: Last event of this page, if there are more; otherwise None.
    before: int | None


@pages.get("/admin")
def show_people(session: AdminSession) -> Response:
    """Return all accounts."""
    return _people(session)


@pages.post("/admin/people")
def add(session: AdminForm, pseudonym: FormText, role: FormText) -> Response:
    """Create an account, and show it."""
    try:
        made = accounts.create_moderator(
            session.engine, pseudonym, role, actor_id=session.person.id
        )
    except QueueError as exc:
        return _people(session, str(exc))
    return RedirectResponse(f"./people/{made.id}", 303)


@pages.get("/admin/people/{person_id}")
def show_person(person_id: RecordId, session: AdminSession) -> Response:
    """Return one account, its tokens and its events."""
    return _person(session, person_id)


@pages.post("/admin/people/{person_id}")
def change_from_form(
    person_id: RecordId,
    session: AdminForm,
    role: FormText = "",
    queues: Annotated[str | None, Form(max_length=20_000)] = None,
    disabled: FormText = "",
    password: Annotated[str, Form(max_length=LONGEST_PASSWORD)] = "",
    second_factor: FormText = "",
) -> Response:
    """Change the role, queues, password, second factor or access, whichever the form names."""
    asked: dict[str, Any] = {
        "role": role or None,
        "disabled": disabled == "yes" if disabled else None,
        "password": password or None,
        "second_factor": second_factor or None,
    }
    if queues is not None:
        asked["queues"] = tuple(filter(None, map(str.strip, queues.splitlines()))) or "all"
    try:
        change = PersonChange.model_validate(asked)
        change_account(session.context, session.person, person_id, change)
    except (QueueError, ValidationError) as exc:
        return _person(session, person_id, problem=problem_of(exc))
    return RedirectResponse(f"./{person_id}?notice=saved", 303)


@pages.post("/admin/people/{person_id}/tokens")
def issue_and_show(
    person_id: RecordId,
    session: AdminForm,
    name: FormText = "",
    days: Annotated[int | None, Form(ge=1, le=3_650)] = None,
    scopes: Annotated[list[str] | None, Form(max_length=20)] = None,
) -> Response:
    """Issue a token, and show it."""
    asked = {"name": name.strip() or None, "days": days, "scopes": scopes or None}
    try:
        request = TokenRequest.model_validate(asked)
        issued = issue_token(person_id, request, session.context, session.person)
    except (QueueError, ValidationError) as exc:
        return _person(session, person_id, problem=problem_of(exc))
    return _person(session, person_id, new_token=issued.token)


@pages.post("/admin/people/{person_id}/revoke")
def revoke_of_person(
    person_id: RecordId, session: AdminForm, token_id: OptionalId = None
) -> Response:
    """Revoke one token or session of a person, or without an id all their sessions."""
    revoke_access(session, person_id, token_id)
    return RedirectResponse(f"../{person_id}?notice=revoked", 303)


@pages.get("/admin/events")
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
    page = PeoplePage(problem=problem, people=accounts.people(session.engine))
    return render(page, session)


def _person(
    session: Session, person_id: int, *, problem: str | None = None, new_token: str | None = None
) -> Response:
    account = account_of(session.context, person_id)
    page = PersonPage(
        person=account,
        problem=problem,
        new_token=new_token,
        tokens=access_tokens.tokens(session.engine, person_id),
        now=database.now(session.engine),
        events=recent_events(session.engine, subject_id=person_id, limit=50),
        scopes=tuple(sorted(ROLE_SCOPES[account.role])),
        second_factor=second_factor.enrolled(session.engine, person_id),
        own=session.person.id == person_id,
    )
    return render(page, session, 201 if new_token else None)
