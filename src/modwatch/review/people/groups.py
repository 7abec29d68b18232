"""What moderators say about themselves, if they wish; it serves sums over many people alone.

It stands in a table of its own, and no event tells who said something: access to the accounts is
not access to it. A limit: whoever asks for figures by group before and after one person joins one
sees it grow by one.
"""

from sqlalchemy import Connection, Engine, delete, select
from sqlalchemy.dialects import postgresql

from modwatch.errors import QueueError
from modwatch.review.people.pseudonyms import name_key
from modwatch.review.tables import moderator, moderator_group

LONGEST_GROUP = 100

#: Fewer people than this cannot be told apart from their group.
SMALLEST_MINIMUM = 5

#: All groups below the minimum, together.
SMALLER_GROUPS = "smaller groups"


def describe_group(engine: Engine, moderator_id: int, group: str | None) -> None:
    """Store what a person says about themselves, or forget it if `group` is None.

    Raises `QueueError` for an unknown person, or for more than a line of 100 characters.
    """
    with engine.begin() as connection:
        known = connection.scalar(select(moderator.c.id).where(moderator.c.id == moderator_id))
        if known is None:
            raise QueueError(f"there is no moderator {moderator_id}; create the account first")
        if group is None:
            mine = moderator_group.c.moderator_id == moderator_id
            connection.execute(delete(moderator_group).where(mine))
        else:
            describe(connection, moderator_id, group)


def describe(connection: Connection, moderator_id: int, group: str) -> None:
    """Store what a person says about themselves, in the caller's transaction."""
    name = name_key(group)
    if not 0 < len(name) <= LONGEST_GROUP or not name.isprintable() or name == SMALLER_GROUPS:
        raise QueueError(
            f"the group of moderator {moderator_id} is not 1 to {LONGEST_GROUP} printable "
            "characters; write a short line, or leave it out"
        )
    row = {"moderator_id": moderator_id, "group_name": name}
    connection.execute(
        postgresql.insert(moderator_group)
        .values(row)
        .on_conflict_do_update(index_elements=["moderator_id"], set_=row)
    )
