"""Comments out of files: CSV, TSV, JSON lines and Parquet, by day."""

import codecs
import datetime as dt
import glob
import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from modwatch.errors import SourceError
from modwatch.ingest.landing import FILLABLE, LandedRow, batches, convert, decodable
from modwatch.ingest.readers import FORMATS, Record, column_names, file_format, read_records
from modwatch.ingest.timestamps import Moment, read_moment, zone

_log = logging.getLogger(__name__)

_DAY = "{dt}"
_REQUIRED = ("comment_id", "text")


@dataclass(frozen=True, kw_only=True)
class FileSource:
    """Comments from files, read as a stream.

    With `{dt}` in the path (`incoming/{dt}.csv.gz`), a file's rows belong to its day whatever
    their timestamps say; without it, every file is read and the rows whose timestamp lies in
    [day, day+1) are taken. Then a row whose time cannot be read belongs to the day of the row
    before it in its file (at the beginning of a file: of the first readable one after it), so
    that each row lands on exactly one day. A time without zone is placed by its wall clock.

    Rows that cannot be read are handed on with `problem` set: `malformed_record` (its raw text
    in `text`), `undecodable_text`, `unreadable_timestamp`, `timestamp_without_zone`,
    `unreadable_label`. An empty file is an empty day.

    >>> FileSource(path="incoming/{dt}.csv").name
    'file:incoming/{dt}.csv'
    """

    #: A file, a folder (read with its subfolders) or a glob; may contain `{dt}`.
    path: str | Path
    #: The file's name of each Modwatch column (`comment_id`, `text`, `language`, …) that the
    #: file calls otherwise. Lists of groups are JSON arrays or names separated by `|`.
    columns: Mapping[str, str] = field(default_factory=dict)
    #: The file's name of the column that becomes `created_at`.
    timestamp_column: str = "created_at"
    #: IANA zone of times that are written without one; None marks them as a problem.
    assume_timezone: str | None = None
    #: Encoding of CSV and JSON files, as Python calls it.
    encoding: str = "utf-8"
    #: Platform of rows that name none.
    platform: str | None = None

    def __post_init__(self) -> None:
        check_columns(self.columns)
        zone(self.assume_timezone)
        try:
            codecs.lookup(self.encoding)
        except LookupError as exc:
            raise SourceError(
                f"No encoding is called {self.encoding!r}; use a name such as 'utf-8' or 'cp1252'."
            ) from exc

    @property
    def name(self) -> str:
        """The path, for messages and records."""
        return f"file:{self.path}"

    def read(self, day: dt.date) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `day` as batches with the schema LANDED, in file and line order.

        Raises SourceError when no file is there, a file cannot be read, or a column is missing.
        """
        return batches(day, self._rows(day))

    def _rows(self, day: dt.date) -> Iterator[LandedRow]:
        for path in self._files(day):
            problems: Counter[str] = Counter()
            for row in self._file_rows(path, day):
                problems.update([row.problem] if row.problem else [])
                yield row
            if problems:
                _log.warning(
                    "Some rows of a file could not be read; they will be quarantined.",
                    extra={"event": "rows_with_problems", "file": str(path), **problems},
                )

    def _file_rows(self, path: Path, day: dt.date) -> Iterator[LandedRow]:
        names = self._names(path)
        if names is None:
            return
        dated = _DAY in str(self.path)
        current = None if dated else self._first_day(path)
        for record, moment in self._records(path):
            current = moment.day or current
            if dated or current == day:
                yield self._row(path, record, moment, names)

    def _files(self, day: dt.date) -> list[Path]:
        pattern = str(self.path).replace(_DAY, day.isoformat())
        path = Path(pattern)
        if path.is_dir():
            found = sorted(p for p in path.rglob("*") if p.is_file() and _is_data(p))
        elif path.exists():
            found = [path]
        else:
            # Path.glob takes no absolute pattern.
            matches = glob.glob(pattern, recursive=True)  # noqa: PTH207
            found = sorted(Path(match) for match in matches if Path(match).is_file())
        if not found:
            raise SourceError(
                f"No file matches {pattern}; check the path (a day without comments is a file "
                "with no rows)."
            )
        return found

    def _names(self, path: Path) -> dict[str, str] | None:
        """Return the file's column of each Modwatch column it has; None for an empty file."""
        available = column_names(path, encoding=self.encoding)
        if not available and next(read_records(path, encoding=self.encoding), None) is None:
            return None
        # JSON leaves out what is null, so only the other formats must show every mapped column.
        must = {*_REQUIRED, *(self.columns if file_format(path) != "jsonl" else ())}
        names = {name: self.columns.get(name, name) for name in FILLABLE}
        wanted = [names[name] for name in FILLABLE if name in must]
        for column in (*wanted, self.timestamp_column):
            if column not in available:
                raise _missing_column(path, column, available, self.encoding)
        return {name: column for name, column in names.items() if column in available}

    def _records(self, path: Path) -> Iterator[tuple[Record, Moment]]:
        assume = zone(self.assume_timezone)
        for record in read_records(path, encoding=self.encoding):
            yield record, read_moment(record.values.get(self.timestamp_column), assume)

    def _first_day(self, path: Path) -> dt.date | None:
        """Return the first readable day; None when there are no rows at all."""
        rows = 0
        for _, moment in self._records(path):
            if moment.day:
                return moment.day
            rows += 1
        if rows:
            raise SourceError(
                f"No row of {path} has a readable time in column {self.timestamp_column!r}; set "
                f"`timestamp_column`, or name the file by its day with {_DAY} in the path."
            )
        return None

    def _row(
        self, path: Path, record: Record, moment: Moment, names: Mapping[str, str]
    ) -> LandedRow:
        origin = f"{path}:{record.line}"
        if record.problem:
            values: dict[str, object] = {"text": decodable(record.raw or "")[0]}
            return LandedRow(origin=origin, values=values, problem=record.problem)
        values, problem = convert_values(record.values, names)
        if values.get("platform") is None:
            values["platform"] = self.platform
        return LandedRow(
            origin=origin,
            created_at=moment.created_at,
            values=values,
            problem=moment.problem or problem,
        )


