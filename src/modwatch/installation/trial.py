"""Validation of the first rows of a source in memory, before anything is installed."""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from modwatch.data.sources.files import FileSource
from modwatch.data.sources.landing import LandedRow, batches
from modwatch.data.sources.sql import SqlSource
from modwatch.data.validation import validate_comments
from modwatch.data.validation.result import percentage

#: Rows that are validated.
ROWS = 1000

_IDS = "--column comment_id=COLUMN or --generate-ids"
_SCORES = "--own-scores"
#: The options of `modwatch init` that may mend a reason.
_OPTIONS = {
    "malformed_record": "--delimiter, --quoting or --escape",
    "unclosed_quote": "--quoting none",
    "undecodable_text": "--encoding, such as cp1252",
    "unreadable_timestamp": "--column created_at=COLUMN or --time-format",
    "timestamp_without_zone": "--timezone",
    "time_outside_day": "--timezone",
    "missing_id": _IDS,
    "long_id": _IDS,
    "duplicate_id": _IDS,
    "blank_text": "--column text=COLUMN",
    "malformed_language": "--column language=COLUMN",
    "unreadable_label": "--column label=COLUMN or --votes",
    "unreadable_probability": _SCORES,
    "missing_probability": _SCORES,
    "probability_out_of_range": _SCORES,
}


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What became of the first rows of a source.

    >>> print(Trial(rows=9, quarantined={"blank_text": 2}, first={"blank_text": "a.csv, line 3"}))
    Of the first 9 rows, 7 are valid; quarantined: 2 (22.2 %)
      blank_text 2 (first: a.csv, line 3); may need --column text=COLUMN
    """

    rows: int
    #: Rows by the reason of their quarantine, the most frequent first.
    quarantined: Mapping[str, int]
    #: Where the first row of a reason is.
    first: Mapping[str, str]

    @property
    def has_failed(self) -> bool:
        """Whether most rows would be quarantined."""
        return 2 * sum(self.quarantined.values()) > self.rows

    def __str__(self) -> str:
        """Return the numbers and reasons as lines."""
        bad = sum(self.quarantined.values())
        if not bad:
            return f"The first {self.rows:,} rows are valid."
        lines = [
            f"Of the first {self.rows:,} rows, {self.rows - bad:,} are valid; quarantined: {bad:,} "
            f"({percentage(bad, self.rows)})"
        ]
        for reason, number in self.quarantined.items():
            options = f"; may need {_OPTIONS[reason]}" if reason in _OPTIONS else ""
            lines.append(f"  {reason} {number:,} (first: {self.first[reason]}){options}")
        return "\n".join(lines)


def try_source(source: FileSource | SqlSource, day: dt.date) -> Trial:
    """Validate the first rows of a source; of a database, those of `day`."""
    rows = [_moved(row, of, day) for of, row in islice(source.first_rows(ROWS, day), ROWS)]
    landed = list(batches(day, rows))

    def read(columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        return (batch.select(columns) if columns else batch for batch in landed)

    own_scores = source.own_scores is not None
    invalid = validate_comments(read, day=day, own_scores=own_scores).invalid
    counts = invalid.counts()
    first = {reason: _place(rows, np.flatnonzero(invalid.failing(reason))) for reason in counts}
    return Trial(rows=len(rows), quarantined=counts, first=first)


def _moved(row: LandedRow, of: dt.date, day: dt.date) -> LandedRow:
    """Return a row of one day as one of another, so that all of them are validated at once."""
    return row if row.created_at is None else replace(row, created_at=row.created_at + (day - of))


def _place(rows: list[LandedRow], positions: Iterable[int]) -> str:
    name, _, line = rows[next(iter(positions))].origin.rpartition(":")
    return f"{Path(name).name}, line {line}"
