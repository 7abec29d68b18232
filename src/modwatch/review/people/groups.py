"""The groups that moderators assign themselves to, voluntarily."""

from sqlalchemy import Engine, select

from modwatch.review.tables import moderator, moderator_group


def self_assigned_groups(engine: Engine) -> dict[str, str]:
    """Return the group of each moderator who chose one, by pseudonym.

    For figures of groups only: what a single person chose is never shown.
    """
    query = select(moderator.c.pseudonym, moderator_group.c.group_name).join(
        moderator_group, moderator_group.c.moderator_id == moderator.c.id
    )
    with engine.connect() as connection:
        return {row.pseudonym: row.group_name for row in connection.execute(query)}
