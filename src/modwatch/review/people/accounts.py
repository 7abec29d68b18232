"""Accounts: people with their roles, the scopes of those, and queues."""

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    Engine,
    RowMapping,
    Select,
    Text,
    func,
    insert,
    select,
    update,
)

from modwatch.common.errors import QueueError
from modwatch.review.database import at_once, take_turn
from modwatch.review.events import record_event
from modwatch.review.log.decision_log import start_chain
from modwatch.review.people.pseudonyms import name_key, skeletons, usable_pseudonym
from modwatch.review.tables import ROLES, moderator, moderator_queue

#: The scope of one's own settings, password, second factor and tokens.
ACCOUNT = "account"

_READ = {ACCOUNT, "decisions:read", "feed:read"}

#: Scopes of each role. A token may have fewer, never more.
ROLE_SCOPES: Mapping[str, frozenset[str]] = {
    # Whoever may be served items does not read the feed, which would show that a comment to label
    # was labelled.
    "moderator": frozenset({ACCOUNT, "review"}),
    "lead": frozenset({ACCOUNT, "review", "lead", "decisions:read"}),
    "auditor": frozenset({*_READ, "audit"}),
    "ops": frozenset({*_READ, "metrics:read", "deliveries"}),
    "admin": frozenset({*_READ, "metrics:read", "deliveries", "admin"}),
}

#: Roles that may decide items.
REVIEWERS = frozenset(role for role, scopes in ROLE_SCOPES.items() if "review" in scopes)

SCOPES = frozenset().union(*ROLE_SCOPES.values())

#: Locked while an account is created, so that two look-alikes cannot be created at once.
_NAMES_LOCK = 7_104_382_665_190_001


@dataclass(frozen=True, kw_only=True)
class Moderator:
    """A person with an account, known by pseudonym only."""

    id: int
    pseudonym: str
    #: moderator | lead | auditor | ops | admin
    role: str
    #: The queues that this person works; None: all.
    queues: frozenset[str] | None = None
    #: The person's settings of the console.
    preferences: Mapping[str, Any] = field(default_factory=dict, hash=False)
    #: Scopes of the person and the token.
    scopes: frozenset[str]

    def may(self, scope: str) -> bool:
        """Return whether the person and the token have `scope`."""
        return scope in self.scopes

    @property
    def may_enrol_only(self) -> bool:
        """Whether nothing but the account is open, as before a required second factor."""
        return self.scopes == {ACCOUNT}

    @property
    def reviews(self) -> bool:
        """Whether this person may lease and decide."""
        return self.may("review")

    @property
    def reads_notes(self) -> bool:
        """Whether this person may read the notes of others; their own they read anyway."""
        return self.may("lead") or self.may("admin")


@dataclass(frozen=True, kw_only=True)
class Account:
    """An account as an admin sees it."""

    id: int
    pseudonym: str
    role: str
    #: None: all.
    queues: frozenset[str] | None
    created_at: dt.datetime
    #: None: the account is enabled.
    disabled_at: dt.datetime | None
    has_password: bool
    #: Whether the person logs in through the OIDC provider.
    by_oidc: bool


def create_moderator(
    engine: Engine, pseudonym: str, role: str, *, actor_id: int | None = None
) -> Moderator:
    """Return the account of `pseudonym`, created if absent.

    Raises `QueueError` for an unknown role, or a pseudonym that is invalid, taken in another role,
    or looks like another person's.
    """
    check_role(role)
    pseudonym = usable_pseudonym(pseudonym)
    with engine.begin() as connection:
        person = _named(connection, pseudonym)
        if person is None:
            lock_names(connection)
            person = _named(connection, pseudonym)  # another process may have come first
        if person is None:
            person = add_account(connection, pseudonym, role, actor_id=actor_id)
        if person.role != role:
            raise QueueError(
                f"the pseudonym {pseudonym!r} belongs to an account of role {person.role}; "
                "choose another"
            )
    return person


def add_account(
    connection: Connection,
    pseudonym: str,
    role: str,
    *,
    actor_id: int | None = None,
    oidc_subject: str | None = None,
) -> Moderator:
    """Return a new account. Call `lock_names` first. Raises `QueueError` for a taken pseudonym."""
    looks = skeletons(pseudonym)
    if any(looks & skeletons(name) for name in connection.scalars(select(moderator.c.pseudonym))):
        raise QueueError(f"the pseudonym {pseudonym!r} looks like another person's; choose another")
    moderator_id = connection.execute(
        insert(moderator)
        .values(pseudonym=pseudonym, role=role, oidc_subject=oidc_subject)
        .returning(moderator.c.id)
    ).scalar_one()
    start_chain(connection, moderator_id)
    record_event(
        connection,
        "create",
        actor_id=actor_id,
        subject_id=moderator_id,
        pseudonym=pseudonym,
        role=role,
        by_oidc=oidc_subject is not None,
    )
    return Moderator(id=moderator_id, pseudonym=pseudonym, role=role, scopes=cut(role, None))


