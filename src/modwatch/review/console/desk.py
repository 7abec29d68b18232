"""What every request needs: the database, the options, and who asks."""

import datetime as dt
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import Engine

from modwatch.errors import AccessDeniedError
from modwatch.review.people import Moderator, authenticate
from modwatch.review.queue import LEASE_LENGTH


@dataclass(frozen=True, kw_only=True)
class ConsoleOptions:
    """What may differ between installations."""

    #: How long a moderator may hold an item.
    lease_length: dt.timedelta = LEASE_LENGTH
    #: How long a login lasts.
    session_length: dt.timedelta = dt.timedelta(hours=12)
    #: Send cookies over HTTPS only; set it wherever the console is not on loopback.
    secure_cookies: bool = False


@dataclass(frozen=True, kw_only=True)
class Desk:
    """What the application was made with."""

    engine: Engine
    options: ConsoleOptions


def _desk(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


DeskDep = Annotated[Desk, Depends(_desk)]

_bearer = HTTPBearer(auto_error=False, description="A token from `people.issue_token`.")


def _person(
    desk: DeskDep,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> Moderator:
    if credentials is None:
        raise AccessDeniedError("no bearer token came; send one in the Authorization header")
    return authenticate(desk.engine, credentials.credentials)


PersonDep = Annotated[Moderator, Depends(_person)]


def _reviewer(person: PersonDep) -> Moderator:
    if not person.reviews:
        raise HTTPException(403, f"the role {person.role} may not decide; ask a lead")
    return person


ReviewerDep = Annotated[Moderator, Depends(_reviewer)]
