"""Log-in by pseudonym and password.

Passwords are hashed with Argon2id, with the second recommended parameters of RFC 9106 (3 passes
over 64 MiB, 4 lanes). A hash with other parameters is replaced at the next log-in. For an unknown
name the password is compared with a hash that nothing matches, so that the time does not reveal
which names exist.

Passwords that are easy to guess by the estimate of zxcvbn are refused when they are set: Wheeler,
D. L. (2016), "zxcvbn: Low-Budget Password Strength Estimation", USENIX Security. The library has a
list of the 30,000 passwords that leaks contain most often, English words, names, keyboard rows,
sequences and dates. Limitation: words of other languages count as random letters, so the bound is
the highest of the library, 10^10 guesses.
"""

import re
import threading
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.profiles import RFC_9106_LOW_MEMORY
from sqlalchemy import ColumnElement, Engine, select
from zxcvbn import zxcvbn

from modwatch.common.errors import (
    AccessDeniedError,
    CodeRequiredError,
    QueueError,
    WeakPasswordError,
)
from modwatch.review.database import at_once
from modwatch.review.events import record_event
from modwatch.review.people import second_factor, throttle
from modwatch.review.people.access_tokens import end_access
from modwatch.review.people.accounts import ACCOUNT, lock_person, update_person
from modwatch.review.people.pseudonyms import name_key
from modwatch.review.people.sessions import begin_session, record_log_in
from modwatch.review.tables import moderator

#: Characters, after normalisation.
SHORTEST_PASSWORD = 12
LONGEST_PASSWORD = 256

#: Roles for which a second factor can be required.
ROLES_WITH_CODE = frozenset({"lead", "admin"})

_hasher = PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY)

#: Limits concurrent hashes: one takes 64 MiB.
_turns = threading.BoundedSemaphore(4)


def hash_password(password: str) -> str:
    """Return the Argon2id hash of `password`, with salt and parameters, however weak it is.

    Raises `QueueError`, which never quotes it, for a password that is too short, too long, or
    contains control or unassigned characters.
    """
    prepared = _prepared(password)
    if prepared is None or len(prepared) < SHORTEST_PASSWORD:
        raise QueueError(
            f"a password must have {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters, without "
            "control characters; choose another"
        )
    with _turns:
        return _hasher.hash(prepared)


def matches(stored: str | None, password: str) -> bool:
    """Return whether `password` matches the hash `stored`; never for None, after the same time.

    A password that cannot have been stored is rejected immediately, whatever the hash.
    """
    prepared = _prepared(password)
    if prepared is None:
        return False
    try:
        with _turns:
            return _hasher.verify(stored or _unmatched(), prepared)
    except (VerificationError, InvalidHashError):
        return False


def _unmatched() -> str:
    """Return a hash with the current parameters that no password matches."""
    cost = f"m={_hasher.memory_cost},t={_hasher.time_cost},p={_hasher.parallelism}"
    return f"$argon2id$v={RFC_9106_LOW_MEMORY.version}${cost}${'A' * 22}${'A' * 43}"


def _prepared(password: str) -> str | None:
    """Return the normalised password that is hashed; None if it is invalid.

    As the profile OpaqueString of RFC 8265: all kinds of space become U+0020, the rest is
    normalised to NFC, and case is preserved. Control characters, surrogates and unassigned code
    points are invalid.
    """
    if len(password) > LONGEST_PASSWORD:
        return None
    spaced = "".join(" " if unicodedata.category(sign) == "Zs" else sign for sign in password)
    prepared = unicodedata.normalize("NFC", spaced)
    invalid = any(unicodedata.category(sign) in {"Cc", "Cs", "Cn"} for sign in prepared)
    return None if invalid or len(prepared) > LONGEST_PASSWORD else prepared


_REJECTED = "the name or the password is wrong; try again, or ask an admin for a new password"


def log_in(
    engine: Engine,
    pseudonym: str,
    password: str,
    *,
    address: str,
    device: str = "",
    code_required: bool = False,
) -> str:
    """Return a session token for the person with this password.

    `device` is the secret that this browser keeps; the log-in makes it known. With `code_required`,
    the session of a lead or admin who has no second factor has the scope `account` only.
    Raises `CodeRequiredError` if the account has one and the password is right. Raises
    `ThrottledError` after too many failures. Otherwise raises the same `AccessDeniedError`, after
    the same time, for an unknown name, a disabled account, one without a password, and a wrong
    password. Account events record log-ins and failures of existing accounts.
    """
    name = name_key(pseudonym)
    # PostgreSQL accepts neither NUL nor surrogates.
    account = _account(engine, moderator.c.pseudonym == name) if name.isprintable() else None
    account_id = None if account is None else account["id"]
    attempt = throttle.admit(engine, pseudonym, address, device=device, account_id=account_id)
    stored = account["password_hash"] if account is not None else None
    right = matches(stored, password)
    session = None
    if account is not None and stored is not None and right:
        renewed = hash_password(password) if _hasher.check_needs_rehash(stored) else stored
        session = _begin(
            engine, account["id"], stored, renewed, address, code_required=code_required
        )
    if session is None:
        throttle.fail(engine, attempt, account_id, address)
        raise AccessDeniedError(_REJECTED)
    throttle.forgive(engine, attempt)
    if isinstance(session, CodeRequiredError):
        raise session
    throttle.remember(engine, pseudonym, address, device)
    return session


