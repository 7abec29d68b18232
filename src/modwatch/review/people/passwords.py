"""Passwords: what one may be, and Argon2id.

The parameters are the second recommendation of RFC 9106 (3 passes over 64 MiB, 4 lanes). A hash
made with others is replaced at the next log-in, when the password is at hand. A name that nobody
has is checked against a hash that nothing matches, so that time does not tell.
"""

import datetime as dt
import logging
import threading
import unicodedata

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.profiles import RFC_9106_LOW_MEMORY
from sqlalchemy import Connection, Engine, RowMapping, select, update

from modwatch.errors import AccessDeniedError, QueueError, ThrottledError
from modwatch.review.people import throttle
from modwatch.review.people.access_tokens import end_sessions
from modwatch.review.people.account_events import record_event
from modwatch.review.people.accounts import lock_person
from modwatch.review.people.pseudonyms import name_key
from modwatch.review.people.sessions import begin_session
from modwatch.review.tables import moderator

#: Characters, after normalisation.
SHORTEST_PASSWORD = 12
LONGEST_PASSWORD = 256

_hasher = PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY)

#: Each takes 64 MiB: a crowd at the door waits rather than take all memory.
_turns = threading.BoundedSemaphore(4)

_NOBODYS = (
    f"$argon2id$v={RFC_9106_LOW_MEMORY.version}$m={RFC_9106_LOW_MEMORY.memory_cost},"
    f"t={RFC_9106_LOW_MEMORY.time_cost},p={RFC_9106_LOW_MEMORY.parallelism}"
    f"${'A' * 22}${'A' * 43}"
)


def hash_password(password: str) -> str:
    """Return the Argon2id hash of `password`, salt and parameters in it.

    Raises `QueueError`, which never quotes it, for one that is too short, too long, or holds
    characters that no keyboard is sure to give again.
    """
    prepared = _prepared(password)
    if prepared is None or len(prepared) < SHORTEST_PASSWORD:
        raise QueueError(
            f"a password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters, none of them a "
            "control character; choose another"
        )
    with _turns:
        return _hasher.hash(prepared)


def matches(stored: str | None, password: str) -> bool:
    """Return whether `password` is the one of the hash `stored`; None: nobody's, as slow a no.

    What could never have been stored is refused at once, whoever's it is.
    """
    prepared = _prepared(password)
    if prepared is None:
        return False
    try:
        with _turns:
            return _hasher.verify(stored or _NOBODYS, prepared)
    except (VerificationError, InvalidHashError):
        return False


def outdated(stored: str) -> bool:
    """Return whether the hash `stored` was made with other parameters than today's."""
    return _hasher.check_needs_rehash(stored)


def _prepared(password: str) -> str | None:
    """Return the characters that are hashed; None if they may not be.

    As the profile OpaqueString of RFC 8265: spaces of any kind become the one of the keyboard, the
    rest is put in NFC, case is kept. Controls (NUL too), surrogates and unassigned points are
    refused, before anything is hashed.
    """
    if len(password) > LONGEST_PASSWORD:
        return None
    spaced = "".join(" " if unicodedata.category(each) == "Zs" else each for each in password)
    prepared = unicodedata.normalize("NFC", spaced)
    refused = any(unicodedata.category(each) in {"Cc", "Cs", "Cn"} for each in prepared)
    return None if refused or len(prepared) > LONGEST_PASSWORD else prepared


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
