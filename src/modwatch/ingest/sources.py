"""What a source of comments is, and the two general ones: files and SQL.

Others: `replay.ReplaySource` (a labelled corpus over several days) and `community.Community`
(the synthetic community).
"""

import datetime as dt
from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa

from modwatch.ingest.files import FileSource
from modwatch.ingest.sql import SqlSource

__all__ = ["FileSource", "Source", "SqlSource"]


class Source(Protocol):
    """Where one day of comments comes from."""

    @property
    def name(self) -> str:
        """What the source is, for messages and records; no secrets."""
        ...

    def read(self, day: dt.date) -> Iterator[pa.RecordBatch]:
        """Yield the comments of the UTC day `day` with the schema `modwatch.lake.schemas.LANDED`.

        Batches hold at most 10,000 rows; `row` counts from 0 over the day; reading the same day
        again gives the same rows in the same order. Rows that could not be read have `problem`
        set; none is dropped. Raises SourceError when the source itself cannot be read.
        """
        ...
