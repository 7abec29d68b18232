"""Reading a batch by a schema, whatever the batch looks like."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


def columns_of(batch: pa.RecordBatch, schema: pa.Schema) -> dict[str, pa.Array]:
    """Return the columns of `schema` by name, in its types; a missing or unusable one is null.

    >>> batch = pa.RecordBatch.from_pydict({"n": [1]})
    >>> columns_of(batch, pa.schema([("n", pa.int8()), ("s", pa.string())]))["s"].null_count
    1
    """
    return {field.name: _column(batch, field) for field in schema}


def schema_faults(found: pa.Schema, schema: pa.Schema) -> tuple[str, ...]:
    """Return a sentence for each column of `schema` that `found` lacks or has in another type.

    >>> schema_faults(pa.schema([("n", pa.int8())]), pa.schema([("s", pa.string())]))
    ('s is missing',)
    """
    shared = [field for field in schema if field.name in found.names]
    missing = [f"{field.name} is missing" for field in schema if field not in shared]
    other = [
        f"{field.name} has another type"
        for field in shared
        if _plain(found.field(field.name).type) != _plain(field.type)
    ]
    return (*missing, *other)


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
