"""Connections to PostgreSQL, and the digests that it stores in the place of tokens."""

import hashlib
import json
import logging
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from sqlalchemy import Connection, Engine, Executable, create_engine, event, text
from sqlalchemy.engine import URL, ExceptionContext, make_url
from sqlalchemy.exc import ArgumentError

from modwatch.common.errors import DatabaseError

logger = logging.getLogger(__name__)

#: For each engine of `connect`, one in autocommit mode.
_DIRECT: WeakKeyDictionary[Engine, Engine] = WeakKeyDictionary()


def connect(url: str, *, pool_size: int = 10) -> Engine:
    """Return an engine that is connected to the database of `url`.

    `url` is `postgresql://user:password@host:port/database`, or with `?host=/folder` the server's
    Unix socket. Up to `pool_size` connections stay open, 20 more under load. Sessions use UTC. If
    the server is lost later, `DatabaseError` is raised too. It names host and database, never the
    password, and messages of the driver never contain values.
    """
    address = _address(url)
    engine = _engine(address, pool_size=pool_size, max_overflow=20, pool_pre_ping=True)
    with engine.connect() as connection:
        connection.execute(text("SELECT 1"))
    direct = _engine(
        address,
        # Overflow connections would be closed after each statement, which is expensive.
        pool_size=pool_size + 20,
        max_overflow=0,
        pool_use_lifo=True,
        isolation_level="AUTOCOMMIT",
    )
    _DIRECT[engine] = direct
    event.listen(engine, "engine_disposed", lambda _: direct.dispose())
    return engine


class DriverSql:
    """SQL with parameters as `:name`, which `at_once` hands to the driver unchanged.

    For what people wait for: SQLAlchemy describes the columns of each result of a `text` anew,
    which takes more than half of a client's time.
    """

    def __init__(self, statement: str) -> None:
        # psycopg caches the plans of short texts only.
        one_line = " ".join(statement.split())
        self.text = re.sub(r"(?<!:):([a-z_]+)\b", r"%(\1)s", one_line.replace("%", "%%"))


def at_once(
    engine: Engine, statement: Executable | DriverSql, values: Mapping[str, Any] | None = None
) -> Sequence[Mapping[Any, Any]]:
    """Return the rows of one statement, run as its own transaction in one round trip.

    If the connection is lost, the statement is sent once more, so it must be idempotent. `engine`
    is one of `connect`.
    """
    for last in (False, True):
        try:
            if isinstance(statement, DriverSql):
                return _by_driver(_DIRECT[engine], statement, values)
            with _DIRECT[engine].connect() as connection:
                return connection.execute(statement, values).mappings().all()
        except DatabaseError as exc:
            if last or not isinstance(exc.__cause__, psycopg.OperationalError):
                raise
            logger.warning(
                "A connection was lost; the statement is sent again.",
                extra={"event": "statement_sent_again"},
            )
    raise AssertionError("unreachable")


def _by_driver(
    engine: Engine, statement: DriverSql, values: Mapping[str, Any] | None
) -> Sequence[Mapping[Any, Any]]:
    pooled = None
    try:
        pooled = engine.raw_connection()
        driver = pooled.driver_connection
        assert isinstance(driver, psycopg.Connection)  # noqa: S101 - narrows the driver's type
        with driver.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(statement.text, values).fetchall()
    except psycopg.Error as exc:
        if pooled is not None and isinstance(exc, psycopg.OperationalError):
            pooled.invalidate(exc)
        error = _error_of(engine.url, exc)
        if error is None:
            raise
        raise error from exc
    finally:
        if pooled is not None:
            pooled.close()


def now(engine: Engine) -> datetime:
    """Return the time of the database's clock, which all times of `review` are taken from."""
    moment: datetime = at_once(engine, text("SELECT now() AS now"))[0]["now"]
    return moment


def next_time_sql(table: str, column: str, before: str) -> str:
    """Return the SQL expression of the time of the next entry of a chain, whose row is locked.

    `before` is the condition of the entry before it. The clock is read now: a transaction that
    began earlier may append later. An entry is never dated before the one before it, unless that
    is dated a day ahead.

    >>> next_time_sql("event", "happened_at", "position = 1")[:33]
    'greatest(clock_timestamp(), (SELE'
    """
    return (
        f"greatest(clock_timestamp(), (SELECT {column} FROM {table} WHERE {before} "  # noqa: S608
        f"AND {column} < clock_timestamp() + interval '1 day'))"
    )


def take_turn(connection: Connection, key: int) -> None:
    """Wait for other transactions that took the same turn, and keep it until this one ends."""
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})


def _engine(address: URL, **options: Any) -> Engine:
    engine = create_engine(
        address,
        hide_parameters=True,
        connect_args={"connect_timeout": 10, "options": "-c timezone=UTC"},
        **options,
    )

    def translate(context: ExceptionContext) -> DatabaseError | None:
        if context.is_pre_ping:  # a stale connection; the pool opens another
            return None
        return _error_of(address, context.original_exception)

    event.listen(engine, "handle_error", translate)
    return engine


def role_of(url: str) -> str | None:
    """Return the role that connects by `url`; None: that of the operating system's user."""
    return _address(url).username


def create_database(server_url: str, name: str) -> str:
    """Return the URL of the database `name` on the server of `server_url`; create it if absent.

    `server_url` names an existing database of that server, for example `postgres`. Two processes
    may call this at once.
    """
    address = _address(server_url)
    engine = connect(server_url, pool_size=1)
    try:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            exists = connection.scalar(
                text("SELECT 1 FROM pg_database WHERE datname = :name"), {"name": name}
            )
            if exists is None:
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
            "Another process has created the database.",
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
            f"MODWATCH_DATABASE_URL has the dialect {address.drivername!r}, but only PostgreSQL is "
            "supported; write postgresql://user:password@host/database"
        )
    return address.set(drivername="postgresql+psycopg")


def _error_of(address: URL, foreign: BaseException) -> DatabaseError | None:
    """Return the error to raise for one of the driver; None: raise the original."""
    host = address.host or address.query.get("host") or "the default socket"
    place = f"PostgreSQL database {address.database!r} on {host}"
    if isinstance(foreign, psycopg.errors.UndefinedTable | psycopg.errors.UndefinedColumn):
        return DatabaseError(
            f"{place} lacks the newest review tables; apply the migrations (`modwatch migrate`)"
        )
    if isinstance(foreign, psycopg.errors.CheckViolation | psycopg.errors.NotNullViolation):
        # Its detail quotes the row, with the text of a comment.
        foreign.args = (foreign.diag.message_primary or "",)
        return DatabaseError(
            f"{place} rejected a row because of the constraint on "
            f"{foreign.diag.constraint_name or foreign.diag.column_name}; if Modwatch is newer "
            "than its tables, apply the migrations"
        )
    if isinstance(foreign, psycopg.OperationalError | psycopg.InterfaceError):
        return DatabaseError(
            f"{place} cannot be reached or lost the connection; check MODWATCH_DATABASE_URL "
            "and that the server runs"
        )
    return None


def digest_of(token: str) -> bytes:
    """Return the SHA-256 of `token`.

    >>> digest_of("mw_invented").hex()[:8]
    '2f298e57'
    """
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def json_digest(document: Any) -> str:
    """Return the SHA-256 of the canonical JSON of `document`, in hexadecimal.

    >>> json_digest({"b": 1, "a": 2}) == json_digest({"a": 2, "b": 1})
    True
    """
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
