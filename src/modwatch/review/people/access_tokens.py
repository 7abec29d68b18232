"""Access tokens: issued once, stored as a digest, revoked together with the sessions they opened.

A token is 32 random bytes and cannot be guessed from its digest, however fast the hash is. So
SHA-256 is enough; a hash that is slow on purpose, like Argon2 for passwords, would only slow down
every request.
"""

import datetime as dt
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    text,
    true,
    update,
)

from modwatch.common.errors import QueueError
from modwatch.review.database import at_once, digest_of
from modwatch.review.events import record_event
from modwatch.review.people.accounts import lock_person, usable_scopes
from modwatch.review.tables import access_token

LONGEST_NAME = 100

Purpose = Literal["api", "session"]

_t = access_token.c

#: Whether a row of `access_token` is valid now. A replaced session is valid for a while longer: its
#: `revoked_at` is in the future.
is_valid = and_(
    or_(_t.expires_at.is_(None), _t.expires_at > func.now()),
    or_(_t.revoked_at.is_(None), _t.revoked_at > func.now()),
)

#: Revokes a session, those that it replaced or that replaced it, and all opened with them.
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
    """The description of a token, without its secret."""

    id: int
    name: str | None
    #: api | session
    purpose: str
    #: None: all of the person's role.
    scopes: frozenset[str] | None
    created_at: dt.datetime
    #: None: valid until revoked.
    expires_at: dt.datetime | None
    revoked_at: dt.datetime | None

    def state(self, now: dt.datetime) -> Literal["valid", "revoked", "expired"]:
        """Return the state at a time."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "valid"


def issue_token(
    engine: Engine,
    moderator_id: int,
    *,
    lifetime: dt.timedelta | None = None,
    name: str | None = None,
    scopes: Iterable[str] | None = None,
    actor_id: int | None = None,
) -> str:
    """Return a new API token of `moderator_id`, which is stored as a digest only.

    It is valid for `lifetime`, or until it is revoked. `scopes` that the person's role lacks are
    ignored; None: all of the role, also after it changes. `name` describes the token. Raises
    `QueueError` for an unknown or disabled person, a lifetime that is not positive, or an invalid
    name or scope.
    """
    if name is not None and not (0 < len(name) <= LONGEST_NAME and name.isprintable()):
        raise QueueError(
            f"a token's name must have 1 to {LONGEST_NAME} printable characters; choose another"
        )
    if lifetime is not None and lifetime <= dt.timedelta(0):
        days = lifetime / dt.timedelta(days=1)
        raise QueueError(f"the lifetime of a token must be more than 0 days, got {days:g}")
    with engine.begin() as connection:
        person = lock_person(connection, moderator_id)
        if person["disabled_at"] is not None:
            raise QueueError(f"moderator {moderator_id} is disabled; enable the account first")
        stored = usable_scopes(person["role"], scopes)
        until = None if lifetime is None else func.now() + lifetime
        token, token_id = store_token(
            connection, moderator_id, "api", until, scopes=stored, name=name
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
    """Return a person's API tokens, including invalid ones, and open sessions, newest first."""
    columns = (_t.id, _t.name, _t.purpose, _t.scopes, _t.created_at, _t.expires_at, _t.revoked_at)
    statement = (
        select(*columns)
        .where(_t.moderator_id == moderator_id, or_(_t.purpose == "api", is_valid))
        .order_by(_t.id.desc())
    )
    return [
        Token(**{**row, "scopes": None if row["scopes"] is None else frozenset(row["scopes"])})
        for row in at_once(engine, statement)
    ]


def revoke_token(engine: Engine, token: str) -> None:
    """Revoke `token`, of either purpose, and every session that it opened or replaced.

    An unknown token is ignored, so that logging out twice is not an error.
    """
    with engine.begin() as connection:
        _revoke(connection, _t.digest == digest_of(token), actor_id=None, own=True)


def revoke_token_by_id(engine: Engine, token_id: int, *, actor_id: int | None = None) -> None:
    """Revoke the token of this id, and every session that it opened or replaced.

    Raises `QueueError` for an unknown id.
    """
    with engine.begin() as connection:
        if not _revoke(connection, _t.id == token_id, actor_id=actor_id):
            raise QueueError(f"token {token_id} does not exist; list the person's tokens")


def end_sessions(connection: Connection, moderator_id: int) -> None:
    """End all sessions of a person. Call `lock_person` first."""
    _end(connection, moderator_id, _t.purpose == "session")


def end_access(connection: Connection, moderator_id: int) -> tuple[list[int], int]:
    """End all API tokens and sessions of a person; return ids of tokens, and number of sessions.

    Call `lock_person` first.
    """
    rows = _end(connection, moderator_id, true())
    tokens = sorted(row.id for row in rows if row.purpose == "api")
    return tokens, len(rows) - len(tokens)


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
    """Return a new token and its id. Call `lock_person` first."""
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


def remove_tokens(connection: Connection, age: dt.timedelta) -> int:
    """Delete the tokens and sessions that ended longer ago; return how many.

    Whatever was opened with one of them has ended, too: at the latest with it.
    """
    ended = func.least(_t.expires_at, _t.revoked_at)  # LEAST ignores null
    return connection.execute(delete(access_token).where(ended < func.now() - age)).rowcount


def _end(connection: Connection, moderator_id: int, which: ColumnElement[bool]) -> Sequence[Any]:
    mine = and_(_t.moderator_id == moderator_id, which, is_valid)
    ended = update(access_token).where(mine).values(revoked_at=func.now())
    return connection.execute(ended.returning(_t.id, _t.purpose)).all()


def _revoke(connection: Connection, which: Any, *, actor_id: int | None, own: bool = False) -> bool:
    columns = (_t.digest, _t.id, _t.name, _t.moderator_id, _t.purpose)
    row = connection.execute(select(*columns).where(which)).one_or_none()
    if row is None:
        return False
    lock_person(connection, row.moderator_id)
    connection.execute(_END_FAMILY, {"digest": row.digest})
    if row.purpose == "api" or not own:  # a log-out is not a change of the account
        record_event(
            connection,
            "revoke_token",
            actor_id=row.moderator_id if own else actor_id,
            subject_id=row.moderator_id,
            token=row.id,
            name=row.name,
        )
    return True
