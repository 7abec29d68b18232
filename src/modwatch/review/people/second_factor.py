"""A second factor of passwords: time-based one-time codes (TOTP, RFC 6238), by pyotp.

The secret is shown once, at enrolment, for an authenticator app. A code is valid for half a minute
and, since clocks differ, the half minutes before and after it; none is accepted twice, nor one from
before the last that was. Ten recovery codes of 80 bits, each for one use, replace a lost device.
Codes that are guessed are throttled by account: five wrong ones in 15 minutes.
"""

import datetime as dt
import secrets
import time

import pyotp
from sqlalchemy import Connection, Engine, RowMapping, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from modwatch.common.errors import AccessDeniedError, QueueError
from modwatch.review.database import digest_of
from modwatch.review.events import record_event
from modwatch.review.people import throttle
from modwatch.review.people.access_tokens import end_sessions
from modwatch.review.people.accounts import lock_person
from modwatch.review.people.sessions import begin_session, record_log_in
from modwatch.review.tables import second_factor

#: Seconds for which a code is valid.
_STEP = 30

#: Steps before and after the current one whose codes are accepted.
_SKEW = 1

_RECOVERY_CODES = 10

#: Time for the second step of a log-in.
PENDING = dt.timedelta(minutes=5)

_ISSUER = "Modwatch"

_f = second_factor.c


def enrolled(engine: Engine, moderator_id: int) -> bool:
    """Return whether the person's log-in by password asks for a code."""
    with engine.connect() as connection:
        return is_enrolled(connection, moderator_id)


def is_enrolled(connection: Connection, moderator_id: int) -> bool:
    """Return `enrolled` within a transaction."""
    row = _row(connection, moderator_id)
    return row is not None and row["confirmed_at"] is not None


def begin_enrolment(engine: Engine, moderator_id: int) -> str:
    """Return a new secret in base 32, which does not count before `confirm_enrolment`.

    Verify the password before. Raises `QueueError` for a person who is enrolled: only an admin
    takes a second factor away.
    """
    secret = pyotp.random_base32()
    with engine.begin() as connection:
        lock_person(connection, moderator_id)
        if is_enrolled(connection, moderator_id):
            raise QueueError("this account has a second factor; ask an admin to reset it first")
        row = {"moderator_id": moderator_id, "secret": secret}
        connection.execute(
            upsert(second_factor)
            .values(row)
            .on_conflict_do_update(index_elements=["moderator_id"], set_=row)
        )
    return secret


def confirm_enrolment(engine: Engine, moderator_id: int, code: str) -> list[str]:
    """Enrol the person whose app shows `code`; return recovery codes, which are not stored.

    All sessions end, since they were opened without a code. Raises `AccessDeniedError` for a wrong
    code, `ThrottledError` after five, and `QueueError` without a `begin_enrolment`.
    """
    attempt = throttle.admit_again(engine, "code", moderator_id)
    codes = [secrets.token_hex(10) for _ in range(_RECOVERY_CODES)]
    with engine.begin() as connection:
        lock_person(connection, moderator_id)
        row = _row(connection, moderator_id)
        if row is None or row["confirmed_at"] is not None:
            raise QueueError("no enrolment is in progress; begin again in the settings")
        step = _matching_step(row["secret"], code, after=-1)
        if step is None:
            raise AccessDeniedError("the code is wrong; enter the one that the app shows now")
        _update(
            connection,
            moderator_id,
            confirmed_at=func.now(),
            last_step=step,
            recovery=[digest_of(code) for code in codes],
        )
        end_sessions(connection, moderator_id)
        record_event(
            connection, "enrol_second_factor", actor_id=moderator_id, subject_id=moderator_id
        )
    throttle.forgive(engine, attempt)
    return codes


def reset(engine: Engine, moderator_id: int, *, actor_id: int | None = None) -> None:
    """Take the second factor away, as when the device is lost; sessions end.

    A person without one is ignored. Raises `QueueError` for an unknown person.
    """
    with engine.begin() as connection:
        lock_person(connection, moderator_id)
        mine = delete(second_factor).where(_f.moderator_id == moderator_id)
        if connection.execute(mine).rowcount == 0:
            return
        end_sessions(connection, moderator_id)
        record_event(connection, "reset_second_factor", actor_id=actor_id, subject_id=moderator_id)


