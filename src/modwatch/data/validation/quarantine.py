"""Splits a day's rows into valid comments and quarantined rows."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from modwatch.common.errors import CheckError
from modwatch.data.lake.schemas import COMMENTS, QUARANTINE
from modwatch.data.validation.result import InvalidRows


def valid_rows(batches: Iterable[pa.RecordBatch], invalid: InvalidRows) -> Iterator[pa.RecordBatch]:
    """Yield batches of `schemas.COMMENTS`: the valid rows, in the order they came.

    Raises:
        CheckError: the batches are not those that were validated.
    """
    for batch in batches:
        good = pa.array(is_valid(batch, invalid))
        day = pa.array([invalid.day] * batch.num_rows, pa.date32())
        yield _rows(batch, good, COMMENTS, dt=day)


def quarantined_rows(
    batches: Iterable[pa.RecordBatch], invalid: InvalidRows
) -> Iterator[pa.RecordBatch]:
    """Yield batches of `schemas.QUARANTINE`: the invalid rows, whole, each with its reason.

    Raises:
        CheckError: the batches are not those that were validated.
    """
    names = np.array(["", *invalid.reasons], dtype=object)
    for batch in batches:
        reason, rows = _reasons(batch, invalid), batch.num_rows
        day = pa.array([invalid.day] * rows, pa.date32())
        stage = pa.array(["comments"] * rows, pa.string())
        rule = pa.array(names[reason], pa.string())
        yield _rows(batch, pa.array(reason > 0), QUARANTINE, dt=day, stage=stage, rule=rule)


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
