"""Who changed which account, or took what out of the system."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, insert, select

from modwatch.review.tables import account_event, moderator


@dataclass(frozen=True, kw_only=True)
class AccountEvent:
    """One change; the table takes no other back."""

    id: int
    #: Who did it; None: the command line, or the identity provider.
    actor_id: int | None
    actor: str | None
    #: Whose account it is; None: nobody's, as with an export.
    subject_id: int | None
    subject: str | None
    #: create | issue_token | revoke_token | set_password | change_role | disable | enable |
    #: set_queues | whatever other parts of `review` record
    action: str
    #: Never a secret, and nothing that a person says about themselves.
    details: Mapping[str, Any]
    happened_at: dt.datetime


def record_event(
    connection: Connection,
    action: str,
    *,
    actor_id: int | None,
    subject_id: int | None = None,
    **details: Any,
) -> None:
    """Append one event, in the transaction of what it tells of."""
    connection.execute(
        insert(account_event).values(
            action=action, actor_id=actor_id, subject_id=subject_id, details=details
        )
    )


def events(
    engine: Engine,
    *,
    subject_id: int | None = None,
    actor_id: int | None = None,
    before: int | None = None,
    limit: int = 100,
) -> list[AccountEvent]:
    """Return at most `limit` events, the newest first, of those older than the id `before`."""
    actor, subject = moderator.alias("actor"), moderator.alias("subject")
    event = account_event.c
    statement = (
        select(
            account_event, actor.c.pseudonym.label("actor"), subject.c.pseudonym.label("subject")
        )
        .outerjoin(actor, actor.c.id == event.actor_id)
        .outerjoin(subject, subject.c.id == event.subject_id)
        .order_by(event.id.desc())
        .limit(limit)
    )
    if subject_id is not None:
        statement = statement.where(event.subject_id == subject_id)
    if actor_id is not None:
        statement = statement.where(event.actor_id == actor_id)
    if before is not None:
        statement = statement.where(event.id < before)
    with engine.connect() as connection:
        return [AccountEvent(**row) for row in connection.execute(statement).mappings()]
