"""Frames of pandas as batches of a table of the lake."""

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd


def as_batch(frame: "pd.DataFrame", schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of `schema` in `frame`, as one batch of it."""
    # Not RecordBatch.from_pandas, which cannot take the empty columns of strings of an empty day.
    table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
    arrays = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
