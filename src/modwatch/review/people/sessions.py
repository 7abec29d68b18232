"""Authentication by token, and the sessions of browsers."""

import datetime as dt
import secrets
from typing import Literal

from sqlalchemy import Connection, Engine, Interval, bindparam, func, select, update

from modwatch.common.errors import AccessDeniedError
from modwatch.review.database import at_once, digest_of
from modwatch.review.events import record_event
from modwatch.review.people.access_tokens import Purpose, is_valid, store_token
from modwatch.review.people.accounts import Moderator, lock_person, moderator_of, select_moderator
from modwatch.review.people.throttle import network
from modwatch.review.tables import access_token, moderator

SESSION_LENGTH = dt.timedelta(hours=12)

#: A session in use gets a new token this long after the last one.
ROTATED_AFTER = dt.timedelta(hours=1)

#: How long a session is still valid after its rotation, for requests in progress.
OVERLAP = dt.timedelta(minutes=1)

_t = access_token.c

_VALID = (_t.digest == bindparam("digest"), is_valid, moderator.c.disabled_at.is_(None))

#: A single query, because it runs with every request.
_WHO = (
    select_moderator()
    .add_columns(_t.scopes.label("token_scopes"))
    .join(access_token)
    .where(_t.purpose == bindparam("purpose"), *_VALID)
)

_DUE = (
    select(_t.moderator_id, _t.digest, _t.expires_at, _t.scopes)
    .join(moderator)
    .where(
        _t.purpose == "session",
        _t.created_at <= func.now() - bindparam("after", type_=Interval),
        _t.revoked_at.is_(None),
        *_VALID,
    )
)


def authenticate(engine: Engine, token: str, purpose: Purpose = "api") -> Moderator:
    """Return the person of `token`.

    Raises `AccessDeniedError` if it is unknown, expired or revoked, or the account is disabled.
    """
    rows = at_once(engine, _WHO, {"digest": digest_of(token), "purpose": purpose})
    if not rows:
        raise AccessDeniedError(
            "the token is unknown, expired or revoked; ask an admin for a new one"
        )
    return moderator_of(rows[0])


def open_session(engine: Engine, token: str, *, address: str = "") -> str:
    """Return a session token for the person of an API `token`, who logs in from `address`.

    It has the scopes of that token and ends with it at the latest. Raises `AccessDeniedError`.
    """
    person = authenticate(engine, token)
    digest = digest_of(token)
    with engine.begin() as connection:
        lock_person(connection, person.id)
        valid = select(_t.expires_at, _t.scopes).join(moderator).where(*_VALID)
        api_token = connection.execute(valid, {"digest": digest}).one_or_none()
        if api_token is None:  # revoked in the meantime
            raise AccessDeniedError("the token was revoked; ask an admin for a new one")
        record_log_in(connection, person.id, "token", address)
        until = func.least(func.now() + SESSION_LENGTH, api_token.expires_at)  # LEAST ignores null
        session, _ = store_token(
            connection,
            person.id,
            "session",
            until,
            scopes=api_token.scopes,
            opened_with=digest,
            prefix=_new_seed(),
        )
    return session


def session_seed(session: str) -> str:
    """Return the part of a session token that rotation keeps, and that no one can guess.

    CSRF tokens derived from it stay valid in a tab after another tab's request rotated the session.

    >>> session_seed("mw_seed.secret") == session_seed("mw_seed.another")
    True
    """
    return session.partition(".")[0]


def record_log_in(
    connection: Connection,
    moderator_id: int,
    by: Literal["password", "password and code", "token", "provider"],
    address: str,
) -> None:
    """Record a log-in from `address`, in the transaction that begins the session."""
    record_event(
        connection,
        "log_in",
        actor_id=moderator_id,
        subject_id=moderator_id,
        by=by,
        network=network(address),
    )


def begin_session(
    connection: Connection, moderator_id: int, *, scopes: list[str] | None = None
) -> str:
    """Return a session token for a person who was authenticated. Call `lock_person` first."""
    until = func.now() + SESSION_LENGTH
    return store_token(
        connection, moderator_id, "session", until, scopes=scopes, prefix=_new_seed()
    )[0]


def rotate_session(engine: Engine, session: str, after: dt.timedelta = ROTATED_AFTER) -> str | None:
    """Return the token that replaces a session older than `after`; None: keep the current token.

    The old token is valid for one more minute. The new one ends when the old one would have ended,
    so a rotation never extends a session. A session that is invalid or was replaced already is not
    replaced.
    """
    values = {"digest": digest_of(session), "after": after}
    if not (rows := at_once(engine, _DUE, values)):
        return None
    with engine.begin() as connection:
        lock_person(connection, rows[0]["moderator_id"])
        row = connection.execute(_DUE, values).one_or_none()
        if row is None:  # another request of the same browser was first, or a log-out
            return None
        connection.execute(
            update(access_token)
            .where(_t.digest == row.digest)
            .values(revoked_at=func.now() + OVERLAP)
        )
        return store_token(
            connection,
            row.moderator_id,
            "session",
            row.expires_at,
            scopes=row.scopes,
            opened_with=row.digest,
            prefix=f"{session_seed(session)}.",
        )[0]


def _new_seed() -> str:
    return f"mw_{secrets.token_urlsafe(32)}."
