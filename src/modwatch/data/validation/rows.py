"""Rows of a day: read by a schema whatever they look like, and split by what validation found."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from modwatch.common.errors import CheckError
from modwatch.data.lake.schemas import COMMENTS, QUARANTINE
from modwatch.data.validation.result import InvalidRows


def columns_of(batch: pa.RecordBatch, schema: pa.Schema) -> dict[str, pa.Array]:
    """Return the columns of `schema` by name, in its types; a missing or unusable one is null.

    >>> batch = pa.RecordBatch.from_pydict({"n": [1]})
    >>> columns_of(batch, pa.schema([("n", pa.int8()), ("s", pa.string())]))["s"].null_count
    1
    """
    return {field.name: _column(batch, field) for field in schema}


def schema_faults(found: pa.Schema, schema: pa.Schema) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a sentence for each column that `found` lacks or has in another type; and the others.

    >>> schema_faults(pa.schema([("n", pa.int8())]), pa.schema([("s", pa.string())]))
    (('s is missing',), ())
    """
    missing = [field.name for field in schema if field.name not in found.names]
    other = [
        field.name
        for field in schema
        if field.name not in missing and _plain(found.field(field.name).type) != _plain(field.type)
    ]
    faults = [
        *(f"{name} is missing" for name in missing),
        *(f"{name} has another type" for name in other),
    ]
    good = (name for name in schema.names if name not in {*missing, *other})
    return tuple(faults), tuple(good)


def bools(values: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return (k,) bool from k Arrow booleans; a null is false."""
    return np.asarray(values.fill_null(False).to_numpy(zero_copy_only=False), dtype=bool)


def absent(column: pa.Array) -> pa.BooleanArray:
    """Return for each value whether it is missing: null, or an empty string.

    >>> absent(pa.array(["en", "", None])).to_pylist()
    [False, True, True]
    """
    if column.type != pa.string():
        return column.is_null()
    return pc.fill_null(pc.equal(column, ""), True)


def _column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    at = batch.schema.get_field_index(field.name)
    if at < 0:
        return pa.nulls(batch.num_rows, field.type)
    try:
        return batch.column(at).cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(batch.num_rows, field.type)


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type without differences that only concern its layout in memory."""
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain(kind.value_type))
    return kind


def valid_rows(
    batches: Iterable[pa.RecordBatch], invalid: InvalidRows, schema: pa.Schema = COMMENTS
) -> Iterator[pa.RecordBatch]:
    """Yield batches of `comments`: the valid rows, in the order they came, without salts.

    `schema` is that of the table, with the platform's own columns.

    Raises:
        CheckError: the batches are not those that were validated.
    """
    for batch in batches:
        good = pa.array(is_valid(batch, invalid))
        day = pa.array([invalid.day] * batch.num_rows, pa.date32())
        salt = pa.nulls(batch.num_rows, pa.binary())
        yield _rows(batch, good, schema, dt=day, salt=salt)


def quarantined_rows(
    batches: Iterable[pa.RecordBatch], invalid: InvalidRows, schema: pa.Schema = QUARANTINE
) -> Iterator[pa.RecordBatch]:
    """Yield batches of `quarantine`: the invalid rows, whole, each with its reason.

    `schema` is that of the table, with the platform's own columns.

    Raises:
        CheckError: the batches are not those that were validated.
    """
    names = np.array(["", *invalid.reasons], dtype=object)
    for batch in batches:
        reason, rows = _reasons(batch, invalid), batch.num_rows
        day = pa.array([invalid.day] * rows, pa.date32())
        stage = pa.array(["comments"] * rows, pa.string())
        rule = pa.array(names[reason], pa.string())
        yield _rows(batch, pa.array(reason > 0), schema, dt=day, stage=stage, rule=rule)


def first_origins(batches: Iterable[pa.RecordBatch], invalid: InvalidRows) -> dict[str, str]:
    """Return the origin of the first invalid row by reason, from batches with `row` and `origin`.

    Where two rows have one id and other values, it is that of both.

    >>> invalid = InvalidRows(day=None, reason=np.array([0, 1]), reasons=("blank_text",))
    >>> first_origins([pa.record_batch({"row": [0, 1], "origin": ["f:2", "f:3"]})], invalid)
    {'blank_text': 'f:3'}
    """
    codes, rows = np.unique(invalid.reason, return_index=True)
    wanted = {
        invalid.reasons[code - 1]: int(row) for code, row in zip(codes, rows, strict=True) if code
    }
    origins: dict[int, str] = {}
    for batch in batches if wanted else ():
        asked = pa.array([*wanted.values(), *invalid.conflict], batch.column("row").type)
        kept = batch.filter(pc.is_in(batch.column("row"), asked))
        pairs = zip(kept.column("row").to_pylist(), kept.column("origin").to_pylist(), strict=True)
        origins |= dict(pairs)
    found = {reason: origins[row] for reason, row in wanted.items()}
    if invalid.conflict:
        found["duplicate_id"] = " has the id of ".join(origins[row] for row in invalid.conflict)
    return found


def is_valid(batch: pa.RecordBatch, invalid: InvalidRows) -> NDArray[np.bool_]:
    """Return (k,) bool: whether each row of the batch is valid.

    Raises:
        CheckError: the batch is not one of those that were validated.
    """
    return np.asarray(_reasons(batch, invalid) == 0, dtype=bool)


def _reasons(batch: pa.RecordBatch, invalid: InvalidRows) -> NDArray[np.int16]:
    """Return (k,) int16: the reason code of each row of the batch."""
    row = batch.column("row").to_numpy(zero_copy_only=False)
    if len(row) and (row.min() < 0 or row.max() >= len(invalid.reason)):
        raise CheckError(
            f"The landed comments of {invalid.day} changed during validation; run the day again."
        )
    return np.asarray(invalid.reason[row.astype(np.int64)], dtype=np.int16)


def _rows(
    batch: pa.RecordBatch, wanted: pa.BooleanArray, schema: pa.Schema, **given: pa.Array
) -> pa.RecordBatch:
    """Return the wanted rows under another schema; a given column replaces that of the batch.

    `dt` is always given: the day validated overrides the row's own.
    """
    columns = [given[f.name] if f.name in given else batch.column(f.name) for f in schema]
    # Cast before filtering: Arrow cannot filter every layout of strings.
    arrays = [
        column.cast(field.type).filter(wanted)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
