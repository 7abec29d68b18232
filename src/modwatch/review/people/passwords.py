"""Passwords: what one may be, and Argon2id.

The parameters are the second recommendation of RFC 9106 (3 passes over 64 MiB, 4 lanes). A hash
made with others is replaced at the next log-in, when the password is at hand. A name that nobody
has is checked against a hash that nothing matches, so that time does not tell.
"""

import threading
import unicodedata

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.profiles import RFC_9106_LOW_MEMORY

from modwatch.errors import QueueError

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
