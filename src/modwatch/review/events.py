"""Events as one hash chain: changes of accounts, gold comments and policies, exports, log-ins.

The events are one chain of the ledger (`common.ledger.chain`), whose end `event_chain` contains.
`log.verification` verifies it, and compares accounts, gold comments and policies with their last
events: a change without an event shows.
"""

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, select, text

from modwatch.common.errors import DatabaseError
from modwatch.review.database import at_once, next_time_sql
from modwatch.review.tables import event, moderator


@dataclass(frozen=True, kw_only=True)
class Event:
    """A log-in, a change or an export; events cannot be changed or deleted."""

    id: int
    #: Who did it; None: the command line, the identity provider, or an unknown person.
    actor_id: int | None
    actor: str | None
    #: Whose account was changed; None: no account, as for an export.
    subject_id: int | None
    subject: str | None
    #: create | issue_token | revoke_token | set_password | change_role | disable | enable |
    #: set_queues | withdraw_role | log_in | log_in_failed | log_in_throttled | add_gold |
    #: retire_gold | register_policy | other events of `review`
    action: str
    #: Contains neither secrets nor a person's group.
    details: Mapping[str, Any]
    happened_at: dt.datetime


#: The content of an entry; `{0}` is the alias of the row with a dot, or empty.
#: `jsonb` has one way to write each document.
EVENT_CONTENT = (
    "json_build_array({0}position, {0}actor_id, {0}subject_id, {0}action, {0}details, "
    "(extract(epoch from {0}happened_at) * 1000000)::bigint)::text"
)

_COLUMNS = "position, actor_id, subject_id, action, details, happened_at, previous_hash"

_NOW = next_time_sql("event", "happened_at", "position = length")

#: Whoever appends waits for the transaction that appended before, so it should end soon.
_APPEND = text(
    f"""
    WITH chain AS (
        SELECT length, hash FROM event_chain FOR UPDATE
    ), new AS MATERIALIZED (
        SELECT length + 1 AS position, CAST(:actor_id AS bigint) AS actor_id,
            CAST(:subject_id AS bigint) AS subject_id, CAST(:action AS text) AS action,
            CAST(:details AS jsonb) AS details, {_NOW} AS happened_at, hash AS previous_hash
        FROM chain
    ), recorded AS (
        INSERT INTO event ({_COLUMNS}, hash)
        SELECT {_COLUMNS},
            sha256(previous_hash || convert_to({EVENT_CONTENT.format("new.")}, 'UTF8'))
        FROM new
        RETURNING position, hash
    )
    UPDATE event_chain SET length = recorded.position, hash = recorded.hash FROM recorded
    """.replace("::", r"\:\:")  # noqa: S608 - our own column names
)


def record_event(
    connection: Connection,
    action: str,
    *,
    actor_id: int | None,
    subject_id: int | None = None,
    **details: Any,
) -> None:
    """Record an event, in the transaction of the change, as its last statement if possible."""
    values = {"actor_id": actor_id, "subject_id": subject_id, "action": action}
    done = connection.execute(_APPEND, values | {"details": json.dumps(details)})
    if done.rowcount != 1:
        raise DatabaseError("the table event_chain has no row; restore it from a backup")


def recent_events(
    engine: Engine,
    *,
    subject_id: int | None = None,
    before: int | None = None,
    limit: int = 100,
) -> list[Event]:
    """Return at most `limit` events with an id below `before`, newest first."""
    actor, subject = moderator.alias("actor"), moderator.alias("subject")
    own = (event.c[name] for name in Event.__dataclass_fields__ if name in event.c)
    statement = (
        select(*own, actor.c.pseudonym.label("actor"), subject.c.pseudonym.label("subject"))
        .outerjoin(actor, actor.c.id == event.c.actor_id)
        .outerjoin(subject, subject.c.id == event.c.subject_id)
        .order_by(event.c.id.desc())
        .limit(limit)
    )
    if subject_id is not None:
        statement = statement.where(event.c.subject_id == subject_id)
    if before is not None:
        statement = statement.where(event.c.id < before)
    return [Event(**row) for row in at_once(engine, statement)]
