"""Accounts, tokens, and messages that did not arrive."""

import datetime as dt
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from modwatch.errors import ItemNotFoundError, QueueError
from modwatch.review import people
from modwatch.review.console.api import ItemId
from modwatch.review.console.api.admin_shapes import (
    AccountEventShape,
    AccountEventsShape,
    ChannelShape,
    DeadLetterShape,
    DeadLettersShape,
    DeliveriesShape,
    IssuedShape,
    NewPerson,
    PeopleShape,
    PersonChange,
    PersonShape,
    ResendRequest,
    ResentShape,
    TokenRequest,
    TokenShape,
    TokensShape,
)
from modwatch.review.console.desk import Desk, DeskDep, require
from modwatch.review.console.shapes import refusals
from modwatch.review.outbox.delivery_status import dead_letters, delivery_state, resend
from modwatch.review.people import Account, Moderator
from modwatch.review.queue.items import storable

router = APIRouter(prefix="/api/v1", tags=["admin"], responses=refusals(401, 403, 503))

AdminDep = Annotated[Moderator, Depends(require("admin"))]
DeliveriesDep = Annotated[Moderator, Depends(require("deliveries"))]

Channel = Annotated[str, Query(min_length=1, max_length=200)]


@router.get("/people")
def read_people(desk: DeskDep, person: AdminDep) -> PeopleShape:  # noqa: ARG001 - who may
    """Return all accounts."""
    found = people.people(desk.engine)
    return PeopleShape(people=[PersonShape.model_validate(each) for each in found])


@router.post("/people", status_code=201, responses=refusals(413, 422))
def create_person(request: NewPerson, desk: DeskDep, person: AdminDep) -> PersonShape:
    """Create an account, or return the one of this pseudonym and role."""
    made = people.create_moderator(desk.engine, request.pseudonym, request.role, actor_id=person.id)
    return PersonShape.model_validate(account_of(desk, made.id))


@router.get("/people/events", responses=refusals(422))
def read_events(
    desk: DeskDep,
    person: AdminDep,  # noqa: ARG001 - who may
    before: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> AccountEventsShape:
    """Return who changed which account, and who took what out."""
    found = people.events(desk.engine, before=before, limit=limit)
    return AccountEventsShape(events=[AccountEventShape.model_validate(each) for each in found])


@router.get("/people/{person_id}", responses=refusals(404, 422))
def read_person(person_id: ItemId, desk: DeskDep, person: AdminDep) -> PersonShape:  # noqa: ARG001
    """Return one account."""
    return PersonShape.model_validate(account_of(desk, person_id))


@router.patch("/people/{person_id}", responses=refusals(404, 413, 422))
def change_person(
    person_id: ItemId, request: PersonChange, desk: DeskDep, person: AdminDep
) -> PersonShape:
    """Change role, queues, password, or whether a person may come in."""
    account_of(desk, person_id)
    change_account(desk, person, person_id, request)
    return PersonShape.model_validate(account_of(desk, person_id))


@router.get("/people/{person_id}/tokens", responses=refusals(404, 422))
def read_tokens(person_id: ItemId, desk: DeskDep, person: AdminDep) -> TokensShape:  # noqa: ARG001
    """Return a person's tokens and open sessions."""
    account_of(desk, person_id)
    found = people.tokens(desk.engine, person_id)
    return TokensShape(tokens=[TokenShape.model_validate(each) for each in found])


@router.post("/people/{person_id}/tokens", status_code=201, responses=refusals(404, 413, 422))
def issue_token(
    person_id: ItemId, request: TokenRequest, desk: DeskDep, person: AdminDep
) -> IssuedShape:
    """Issue a token; it is shown this once."""
    account_of(desk, person_id)
    token = people.issue_token(
        desk.engine,
        person_id,
        lifetime=None if request.days is None else dt.timedelta(days=request.days),
        name=request.name,
        scopes=request.scopes,
        actor_id=person.id,
    )
    return IssuedShape(token=token)


@router.delete(
    "/people/{person_id}/tokens/{token_id}", status_code=204, responses=refusals(404, 422)
)
def revoke(person_id: ItemId, token_id: ItemId, desk: DeskDep, person: AdminDep) -> None:
    """Revoke a token or session of a person, and every session that it opened."""
    revoke_of(desk, person, person_id, [token_id])


@router.get("/deliveries")
def read_deliveries(desk: DeskDep, person: DeliveriesDep) -> DeliveriesShape:  # noqa: ARG001
    """Return how many messages wait or were given up."""
    found = delivery_state(desk.engine)
    return DeliveriesShape(
        channels={name: ChannelShape.model_validate(each) for name, each in found.items()}
    )


@router.get("/deliveries/dead", responses=refusals(422))
def read_dead_letters(
    desk: DeskDep,
    person: DeliveriesDep,  # noqa: ARG001 - who may
    channel: Channel,
    after: Annotated[int, Query(ge=0, le=2**63 - 1)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> DeadLettersShape:
    """Return what was given up, without what it says."""
    storable(channel, "name", "the channel")
    found = dead_letters(desk.engine, channel, after=after, limit=limit)
    return DeadLettersShape(dead_letters=[DeadLetterShape.model_validate(each) for each in found])


@router.post("/deliveries/resend", responses=refusals(413, 422))
def resend_dead(request: ResendRequest, desk: DeskDep, person: DeliveriesDep) -> ResentShape:  # noqa: ARG001
    """Make dead letters due again."""
    storable(request.channel, "name", "the channel")
    return ResentShape(resent=resend(desk.engine, request.channel, request.ids))


def account_of(desk: Desk, person_id: int) -> Account:
    """Return an account. Raises `ItemNotFoundError` when there is none of this id."""
    for account in people.people(desk.engine):
        if account.id == person_id:
            return account
    raise ItemNotFoundError(f"there is no person {person_id}; look at the list of people")


def change_account(desk: Desk, actor: Moderator, person_id: int, change: PersonChange) -> None:
    """Carry out a change; nobody shuts themselves out, or the last admin may be gone."""
    if actor.id == person_id and (change.disabled or change.role not in (None, actor.role)):
        raise QueueError("another admin must take your role or account from you; ask one")
    engine, by = desk.engine, {"actor_id": actor.id}
    if change.role is not None:
        people.change_role(engine, person_id, change.role, **by)
    if change.queues is not None:
        queues = None if change.queues == "all" else change.queues
        people.set_queues(engine, person_id, queues, lanes=desk.lanes, **by)
    if change.password is not None:
        people.set_password(engine, person_id, change.password.get_secret_value(), **by)
    if change.disabled is not None:
        (people.disable if change.disabled else people.enable)(engine, person_id, **by)


def revoke_of(desk: Desk, actor: Moderator, person_id: int, token_ids: list[int]) -> None:
    """Revoke tokens of a person. Raises `ItemNotFoundError` for a token of somebody else."""
    account_of(desk, person_id)
    theirs = {token.id for token in people.tokens(desk.engine, person_id)}
    for token_id in token_ids:
        if token_id not in theirs:
            raise ItemNotFoundError(
                f"person {person_id} has no token {token_id}; list their tokens"
            )
        people.revoke_token_by_id(desk.engine, token_id, actor_id=actor.id)
