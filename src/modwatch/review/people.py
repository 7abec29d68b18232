"""The people of the queue, and the tokens by which they are known.

A token is 32 random bytes, so nobody can guess one from a stolen digest however fast the hash is:
SHA-256 is enough, and one that is slow on purpose (Argon2, for passwords that people choose) would
cost every request milliseconds for nothing.
"""

import datetime as dt
import hashlib
import secrets
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Engine, Select, func, insert, or_, select, update
from sqlalchemy.dialects import postgresql

from modwatch.errors import AccessDeniedError, QueueError
from modwatch.review.decision_log import start_chain
from modwatch.review.items import storable
from modwatch.review.tables import ROLES, access_token, moderator, moderator_group

#: Who decides. The others look on: what they may see comes with the pages made for them.
REVIEWERS = frozenset({"moderator", "lead"})

LONGEST_PSEUDONYM = 100

Purpose = Literal["api", "session"]


@dataclass(frozen=True, kw_only=True)
class Moderator:
    """A person with an account; only the pseudonym is known."""

    id: int
    pseudonym: str
    #: moderator | lead | auditor | ops | admin
    role: str

    @property
    def reviews(self) -> bool:
        """Whether this person may lease and decide."""
        return self.role in REVIEWERS


def create_moderator(
    engine: Engine, pseudonym: str, role: str, group: str | None = None
) -> Moderator:
    """Return the account of `pseudonym`, created if absent.

    `group` is what the person says about themselves; it is stored apart from the account. Raises
    `QueueError` for an unknown role, an unusable pseudonym, or one taken in another role.
    """
    _check_account(pseudonym, role)
    with engine.begin() as connection:
        connection.execute(
            postgresql.insert(moderator)
            .values(pseudonym=pseudonym, role=role)
            .on_conflict_do_nothing(index_elements=["pseudonym"])
        )
        person = Moderator(
            **connection.execute(_people().where(moderator.c.pseudonym == pseudonym))
            .mappings()
            .one()
        )
        if person.role != role:
            raise QueueError(
                f"the pseudonym {pseudonym!r} is taken by a person of role {person.role}; "
                "choose another"
            )
        start_chain(connection, person.id)
        _describe(connection, person.id, group)
    return person


def issue_token(
    engine: Engine,
    moderator_id: int,
    *,
    lifetime: dt.timedelta | None = None,
) -> str:
    """Return a new API token of `moderator_id`; it is shown this once and stored as a digest.

    It holds for `lifetime`, or until it is revoked. Raises `QueueError` for an unknown person.
    """
    with engine.begin() as connection:
        known = connection.scalar(select(moderator.c.id).where(moderator.c.id == moderator_id))
        if known is None:
            raise QueueError(f"there is no moderator {moderator_id}; create the account first")
        return _store_token(connection, moderator_id, "api", _ends(lifetime))


def open_session(engine: Engine, token: str, lifetime: dt.timedelta) -> str:
    """Return a session token for the person of an API `token`; it never outlives that token.

    Raises `AccessDeniedError`.
    """
    person = authenticate(engine, token)
    digest = _digest(token)
    limit = select(access_token.c.expires_at).where(access_token.c.digest == digest)
    with engine.begin() as connection:
        ends = func.least(_ends(lifetime), limit.scalar_subquery())  # LEAST ignores null
        return _store_token(connection, person.id, "session", ends, opened_with=digest)


def authenticate(engine: Engine, token: str, purpose: Purpose = "api") -> Moderator:
    """Return the person of `token`; raise `AccessDeniedError` if it is unknown or over."""
    statement = (
        _people()
        .join(access_token)
        .where(
            access_token.c.digest == _digest(token),
            access_token.c.purpose == purpose,
            access_token.c.revoked_at.is_(None),
            or_(access_token.c.expires_at.is_(None), access_token.c.expires_at > func.now()),
        )
    )
    with engine.connect() as connection:
        row = connection.execute(statement).mappings().one_or_none()
    if row is None:
        raise AccessDeniedError(
            "the token is unknown, expired or revoked; ask an admin for another"
        )
    return Moderator(**row)


def revoke_token(engine: Engine, token: str) -> None:
    """Revoke `token`, of either purpose, and every session that it opened."""
    digest = _digest(token)
    with engine.begin() as connection:
        connection.execute(
            update(access_token)
            .where(or_(access_token.c.digest == digest, access_token.c.opened_with == digest))
            .values(revoked_at=func.coalesce(access_token.c.revoked_at, func.now()))
        )


def _check_account(pseudonym: str, role: str) -> None:
    if role not in ROLES:
        raise QueueError(f"unknown role {role!r}; choose one of {', '.join(ROLES)}")
    if not 0 < len(pseudonym) <= LONGEST_PSEUDONYM or not pseudonym.isprintable():
        raise QueueError(
            f"a pseudonym has 1 to {LONGEST_PSEUDONYM} printable characters; choose another"
        )


def _describe(connection: Connection, moderator_id: int, group: str | None) -> None:
    if group is None:
        return
    row = {
        "moderator_id": moderator_id,
        "group_name": storable(group, "group", f"moderator {moderator_id}"),
    }
    connection.execute(
        postgresql.insert(moderator_group)
        .values(row)
        .on_conflict_do_update(index_elements=["moderator_id"], set_=row)
    )


def _people() -> Select[Any]:
    return select(moderator.c.id, moderator.c.pseudonym, moderator.c.role)


def _ends(lifetime: dt.timedelta | None) -> Any:
    return None if lifetime is None else func.now() + lifetime


def _store_token(
    connection: Connection,
    moderator_id: int,
    purpose: Purpose,
    expires_at: Any,
    opened_with: bytes | None = None,
) -> str:
    token = f"mw_{secrets.token_urlsafe(32)}"
    connection.execute(
        insert(access_token).values(
            digest=_digest(token),
            moderator_id=moderator_id,
            purpose=purpose,
            expires_at=expires_at,
            opened_with=opened_with,
        )
    )
    return token


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
