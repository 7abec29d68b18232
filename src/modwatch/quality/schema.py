"""Reading a batch by a schema, whatever the batch looks like."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def columns_of(batch: pa.RecordBatch, schema: pa.Schema) -> dict[str, pa.Array]:
    """The columns of `schema` by name, in its types; one that is missing or unusable is null.

    >>> batch = pa.RecordBatch.from_pydict({"n": [1]})
    >>> columns_of(batch, pa.schema([("n", pa.int8()), ("s", pa.string())]))["s"].null_count
    1
    """
    return {field.name: _column(batch, field) for field in schema}


def schema_faults(found: pa.Schema, schema: pa.Schema) -> tuple[str, ...]:
    """What `found` lacks of `schema`, in words; columns that `schema` lacks do no harm.

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
    """(k,) bool from k Arrow booleans; a null is false."""
    return np.asarray(values.fill_null(False).to_numpy(zero_copy_only=False), dtype=bool)


def _column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    at = batch.schema.get_field_index(field.name)
    if at < 0:
        return pa.nulls(batch.num_rows, field.type)
    try:
        return batch.column(at).cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(batch.num_rows, field.type)


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without differences that only concern its layout in memory."""
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain(kind.value_type))
    return kind
