"""Groups: voluntary self-descriptions of moderators, used for statistics over many people only.

They are stored in a separate table, and changes are not recorded as events: access to the accounts
is not access to the groups. A limitation: comparing statistics by group before and after a person
joins reveals their group.
"""

from sqlalchemy import Connection, Engine, delete, select
from sqlalchemy.dialects import postgresql

from modwatch.errors import QueueError
from modwatch.review.people.pseudonyms import name_key
from modwatch.review.tables import moderator, moderator_group

LONGEST_GROUP = 100

#: Statistics of smaller groups could identify people.
SMALLEST_MINIMUM = 5

#: Name of all groups below the minimum, combined.
SMALLER_GROUPS = "smaller groups"


def describe_group(engine: Engine, moderator_id: int, group: str | None) -> None:
    """Store a person's group, or delete it if `group` is None.

    Raises `QueueError` for an unknown person, or a group that is not one line of up to 100
    characters.
    """
    with engine.begin() as connection:
        known = connection.scalar(select(moderator.c.id).where(moderator.c.id == moderator_id))
        if known is None:
            raise QueueError(f"moderator {moderator_id} does not exist; create the account first")
        if group is None:
            mine = moderator_group.c.moderator_id == moderator_id
            connection.execute(delete(moderator_group).where(mine))
        else:
            describe(connection, moderator_id, group)


def describe(connection: Connection, moderator_id: int, group: str) -> None:
    """Store a person's group, in the caller's transaction."""
    name = name_key(group)
    if not 0 < len(name) <= LONGEST_GROUP or not name.isprintable() or name == SMALLER_GROUPS:
        raise QueueError(
            f"the group of moderator {moderator_id} must have 1 to {LONGEST_GROUP} printable "
            "characters; shorten it, or leave it out"
        )
    row = {"moderator_id": moderator_id, "group_name": name}
    connection.execute(
        postgresql.insert(moderator_group)
        .values(row)
        .on_conflict_do_update(index_elements=["moderator_id"], set_=row)
    )