def _begin(
    engine: Engine,
    moderator_id: int,
    stored: str,
    renewed: str,
    address: str,
    *,
    code_required: bool,
) -> str | CodeRequiredError | None:
    """Return a session token, or that a code is due.

    None if the account changed while the password was compared.
    """
    with engine.begin() as connection:
        person = lock_person(connection, moderator_id)
        if person["password_hash"] != stored or person["disabled_at"] is not None:
            return None
        if renewed != stored:
            update_person(connection, moderator_id, password_hash=renewed)
        if second_factor.is_enrolled(connection, moderator_id):
            pending = second_factor.begin_second_step(connection, moderator_id)
            return CodeRequiredError("enter the code of the second factor", pending=pending)
        record_log_in(connection, moderator_id, "password", address)
        to_enrol = code_required and person["role"] in ROLES_WITH_CODE
        return begin_session(connection, moderator_id, scopes=[ACCOUNT] if to_enrol else None)


def set_password(
    engine: Engine, moderator_id: int, password: str, *, actor_id: int | None = None
) -> None:
    """Set a person's password for them; their sessions and API tokens end.

    Failed log-ins are forgotten. Raises `QueueError` for an unknown person or an invalid password,
    `WeakPasswordError` for one that is easy to guess. Passwords set before are not judged.
    """
    hashed = hash_password(password)
    account = _account(engine, moderator.c.id == moderator_id)
    check_strength(password, "" if account is None else account["pseudonym"])
    with engine.begin() as connection:
        person = lock_person(connection, moderator_id)
        update_person(connection, moderator_id, password_hash=hashed)
        second_factor.end_second_step(connection, moderator_id)
        revoked, _ = end_access(connection, moderator_id)
        record_event(
            connection,
            "set_password",
            actor_id=actor_id,
            subject_id=moderator_id,
            revoked_tokens=revoked,
        )
    throttle.clear(engine, person["pseudonym"])


def change_password(engine: Engine, moderator_id: int, old: str, new: str) -> None:
    """Change a person's own password to `new`; all their sessions and API tokens end.

    Raises `AccessDeniedError` if `old` is wrong, `ThrottledError` after five wrong ones in 15
    minutes, and what `set_password` raises for `new`.
    """
    check_password(engine, moderator_id, old)
    set_password(engine, moderator_id, new, actor_id=moderator_id)


def check_password(engine: Engine, moderator_id: int, password: str) -> None:
    """Verify a person's own password once more, as before a change that a thief would make.

    Raises `AccessDeniedError` if it is wrong, `ThrottledError` after five wrong ones in 15 minutes.
    """
    account = _account(engine, moderator.c.id == moderator_id)
    attempt = throttle.admit_again(engine, "password", moderator_id)
    if account is None or not matches(account["password_hash"], password):
        raise AccessDeniedError(
            "the old password is wrong; try again, or ask an admin for a new password"
        )
    throttle.forgive(engine, attempt)


def _account(engine: Engine, who: ColumnElement[bool]) -> Mapping[Any, Any] | None:
    columns = (moderator.c.id, moderator.c.pseudonym, moderator.c.password_hash)
    return next(iter(at_once(engine, select(*columns).where(who))), None)


#: zxcvbn's grade from 0 to 4; 4 means 10^10 guesses or more.
WEAKEST_GRADE = 4

#: Characters that are judged, the most that zxcvbn takes; and, of those that may stand for letters,
#: how many of them, since it tries every combination. Up to 0.7 s.
_JUDGED, _MOST_SUBSTITUTES = 72, 32
_SUBSTITUTE = re.compile(r"[0-9@({\[<!|$+%]")

#: What makes a password weak, with the advice for it. The keys are also the console's notices.
WEAKNESSES = {
    "own_name": "it contains the pseudonym or the name of this software",
    "common": "it is, or resembles, a password that many people use",
    "repeats": "it repeats characters or words",
    "sequence": "it follows the alphabet, the digits or the keyboard",
    "predictable": "it consists of few, common parts",
}

_BY_PATTERN = {"repeat": "repeats", "sequence": "sequence", "spatial": "sequence"}

#: zxcvbn keeps the inputs of the current call in a global.
_turn = threading.Lock()


def check_strength(password: str, pseudonym: str) -> None:
    """Raise `WeakPasswordError`, which never quotes it, for a password that is easy to guess.

    `pseudonym`, its parts and "modwatch" make a password no harder to guess.
    """
    inputs = [pseudonym, *re.findall(r"\w{3,}", pseudonym.replace("_", " ")), "modwatch"]
    judged = unicodedata.normalize("NFKC", password)[:_JUDGED]
    ends = [found.end() for found in _SUBSTITUTE.finditer(judged)]
    judged = judged[: ends[_MOST_SUBSTITUTES - 1]] if len(ends) > _MOST_SUBSTITUTES else judged
    with _turn:
        estimate = zxcvbn(judged, user_inputs=inputs)
    if estimate["score"] < WEAKEST_GRADE:
        weakness = _weakness(estimate["sequence"])
        raise WeakPasswordError(
            f"this password is easy to guess: {WEAKNESSES[weakness]}; use four or more words that "
            "have nothing to do with each other, or a password manager",
            weakness=weakness,
        )


def _weakness(matches: Sequence[Any]) -> str:
    """Return the key of `WEAKNESSES` that describes the longest part that zxcvbn recognised."""
    longest = max(
        (match for match in matches if match["pattern"] != "bruteforce"),
        key=lambda match: len(match["token"]),
        default=None,
    )
    if longest is None:
        return "predictable"
    if longest["pattern"] == "dictionary":
        by_list = {"user_inputs": "own_name", "passwords": "common"}
        return by_list.get(longest["dictionary_name"], "predictable")
    return _BY_PATTERN.get(longest["pattern"], "predictable")
