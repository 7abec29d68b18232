"""Export of the decision log as a stream of CSV, JSON Lines or Parquet.

Every format has the same columns (`schema`): the hashes and all columns that they cover, so that
`verification.verify_export` can verify JSON Lines without the database. People appear by pseudonym;
`moderator_id` is the number of the chain. Notes are omitted by default, because they may contain
private information; a row has the commitment to its note in any case.
"""

import csv
import datetime as dt
import io
import json
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any, Literal, get_args

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import (
    BigInteger,
    Column,
    Date,
    DateTime,
    Double,
    Engine,
    Integer,
    LargeBinary,
    Select,
    SmallInteger,
    select,
)

from modwatch.common.errors import QueueError
from modwatch.common.text import neutral
from modwatch.review.log.decision_log import COVERED
from modwatch.review.log.labels import decided_between
from modwatch.review.tables import decision, moderator

Format = Literal["csv", "jsonl", "parquet"]

#: Rows read at a time.
_BATCH = 2_000

#: Rows per row group in Parquet.
ROW_GROUP = 50_000

#: By the type of the column; others are text.
_TYPES = {
    BigInteger: pa.int64(),
    Date: pa.date32(),
    DateTime: pa.timestamp("us", tz="UTC"),
    Double: pa.float64(),
    Integer: pa.int32(),
    LargeBinary: pa.binary(),
    SmallInteger: pa.int8(),
}

#: Columns whose values come from outside.
_FREE = ("moderator", "comment_id", "policy_version", "policy_code", "reason", "note",
         "idempotency_key")  # fmt: skip


def schema(*, with_notes: bool = False) -> pa.Schema:
    """Return the columns of an export; in CSV and JSON, dates are ISO 8601 and hashes are hex.

    >>> schema().names[:4], "note" in schema().names
    (['id', 'moderator', 'position', 'item_id'], False)
    """
    names = ["id", "moderator", *COVERED]
    if with_notes:
        place = names.index("note_commitment") + 1
        names[place:place] = ["note", "note_salt"]
    columns = {name: _column(name) for name in (*names, "previous_hash", "hash")}
    return pa.schema(
        [
            pa.field(name, _TYPES.get(type(column.type), pa.string()), column.nullable)
            for name, column in columns.items()
        ]
    )


def export(
    engine: Engine,
    format: Format,
    *,
    first: dt.date | None = None,
    last: dt.date | None = None,
    with_notes: bool = False,
) -> Iterator[bytes]:
    """Return the log in parts of a file, in the order of time, in constant memory.

    `first` and `last` are the UTC days on which decisions were made, both included; None:
    unlimited. One consistent snapshot. Raises `QueueError` immediately for an unknown format. CSV
    follows RFC 4180, with cells escaped by `text.neutral`.
    """
    if format not in get_args(Format):
        raise QueueError(f"unknown format {format!r}; choose one of {', '.join(get_args(Format))}")
    columns = schema(with_notes=with_notes)
    log = (
        select(*map(_column, columns.names))
        .join(moderator, moderator.c.id == decision.c.moderator_id)
        .where(decided_between(first, last))
        .order_by(decision.c.id)
    )
    return _WRITERS[format](_read(engine, log), columns)


def _column(name: str) -> Column[Any]:
    return moderator.c.pseudonym if name == "moderator" else decision.c[name]


_Rows = Generator[Sequence[Sequence[Any]], None, None]


def _read(engine: Engine, log: Select[Any]) -> _Rows:
    with (
        engine.connect() as connection,  # one statement sees one snapshot
        connection.execution_options(yield_per=_BATCH).execute(log) as result,
    ):
        yield from result.partitions(_BATCH)


def _csv(batches: _Rows, columns: pa.Schema) -> Iterator[bytes]:
    how = [neutral if name in _FREE else _plain for name in columns.names]
    with closing(batches):
        yield _csv_lines([columns.names])
        for rows in batches:
            yield _csv_lines(
                [[do(cell) for do, cell in zip(how, row, strict=True)] for row in rows]
            )


def _csv_lines(rows: Sequence[Sequence[Any]]) -> bytes:
    sheet = io.StringIO(newline="")
    csv.writer(sheet, lineterminator="\r\n").writerows(rows)
    return sheet.getvalue().encode()


def _plain(value: Any) -> Any:
    """Return a value as CSV and JSON write it."""
    if isinstance(value, dt.date):  # a datetime is one, too
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return value


def _jsonl(batches: _Rows, columns: pa.Schema) -> Iterator[bytes]:
    encode = json.JSONEncoder(ensure_ascii=False, default=_plain).encode
    with closing(batches):
        for rows in batches:
            lines = (encode(dict(zip(columns.names, row, strict=True))) for row in rows)
            yield "".join(f"{line}\n" for line in lines).encode()


def _parquet(batches: _Rows, columns: pa.Schema) -> Iterator[bytes]:
    sink = io.BytesIO()
    with closing(batches), pq.ParquetWriter(sink, columns, compression="zstd") as writer:
        for group in _groups(batches, columns):
            writer.write_table(group, row_group_size=group.num_rows)
            yield _taken(sink)
    yield _taken(sink)


def _groups(batches: _Rows, columns: pa.Schema) -> Iterator[pa.Table]:
    """Yield the rows as tables of about `ROW_GROUP`; Arrow needs a tenth of the memory per row."""
    waiting: list[pa.RecordBatch] = []
    for rows in batches:
        cells = zip(zip(*rows, strict=True), columns.types, strict=True)
        arrays = [pa.array(values, kind) for values, kind in cells]
        waiting.append(pa.RecordBatch.from_arrays(arrays, schema=columns))
        if sum(batch.num_rows for batch in waiting) >= ROW_GROUP:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _taken(sink: io.BytesIO) -> bytes:
    """Return what was written to `sink` since the last call."""
    part = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return part


_WRITERS: dict[str, Callable[[_Rows, pa.Schema], Iterator[bytes]]] = {
    "csv": _csv,
    "jsonl": _jsonl,
    "parquet": _parquet,
}
