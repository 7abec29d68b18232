"""The connection to PostgreSQL."""

import logging
from collections.abc import Callable

import psycopg
from psycopg import sql
from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.engine import URL, ExceptionContext, make_url
from sqlalchemy.exc import ArgumentError

from modwatch.errors import DatabaseError

logger = logging.getLogger(__name__)

_REMEDY = "check MODWATCH_DATABASE_URL and that the server runs"


def connect(url: str, *, pool_size: int = 10) -> Engine:
    """Return an engine that has reached the database of `url`.

    `url` is `postgresql://user:password@host:port/database`, or with `?host=/folder` the server's
    Unix socket. At most `pool_size` connections stay open, 20 more under load. Sessions run in
    UTC. Later losses of the server are raised as `DatabaseError` too, which names host and
    database, never the password. Values never stand in the messages of the driver.
    """
    address = _address(url)
    engine = create_engine(
        address,
        pool_size=pool_size,
        max_overflow=20,
        pool_pre_ping=True,
        hide_parameters=True,
        connect_args={"connect_timeout": 10, "options": "-c timezone=UTC"},
    )
    event.listen(engine, "handle_error", _foreign_errors(address))
    with engine.connect() as connection:
        connection.execute(text("SELECT 1"))
    return engine


def create_database(server_url: str, name: str) -> str:
    """Return the URL of the database `name` on the server of `server_url`; create it if absent.

    `server_url` names any existing database of that server, for example `postgres`. Safe when two
    processes call it at once.
    """
    address = _address(server_url)
    engine = connect(server_url, pool_size=1)
    try:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            found = connection.scalar(
                text("SELECT 1 FROM pg_database WHERE datname = :name"), {"name": name}
            )
            if found is None:
                _create(connection.connection.driver_connection, name)
    finally:
        engine.dispose()
    return address.set(database=name).render_as_string(hide_password=False)


def _create(connection: object, name: str) -> None:
    assert isinstance(connection, psycopg.Connection)  # noqa: S101 - narrows the driver's type
    statement = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name))
    try:
        connection.execute(statement)
    except (psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
        logger.info(
            "Another process created the database first.",
            extra={"event": "database_exists", "database": name},
        )


def _address(url: str) -> URL:
    try:
        address = make_url(url)
    except ArgumentError as exc:
        raise DatabaseError(
            "MODWATCH_DATABASE_URL is not a URL; write postgresql://user:password@host/database"
        ) from exc
    if address.get_backend_name() not in ("postgresql", "postgres"):
        raise DatabaseError(
            f"MODWATCH_DATABASE_URL names the dialect {address.drivername!r}, and only PostgreSQL "
            "will do; write postgresql://user:password@host/database"
        )
    return address.set(drivername="postgresql+psycopg")


def _foreign_errors(address: URL) -> Callable[[ExceptionContext], DatabaseError | None]:
    place = _place(address)

    def refuse(context: ExceptionContext) -> DatabaseError | None:
        if context.is_pre_ping:  # a stale connection; the pool opens another
            return None
        foreign = context.original_exception
        if isinstance(foreign, psycopg.errors.UndefinedTable):
            return DatabaseError(f"{place} lacks the review tables; apply the migrations first")
        if isinstance(foreign, psycopg.errors.CheckViolation):
            # Its detail quotes the row, the text of a comment among it, wherever it is printed.
            foreign.args = (foreign.diag.message_primary or "",)
            return DatabaseError(
                f"{place} refuses a row by {foreign.diag.constraint_name}; if Modwatch is newer "
                "than its tables, apply the migrations first"
            )
        if isinstance(foreign, psycopg.OperationalError | psycopg.InterfaceError):
            return DatabaseError(f"{place} cannot be reached, or broke off; {_REMEDY}")
        return None

    return refuse


def _place(address: URL) -> str:
    host = address.host or address.query.get("host") or "the default socket"
    return f"PostgreSQL database {address.database!r} on {host}"
