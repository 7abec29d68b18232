"""The interface of a source of comments.

Implementations: `files.FileSource`, `sql.SqlSource`, `replay.ReplaySource`, `community.Community`.
"""

import datetime as dt
from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa


class Source(Protocol):
    """Provides the comments of a day."""

    @property
    def name(self) -> str:
        """The source, for messages and provenance; no secrets."""
        ...

    def read(self, day: dt.date) -> Iterator[pa.RecordBatch]:
        """Yield the comments of the UTC day `day` with the schema `LANDED` of the lake.

        Batches have at most 10,000 rows; `row` counts from 0 within the day; the same day gives the
        same rows in the same order. Rows that cannot be read have `problem` set; none is dropped.
        Raises SourceError when the source itself cannot be read.
        """
        ...