def convert_values(
    given: Mapping[str, object], names: Mapping[str, str]
) -> tuple[dict[str, object], str | None]:
    """Return the Modwatch values of one record, and the first problem among them or None."""
    values, problems = {}, []
    for name, column in names.items():
        values[name], problem = convert(name, given.get(column))
        if problem:
            problems.append(problem)
    return values, problems[0] if problems else None


def check_columns(columns: Mapping[str, str]) -> None:
    """Raise SourceError when `columns` maps something that is no column of `landed`."""
    unknown = sorted(set(columns) - set(FILLABLE))
    if unknown:
        raise SourceError(
            f"`columns` maps {', '.join(unknown)}, which Modwatch does not have; it may map "
            f"{', '.join(FILLABLE)} (the time is `timestamp_column`)."
        )


def _is_data(path: Path) -> bool:
    """Whether a file in a folder is data; others are said, not silently passed over."""
    if path.name.startswith((".", "_")):
        return False
    known = Path(path.name.removesuffix(".gz")).suffix in FORMATS
    if not known:
        _log.warning(
            "A file in the source folder has no known format and is not read.",
            extra={"event": "file_passed_over", "file": str(path)},
        )
    return known


def _missing_column(
    path: Path, column: str, available: Sequence[str], encoding: str
) -> SourceError:
    # A file without header shows a comment where names are expected: show only what looks like one.
    shown = [n if re.fullmatch(r"[\w.:/-]{1,40}", n) else "(no name)" for n in available[:40]]
    return SourceError(
        f"Column {column!r} is not in {path}, which has {', '.join(shown) or 'no columns'} (read "
        f"as {encoding}); map it with `columns` or `timestamp_column`, or mend the file."
    )
