"""The connection to PostgreSQL."""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg import sql
from sqlalchemy import Engine, Executable, RowMapping, create_engine, event, text
from sqlalchemy.engine import URL, ExceptionContext, make_url
from sqlalchemy.exc import ArgumentError

from modwatch.errors import DatabaseError

logger = logging.getLogger(__name__)

#: Beside each engine of `connect`, one whose statements are transactions by themselves.
_DIRECT: WeakKeyDictionary[Engine, Engine] = WeakKeyDictionary()

_REMEDY = "check MODWATCH_DATABASE_URL and that the server runs"


def connect(url: str, *, pool_size: int = 10) -> Engine:
    """Return an engine that has reached the database of `url`.

    `url` is `postgresql://user:password@host:port/database`, or with `?host=/folder` the server's
    Unix socket. At most `pool_size` connections stay open, 20 more under load. Sessions run in
    UTC. Later losses of the server are raised as `DatabaseError` too, which names host and
    database, never the password. Values never stand in the messages of the driver.
    """
    address = _address(url)
    engine = _engine(address, pool_size=pool_size, max_overflow=20, pool_pre_ping=True)
    with engine.connect() as connection:
        connection.execute(text("SELECT 1"))
    direct = _engine(
        address,
        # Connections over the size would be closed after each statement, and cost more than it.
        pool_size=pool_size + 20,
        max_overflow=0,
        pool_use_lifo=True,
        isolation_level="AUTOCOMMIT",
    )
    _DIRECT[engine] = direct
    event.listen(engine, "engine_disposed", lambda _: direct.dispose())
    return engine


def at_once(
    engine: Engine, statement: Executable, values: Mapping[str, Any]
) -> Sequence[RowMapping]:
    """Return the rows of one statement that is a transaction by itself: one round trip in all.

    After a lost connection it is sent once more, so twice must do the same as once. `engine` comes
    from `connect`.
    """
    for last in (False, True):
        try:
            with _DIRECT[engine].connect() as connection:
                return connection.execute(statement, values).mappings().all()
        except DatabaseError as exc:
            if last or not isinstance(exc.__cause__, psycopg.OperationalError):
                raise
            logger.warning(
                "A connection was lost; its statement is sent once more.",
                extra={"event": "statement_sent_again"},
            )
    raise AssertionError("unreachable")


def now(engine: Engine) -> datetime:
    """Return the time by the database's clock, the only one by which anything here is dated."""
    moment: datetime = at_once(engine, text("SELECT now() AS now"), {})[0]["now"]
    return moment


def _engine(address: URL, **options: Any) -> Engine:
    engine = create_engine(
        address,
        hide_parameters=True,
        connect_args={"connect_timeout": 10, "options": "-c timezone=UTC"},
        **options,
    )
    event.listen(engine, "handle_error", _foreign_errors(address))
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
        if isinstance(foreign, psycopg.errors.UndefinedTable | psycopg.errors.UndefinedColumn):
            return DatabaseError(
                f"{place} lacks the newest review tables; apply the migrations first "
                "(`modwatch migrate`)"
            )
        if isinstance(foreign, psycopg.errors.CheckViolation | psycopg.errors.NotNullViolation):
            # Its detail quotes the row, the text of a comment among it, wherever it is printed.
            foreign.args = (foreign.diag.message_primary or "",)
            return DatabaseError(
                f"{place} refuses a row by "
                f"{foreign.diag.constraint_name or foreign.diag.column_name}; if Modwatch is newer "
                "than its tables, apply the migrations first"
            )
        if isinstance(foreign, psycopg.OperationalError | psycopg.InterfaceError):
            return DatabaseError(f"{place} cannot be reached, or broke off; {_REMEDY}")
        return None

    return refuse


def _place(address: URL) -> str:
    host = address.host or address.query.get("host") or "the default socket"
    return f"PostgreSQL database {address.database!r} on {host}"
