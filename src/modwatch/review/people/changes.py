"""Changes of an account: its role, its queues, whether it may come in."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection, Engine, delete, func, insert, update

from modwatch.errors import QueueError
from modwatch.review.people.access_tokens import end_sessions
from modwatch.review.people.account_events import record_event
from modwatch.review.people.accounts import check_role, lock_person
from modwatch.review.tables import moderator, moderator_queue

LONGEST_QUEUE = 100

#: Bytes of JSON.
LONGEST_PREFERENCES = 16_384


def change_role(
    engine: Engine, moderator_id: int, role: str, *, actor_id: int | None = None
) -> None:
    """Give a person another role, and end their sessions; their tokens are cut to the new role.

    Raises `QueueError` for an unknown role or person.
    """
    check_role(role)
    with engine.begin() as connection:
        set_role(connection, moderator_id, role, actor_id=actor_id)


def set_role(
    connection: Connection, moderator_id: int, role: str, *, actor_id: int | None = None
) -> None:
    """Do the work of `change_role` in the caller's transaction."""
    was = lock_person(connection, moderator_id)["role"]
    if was == role:
        return
    _set(connection, moderator_id, role=role)
    end_sessions(connection, moderator_id)
    record_event(
        connection, "change_role", actor_id=actor_id, subject_id=moderator_id, role=role, was=was
    )


def disable(engine: Engine, moderator_id: int, *, actor_id: int | None = None) -> None:
    """Keep a person out: sessions end, and tokens are refused until `enable`.

    Raises `QueueError` for an unknown person.
    """
    with engine.begin() as connection:
        if lock_person(connection, moderator_id)["disabled_at"] is not None:
            return
        _set(connection, moderator_id, disabled_at=func.now())
        end_sessions(connection, moderator_id)
        record_event(connection, "disable", actor_id=actor_id, subject_id=moderator_id)


def enable(engine: Engine, moderator_id: int, *, actor_id: int | None = None) -> None:
    """Let a disabled person in again; API tokens that nobody revoked hold again.

    Raises `QueueError` for an unknown person.
    """
    with engine.begin() as connection:
        if lock_person(connection, moderator_id)["disabled_at"] is None:
            return
        _set(connection, moderator_id, disabled_at=None)
        record_event(connection, "enable", actor_id=actor_id, subject_id=moderator_id)


def set_queues(
    engine: Engine,
    moderator_id: int,
    queues: Collection[str] | None,
    *,
    actor_id: int | None = None,
) -> None:
    """Let a person work `queues` only, or all of them if None.

    Raises `QueueError` for an unknown person, an unusable name, or no queue at all.
    """
    names = None if queues is None else sorted(set(queues))
    _check_queues(names)
    mine = moderator_queue.c.moderator_id == moderator_id
    with engine.begin() as connection:
        lock_person(connection, moderator_id)
        connection.execute(delete(moderator_queue).where(mine))
        if names:
            rows = [{"moderator_id": moderator_id, "queue": name} for name in names]
            connection.execute(insert(moderator_queue), rows)
        record_event(
            connection, "set_queues", actor_id=actor_id, subject_id=moderator_id, queues=names
        )


def save_preferences(engine: Engine, moderator_id: int, preferences: Mapping[str, Any]) -> None:
    """Store what a person has chosen for the console, in place of what stood there.

    Raises `QueueError` for an unknown person, or for what is no JSON of at most 16 KiB.
    """
    try:
        size = len(json.dumps(preferences, allow_nan=False, ensure_ascii=False).encode())
        refused = size > LONGEST_PREFERENCES or _unstorable(preferences)
    except (TypeError, ValueError, RecursionError):
        refused = True
    if refused:
        raise QueueError(
            f"the preferences of moderator {moderator_id} are not JSON of at most "
            f"{LONGEST_PREFERENCES:,} bytes without NUL; store less"
        )
    with engine.begin() as connection:
        lock_person(connection, moderator_id)
        _set(connection, moderator_id, preferences=dict(preferences))


def _set(connection: Connection, moderator_id: int, **values: Any) -> None:
    connection.execute(update(moderator).where(moderator.c.id == moderator_id).values(**values))


def _check_queues(names: list[str] | None) -> None:
    if names is None:
        return
    if not names:
        raise QueueError("no queue is named; name one, or disable the account to keep it out")
    if not all(0 < len(name) <= LONGEST_QUEUE and name.isprintable() for name in names):
        raise QueueError(
            f"a queue's name has 1 to {LONGEST_QUEUE} printable characters; choose another"
        )


def _unstorable(preferences: Mapping[str, Any]) -> bool:
    """Return whether a text in `preferences` holds NUL, which `jsonb` refuses."""
    return "\\u0000" in json.dumps(preferences).replace("\\\\", "")
