"""Brings a database to the newest revision of the review tables."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, text

from modwatch.review.database import connect

#: Apart from Alembic's default name, so that another program may share the database.
VERSION_TABLE = "modwatch_alembic_version"

#: Any fixed number: two processes that migrate at once take turns on it.
_LOCK = 0x6D6F6477


def upgrade(database: Engine | str) -> None:
    """Bring `database`, an engine or a URL, to the newest revision; none needed, none applied.

    Everything happens in one transaction under an advisory lock: when two processes call this at
    once, the second waits and finds nothing to do. Raises `DatabaseError`.
    """
    if isinstance(database, str):
        engine = connect(database)
        try:
            upgrade(engine)
        finally:
            engine.dispose()
        return
    with database.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        configuration = Config()
        configuration.set_main_option(
            "script_location", str(Path(__file__).parent / "migrations").replace("%", "%%")
        )
        configuration.attributes["connection"] = connection
        command.upgrade(configuration, "head")
