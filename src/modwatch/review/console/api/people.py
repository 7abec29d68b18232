"""Accounts, tokens and the audit log of accounts."""

import datetime as dt
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field, SecretStr

from modwatch.common.errors import ItemNotFoundError, QueueError
from modwatch.review import people
from modwatch.review.console.api import RecordId
from modwatch.review.console.request_context import (
    Context,
    ContextDep,
    PersonDep,
    require,
)
from modwatch.review.console.schemas import RecordSchema, RequestSchema, error_responses
from modwatch.review.events import recent_events
from modwatch.review.people import (
    LONGEST_PASSWORD,
    LONGEST_PSEUDONYM,
    Account,
    Moderator,
    Token,
    second_factor,
)

router = APIRouter(
    prefix="/api/v1/people",
    tags=["admin"],
    responses=error_responses(401, 403, 503),
    dependencies=[Depends(require("admin"))],
)

Role = Literal["moderator", "lead", "auditor", "ops", "admin"]
_Queues = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(max_length=200)
]


class PeopleSchema(BaseModel):
    """All accounts."""

    people: list[Account]


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


class TokensSchema(BaseModel):
    """A person's tokens and sessions."""

    tokens: list[Token]


class EventSchema(RecordSchema):
    """A change of an account, or an export."""

    id: int
    actor: str | None = Field(description="Null: the command line.")
    subject: str | None
    action: str
    details: Mapping[str, Any]
    happened_at: dt.datetime


class EventsSchema(BaseModel):
    """Events, newest first."""

    events: list[EventSchema]


@router.get("")
def read_people(context: ContextDep) -> PeopleSchema:
    """Return all accounts."""
    return PeopleSchema(people=people.people(context.engine))


@router.post("", status_code=201, responses=error_responses(413, 422))
def create_person(request: NewPerson, context: ContextDep, person: PersonDep) -> Account:
    """Create an account, or return the one of this pseudonym and role."""
    made = people.create_moderator(
        context.engine, request.pseudonym, request.role, actor_id=person.id
    )
    return account_of(context, made.id)


@router.get("/events", responses=error_responses(422))
def read_events(
    context: ContextDep,
    before: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> EventsSchema:
    """Return changes of accounts and exports, newest first."""
    return EventsSchema(events=recent_events(context.engine, before=before, limit=limit))


@router.get("/{person_id}", responses=error_responses(404, 422))
def read_person(person_id: RecordId, context: ContextDep) -> Account:
    """Return one account."""
    return account_of(context, person_id)


@router.patch("/{person_id}", responses=error_responses(404, 413, 422))
def change_person(
    person_id: RecordId, request: PersonChange, context: ContextDep, person: PersonDep
) -> Account:
    """Change role, queues or password, disable or enable."""
    account_of(context, person_id)
    change_account(context, person, person_id, request)
    return account_of(context, person_id)


@router.get("/{person_id}/tokens", responses=error_responses(404, 422))
def read_tokens(person_id: RecordId, context: ContextDep) -> TokensSchema:
    """Return a person's tokens and sessions."""
    account_of(context, person_id)
    return TokensSchema(tokens=people.tokens(context.engine, person_id))


@router.post("/{person_id}/tokens", status_code=201, responses=error_responses(404, 413, 422))
def issue_token(
    person_id: RecordId, request: TokenRequest, context: ContextDep, person: PersonDep
) -> IssuedSchema:
    """Issue a token; it is returned only here."""
    account_of(context, person_id)
    token = people.issue_token(
        context.engine,
        person_id,
        lifetime=None if request.days is None else dt.timedelta(days=request.days),
        name=request.name,
        scopes=request.scopes,
        actor_id=person.id,
    )
    return IssuedSchema(token=token)


@router.delete(
    "/{person_id}/tokens/{token_id}", status_code=204, responses=error_responses(404, 422)
)
def revoke(person_id: RecordId, token_id: RecordId, context: ContextDep, person: PersonDep) -> None:
    """Revoke a token or session of a person, and all sessions opened with it."""
    revoke_tokens(context, person, person_id, [token_id])


def account_of(context: Context, person_id: int) -> Account:
    """Return an account. Raises `ItemNotFoundError` for an unknown id."""
    for account in people.people(context.engine):
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
        people.change_role(engine, person_id, change.role, **by)
    if change.queues is not None:
        queues = None if change.queues == "all" else change.queues
        people.set_queues(engine, person_id, queues, lanes=context.options.lanes, **by)
    if change.password is not None:
        people.set_password(engine, person_id, change.password.get_secret_value(), **by)
    if change.second_factor is not None:
        second_factor.reset(engine, person_id, **by)
    if change.disabled is not None:
        (people.disable if change.disabled else people.enable)(engine, person_id, **by)


def revoke_tokens(context: Context, actor: Moderator, person_id: int, token_ids: list[int]) -> None:
    """Revoke tokens of a person. Raises `ItemNotFoundError` for a token of another person."""
    account_of(context, person_id)
    theirs = {token.id for token in people.tokens(context.engine, person_id)}
    for token_id in token_ids:
        if token_id not in theirs:
            raise ItemNotFoundError(f"person {person_id} has no token {token_id}; see the list")
        people.revoke_token_by_id(context.engine, token_id, actor_id=actor.id)
