"""Rows that break the rules of their tables, as whoever owns a database can store them."""

import random
from collections.abc import Iterator

from databases import owner_url
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from modwatch.common.errors import DatabaseError
from modwatch.review.database import connect

#: What the verification of the log reads.
TABLES = (
    "decision", "decision_chain", "event", "event_chain", "moderator", "moderator_queue",
    "gold_comment", "policy_version", "review_item", "outbox_message", "outbox_cursor",
)  # fmt: skip

_DEEP = "repeat('[', 2000) || '1' || repeat(']', 2000)"

#: JSON of every shape: as a whole document, and as the value of each key that is read.
SHAPES = (
    "'null'", "'true'", "'0'", "'-1e400'", "repeat('9', 5000)", "'\"\"'", "'\"x\"'", "'[]'",
    "'[null, 1, \"x\"]'", "'{}'", "'{\"a\": {\"b\": []}}'", _DEEP,
)  # fmt: skip
KEYS = (
    "pseudonym", "role", "queues", "comment_id", "commitment", "version", "digest", "node",
    "disabled", "event", "sequence", "decision_id", "dsa_category", "decided_at", "label",
)  # fmt: skip
ACTIONS = (
    "create", "change_role", "disable", "enable", "set_queues", "add_gold", "retire_gold",
    "register_policy", "log_in", "erase",
)  # fmt: skip

_TIMES = (
    "'infinity'",
    "'-infinity'",
    "'294276-12-31 23:59:59Z'",
    "'0044-03-15 BC'",
    "'9999-12-31'",
)
_NUMBERS = ("'NaN'", "'Infinity'", "'-Infinity'", "'-0'", "'1e300'")
VALUES = {
    "text": ("''", "repeat('x', 20000)", "chr(1)", "E'\\u202e\\''", "'decided'", "'review'",
             "'imported'", *(f"'{action}'" for action in ACTIONS)),
    "bigint": ("0", "-1", "1", "2", "9223372036854775807", "-9223372036854775808"),
    "integer": ("0", "-1", "2147483647", "-2147483648"),
    "smallint": ("0", "1", "-1", "32767", "-32768"),
    "double precision": _NUMBERS,
    "real": (*_NUMBERS[:4], "'1e30'"),
    "timestamp with time zone": _TIMES,
    "date": ("'infinity'", "'-infinity'", "'5874897-12-31'", "'0044-03-15 BC'"),
    "bytea": ("''", "'\\x00'", "sha256('')", "convert_to(repeat('x', 20000), 'UTF8')"),
    "xid8": ("'0'", "'18446744073709551615'"),
    "ARRAY": ("'{}'", "'{NULL}'", "'{{1},{2}}'"),
}  # fmt: skip

_COLUMNS = """
    SELECT column_name, data_type FROM information_schema.columns
    WHERE table_schema = 'public' AND table_name = :name ORDER BY ordinal_position
"""

_RULES = """
    SELECT format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS %I CASCADE',
        conrelid::regclass, conname)
    FROM pg_constraint WHERE contype IN ('c', 'f', 'p', 'u') AND conrelid = ANY (:tables)
    UNION ALL
    SELECT format('ALTER TABLE %s ALTER %I DROP IDENTITY IF EXISTS, ALTER %I DROP NOT NULL',
        attrelid::regclass, attname, attname)
    FROM pg_attribute WHERE attnotnull AND attnum > 0 AND attrelid = ANY (:tables)
"""


def without_rules(database: Engine) -> Engine:
    """Return an engine of the owner, after dropping every constraint and trigger for good."""
    owner = connect(owner_url(database.url.render_as_string(hide_password=False)), pool_size=1)
    with owner.begin() as connection:
        drop_rules(connection)
    return owner


def drop_rules(connection: Connection) -> None:
    """Drop every constraint and trigger of `TABLES`."""
    tables = f"CAST('{{{', '.join(TABLES)}}}' AS regclass[])"
    rules = _RULES.replace(":tables", tables).replace("::", r"\:\:")
    for statement in connection.scalars(text(rules)).all():
        connection.execute(text(statement))
    for table in TABLES:
        connection.execute(text(f"ALTER TABLE {table} DISABLE TRIGGER ALL"))


def attacks(connection: Connection, chance: random.Random, values: int) -> Iterator[str]:
    """Yield statements that take rows away, repeat one, or write `values` values into each column.

    Into one row or all; NULL is always among the values.
    """
    for table in TABLES:
        rows = connection.scalar(text(f"SELECT count(*) FROM {table}")) or 1
        one = f"ctid = (SELECT ctid FROM {table} ORDER BY ctid OFFSET {{}} LIMIT 1)"
        yield f"DELETE FROM {table}"
        yield f"INSERT INTO {table} SELECT * FROM {table} LIMIT 1"
        for row in chance.sample(range(rows), min(rows, 2 * values)):
            yield f"DELETE FROM {table} WHERE {one.format(row)}"
        for column, kind in connection.execute(text(_COLUMNS), {"name": table}):
            junk = [_junk(chance, kind) for _ in range(values - 1)]
            for value in ["NULL", *junk]:
                where = chance.choice(("true", one.format(chance.randrange(rows))))
                yield f"UPDATE {table} SET {column} = {value} WHERE {where}"


def spoil(connection: Connection, chance: random.Random, rows: int) -> Iterator[str]:
    """Store malformed rows, each a copy of a row with junk in one or two columns; yield them."""
    kinds = {
        table: {row[0]: row[1] for row in connection.execute(text(_COLUMNS), {"name": table})}
        for table in TABLES
    }
    number = 1_000_000
    for _ in range(rows):
        table, number = chance.choice(TABLES), number + 1
        columns = kinds[table]
        junk = {
            name: _junk(chance, columns[name])
            for name in chance.sample(sorted(columns), chance.choice((1, 1, 2)))
        }
        if columns.get("id") == "bigint" and (table == "decision" or "id" not in junk):
            junk["id"] = str(number)  # what was there comes first
        values = ", ".join(junk.get(name, name) for name in columns)
        statement = (
            f"INSERT INTO {table} SELECT {values} FROM {table} WHERE ctid = "
            f"(SELECT ctid FROM {table} ORDER BY ctid LIMIT 1 OFFSET {chance.randrange(3)})"
        )
        try:
            with connection.begin_nested():
                connection.execute(text(statement.replace(":", r"\:")))
        except (DBAPIError, DatabaseError):
            continue  # not even the owner can store it
        yield f"{table}: {junk}"


def _junk(chance: random.Random, kind: str) -> str:
    if chance.random() < 0.15:
        return "NULL"
    if kind != "jsonb":
        return chance.choice(VALUES[kind])
    shape = chance.choice(SHAPES)
    if chance.random() < 0.7:
        keys = chance.sample(KEYS, chance.choice((1, 2, 4)))
        pairs = " || ',' || ".join(f"'\"{key}\": ' || ({chance.choice(SHAPES)})" for key in keys)
        shape = f"'{{' || {pairs} || '}}'"
    return f"CAST({shape} AS jsonb)"
