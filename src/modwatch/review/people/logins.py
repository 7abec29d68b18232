"""Log-in by name and password."""

import datetime as dt
import logging

from sqlalchemy import Connection, Engine, RowMapping, select, update

from modwatch.errors import AccessDeniedError, ThrottledError
from modwatch.review.people import throttle
from modwatch.review.people.accounts import lock_person
from modwatch.review.people.credentials import end_sessions
from modwatch.review.people.history import record_event
from modwatch.review.people.names import name_key
from modwatch.review.people.passwords import hash_password, matches, outdated
from modwatch.review.people.sessions import begin_session
from modwatch.review.tables import moderator

logger = logging.getLogger(__name__)

_REFUSAL = "the name or the password is wrong; try again, or ask an admin for a new password"


def log_in(
    engine: Engine, pseudonym: str, password: str, *, address: str, lifetime: dt.timedelta
) -> str:
    """Return a session token for whoever knows the password; it ends after `lifetime`.

    Raises `ThrottledError` after too many failures, of the name or of the `address`, and
    `AccessDeniedError` otherwise: the same for an unknown name, a disabled person, one without a
    password, and a wrong password, after the same time.
    """
    attempt = _admit(engine, pseudonym, address)
    found = _found(engine, pseudonym)
    stored = found["password_hash"] if found is not None else None
    right = matches(stored, password)
    if found is None or stored is None or not right:
        raise AccessDeniedError(_REFUSAL)
    renewed = hash_password(password) if outdated(stored) else stored
    with engine.begin() as connection:
        person = lock_person(connection, found["id"])
        if person["password_hash"] != stored or person["disabled_at"] is not None:
            raise AccessDeniedError(_REFUSAL)  # also: changed while it was compared
        if renewed != stored:
            _store(connection, found["id"], renewed)
        session = begin_session(connection, found["id"], lifetime)
    throttle.forgive(engine, attempt)
    return session


def set_password(
    engine: Engine, moderator_id: int, password: str, *, actor_id: int | None = None
) -> None:
    """Give a person a new password; all their sessions end, and failures to log in are forgotten.

    Raises `QueueError` for an unknown person or an unusable password.
    """
    hashed = hash_password(password)
    with engine.begin() as connection:
        person = lock_person(connection, moderator_id)
        _store(connection, moderator_id, hashed)
        end_sessions(connection, moderator_id)
        record_event(connection, "set_password", actor_id=actor_id, subject_id=moderator_id)
    throttle.clear(engine, person["pseudonym"])


def change_password(engine: Engine, moderator_id: int, old: str, new: str, *, address: str) -> None:
    """Let a person give themselves the password `new`; all their sessions end.

    Raises `AccessDeniedError` if `old` is wrong, braked as log-in is, and `QueueError` for an
    unusable `new`.
    """
    with engine.connect() as connection:
        mine = moderator.c.id == moderator_id
        found = connection.execute(
            select(moderator.c.pseudonym, moderator.c.password_hash).where(mine)
        ).one_or_none()
    attempt = _admit(engine, "" if found is None else found.pseudonym, address)
    if found is None or not matches(found.password_hash, old):
        raise AccessDeniedError("the old password is wrong; try again, or ask an admin for one")
    throttle.forgive(engine, attempt)
    set_password(engine, moderator_id, new, actor_id=moderator_id)


def _admit(engine: Engine, pseudonym: str, address: str) -> throttle.Attempt:
    try:
        return throttle.admit(engine, pseudonym, address)
    except ThrottledError as refusal:
        logger.warning(
            "Attempts to log in are braked.",
            extra={"event": "login_throttled", "retry_after": refusal.retry_after},
        )
        raise


def _found(engine: Engine, pseudonym: str) -> RowMapping | None:
    name = name_key(pseudonym)
    if not name.isprintable():  # PostgreSQL takes neither NUL nor surrogates
        return None
    statement = select(moderator.c.id, moderator.c.password_hash).where(
        moderator.c.pseudonym == name
    )
    with engine.connect() as connection:
        return connection.execute(statement).mappings().one_or_none()


def _store(connection: Connection, moderator_id: int, hashed: str) -> None:
    connection.execute(
        update(moderator).where(moderator.c.id == moderator_id).values(password_hash=hashed)
    )
