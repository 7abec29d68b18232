"""Migration of a database to the newest revision, and the privileges of the application's role.

The application's role owns no table; the owner migrates. The application reads everything, appends
to the append-only tables (decisions, events, policies), and changes only what its work needs: it
cannot update, delete or truncate the log, nor disable the triggers that reject such changes.
"""

from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config
from psycopg import sql
from sqlalchemy import Connection, Engine, text

from modwatch.common.errors import DatabaseError
from modwatch.review.database import connect, take_turn
from modwatch.review.tables import metadata

#: Not Alembic's default name, so that another program may share the database.
VERSION_TABLE = "modwatch_alembic_version"

#: Any fixed number, on which two concurrent migrations take turns.
_LOCK = 0x6D6F6477

#: The oldest major version of PostgreSQL that the tests have run on; the schema needs it, too.
OLDEST_SERVER = 15


#: Privileges of the application besides SELECT, by table. `UPDATE -a -b`: on all columns but these.
PRIVILEGES = {
    "moderator": ("INSERT", "UPDATE -id -pseudonym -created_at"),
    "moderator_group": ("INSERT", "UPDATE", "DELETE"),
    "moderator_queue": ("INSERT", "DELETE"),
    "access_token": ("INSERT", "UPDATE", "DELETE"),
    "login_attempt": ("INSERT", "UPDATE", "DELETE"),
    "second_factor": ("INSERT", "UPDATE", "DELETE"),
    "known_origin": ("INSERT", "UPDATE", "DELETE"),
    "event": ("INSERT",),
    "event_chain": ("UPDATE -id",),
    "review_item": ("INSERT", "UPDATE -dt -comment_id -kind -round -audit"),
    "lane": ("INSERT",),
    "bulk_close": ("INSERT", "UPDATE -id -moderator_id -criteria -reason -started_at"),
    "decision": ("INSERT",),
    "decision_chain": ("INSERT", "UPDATE -moderator_id"),
    "gold_comment": ("INSERT", "UPDATE -comment_id"),
    "policy_version": ("INSERT",),
    "incident": ("INSERT", "UPDATE -id -kind -name -opened -first_headline -created_at"),
    "incident_event": ("INSERT",),
    "outbox_message": ("INSERT", "DELETE"),
    "outbox_delivery": ("INSERT", "UPDATE"),
    "outbox_cursor": ("INSERT", "UPDATE"),
}


def upgrade(database: Engine | str, *, application: str | None = None) -> None:
    """Migrate `database`, an engine or a URL, to the newest revision, if necessary.

    `application` is the role that the console and the pipeline connect with; it is granted the
    privileges that they need. None: they connect as the owner. One transaction under an advisory
    lock: if two processes call this at once, the second waits and finds nothing to do. Raises
    `DatabaseError`, also for a server that is older than `OLDEST_SERVER`.
    """
    if isinstance(database, str):
        engine = connect(database)
        try:
            upgrade(engine, application=application)
        finally:
            engine.dispose()
        return
    with database.begin() as connection:
        major, *_ = connection.dialect.server_version_info or (0,)
        if int(major) < OLDEST_SERVER:
            raise DatabaseError(
                f"PostgreSQL {major} is not supported; upgrade the server to {OLDEST_SERVER} or "
                "later"
            )
        take_turn(connection, _LOCK)
        configuration = Config()
        configuration.set_main_option(
            "script_location", str(Path(__file__).parent / "migrations").replace("%", "%%")
        )
        configuration.attributes["connection"] = connection
        command.upgrade(configuration, "head")
        if application is not None:
            _grant(connection, application)


def _grant(connection: Connection, role: str) -> None:
    """Grant `role` what the application needs, and revoke everything else in the schema.

    Raises `DatabaseError` if the role does not exist.
    """
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)  # noqa: S101 - narrows the driver's type
    who = sql.Identifier(role)
    connecting = sql.SQL("GRANT CONNECT, TEMPORARY ON DATABASE {} TO {}")
    try:
        driver.execute(connecting.format(sql.Identifier(driver.info.dbname), who))
    except psycopg.errors.UndefinedObject:
        raise DatabaseError(
            f"the role {role!r} of MODWATCH_DATABASE_URL does not exist; create it (CREATE ROLE … "
            "LOGIN)"
        ) from None
    for statement in (
        "GRANT USAGE ON SCHEMA public TO {}",
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC, {}",
        "REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {}",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO {}",
    ):
        driver.execute(sql.SQL(statement).format(who))
    for table, privileges in PRIVILEGES.items():
        for privilege in privileges:
            driver.execute(
                sql.SQL("GRANT {} ON {} TO {}").format(
                    _privilege(table, privilege), sql.Identifier(table), who
                )
            )


def may_alter_log(engine: Engine) -> bool:
    """Return whether the role of `engine` could change the decision log, as its owner could."""
    could = text(
        "SELECT pg_has_role(relowner, 'USAGE') "
        "OR has_table_privilege(oid, 'UPDATE, DELETE, TRUNCATE, TRIGGER') "
        "FROM pg_class WHERE oid = CAST('decision' AS regclass)"
    )
    with engine.connect() as connection:
        return bool(connection.scalar(could))


def _privilege(table: str, privilege: str) -> sql.Composable:
    """Return a privilege in SQL, with its columns."""
    verb, *without = privilege.split(" -")
    if not without:
        return sql.SQL(verb)
    columns = [column.name for column in metadata.tables[table].columns]
    named = sql.SQL(", ").join(sql.Identifier(name) for name in columns if name not in without)
    return sql.SQL("{} ({})").format(sql.SQL(verb), named)
