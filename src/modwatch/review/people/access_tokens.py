"""Tokens: issued once, known by their digest, revoked with all that they opened.

A token is 32 random bytes, so nobody can guess one from a stolen digest however fast the hash is:
SHA-256 is enough, and one that is slow on purpose (Argon2, for passwords that people choose) would
cost every request milliseconds for nothing.
"""

import datetime as dt
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Engine, and_, delete, func, insert, or_, select, text, update

from modwatch.errors import QueueError
from modwatch.review.digests import digest_of
from modwatch.review.people.account_events import record_event
from modwatch.review.people.accounts import lock_person
from modwatch.review.people.scopes import usable
from modwatch.review.tables import access_token

LONGEST_NAME = 100

Purpose = Literal["api", "session"]

_t = access_token.c

#: Whether a row of `access_token` holds now. One that was replaced holds a while longer:
#: `revoked_at` lies ahead then.
holds = and_(
    or_(_t.expires_at.is_(None), _t.expires_at > func.now()),
    or_(_t.revoked_at.is_(None), _t.revoked_at > func.now()),
)

#: A session, those that it replaced or that replaced it, and all that was opened with them.
_END_FAMILY = text(
    """
    WITH RECURSIVE older AS (
        SELECT digest, opened_with, purpose FROM access_token WHERE digest = :digest
        UNION
        SELECT t.digest, t.opened_with, t.purpose
        FROM access_token t JOIN older ON t.digest = older.opened_with
        WHERE older.purpose = 'session' AND t.purpose = 'session'
    ), family AS (
        SELECT digest FROM older
        UNION
        SELECT t.digest FROM access_token t JOIN family ON t.opened_with = family.digest
    )
    UPDATE access_token t SET revoked_at = LEAST(t.revoked_at, now())
    FROM family WHERE t.digest = family.digest
    """
)


@dataclass(frozen=True, kw_only=True)
class Token:
    """A token as its owner or an admin sees it; nobody can use it from this."""

    id: int
    name: str | None
    #: api | session
    purpose: str
    #: None: all that the person's role may.
    scopes: frozenset[str] | None
    created_at: dt.datetime
    #: None: it holds until it is revoked.
    expires_at: dt.datetime | None
    revoked_at: dt.datetime | None


def issue_token(
    engine: Engine,
    moderator_id: int,
    *,
    lifetime: dt.timedelta | None = None,
    name: str | None = None,
    scopes: Iterable[str] | None = None,
    actor_id: int | None = None,
) -> str:
    """Return a new API token of `moderator_id`; it is shown this once and stored as a digest.

    It holds for `lifetime`, or until it is revoked. `scopes` beyond those of the person's role are
    left out; None: all of the role, whatever it may become. `name` tells the token from others.
    Raises `QueueError` for an unknown or disabled person, or an unusable name or scope.
    """
    _check_name(name)
    with engine.begin() as connection:
        person = lock_person(connection, moderator_id)
        if person["disabled_at"] is not None:
            raise QueueError(f"moderator {moderator_id} is disabled; enable the account first")
        stored = usable(person["role"], scopes)
        token, token_id = store_token(
            connection, moderator_id, "api", ends(lifetime), scopes=stored, name=name
        )
        record_event(
            connection,
            "issue_token",
            actor_id=actor_id,
            subject_id=moderator_id,
            token=token_id,
            name=name,
            scopes=stored,
        )
    return token


def tokens(engine: Engine, moderator_id: int) -> list[Token]:
    """Return a person's API tokens, the ended ones too, and open sessions; the newest first."""
    columns = (_t.id, _t.name, _t.purpose, _t.scopes, _t.created_at, _t.expires_at, _t.revoked_at)
    statement = (
        select(*columns)
        .where(_t.moderator_id == moderator_id, or_(_t.purpose == "api", holds))
        .order_by(_t.id.desc())
    )
    with engine.connect() as connection:
        rows = connection.execute(statement).mappings().all()
    return [
        Token(**{**row, "scopes": None if row["scopes"] is None else frozenset(row["scopes"])})
        for row in rows
    ]


def revoke_token(engine: Engine, token: str) -> None:
    """Revoke `token`, of either purpose, and every session that it opened or replaced.

    An unknown one is no error: to log out twice is none.
    """
    with engine.begin() as connection:
        _revoke(connection, _t.digest == digest_of(token), actor_id=None, own=True)


def revoke_token_by_id(engine: Engine, token_id: int, *, actor_id: int | None = None) -> None:
    """Revoke the token of this id, and every session that it opened or replaced.

    Raises `QueueError` if there is no such token.
    """
    with engine.begin() as connection:
        if not _revoke(connection, _t.id == token_id, actor_id=actor_id):
            raise QueueError(f"there is no token {token_id}; list the person's tokens")


def end_sessions(connection: Connection, moderator_id: int) -> None:
    """End every session of a person, under `lock_person`."""
    mine = and_(_t.moderator_id == moderator_id, _t.purpose == "session", holds)
    connection.execute(update(access_token).where(mine).values(revoked_at=func.now()))


def forget_sessions(engine: Engine, older: dt.timedelta) -> int:
    """Return how many sessions were deleted, all of them over for longer than `older`.

    What replaced a session ends no later, so nothing is left that refers to a deleted row.
    """
    over = and_(_t.purpose == "session", _t.expires_at < func.now() - older)
    with engine.begin() as connection:
        return connection.execute(delete(access_token).where(over)).rowcount


def store_token(
    connection: Connection,
    moderator_id: int,
    purpose: Purpose,
    expires_at: Any,
    *,
    scopes: list[str] | None = None,
    name: str | None = None,
    opened_with: bytes | None = None,
    prefix: str = "mw_",
) -> tuple[str, int]:
    """Return a new token and its id, under `lock_person`."""
    token = f"{prefix}{secrets.token_urlsafe(32)}"
    token_id = connection.execute(
        insert(access_token)
        .values(
            digest=digest_of(token),
            moderator_id=moderator_id,
            purpose=purpose,
            expires_at=expires_at,
            scopes=scopes,
            name=name,
            opened_with=opened_with,
        )
        .returning(_t.id)
    ).scalar_one()
    return token, token_id


def ends(lifetime: dt.timedelta | None) -> Any:
    """Return when something that begins now is over."""
    return None if lifetime is None else func.now() + lifetime


def _revoke(connection: Connection, which: Any, *, actor_id: int | None, own: bool = False) -> bool:
    columns = (_t.digest, _t.id, _t.name, _t.moderator_id, _t.purpose)
    row = connection.execute(select(*columns).where(which)).one_or_none()
    if row is None:
        return False
    lock_person(connection, row.moderator_id)
    connection.execute(_END_FAMILY, {"digest": row.digest})
    if row.purpose == "api" or not own:  # that people log out is no change of an account
        record_event(
            connection,
            "revoke_token",
            actor_id=row.moderator_id if own else actor_id,
            subject_id=row.moderator_id,
            token=row.id,
            name=row.name,
        )
    return True


def _check_name(name: str | None) -> None:
    if name is not None and not (0 < len(name) <= LONGEST_NAME and name.isprintable()):
        raise QueueError(
            f"a token's name has 1 to {LONGEST_NAME} printable characters; choose another"
        )
