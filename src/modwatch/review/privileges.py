"""What the application may do to the tables: its role owns none of them.

The owner migrates. The application reads everything, adds to the append-only tables (decisions,
events, policies), and changes only what its work needs: it cannot update, delete or truncate the
log, nor disable the triggers that reject it.
"""

import psycopg
from psycopg import sql
from sqlalchemy import Connection, Engine, text

from modwatch.common.errors import DatabaseError
from modwatch.review.tables import metadata

#: What the application may do beside reading, by table. `UPDATE -a -b`: of all columns but these.
PRIVILEGES = {
    "moderator": ("INSERT", "UPDATE -id -pseudonym -created_at"),
    "moderator_group": ("INSERT", "UPDATE", "DELETE"),
    "moderator_queue": ("INSERT", "DELETE"),
    "access_token": ("INSERT", "UPDATE"),
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
    "alert_action": ("INSERT",),
    "outbox_message": ("INSERT",),
    "outbox_delivery": ("INSERT", "UPDATE"),
    "outbox_cursor": ("INSERT", "UPDATE"),
}


def grant(connection: Connection, role: str) -> None:
    """Give `role` what the application needs, and take from it all else in the schema.

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
    with engine.connect() as connection:
        return bool(
            connection.scalar(
                text(
                    "SELECT pg_has_role(relowner, 'USAGE') "
                    "OR has_table_privilege(oid, 'UPDATE, DELETE, TRUNCATE, TRIGGER') "
                    "FROM pg_class WHERE oid = 'decision'::regclass".replace("::", r"\:\:")
                )
            )
        )


def _privilege(table: str, privilege: str) -> sql.Composable:
    """Return a privilege in SQL, with its columns."""
    name, *without = privilege.split(" -")
    if not without:
        return sql.SQL(name)
    columns = [column.name for column in metadata.tables[table].columns]
    named = sql.SQL(", ").join(sql.Identifier(each) for each in columns if each not in without)
    return sql.SQL("{} ({})").format(sql.SQL(name), named)
