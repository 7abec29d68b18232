"""Accounts: who there is, in which role, for which queues."""

import datetime as dt
from collections.abc import Mapping
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
    text,
)

from modwatch.errors import QueueError
from modwatch.review.log.decision_log import start_chain
from modwatch.review.people.account_events import record_event
from modwatch.review.people.groups import describe
from modwatch.review.people.pseudonyms import name_key, skeletons, usable_pseudonym
from modwatch.review.people.scopes import cut
from modwatch.review.tables import ROLES, moderator, moderator_queue

#: Held while a pseudonym is chosen, so that two look-alikes cannot be created at once.
_NAMES_LOCK = 7_104_382_665_190_001


@dataclass(frozen=True, kw_only=True)
class Moderator:
    """A person with an account; only the pseudonym is known."""

    id: int
    pseudonym: str
    #: moderator | lead | auditor | ops | admin
    role: str
    #: The queues that this person works; None: all of them.
    queues: frozenset[str] | None = None
    #: What the person has chosen for the console.
    preferences: Mapping[str, Any] = field(default_factory=dict, hash=False)
    #: What may be done with the token that was shown; see `scopes`.
    scopes: frozenset[str]

    def may(self, scope: str) -> bool:
        """Return whether `scope` is among those of the person and the token."""
        return scope in self.scopes

    @property
    def reviews(self) -> bool:
        """Whether this person may lease and decide."""
        return self.may("review")


@dataclass(frozen=True, kw_only=True)
class Account:
    """An account as an admin sees it."""

    id: int
    pseudonym: str
    role: str
    #: None: all.
    queues: frozenset[str] | None
    created_at: dt.datetime
    #: None: the person may come in.
    disabled_at: dt.datetime | None
    has_password: bool
    #: Whether an identity provider vouches for the person.
    by_oidc: bool


def create_moderator(
    engine: Engine,
    pseudonym: str,
    role: str,
    group: str | None = None,
    *,
    actor_id: int | None = None,
) -> Moderator:
    """Return the account of `pseudonym`, created if absent.

    `group` is what the person says about themselves; it is stored apart from the account. Raises
    `QueueError` for an unknown role, an unusable pseudonym, one taken in another role, or one that
    looks like another person's.
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
                f"the pseudonym {pseudonym!r} is taken by a person of role {person.role}; "
                "choose another"
            )
        if group is not None:
            describe(connection, person.id, group)
    return person


def add_account(
    connection: Connection,
    pseudonym: str,
    role: str,
    *,
    actor_id: int | None = None,
    oidc_subject: str | None = None,
) -> Moderator:
    """Return a new account, under `lock_names`; raise `QueueError` if the pseudonym is taken."""
    looks = skeletons(pseudonym)
    if any(looks & skeletons(name) for name in connection.scalars(select(moderator.c.pseudonym))):
        raise QueueError(
            f"the pseudonym {pseudonym!r} looks like that of another person; choose another"
        )
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
        role=role,
        by_oidc=oidc_subject is not None,
    )
    return Moderator(id=moderator_id, pseudonym=pseudonym, role=role, scopes=cut(role, None))


def lock_names(connection: Connection) -> None:
    """Wait for whoever else creates an account, until the transaction ends."""
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _NAMES_LOCK})


def find_moderator(engine: Engine, pseudonym: str) -> Moderator:
    """Return the person called `pseudonym`, disabled or not; raise `QueueError` if nobody is."""
    with engine.connect() as connection:
        person = _named(connection, name_key(pseudonym))
    if person is None:
        raise QueueError("nobody has this pseudonym; see who there is, or create the account first")
    return person


def people(engine: Engine) -> list[Account]:
    """Return all accounts by pseudonym, the disabled ones too."""
    c = moderator.c
    statement = select(
        c.id,
        c.pseudonym,
        c.role,
        c.created_at,
        c.disabled_at,
        c.password_hash.is_not(None).label("has_password"),
        c.oidc_subject.is_not(None).label("by_oidc"),
        queues_of_row(),
    ).order_by(c.pseudonym)
    with engine.connect() as connection:
        rows = connection.execute(statement).mappings().all()
    return [Account(**{**row, "queues": frozenset(row["queues"]) or None}) for row in rows]


def select_moderator() -> Select[Any]:
    """Return the start of every statement whose rows `moderator_of` reads."""
    c = moderator.c
    return select(c.id, c.pseudonym, c.role, c.preferences, queues_of_row())


def moderator_of(row: RowMapping) -> Moderator:
    """Return the person of a row of `select_moderator`; its `token_scopes`, if any, cut theirs."""
    return Moderator(
        id=row["id"],
        pseudonym=row["pseudonym"],
        role=row["role"],
        queues=frozenset(row["queues"]) or None,
        preferences=row["preferences"],
        scopes=cut(row["role"], row.get("token_scopes")),
    )


def queues_of_row() -> ColumnElement[Any]:
    """Return the column of the person's queues, empty for all."""
    mine = select(moderator_queue.c.queue).where(moderator_queue.c.moderator_id == moderator.c.id)
    array = func.array(mine.correlate(moderator).scalar_subquery(), type_=ARRAY(Text))
    return array.label("queues")


def lock_person(connection: Connection, moderator_id: int) -> RowMapping:
    """Return the account's row, which nobody else changes before the transaction ends.

    Tokens are given and taken away under this lock, so that none slips in while they all end. It
    lets decisions through, which only refer to the row. Raises `QueueError` for an unknown person.
    """
    row = (
        connection.execute(
            select(moderator).where(moderator.c.id == moderator_id).with_for_update(key_share=True)
        )
        .mappings()
        .one_or_none()
    )
    if row is None:
        raise QueueError(f"there is no moderator {moderator_id}; create the account first")
    return row


def check_role(role: str) -> None:
    """Raise `QueueError` unless `role` is one."""
    if role not in ROLES:
        raise QueueError(f"unknown role {role!r}; choose one of {', '.join(ROLES)}")


def _named(connection: Connection, pseudonym: str) -> Moderator | None:
    if not pseudonym.isprintable():  # PostgreSQL takes neither NUL nor surrogates
        return None
    statement = select_moderator().where(moderator.c.pseudonym == pseudonym)
    row = connection.execute(statement).mappings().one_or_none()
    return None if row is None else moderator_of(row)
