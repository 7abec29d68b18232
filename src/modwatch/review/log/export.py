"""The decision log as a file: CSV, JSON lines or Parquet, whole and as it is read.

Every format has the same columns (`schema`): all that the hashes cover, and the hashes, so that
`check.verify_export` can check JSON lines without the database. People appear by pseudonym;
`moderator_id` is a bare number, which names the chain. Notes are left out unless asked for, since
people write private things there: the hash of a row that has one (`has_note`) can then be followed
but not recomputed.
"""

import csv
import datetime as dt
import io
import json
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any, Literal, get_args

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Engine, Select, select

from modwatch.cells import neutral
from modwatch.errors import QueueError
from modwatch.review.log.hashing import COVERED
from modwatch.review.tables import ACTIONS, decision, moderator

Format = Literal["csv", "jsonl", "parquet"]

#: Rows read at a time.
_BATCH = 2_000

#: Rows of a row group in Parquet.
ROW_GROUP = 50_000

_MOMENT = pa.timestamp("us", tz="UTC")
_TYPES = {
    "id": pa.int64(),
    "moderator": pa.string(),
    "position": pa.int64(),
    "item_id": pa.int64(),
    "dt": pa.date32(),
    "item_version": pa.int32(),
    "moderator_id": pa.int64(),
    "label": pa.int8(),
    "seconds": pa.float64(),
    "refers_to": pa.int64(),
    "decided_at": _MOMENT,
    "has_note": pa.bool_(),
    "format": pa.int16(),
    "previous_hash": pa.binary(),
    "hash": pa.binary(),
}
_NULLABLE = ("label", "policy_version", "policy_code", "reason", "note", "seconds", "refers_to")

#: Cells that somebody outside may have had a hand in.
_FREE = ("moderator", "comment_id", "policy_version", "policy_code", "reason", "note",
         "idempotency_key")  # fmt: skip


def schema(*, with_notes: bool = False) -> pa.Schema:
    """Return the columns of an export; in CSV and JSON, dates are ISO 8601 and hashes hex.

    >>> schema().names[:4], "note" in schema().names
    (['id', 'moderator', 'position', 'item_id'], False)
    """
    names = ["id", "moderator", *COVERED]
    at = names.index("note")
    names[at : at + 1] = ["has_note", "note"] if with_notes else ["has_note"]
    return pa.schema(
        [
            pa.field(name, _TYPES.get(name, pa.string()), nullable=name in _NULLABLE)
            for name in (*names, "format", "previous_hash", "hash")
        ]
    )


def export(
    engine: Engine,
    format: Format,
    *,
    first: dt.date | None = None,
    last: dt.date | None = None,
    actions: Collection[str] | None = None,
    with_notes: bool = False,
) -> Iterator[bytes]:
    """Return the log as the parts of a file, in the order of time: however long, constant memory.

    `first` and `last` are the UTC days on which decisions were made, both included; None: from
    the beginning, to the end. One consistent snapshot. Raises `QueueError` at once for an unknown
    format or action. CSV follows RFC 4180; `cells.neutral` says what is done to its cells.
    """
    if format not in get_args(Format):
        raise QueueError(f"unknown format {format!r}; choose one of {', '.join(get_args(Format))}")
    unknown = sorted(set(actions or ()) - set(ACTIONS))
    if unknown:
        raise QueueError(f"unknown action {unknown[0]!r}; choose of {', '.join(ACTIONS)}")
    columns = schema(with_notes=with_notes)
    log = _log(columns, first, last, actions)
    return _WRITERS[format](_read(engine, log), columns)


def _log(
    columns: pa.Schema,
    first: dt.date | None,
    last: dt.date | None,
    actions: Collection[str] | None,
) -> Select[Any]:
    special = {
        "moderator": moderator.c.pseudonym.label("moderator"),
        "has_note": decision.c.note.is_not(None).label("has_note"),
    }
    log = select(
        *(special[name] if name in special else decision.c[name] for name in columns.names)
    ).join(moderator, moderator.c.id == decision.c.moderator_id)
    if first is not None:
        log = log.where(decision.c.decided_at >= _midnight(first))
    if last is not None and last < dt.date.max:  # after which no day begins
        log = log.where(decision.c.decided_at < _midnight(last) + dt.timedelta(days=1))
    if actions is not None:
        log = log.where(decision.c.action.in_(list(actions)))
    return log.order_by(decision.c.id)


def _midnight(day: dt.date) -> dt.datetime:
    return dt.datetime.combine(day, dt.time(), dt.UTC)


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
    return str(value).lower() if isinstance(value, bool) else value


def _jsonl(batches: _Rows, columns: pa.Schema) -> Iterator[bytes]:
    encode = json.JSONEncoder(ensure_ascii=False, default=_plain).encode
    with closing(batches):
        for rows in batches:
            lines = (encode(dict(zip(columns.names, row, strict=True))) for row in rows)
            yield "".join(f"{line}\n" for line in lines).encode()


def _parquet(batches: _Rows, columns: pa.Schema) -> Iterator[bytes]:
    sink = _Sink()
    with closing(batches), pq.ParquetWriter(sink, columns, compression="zstd") as writer:
        for group in _groups(batches, columns):
            writer.write_table(group, row_group_size=group.num_rows)
            yield sink.take()
    yield sink.take()


def _groups(batches: _Rows, columns: pa.Schema) -> Iterator[pa.Table]:
    """Yield the rows as tables of about `ROW_GROUP`; Arrow holds a row in a tenth of the memory."""
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


class _Sink(io.RawIOBase):
    """A file that hands out what was written to it, and forgets it."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, part: Any) -> int:
        self._parts.append(bytes(part))
        return len(part)

    def take(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


_WRITERS: dict[str, Callable[[_Rows, pa.Schema], Iterator[bytes]]] = {
    "csv": _csv,
    "jsonl": _jsonl,
    "parquet": _parquet,
}
