"""Delta tables with one partition per day.

A day is replaced in one commit, so a reader sees either the old rows or the new ones. Rows are read
and written in batches: memory does not grow with the size of a day.
"""

import datetime
import logging
import posixpath
import threading
import uuid
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial, reduce
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import (
    ColumnProperties,
    CommitProperties,
    DeltaTable,
    WriterProperties,
    write_deltalake,
)
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from modwatch.common.columns import Column
from modwatch.common.errors import LakeError
from modwatch.data.lake.files import keep_private
from modwatch.data.lake.schemas import (
    EXTENDED,
    PARTITIONS,
    SOURCED,
    TABLES,
    field_of,
    measured_columns,
    schema_of,
    type_of,
)

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)

#: Value of a column that further restricts the rows to read or replace.
Key = str | int

_BATCH_ROWS = 10_000

#: Opening a table reads the commits since its last checkpoint, and a step of a day opens several.
#: Ten is the default of Delta Lake; that of deltalake is a hundred.
_CHECKPOINT_COMMITS = 10

#: A file without a commit may be one that a task is still writing, for two hours at most.
_UNCOMMITTED_HOURS = 24

#: Of several that make a table, as the shards of a first day, one does. A repeated commit would
#: make it again, and abort what the others are writing.
_ONCE = CommitProperties(max_commit_retries=0)

#: Tables that are tried on an object store, and writers that make each at once.
_TRIALS, _WRITERS = 3, 4


def _writer(table: str) -> WriterProperties:
    """Return how files are written; their footers quote no text, as the log does not."""
    return WriterProperties(
        compression="ZSTD",
        # A reader loads whole row groups, and the default of a million rows of text is a gigabyte.
        max_row_group_size=20_000,
        default_column_properties=ColumnProperties(statistics_enabled="NONE"),
        column_properties={
            name: ColumnProperties(statistics_enabled="CHUNK")
            for name in measured_columns(TABLES[table])
        },
    )


