"""The owner's view of a review database: tests connect as the application, which owns nothing."""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib import resources as migrations
from typing import Any

from sqlalchemy import Connection, Engine, insert, make_url, text

from modwatch.common.ledger.chain import GENESIS
from modwatch.review.database import connect
from modwatch.review.tables import event_chain, metadata


def owner_url(url: str) -> str:
    """Return the URL by which the owner connects to the database of `url`."""
    return make_url(url).set(username="postgres").render_as_string(hide_password=False)


@contextmanager
def as_owner(database: Engine | str) -> Iterator[Connection]:
    """Yield a connection of the owner."""
    url = database if isinstance(database, str) else str(database.url)
    engine = connect(owner_url(url), pool_size=1)
    try:
        with engine.begin() as connection:
            connection.execute(text("SET LOCAL lock_timeout = '30s'"))
            yield connection
    finally:
        engine.dispose()


@contextmanager
def unguarded(database: Engine | str) -> Iterator[Connection]:
    """Yield a connection that may write what nobody could: no trigger, no constraint of keys."""
    with as_owner(database) as connection:
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        yield connection


def execute(engine: Engine, statement: str, **values: object) -> None:
    """Run a statement as the application."""
    with engine.begin() as connection:
        connection.execute(text(statement), values)


def tamper(engine: Engine, statement: str, **values: object) -> None:
    """Run a statement as `unguarded`."""
    with unguarded(engine) as connection:
        connection.execute(text(statement), values)


def scalar(engine: Engine, query: str, **values: object) -> Any:
    with engine.connect() as connection:
        return connection.scalar(text(query), values)


def scalars(engine: Engine, query: str, **values: object) -> list[Any]:
    with engine.connect() as connection:
        return list(connection.scalars(text(query), values))


@dataclass(frozen=True)
class Uncommitted:
    """In place of an engine: lets what opens a connection read what this one has not committed."""

    connection: Connection

    def connect(self) -> "Uncommitted":
        return self

    def execution_options(self, **_: object) -> AbstractContextManager[Connection]:
        return nullcontext(self.connection)


#: Numbers items 1, 2, 3 …, so that a test can name one. `AS_INSTALLED` is what installations have.
NUMBERED = """
    CREATE SEQUENCE IF NOT EXISTS review_item_id_seq;
    GRANT USAGE ON review_item_id_seq TO PUBLIC;
    ALTER TABLE review_item ALTER id SET DEFAULT nextval('review_item_id_seq'),
        ALTER version SET DEFAULT 1
"""

_SCHEMA = (migrations.files("modwatch.review.migrations.versions") / "0001_schema.sql").read_text()
_DEFAULTS = re.search(r"id bigint PRIMARY KEY DEFAULT (.*?),\n    dt date", _SCHEMA, re.S)
_VERSION = re.search(r"version integer NOT NULL DEFAULT (.*?),\n", _SCHEMA)
assert _DEFAULTS is not None
assert _VERSION is not None
AS_INSTALLED = (
    f"ALTER TABLE review_item ALTER id SET DEFAULT {_DEFAULTS[1]}, "
    f"ALTER version SET DEFAULT {_VERSION[1]}"
)

#: PostgreSQL makes new files for each table and index that it truncates, which takes ten times as
#: long as the deletion of a few rows. Above a mebibyte, dead rows would cost more.
_EMPTY = """
    DO $$ BEGIN
        LOCK TABLE {names} IN SHARE ROW EXCLUSIVE MODE; -- waits for transactions that write
        IF (
            SELECT sum(pg_relation_size(oid)) > 1048576 FROM pg_class
            WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
        ) THEN
            TRUNCATE {names};
        ELSE
            {deletions}
        END IF;
        PERFORM setval(format('%I.%I', schemaname, sequencename), start_value, false)
        FROM pg_sequences;
    END $$
"""


def empty(owner: Engine) -> None:
    """Empty the review database; a new one for each test would cost megabytes of disk."""
    names = list(metadata.tables)
    deletions = " ".join(f"DELETE FROM {name};" for name in names)
    with owner.begin() as connection:
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        connection.execute(text("SET LOCAL lock_timeout = '30s'"))
        connection.execute(text(_EMPTY.format(names=", ".join(names), deletions=deletions)))
        connection.execute(insert(event_chain).values(id=1, length=0, hash=GENESIS))
