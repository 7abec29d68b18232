"""The JSON of accounts, tokens and deliveries."""

import datetime as dt
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, SecretStr

from modwatch.review.console.shapes import Asked, FromRecord
from modwatch.review.people import LONGEST_PASSWORD, LONGEST_PSEUDONYM

Role = Literal["moderator", "lead", "auditor", "ops", "admin"]
_Queues = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(max_length=200)
]


class PersonShape(FromRecord):
    """An account; nothing that the person says about themselves."""

    id: int
    pseudonym: str
    role: str
    queues: frozenset[str] | None = Field(description="Null: all.")
    created_at: dt.datetime
    disabled_at: dt.datetime | None
    has_password: bool
    by_oidc: bool


class PeopleShape(BaseModel):
    """All accounts."""

    people: list[PersonShape]


class NewPerson(Asked):
    """An account to create."""

    pseudonym: Annotated[str, Field(min_length=1, max_length=LONGEST_PSEUDONYM)]
    role: Role


class PersonChange(Asked):
    """What to change of an account; what is left out stays."""

    role: Role | None = None
    queues: _Queues | Literal["all"] | None = None
    disabled: bool | None = None
    password: Annotated[SecretStr, Field(max_length=LONGEST_PASSWORD)] | None = None


class TokenRequest(Asked):
    """A token to issue."""

    name: Annotated[str | None, Field(max_length=100)] = None
    days: Annotated[int | None, Field(ge=1, le=3_650, description="Null: until revoked.")] = None
    scopes: Annotated[tuple[str, ...], Field(max_length=20)] | None = None


class IssuedShape(BaseModel):
    """A new token."""

    token: str = Field(description="Shown this once.")


class TokenShape(FromRecord):
    """A token or session, without what opens the door."""

    id: int
    name: str | None
    purpose: str
    scopes: frozenset[str] | None = Field(description="Null: all of the role.")
    created_at: dt.datetime
    expires_at: dt.datetime | None
    revoked_at: dt.datetime | None


class TokensShape(BaseModel):
    """A person's tokens and open sessions."""

    tokens: list[TokenShape]


class AccountEventShape(FromRecord):
    """Something that was done to an account, or that somebody took out."""

    id: int
    actor: str | None = Field(description="Null: the command line.")
    subject: str | None
    action: str
    details: Mapping[str, Any]
    happened_at: dt.datetime


class AccountEventsShape(BaseModel):
    """Events, newest first."""

    events: list[AccountEventShape]


class ChannelShape(FromRecord):
    """How a channel stands."""

    pending: int
    dead: int
    oldest_pending: dt.timedelta | None


class DeadLetterShape(FromRecord):
    """A message that was given up."""

    message_id: int
    key: str
    event: str
    attempts: int
    last_problem: str | None
    created_at: dt.datetime
    dead_at: dt.datetime


class DeliveriesShape(BaseModel):
    """What did not arrive yet, by channel; a channel without any is absent."""

    channels: dict[str, ChannelShape]


class DeadLettersShape(BaseModel):
    """Dead letters, oldest first."""

    dead_letters: list[DeadLetterShape]


class ResendRequest(Asked):
    """Which dead letters of a channel to send again; null: all."""

    channel: Annotated[str, Field(min_length=1, max_length=200)]
    ids: (
        Annotated[tuple[Annotated[int, Field(ge=1, le=2**63 - 1)], ...], Field(max_length=1_000)]
        | None
    ) = None


class ResentShape(BaseModel):
    """How many are due again."""

    resent: int
