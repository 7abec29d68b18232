"""A labelled corpus, replayed over consecutive days."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from modwatch.errors import SourceError
from modwatch.ingest.corpora.corpus import Corpus
from modwatch.ingest.landing import BATCH_ROWS, column_batch

_DAY_MICROSECONDS = 24 * 3600 * 1_000_000


@dataclass(frozen=True, kw_only=True)
class ReplaySource:
    """The items of a corpus, spread evenly over `days` days from `first_day`.

    Every item occurs exactly once, at evenly spaced times of its day. Its label is in the column
    `label` only, and the `score` of the corpus is left out. Days before and after are empty.

    >>> from modwatch.ingest.corpora.corpus import ITEMS, table
    >>> items = table(ITEMS, [{"comment_id": str(i), "text": "hello"} for i in range(5)])
    >>> start = dt.date(2024, 1, 1)
    >>> source = ReplaySource(corpus=Corpus(name="five", items=items), first_day=start, days=2)
    >>> [sum(b.num_rows for b in source.read(start + dt.timedelta(days=d))) for d in range(3)]
    [2, 3, 0]
    """

    corpus: Corpus
    first_day: dt.date
    #: At least 1.
    days: int

    def __post_init__(self) -> None:
        if self.days < 1:
            raise SourceError(f"A replay requires at least 1 day, got {self.days}.")

    @property
    def name(self) -> str:
        """The corpus, for messages and provenance."""
        return f"replay:{self.corpus.name}"

    def read(self, day: dt.date) -> Iterator[pa.RecordBatch]:
        """Yield the items of `day` as batches with the schema LANDED, in order of time."""
        number = (day - self.first_day).days
        if not 0 <= number < self.days:
            return
        size = self.corpus.items.num_rows
        begin, end = number * size // self.days, (number + 1) * size // self.days
        for first in range(begin, end, BATCH_ROWS):
            yield self._batch(day, begin, end, first)

    def _batch(self, day: dt.date, begin: int, end: int, first: int) -> pa.RecordBatch:
        """Return the items from `first` on, of those from `begin` to `end` of the day."""
        items = self.corpus.items.slice(first, min(BATCH_ROWS, end - first))
        midnight = (day - dt.date(1970, 1, 1)).days * _DAY_MICROSECONDS
        position = first - begin + np.arange(len(items))
        columns = {
            "origin": [f"{self.name}:{item + 1}" for item in range(first, first + len(items))],
            "created_at": midnight + (2 * position + 1) * _DAY_MICROSECONDS // (2 * (end - begin)),
            "platform": [self.corpus.name] * len(items),
        }
        for name in ("comment_id", "text", "parent_text", "groups", "label"):
            columns[name] = items.column(name).to_pylist()
        return column_batch(day, first - begin, columns)
