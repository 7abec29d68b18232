"""Who is asking, and the sessions by which browsers ask."""

import datetime as dt
import secrets

from sqlalchemy import Connection, Engine, Interval, bindparam, func, select, update

from modwatch.errors import AccessDeniedError
from modwatch.review.database import at_once
from modwatch.review.digests import digest_of
from modwatch.review.people.access_tokens import (
    Purpose,
    ends,
    holds,
    store_token,
)
from modwatch.review.people.accounts import (
    Moderator,
    lock_person,
    moderator_of,
    select_moderator,
)
from modwatch.review.tables import access_token, moderator

#: How long a session that was replaced still holds, for requests that are under way.
OVERLAP = dt.timedelta(minutes=1)

_t = access_token.c

#: One query, since it runs with every request.
_WHO = (
    select_moderator()
    .add_columns(_t.scopes.label("token_scopes"))
    .join(access_token)
    .where(
        _t.digest == bindparam("digest"),
        _t.purpose == bindparam("purpose"),
        holds,
        moderator.c.disabled_at.is_(None),
    )
)

_DUE = (
    select(_t.moderator_id, _t.digest, _t.expires_at, _t.scopes)
    .join(moderator)
    .where(
        _t.digest == bindparam("digest"),
        _t.purpose == "session",
        _t.created_at <= func.now() - bindparam("after", type_=Interval),
        _t.revoked_at.is_(None),
        holds,
        moderator.c.disabled_at.is_(None),
    )
)


def authenticate(engine: Engine, token: str, purpose: Purpose = "api") -> Moderator:
    """Return the person of `token`.

    Raises `AccessDeniedError` if it is unknown or over, or its person disabled.
    """
    rows = at_once(engine, _WHO, {"digest": digest_of(token), "purpose": purpose})
    if not rows:
        raise AccessDeniedError(
            "the token is unknown, expired or revoked; ask an admin for another"
        )
    return moderator_of(rows[0])


def open_session(engine: Engine, token: str, lifetime: dt.timedelta) -> str:
    """Return a session token for the person of an API `token`.

    It never outlives that token, and may do what that token may. Raises `AccessDeniedError`.
    """
    person = authenticate(engine, token)
    digest = digest_of(token)
    with engine.begin() as connection:
        lock_person(connection, person.id)
        held = connection.execute(
            select(_t.expires_at, _t.scopes)
            .join(moderator)
            .where(_t.digest == digest, holds, moderator.c.disabled_at.is_(None))
        ).one_or_none()
        if held is None:  # revoked since
            raise AccessDeniedError("the token was revoked; ask an admin for another")
        until = func.least(ends(lifetime), held.expires_at)  # LEAST ignores null
        session, _ = store_token(
            connection,
            person.id,
            "session",
            until,
            scopes=held.scopes,
            opened_with=digest,
            prefix=_new_seed(),
        )
    return session


def session_seed(session: str) -> str:
    """Return the part of a session token that its rotations keep, and that nobody can guess.

    What is derived from it, as against forged forms, holds in a tab that another tab's rotation
    left behind.

    >>> session_seed("mw_seed.secret") == session_seed("mw_seed.another")
    True
    """
    return session.partition(".")[0]


def begin_session(connection: Connection, moderator_id: int, lifetime: dt.timedelta) -> str:
    """Return a session token for a person who proved who they are, under `lock_person`."""
    until = ends(lifetime)
    return store_token(connection, moderator_id, "session", until, prefix=_new_seed())[0]


def rotate_session(
    engine: Engine, session: str, lifetime: dt.timedelta, after: dt.timedelta
) -> str | None:
    """Return the token that replaces a session older than `after`; None: keep the one you have.

    The old one holds a minute more. The new one ends when the old one would have ended, or after
    `lifetime` if that is sooner: no rotation lengthens a session. One that is over, or replaced
    already, is not replaced.
    """
    values = {"digest": digest_of(session), "after": after}
    if not (rows := at_once(engine, _DUE, values)):
        return None
    with engine.begin() as connection:
        lock_person(connection, rows[0]["moderator_id"])
        row = connection.execute(_DUE, values).one_or_none()
        if row is None:  # another request of the same browser came first, or a log-out
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
            func.least(row.expires_at, ends(lifetime)),
            scopes=row.scopes,
            opened_with=row.digest,
            prefix=f"{session_seed(session)}.",
        )[0]


def _new_seed() -> str:
    return f"mw_{secrets.token_urlsafe(32)}."
