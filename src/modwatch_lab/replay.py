"""A labelled corpus, replayed over consecutive days."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from modwatch.common.account import Account
from modwatch.common.errors import SourceError
from modwatch.data.sources.landing import BATCH_ROWS, column_batch, counted
from modwatch_lab.corpora.corpus import Corpus

_DAY_MICROSECONDS = 24 * 3600 * 1_000_000


@dataclass(frozen=True, kw_only=True)
class ReplaySource:
    """The items of a corpus, each exactly once, on consecutive days from `first_day`.

    Items with times keep their order and their time of day, and those of one day stay together;
    days without items are skipped. Items without times are spread evenly over `days` days, and over
    each day. The label of an item is in the column `label` only, and the `score` of the corpus is
    left out. Days before and after are empty.

    >>> from modwatch_lab.corpora.corpus import ITEMS, table
    >>> items = table(ITEMS, [{"comment_id": str(i), "text": "hello"} for i in range(5)])
    >>> start = dt.date(2024, 1, 1)
    >>> source = ReplaySource(corpus=Corpus(name="five", items=items), first_day=start, days=2)
    >>> [sum(b.num_rows for b in source.read(start + dt.timedelta(days=d))) for d in range(3)]
    [2, 3, 0]
    """

    corpus: Corpus
    first_day: dt.date
    #: Days of a corpus without times, at least 1.
    days: int

    def __post_init__(self) -> None:
        if self.days < 1:
            raise SourceError(f"A replay requires at least 1 day, got {self.days}.")

    @property
    def name(self) -> str:
        """The corpus, for messages and provenance."""
        return f"replay:{self.corpus.name}"

    def read(self, day: dt.date, account: Account | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the items of `day` as batches with the schema LANDED, in order of time."""
        return counted(self._batches(day), account)

    def _batches(self, day: dt.date) -> Iterator[pa.RecordBatch]:
        number = (day - self.first_day).days
        if not 0 <= number < len(self._starts) - 1:
            return
        begin, end = self._starts[number], self._starts[number + 1]
        for first in range(begin, end, BATCH_ROWS):
            yield self._batch(day, begin, end, first)

    @cached_property
    def _starts(self) -> list[int]:
        """The position of the first item of each day, and the number of items."""
        times = self.corpus.items.column("created_at")
        size = len(times)
        if times.null_count == size:
            return [number * size // self.days for number in range(self.days + 1)]
        microseconds = times.cast(pa.int64()).to_numpy()
        if times.null_count or (np.diff(microseconds) < 0).any():
            raise SourceError(
                f"Corpus {self.corpus.name} cannot be replayed: its items are not in order of "
                "time, or some have no time."
            )
        first = np.flatnonzero(np.diff(microseconds // _DAY_MICROSECONDS)) + 1
        return [0, *first.tolist(), size]

    def _batch(self, day: dt.date, begin: int, end: int, first: int) -> pa.RecordBatch:
        """Return the items from `first` on, of those from `begin` to `end` of the day."""
        items = self.corpus.items.slice(first, min(BATCH_ROWS, end - first))
        midnight = (day - dt.date(1970, 1, 1)).days * _DAY_MICROSECONDS
        position = first - begin + np.arange(len(items))
        times = items.column("created_at")
        if times.null_count:
            into_day = (2 * position + 1) * _DAY_MICROSECONDS // (2 * (end - begin))
        else:
            into_day = times.cast(pa.int64()).to_numpy() % _DAY_MICROSECONDS
        columns = {
            "origin": [f"{self.name}:{item + 1}" for item in range(first, first + len(items))],
            "created_at": midnight + into_day,
            "platform": [self.corpus.name] * len(items),
        }
        for name in ("comment_id", "text", "parent_text", "groups", "label"):
            columns[name] = items.column(name).to_pylist()
        return column_batch(day, first - begin, columns)