def lock_names(connection: Connection) -> None:
    """Wait for other transactions that create accounts; holds until this one ends."""
    take_turn(connection, _NAMES_LOCK)


def find_moderator(engine: Engine, pseudonym: str) -> Moderator:
    """Return the account of `pseudonym`, disabled or not; raise `QueueError` if there is none."""
    with engine.connect() as connection:
        person = _named(connection, name_key(pseudonym))
    if person is None:
        raise QueueError("no account has this pseudonym; check its spelling or create the account")
    return person


def people(engine: Engine) -> list[Account]:
    """Return all accounts, including disabled ones, in order of pseudonym."""
    c = moderator.c
    statement = select(
        *(c[name] for name in ("id", "pseudonym", "role", "created_at", "disabled_at")),
        c.password_hash.is_not(None).label("has_password"),
        c.oidc_subject.is_not(None).label("by_oidc"),
        queues_of_row(),
    ).order_by(c.pseudonym)
    rows = at_once(engine, statement)
    return [Account(**{**row, "queues": frozenset(row["queues"]) or None}) for row in rows]


def select_moderator() -> Select[Any]:
    """Return the base of all queries whose rows `moderator_of` reads."""
    c = moderator.c
    return select(c.id, c.pseudonym, c.role, c.preferences, queues_of_row())


def moderator_of(row: Mapping[Any, Any]) -> Moderator:
    """Return the person of a row of `select_moderator`, limited to its `token_scopes`, if any."""
    return Moderator(
        id=row["id"],
        pseudonym=row["pseudonym"],
        role=row["role"],
        queues=frozenset(row["queues"]) or None,
        preferences=row["preferences"],
        scopes=cut(row["role"], row.get("token_scopes")),
    )


def queues_of_row() -> ColumnElement[Any]:
    """Return the column of the person's queues; empty means all."""
    mine = select(moderator_queue.c.queue).where(moderator_queue.c.moderator_id == moderator.c.id)
    array = func.array(mine.correlate(moderator).scalar_subquery(), type_=ARRAY(Text))
    return array.label("queues")


def lock_person(connection: Connection, moderator_id: int) -> RowMapping:
    """Return the account's row, locked until the transaction ends.

    Tokens are issued and revoked under this lock, so that none is issued while all are revoked. It
    does not block decisions, which only refer to the row. Raises `QueueError` for an unknown id.
    """
    row = (
        connection.execute(
            select(moderator).where(moderator.c.id == moderator_id).with_for_update(key_share=True)
        )
        .mappings()
        .one_or_none()
    )
    if row is None:
        raise QueueError(f"moderator {moderator_id} does not exist; create the account first")
    return row


def update_person(connection: Connection, moderator_id: int, **values: Any) -> None:
    """Change columns of the account's row. Call `lock_person` first."""
    connection.execute(update(moderator).where(moderator.c.id == moderator_id).values(**values))


def check_role(role: str) -> None:
    """Raise `QueueError` for an unknown role."""
    if role not in ROLES:
        raise QueueError(f"unknown role {role!r}; choose one of {', '.join(ROLES)}")


def cut(role: str, scopes: Iterable[str] | None) -> frozenset[str]:
    """Return those of `scopes` that `role` has; None: all of the role.

    >>> sorted(cut("moderator", ["review", "admin"]))
    ['review']
    >>> sorted(cut("moderator", None))
    ['account', 'review']
    """
    allowed = ROLE_SCOPES.get(role, frozenset())
    return allowed if scopes is None else allowed & frozenset(scopes)


def usable_scopes(role: str, scopes: Iterable[str] | None) -> list[str] | None:
    """Return the scopes to store with a new token of a person of `role`; None: all of the role.

    Raises `QueueError` for an unknown scope, or if the role has none of `scopes`.
    """
    if scopes is None:
        return None
    asked = frozenset(scopes)
    if unknown := sorted(asked - SCOPES):
        raise QueueError(f"unknown scope {unknown[0]!r}; choose from {', '.join(sorted(SCOPES))}")
    if not (left := cut(role, asked)):
        raise QueueError(
            f"the role {role} has none of these scopes; choose from "
            f"{', '.join(sorted(cut(role, None)))}"
        )
    return sorted(left)


def _named(connection: Connection, pseudonym: str) -> Moderator | None:
    if not pseudonym.isprintable():  # PostgreSQL accepts neither NUL nor surrogates
        return None
    statement = select_moderator().where(moderator.c.pseudonym == pseudonym)
    row = connection.execute(statement).mappings().one_or_none()
    return None if row is None else moderator_of(row)