def as_batch(frame: "pd.DataFrame", schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of `schema` in `frame` as one batch of a table of the lake."""
    # Not RecordBatch.from_pandas, which cannot take the empty columns of strings of an empty day.
    return _one_batch(pa.Table.from_pandas(frame, schema=schema, preserve_index=False))


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    arrays = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Rows by table; a row that was read twice counts twice.

    >>> traffic = Traffic()
    >>> traffic.read["comments"] += 2031
    >>> traffic.written.update(scores=2030, quarantine=1)
    >>> str(traffic)
    'read: comments 2,031; wrote: scores 2,030, quarantine 1'
    """

    read: Counter[str] = field(default_factory=Counter)
    written: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return f"read: {_listed(self.read)}; wrote: {_listed(self.written)}"


def _listed(rows: Counter[str]) -> str:
    return ", ".join(f"{table} {count:,}" for table, count in rows.items()) or "nothing"


@dataclass(frozen=True, kw_only=True)
class Lake:
    """The Delta tables under one root.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     Lake(root=root).days("comments")
    []
    """

    #: Folder or object-store URL; deltalake reads the credentials from the environment.
    root: str
    #: The platform's own. Rows that were stored without one lack its value; one that is stored and
    #: not named here is not read.
    columns: tuple[Column, ...] = ()
    #: What was read and written through this object.
    traffic: Traffic = field(default_factory=Traffic, compare=False, repr=False)
    #: Of a steady lake, the version of each table that is read, None of one that does not exist;
    #: of another lake None: each read takes the newest.
    versions: dict[str, DeltaTable | None] | None = field(default=None, compare=False, repr=False)

    def steady(self) -> "Lake":
        """Return the lake for one step that reads the same tables again and again, in one thread.

        Each table is read in the version of its first read, or of this object's last write. To
        open one takes 3 ms, and a measured window reads 300 times.
        """
        return replace(self, versions={})

    def schema(self, table: str) -> pa.Schema:
        """Return the schema of a table, with the platform's own columns."""
        return schema_of(table, self.columns)

    def whole(self) -> "Lake":
        """Return the lake with all columns that rows of the source were ever stored with.

        What a setting does not name any more is personal data still: it counts as erasable.
        """
        named = {column.name: column for column in self.columns}
        stored = {
            field.name: replace(
                named.get(field.name, Column(name=field.name, erasable=True)), type=type_of(field)
            )
            for table in SOURCED
            if (delta := self._open(table))
            for field in _stored(delta)
            if field.name not in TABLES[table].names
        }
        return replace(self, columns=tuple(stored.values()))

    def replace(
        self, table: str, day: datetime.date, batches: Iterable[pa.RecordBatch], **keys: Key
    ) -> int:
        """Replace the rows of `day` in `table` by `batches`; return the number of new rows.

        Args:
            table: a name in `schemas.TABLES`; the batches must have its schema, but for columns of
                the platform or its model, which may be missing.
            day: the `dt` of every row.
            batches: read once, as a stream; no batches leave the day empty. NaN becomes null.
            keys: further columns that select the rows to replace, such as `stage="comments"`.

        Raises:
            LakeError: the lake cannot be written, or a row does not match the schema. The message
                contains no values.
        """
        schema = self.schema(table)
        counted = _Counted(batches, schema, {*schema.names} - {*TABLES[table].names})
        try:
            keep_private(self.root)
            delta = self._open(table) or self._create(table)
            stored = _stored(delta) if table in EXTENDED else schema
            self._require_types(table, stored, stored.names)
            write_deltalake(
                delta,
                pa.RecordBatchReader.from_batches(schema, counted),
                mode="overwrite",
                predicate=_predicate(day, keys),
                schema_mode=None if {*stored.names} == {*schema.names} else "merge",
                writer_properties=_writer(table),
            )
            if delta.version() % _CHECKPOINT_COMMITS == 0:
                delta.create_checkpoint()
        except (DeltaError, OSError, pa.ArrowException) as exc:
            if counted.failure is not None:  # raised by the source, not by the lake
                raise counted.failure from None
            # The message of Delta previews rows, so it is dropped (`from None`).
            raise LakeError(
                f"table {table} of {self.root} could not be written for {day} "
                f"({type(exc).__name__}); check MODWATCH_LAKE, its permissions and free space"
            ) from None
        if self.versions is not None:
            self.versions[table] = delta
        self.traffic.written[table] += counted.rows
        _log.info(
            "day replaced",
            extra={"event": "lake.replace", "table": table, "day": str(day), "rows": counted.rows},
        )
        return counted.rows

    def read(
        self,
        table: str,
        days: datetime.date | Collection[datetime.date],
        *,
        columns: Sequence[str] | None = None,
        **keys: Key,
    ) -> Iterator[pa.RecordBatch]:
        """Return the rows of one day, or of several in the order of time.

        Batches have at most 10,000 rows, and are always in the same order.

        Raises:
            LakeError: the table cannot be read.
        """
        wanted = [days] if isinstance(days, datetime.date) else list(days)
        if not wanted:
            return iter(())
        return self._scan(table, [("dt", "in", wanted)], _condition(keys), columns)

    def read_rows(
        self, table: str, day: datetime.date, rows: range, *, columns: Sequence[str]
    ) -> pa.RecordBatch:
        """Return some rows of `day` as one batch, in the order of the source.

        The batches of a day are stored in an order that depends on the machine; this one does not.
        Only the parts of files that hold the rows are read.

        Args:
            table: one with the column `row`.
            day: the `dt` of every row.
            rows: values of `row`, in steps of one; rows that the table lacks are left out.
            columns: to return.

        Raises:
            LakeError: the table cannot be read.
        """
        row = pc.field("row")
        wanted = (row >= rows.start) & (row < rows.stop)
        schema = self._fields(table, ("row", *columns))
        batches = self._scan(table, [("dt", "=", day)], wanted, schema.names)
        found = pa.Table.from_batches([batch.cast(schema) for batch in batches], schema=schema)
        return _one_batch(found.sort_by("row").select(list(columns)))

    def read_between(
        self,
        table: str,
        first: datetime.date,
        last: datetime.date,
        *,
        columns: Sequence[str] | None = None,
        **keys: Key,
    ) -> Iterator[pa.RecordBatch]:
        """Return the rows of the days `first` … `last`, both included, as `read` does."""
        within = [("dt", ">=", first), ("dt", "<=", last)]
        return self._scan(table, within, _condition(keys), columns)

    def rows_between(
        self, table: str, first: datetime.date, last: datetime.date, columns: Sequence[str] = ()
    ) -> Iterator[dict[str, Any]]:
        """Yield what `read_between` returns as one dictionary a row."""
        for batch in self.read_between(table, first, last, columns=columns):
            yield from batch.to_pylist()

    def comments(
        self, day: datetime.date, ids: Container[str], *, columns: Sequence[str]
    ) -> Iterator[dict[str, Any]]:
        """Yield the comments of `day` with these ids as one dictionary a row, as `read` does.

        `columns` has `comment_id`.
        """
        for batch in self.read("comments", day, columns=columns):
            # Not `is_in`, which makes a table of all ids for each batch.
            wanted = [comment_id in ids for comment_id in batch.column("comment_id").to_pylist()]
            yield from batch.filter(pa.array(wanted, pa.bool_())).to_pylist()

    def table(
        self,
        table: str,
        days: datetime.date | Collection[datetime.date],
        *,
        columns: Sequence[str] | None = None,
        **keys: Key,
    ) -> pa.Table:
        """Return what `read` does as one table, for small tables or few columns."""
        schema = self._fields(table, columns or self.schema(table).names)
        batches = self.read(table, days, columns=columns, **keys)
        return pa.Table.from_batches([batch.cast(schema) for batch in batches], schema=schema)

    def days(self, table: str) -> list[datetime.date]:
        """Return the days with rows, in order."""
        delta = self._version(table)
        if delta is None:
            return []
        return sorted({datetime.date.fromisoformat(part["dt"]) for part in delta.partitions()})

    def count(self, table: str, day: datetime.date, **keys: Key) -> int:
        """Return the number of rows of `day`."""
        return sum(batch.num_rows for batch in self.read(table, day, columns=["dt"], **keys))

    def stored(self, table: str) -> dict[datetime.date, Counter[str]]:
        """Return how many `rows`, `files` and `bytes` each day has, in the order of time."""
        delta = self._open(table)
        found = defaultdict[datetime.date, Counter[str]](Counter)
        for file in pa.table(delta.get_add_actions(flatten=True)).to_pylist() if delta else ():
            size = {"rows": file["num_records"], "files": 1, "bytes": file["size_bytes"]}
            found[file["partition.dt"]].update(size)
        return dict(sorted(found.items()))

    def compact(self, table: str, before: datetime.date) -> int:
        """Write small files of the same earlier day into one; return how many fewer there are.

        Rows keep their order. Who replaces one of these days meanwhile may fail.

        Raises:
            LakeError: the table cannot be read or written.
        """
        if (delta := self._open(table)) is None:
            return 0
        with self._mapped(table, "compacted"):
            done = delta.optimize.compact(
                partition_filters=[("dt", "<", str(before))], writer_properties=_writer(table)
            )
        return int(done["numFilesRemoved"] - done["numFilesAdded"])

    def vacuum(
        self, table: str, *, hours: int = _UNCOMMITTED_HOURS, dry_run: bool = False
    ) -> Counter[str]:
        """Delete the files whose rows were replaced; return how many `files` and `bytes`.

        Others may read and write the table. Commits of its log are kept for a week.

        Args:
            table: a name in `schemas.TABLES`.
            hours: how long ago rows must have been replaced. Who began to read before that fails.
                Files that were never committed, as of a killed task, are kept for a day at least.
            dry_run: find the files only.

        Raises:
            LakeError: the table cannot be read, or a file cannot be deleted.
        """
        if (delta := self._open(table)) is None:
            return Counter()
        find = partial(delta.vacuum, dry_run=True, enforce_retention_duration=False)
        with self._mapped(table, "vacuumed"):
            # Only a full vacuum finds files that the log does not name. Those that it names were
            # committed, and may go sooner.
            old = {*find(max(hours, _UNCOMMITTED_HOURS), full=True), *find(hours)}
            # Not by Delta's own vacuum: it commits, and fails while others commit.
            files = PyFileSystem(DeltaStorageHandler(self._uri(table)))
            found = [file for file in files.get_file_info(sorted(old)) if file.is_file]
            if not dry_run:
                for file in found:
                    files.delete_file(file.path)
                delta.cleanup_metadata()
        return Counter(files=len(found), bytes=sum(file.size for file in found))

    def _scan(
        self,
        table: str,
        wanted: list[tuple[str, str, Any]],
        condition: pc.Expression | None,
        columns: Sequence[str] | None,
    ) -> Iterator[pa.RecordBatch]:
        """Return the rows of the `wanted` days that meet the condition, if there is one."""
        # Opened now, not with the first batch: the reader gets the version at the time of the call,
        # and deltalake cannot open a table within a stream that it is writing.
        delta = self._version(table)
        if delta is None:
            return iter(())
        # By PyArrow, in batches: with deltalake 1.6.6 and pyarrow 25.0.1 processes that had read by
        # deltalake's own readers or its SQL were seen to abort at their end, those that read so
        # never. Exact, since tables are partitioned by day: files of other days are not listed.
        stored = delta.to_pyarrow_dataset(file_pruning_predicate=wanted)
        # Delta lists the part that was written last first, whichever of two writers that was, and
        # sums of floating-point numbers depend on the order of the rows. Hence by folder.
        files = sorted(stored.get_fragments(), key=lambda file: posixpath.dirname(file.path))
        schema, known = stored.schema, self.schema(table)
        for column in known:
            if column.name not in schema.names:  # no row has it yet
                schema = schema.append(column)
        dataset = ds.FileSystemDataset(files, schema, stored.format, stored.filesystem)
        names = columns or known.names  # in the order of the declaration, not of the storage
        self._require_types(table, schema, names)
        return self._batches(table, dataset, condition, names)

    def _batches(
        self,
        table: str,
        dataset: ds.Dataset,
        condition: pc.Expression | None,
        columns: Sequence[str],
    ) -> Iterator[pa.RecordBatch]:
        with self._mapped(table, "read"):
            for batch in dataset.to_batches(
                columns=list(columns),
                filter=condition,
                batch_size=_BATCH_ROWS,
                # One fragment at a time, to keep the order of the files and to bound the memory.
                fragment_readahead=0,
                batch_readahead=1,
            ):
                self.traffic.read[table] += batch.num_rows
                yield batch

    def _fields(self, table: str, names: Sequence[str]) -> pa.Schema:
        schema = self.schema(table)
        return pa.schema([schema.field(name) for name in names])

    def _require_types(self, table: str, stored: pa.Schema, names: Collection[str]) -> None:
        """Raise LakeError for a column of the platform that is stored with another type."""
        for column in self.columns if table in SOURCED else ():
            found = stored.field(column.name) if column.name in stored.names else None
            if column.name in names and found and found.type != field_of(column).type:
                raise LakeError(
                    f"the column {column.name!r} of table {table} of {self.root} is stored as "
                    f"{type_of(found)}, and MODWATCH_COLUMNS says "
                    f"{column.type}; name the new column otherwise, or restore its type"
                )

    def _version(self, table: str) -> DeltaTable | None:
        """Return the table as it is read: in a steady lake, as it was before."""
        if self.versions is None:
            return self._open(table)
        if table not in self.versions:
            self.versions[table] = self._open(table)
        return self.versions[table]

    def _open(self, table: str) -> DeltaTable | None:
        with self._mapped(table, "opened"):
            try:
                return DeltaTable(self._uri(table))
            except TableNotFoundError:
                return None

    @contextmanager
    def _mapped(self, table: str, doing: str) -> Iterator[None]:
        """Raise errors of the lake as LakeError, without their messages, which preview rows."""
        try:
            yield
        except (DeltaError, OSError, pa.ArrowException) as exc:
            raise LakeError(
                f"table {table} of {self.root} could not be {doing} ({type(exc).__name__}); "
                "check MODWATCH_LAKE and its permissions"
            ) from None

    def _create(self, table: str) -> DeltaTable:
        if "://" in self.root:
            _require_conditional_writes(self.root)
        try:
            return DeltaTable.create(
                self._uri(table),
                schema=self.schema(table),
                partition_by=PARTITIONS.get(table, ["dt"]),
                configuration={
                    "delta.dataSkippingStatsColumns": ",".join(measured_columns(TABLES[table])),
                    "delta.logRetentionDuration": "interval 7 days",
                },
                commit_properties=_ONCE,
            )
        except DeltaError:
            return DeltaTable(self._uri(table))

    def _uri(self, table: str) -> str:
        if "://" in self.root:
            return f"{self.root.rstrip('/')}/{table}"
        return str(Path(self.root).absolute() / table)


@cache
def _require_conditional_writes(root: str) -> None:
    """Raise LakeError for an object store that lets one commit replace another.

    Delta writes a commit under the next number on the condition that there is none
    (`If-None-Match: *` of S3). A store or proxy that ignores the condition loses the days of all
    but one of the tasks that write at once, and each reports success. Tried once in a process: of
    several that make a table at once, only one may.
    """
    schema = pa.schema([("trial", pa.int8())])
    for _ in range(_TRIALS):
        uri = f"{root.rstrip('/')}/_trials/{uuid.uuid4().hex}"
        start = threading.Barrier(_WRITERS)

        def make(_: int, uri: str = uri, start: threading.Barrier = start) -> bool:
            start.wait()
            try:
                DeltaTable.create(uri, schema=schema, commit_properties=_ONCE)
            except DeltaError:
                return False
            return True

        with ThreadPoolExecutor(_WRITERS) as pool:
            made = sum(pool.map(make, range(_WRITERS)))
        with suppress(OSError, DeltaError):  # a few hundred bytes
            PyFileSystem(DeltaStorageHandler(uri)).delete_file(
                "_delta_log/00000000000000000000.json"
            )
        if made > 1:
            raise LakeError(
                f"the store of {root} ignores the condition of a write (If-None-Match), so tasks "
                "that write at once would lose days; use a store that honours it, as Amazon S3 "
                "does, without a proxy that drops the header, or a local folder: docs/deploy.md"
            )


def _stored(delta: DeltaTable) -> pa.Schema:
    return pa.schema(delta.schema().to_arrow())


class _Counted:
    """Iterates over batches, casts them to a schema, counts rows, and keeps an exception."""

    def __init__(
        self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, may_lack: Collection[str]
    ) -> None:
        self._batches = batches
        self._schema = schema
        self._may_lack = may_lack
        self.rows = 0
        self.failure: BaseException | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        batches = iter(self._batches)
        while True:
            try:
                batch = next(batches)
            except StopIteration:
                return
            except BaseException as exc:  # Arrow's C interface would keep only the message
                self.failure = exc
                raise
            self.rows += batch.num_rows
            for column in self._schema:
                if column.name in self._may_lack and column.name not in batch.schema.names:
                    batch = batch.append_column(column, pa.nulls(batch.num_rows, column.type))
            ordered = batch.select(self._schema.names) if self._may_lack else batch
            yield _without_nan(ordered.cast(self._schema))


def _without_nan(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with nulls for NaN, which Delta takes for more than every number."""
    arrays = [
        pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
        if pa.types.is_floating(array.type)
        else array
        for array in batch.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def _condition(keys: Mapping[str, Key]) -> pc.Expression | None:
    """Return the condition that columns have these values; None for none."""
    equal = [pc.field(name) == value for name, value in keys.items()]
    return reduce(and_, equal) if equal else None


def _predicate(day: datetime.date, keys: Mapping[str, Key]) -> str:
    terms = [f"{name} = {_literal(value)}" for name, value in keys.items()]
    return " AND ".join([f"dt = '{day.isoformat()}'", *terms])


def _literal(value: Key) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"
