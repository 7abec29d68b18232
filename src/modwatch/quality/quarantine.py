"""Parting a day's rows into those that go on and those that go to quarantine."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from modwatch.errors import CheckError
from modwatch.lake.schemas import COMMENTS, QUARANTINE
from modwatch.quality.verdict import Refusals


def accepted_rows(
    batches: Iterable[pa.RecordBatch], refusals: Refusals
) -> Iterator[pa.RecordBatch]:
    """Batches of `records.COMMENTS`: the rows that no rule refused, in the order they came.

    Raises:
        CheckError: the batches are not those that were profiled.
    """
    for batch in batches:
        good = pa.array(_reasons(batch, refusals) == 0)
        day = pa.array([refusals.day] * batch.num_rows, pa.date32())
        yield _rows(batch, good, COMMENTS, dt=day)


def refused_rows(batches: Iterable[pa.RecordBatch], refusals: Refusals) -> Iterator[pa.RecordBatch]:
    """Batches of `records.QUARANTINE`: the refused rows, whole, each with its reason.

    Raises:
        CheckError: the batches are not those that were profiled.
    """
    names = np.array(["", *refusals.reasons], dtype=object)
    for batch in batches:
        reason, rows = _reasons(batch, refusals), batch.num_rows
        day = pa.array([refusals.day] * rows, pa.date32())
        stage = pa.array(["comments"] * rows, pa.string())
        rule = pa.array(names[reason], pa.string())
        yield _rows(batch, pa.array(reason > 0), QUARANTINE, dt=day, stage=stage, rule=rule)


def _reasons(batch: pa.RecordBatch, refusals: Refusals) -> NDArray[np.int16]:
    """(k,) int16: the reason code of each row of the batch."""
    row = batch.column("row").to_numpy(zero_copy_only=False)
    if len(row) and (row.min() < 0 or row.max() >= len(refusals.reason)):
        raise CheckError(
            f"the landed comments of {refusals.day} changed while they were checked; "
            "run the day again"
        )
    return np.asarray(refusals.reason[row.astype(np.int64)], dtype=np.int16)


def _rows(
    batch: pa.RecordBatch, wanted: pa.BooleanArray, schema: pa.Schema, **given: pa.Array
) -> pa.RecordBatch:
    """The wanted rows under another schema; a given column stands for that of the batch.

    `dt` is always given: the day decides, whatever a row says.
    """
    columns = [given[f.name] if f.name in given else batch.column(f.name) for f in schema]
    # Cast before filtering: Arrow cannot filter every layout of strings.
    arrays = [
        column.cast(field.type).filter(wanted)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
