"""Account events: who logged in, changed which account or exported data."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, insert, select

from modwatch.review.database import at_once
from modwatch.review.tables import account_event, moderator


@dataclass(frozen=True, kw_only=True)
class AccountEvent:
    """A log-in, change of an account or export; events cannot be changed or deleted."""

    id: int
    #: Who did it; None: the command line, the identity provider, or somebody who is not known.
    actor_id: int | None
    actor: str | None
    #: Whose account was changed; None: nobody's, as for an export.
    subject_id: int | None
    subject: str | None
    #: create | issue_token | revoke_token | set_password | change_role | disable | enable |
    #: set_queues | withdraw_role | log_in | log_in_failed | log_in_throttled | other events of
    #: `review`
    action: str
    #: Contains neither secrets nor a person's group.
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
    """Record an event, in the transaction of the change."""
    connection.execute(
        insert(account_event).values(
            action=action, actor_id=actor_id, subject_id=subject_id, details=details
        )
    )


def events(
    engine: Engine,
    *,
    subject_id: int | None = None,
    before: int | None = None,
    limit: int = 100,
) -> list[AccountEvent]:
    """Return at most `limit` events with an id below `before`, newest first."""
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
    if before is not None:
        statement = statement.where(event.id < before)
    return [AccountEvent(**row) for row in at_once(engine, statement)]
