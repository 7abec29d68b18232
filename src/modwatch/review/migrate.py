"""Migration of a database to the newest revision of the review tables."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine

from modwatch.review.database import connect, take_turn
from modwatch.review.privileges import grant

#: Not Alembic's default name, so that another program may share the database.
VERSION_TABLE = "modwatch_alembic_version"

#: Any fixed number, on which two concurrent migrations take turns.
_LOCK = 0x6D6F6477


def upgrade(database: Engine | str, *, application: str | None = None) -> None:
    """Migrate `database`, an engine or a URL, to the newest revision, if necessary.

    `application` is the role that the console and the pipeline connect with; it gets the privileges
    that they need. None: they connect as the owner. One transaction under an advisory lock: if two
    processes call this at once, the second waits and finds nothing to do. Raises `DatabaseError`.
    """
    if isinstance(database, str):
        engine = connect(database)
        try:
            upgrade(engine, application=application)
        finally:
            engine.dispose()
        return
    with database.begin() as connection:
        take_turn(connection, _LOCK)
        configuration = Config()
        configuration.set_main_option(
            "script_location", str(Path(__file__).parent / "migrations").replace("%", "%%")
        )
        configuration.attributes["connection"] = connection
        command.upgrade(configuration, "head")
        if application is not None:
            grant(connection, application)