def begin_second_step(connection: Connection, moderator_id: int) -> str:
    """Return the secret of a browser whose password was right. Call `lock_person` first.

    A second log-in of the same account that begins meanwhile replaces it.
    """
    pending = secrets.token_urlsafe(32)
    _update(
        connection,
        moderator_id,
        pending_digest=digest_of(pending),
        pending_until=func.now() + PENDING,
    )
    return pending


def end_second_step(connection: Connection, moderator_id: int) -> None:
    """End a log-in that waits for its code, as when the password changes."""
    _update(connection, moderator_id, pending_digest=None, pending_until=None)


def finish_log_in(engine: Engine, pending: str, code: str, *, address: str, device: str) -> str:
    """Return a session token for the person whose password was right, and whose code is.

    `pending` is that of `CodeRequiredError`. Raises `AccessDeniedError` for a wrong or used code,
    or after five minutes; `ThrottledError` after five wrong codes.
    """
    waiting = (_f.pending_digest == digest_of(pending), _f.pending_until > func.now())
    with engine.connect() as connection:
        moderator_id = connection.scalar(select(_f.moderator_id).where(*waiting))
    if moderator_id is None:
        raise AccessDeniedError("the log-in has expired; enter the password again")
    attempt = throttle.admit_again(engine, "code", moderator_id)
    session = None
    with engine.begin() as connection:
        person = lock_person(connection, moderator_id)
        row = connection.execute(select(second_factor).where(*waiting)).mappings().one_or_none()
        if row is not None and person["disabled_at"] is None and _use(connection, row, code):
            end_second_step(connection, moderator_id)
            record_log_in(connection, moderator_id, "password and code", address)
            session = begin_session(connection, moderator_id)
    if session is None:
        throttle.fail(engine, attempt, moderator_id, address)
        raise AccessDeniedError("the code is wrong or was used; enter the one shown now")
    throttle.forgive(engine, attempt)
    throttle.remember(engine, person["pseudonym"], address, device)
    return session


def app_address(secret: str, pseudonym: str) -> str:
    """Return the `otpauth:` address that an authenticator app opens."""
    return pyotp.TOTP(secret).provisioning_uri(name=pseudonym, issuer_name=_ISSUER)


def _use(connection: Connection, row: RowMapping, code: str) -> bool:
    """Return whether `code` is right, and make it one that was used. Call `lock_person` first."""
    step = _matching_step(row["secret"], code, after=row["last_step"])
    if step is not None:
        _update(connection, row["moderator_id"], last_step=step)
        return True
    used = digest_of(_plain(code))
    if used not in row["recovery"]:
        return False
    left = [digest for digest in row["recovery"] if digest != used]
    _update(connection, row["moderator_id"], recovery=left)
    record_event(
        connection,
        "use_recovery_code",
        actor_id=row["moderator_id"],
        subject_id=row["moderator_id"],
        left=len(left),
    )
    return True


def _matching_step(secret: str, code: str, *, after: int) -> int | None:
    """Return the time step after `after` whose code `code` is; None: none near now."""
    now = int(time.time()) // _STEP
    totp = pyotp.TOTP(secret)
    for step in range(now - _SKEW, now + _SKEW + 1):
        right = secrets.compare_digest(
            totp.generate_otp(step).encode(), _plain(code).encode(errors="surrogatepass")
        )
        if right and step > after:
            return step
    return None


def _plain(code: str) -> str:
    """Return `code` in the form that is compared, without spaces and hyphens."""
    return "".join(code.split()).replace("-", "").lower()


def _row(connection: Connection, moderator_id: int) -> RowMapping | None:
    statement = select(second_factor).where(_f.moderator_id == moderator_id)
    return connection.execute(statement).mappings().one_or_none()


def _update(connection: Connection, moderator_id: int, **values: object) -> None:
    mine = update(second_factor).where(_f.moderator_id == moderator_id)
    connection.execute(mine.values(**values))
