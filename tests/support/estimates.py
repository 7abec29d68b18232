"""Rows of the table `estimates`: made up, and as they are read."""

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
import pyarrow as pa

from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import ESTIMATES


def put_estimates(
    lake: Lake, day: datetime.date, *rows: Mapping[str, Any], window: bool = False
) -> None:
    """Keep estimates of a day, or of its window; the design alone gives the same.

    What the rows leave out is null, 0 or empty.
    """
    blank: Mapping[Any, Any] = {pa.string(): "", pa.int64(): 0, pa.float64(): 0.0}
    needed = {field.name: blank.get(field.type) for field in ESTIMATES if not field.nullable}
    every = [
        {**needed, **row, "dt": day, "window": window, "design": design}
        for design in (False, True)
        for row in rows
    ]
    batch = pa.RecordBatch.from_pylist(every, schema=ESTIMATES)
    lake.replace("estimates", day, [batch], window=window)


def read_estimates(lake: Lake, day: datetime.date, *, window: bool = False) -> pd.DataFrame:
    """Return the estimates of a day, or of its window, but for those by the design alone."""
    rows: Iterable[pa.RecordBatch] = lake.read("estimates", day, window=window, design=False)
    return pa.Table.from_batches(rows, schema=ESTIMATES).to_pandas()
