"""Changes of an account: role, queues, preferences, group, disabling and enabling.

A group is a voluntary self-description, used for statistics over many people only. Groups are
stored in a separate table, and changes of them are not recorded as events: access to the accounts
is not access to the groups. They are deleted when their people can no longer delete them.
"""

import json
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any

from sqlalchemy import Connection, Engine, delete, func, insert, select

from modwatch.common.errors import QueueError
from modwatch.review.events import record_event
from modwatch.review.people.access_tokens import end_sessions
from modwatch.review.people.accounts import check_role, lock_person, update_person
from modwatch.review.people.groups import forget_group
from modwatch.review.people.pseudonyms import name_key
from modwatch.review.queue.lanes import Lanes, known_queues, load_lanes
from modwatch.review.tables import moderator_group, moderator_queue

#: Bytes of JSON.
LONGEST_PREFERENCES = 16_384

LONGEST_GROUP = 100


def change_role(
    engine: Engine, moderator_id: int, role: str, *, actor_id: int | None = None
) -> None:
    """Change a person's role and end their sessions; their tokens are limited to the new role.

    Raises `QueueError` for an unknown role or person.
    """
    check_role(role)
    with engine.begin() as connection:
        set_role(connection, moderator_id, role, actor_id=actor_id)


def set_role(
    connection: Connection, moderator_id: int, role: str, *, actor_id: int | None = None
) -> None:
    """Change a person's role, in the caller's transaction."""
    was = lock_person(connection, moderator_id)["role"]
    if was == role:
        return
    update_person(connection, moderator_id, role=role)
    end_sessions(connection, moderator_id)
    record_event(
        connection, "change_role", actor_id=actor_id, subject_id=moderator_id, role=role, was=was
    )


def disable(engine: Engine, moderator_id: int, *, actor_id: int | None = None) -> None:
    """Disable an account: its sessions end, and its tokens are rejected until `enable`.

    The group that the person chose is deleted: they can no longer do it. Raises `QueueError` for an
    unknown person.
    """
    with engine.begin() as connection:
        if lock_person(connection, moderator_id)["disabled_at"] is not None:
            return
        update_person(connection, moderator_id, disabled_at=func.now())
        end_sessions(connection, moderator_id)
        forget_group(connection, moderator_id)
        record_event(connection, "disable", actor_id=actor_id, subject_id=moderator_id)


def enable(engine: Engine, moderator_id: int, *, actor_id: int | None = None) -> None:
    """Enable a disabled account; its API tokens that were not revoked are valid again.

    Raises `QueueError` for an unknown person.
    """
    with engine.begin() as connection:
        if lock_person(connection, moderator_id)["disabled_at"] is None:
            return
        update_person(connection, moderator_id, disabled_at=None)
        record_event(connection, "enable", actor_id=actor_id, subject_id=moderator_id)


def set_queues(
    engine: Engine,
    moderator_id: int,
    queues: Collection[str] | None,
    *,
    lanes: Lanes | None = None,
    actor_id: int | None = None,
) -> None:
    """Assign a person to `queues` only, or to all queues if None.

    `lanes` are the queue rules in use. Raises `QueueError` for an unknown person, no queue at all,
    or a queue that no rule names and that never had an item.
    """
    names = None if queues is None else sorted(set(queues))
    mine = moderator_queue.c.moderator_id == moderator_id
    with engine.begin() as connection:
        lock_person(connection, moderator_id)
        _check_queues(names, known_queues(connection, lanes or load_lanes()))
        connection.execute(delete(moderator_queue).where(mine))
        if names:
            rows = [{"moderator_id": moderator_id, "queue": name} for name in names]
            connection.execute(insert(moderator_queue), rows)
        record_event(
            connection, "set_queues", actor_id=actor_id, subject_id=moderator_id, queues=names
        )


def save_preferences(engine: Engine, moderator_id: int, preferences: Mapping[str, Any]) -> None:
    """Replace a person's settings of the console.

    Raises `QueueError` for an unknown person, or settings that are not JSON of at most 16 KiB.
    """
    try:
        size = len(json.dumps(preferences, allow_nan=False, ensure_ascii=False).encode())
        # `jsonb` rejects NUL in texts.
        has_nul = "\\u0000" in json.dumps(preferences).replace("\\\\", "")
        invalid = size > LONGEST_PREFERENCES or has_nul
    except (TypeError, ValueError, RecursionError):
        invalid = True
    if invalid:
        raise QueueError(
            f"the preferences of moderator {moderator_id} must be JSON of at most "
            f"{LONGEST_PREFERENCES:,} bytes without NUL"
        )
    with engine.begin() as connection:
        lock_person(connection, moderator_id)
        update_person(connection, moderator_id, preferences=dict(preferences))


def describe_group(engine: Engine, moderator_id: int, group: str | None) -> None:
    """Store a person's group, or delete it if `group` is None.

    The same group again changes nothing: a second draw of the group that they count in would tell
    more than the first. Raises `QueueError` for an unknown person, or a group that is not one line
    of up to 100 characters.
    """
    name = None if group is None else name_key(group)
    with engine.begin() as connection:
        lock_person(connection, moderator_id)
        if name is not None and not (0 < len(name) <= LONGEST_GROUP and name.isprintable()):
            raise QueueError(
                f"the group of moderator {moderator_id} must have 1 to {LONGEST_GROUP} printable "
                "characters; shorten it, or leave it out"
            )
        mine = moderator_group.c.moderator_id == moderator_id
        if name == connection.scalar(select(moderator_group.c.group_name).where(mine)):
            return
        forget_group(connection, moderator_id)
        if name is not None:
            row = {"moderator_id": moderator_id, "group_name": name}
            connection.execute(insert(moderator_group).values(row))


def _check_queues(names: list[str] | None, known: list[str]) -> None:
    if names == []:
        raise QueueError("no queue given; name at least one, or disable the account instead")
    for name in names or ():
        if name not in known:
            nearest = get_close_matches(name, known, n=1)
            hint = f", did you mean {nearest[0]!r}?" if nearest else ""
            raise QueueError(
                f"unknown queue {name[:60]!r}{hint} (known queues: {', '.join(known)})"
            )
