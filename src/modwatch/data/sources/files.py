"""Comments from files: CSV, TSV, JSON, Parquet and Excel."""

import datetime as dt
import glob
import hashlib
import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import islice, takewhile
from pathlib import Path

from modwatch.common.account import Account
from modwatch.common.days import can_have_comments
from modwatch.common.errors import SourceError
from modwatch.common.installed import version
from modwatch.data.sources.delimited import TextFormat
from modwatch.data.sources.file_index import Content, FileIndex, named_days
from modwatch.data.sources.inspection import shown_names
from modwatch.data.sources.landing import IDS, SCORE_COLUMNS, LandedRow, MappedSource
from modwatch.data.sources.readers import (
    FORMATS,
    Record,
    file_format,
    read_records,
    rounded_columns,
    table_columns,
    uncompressed_name,
)
from modwatch.data.sources.timestamps import Moment, read_moment
from modwatch.data.sources.values import decodable

_log = logging.getLogger(__name__)

_DAY = "{dt}"
#: Files of a source that a sample is taken from, and the fewest rows of one.
_SAMPLED, _FEWEST = 100, 10
#: Files of unknown days that an account names.
_NAMED = 10


@dataclass(frozen=True)
class _Fault:
    """Why a file cannot be read, and the days that it holds as far as they are known."""

    error: SourceError
    days: set[dt.date]
    #: Whether these are all of its days.
    is_dated: bool


@dataclass(frozen=True, kw_only=True)
class FileSource(MappedSource):
    """Comments from files, read as a stream.

    With `{dt}` in the path (`incoming/{dt}.csv.gz`), all rows of a file belong to its day. Without
    it, every file is read, and a row belongs to the day of its timestamp. A row without a readable
    timestamp then belongs to the day of the row before it in its file (at the beginning of a file:
    of the first readable row), so that each row lands on exactly one day. A time without zone
    counts by its wall clock.

    Rows that cannot be read are returned with `problem` set: `malformed_record` (its raw text
    in `text`), `undecodable_text`, `unreadable_timestamp`, `timestamp_without_zone`,
    `unreadable_probability`, `unreadable_flag`. An empty file is an empty day.

    What each file holds is kept in the folder `index`: a day reads only the files that hold it, and
    those that are new or have changed. A file that cannot be read is the fault of its days: those
    of its times, else those of the day in its name. One of unknown days is named in the account,
    and stops a day that has no rows.

    Generated ids are hashes of the values: rows alike in all of them are one comment, wherever they
    stand. Of files without times the path below the source and the line are part of the hash, since
    people repeat short comments: rows that are added above others change their ids.

    >>> FileSource(path="incoming/{dt}.csv").name
    'file:incoming/{dt}.csv'
    """

    #: A file, a folder (read with its subfolders) or a glob; may contain `{dt}`.
    path: str | Path
    #: How text files are written.
    form: TextFormat = field(default_factory=TextFormat)
    #: The files have no ids: generate them.
    generate_ids: bool = False
    #: The files have no times: all rows are of this day, `2026-03-13`, or of that of `{dt}` in the
    #: path. Their time is its midnight in UTC. None: the files have times.
    day: str | None = None
    #: The folder that keeps what the files hold; None: it is found anew each time.
    index: Path | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.day is not None and (self.day == _DAY) != (_DAY in str(self.path)):
            raise SourceError(
                f"MODWATCH_SOURCE__DAY must be {_DAY} where MODWATCH_SOURCE__PATH has {_DAY}, and "
                "a date where it has not."
            )

    @property
    def name(self) -> str:
        """The path, for messages and provenance."""
        return f"file:{self.path}"

    def _rows(self, day: dt.date, account: Account) -> Iterator[LandedRow]:
        columns: dict[Path, frozenset[str]] = {}
        files, dated = self._files(day), day if _DAY in str(self.path) else None
        contents, faults = ({}, {}) if dated else self._contents(files)
        if fault := next((fault for fault in faults.values() if day in fault.days), None):
            raise fault.error
        is_empty = True
        for path in (path for path in files if path not in faults):
            if path in contents and day not in contents[path].days:
                account.add(contents[path].of_other_days(path))
                continue
            problems: Counter[str] = Counter()
            for _, row in self._file_rows(path, day, dated, columns, account):
                problems.update([row.problem] if row.problem else [])
                is_empty = False
                yield row
            if problems:
                _log.warning(
                    "Some rows of a file could not be read; they will be quarantined.",
                    extra={"event": "rows_with_problems", "file": str(path), **problems},
                )
        undated = {path: fault.error for path, fault in faults.items() if not fault.is_dated}
        for path, error in undated.items():
            if is_empty:
                raise error
            _log.warning(
                "A file of unknown days cannot be read, and the day goes on without it: %s",
                error,
                extra={"event": "file_left_out", "file": str(path)},
            )
        if undated:
            account.read += len(undated)
            where = "; ".join(str(path) for path in [*undated][:_NAMED])
            account.count("unreadable_file", len(undated), where=where)

    def counts(self, days: Sequence[dt.date]) -> dict[dt.date, int]:
        """Return how many rows each day has; days of files that cannot be read are left out."""
        parts = (
            [self._contents(find_files(self._pattern(day)), day) for day in days]
            if _DAY in str(self.path)
            else [self._contents(find_files(self.path))]
        )
        found = dict.fromkeys(days, 0)
        for content in (content for contents, _ in parts for content in contents.values()):
            for day in content.days.keys() & found.keys():
                found[day] += content.days[day][0]
        bad = {day for _, faults in parts for fault in faults.values() for day in fault.days}
        return {day: rows for day, rows in found.items() if day not in bad}

    def _contents(
        self, files: Sequence[Path], dated: dt.date | None = None
    ) -> tuple[dict[Path, Content], dict[Path, _Fault]]:
        """Return what files hold, and what is wrong with those that cannot be read."""
        index, of = FileIndex(self.index), f"{version()} {self!r} {dated}"
        contents: dict[Path, Content] = {}
        bad: dict[Path, tuple[SourceError, Content]] = {}
        for path in files:
            scanned = Content()
            try:
                contents[path] = index.content(path, partial(self._scan, path, dated, scanned), of)
            except SourceError as exc:
                bad[path] = exc, scanned
        known = {path: content.days.keys() for path, content in contents.items()}
        faults = {}
        for path, (error, scanned) in bad.items():
            named = {dated} if dated else named_days(path, known)
            faults[path] = _Fault(error, named | scanned.days.keys(), is_dated=bool(named))
        return contents, faults

    def _scan(self, path: Path, dated: dt.date | None, content: Content) -> Content:
        for day, _, record in self._dated_records(path, dated, content.account):
            content.count(day, record.line)
        return content

    def first_rows(self, most: int, _day: dt.date) -> Iterator[tuple[dt.date, LandedRow]]:
        """Yield up to `most` rows of all files, of many files of some, with the day of each."""
        for path, rows in sampled(find_files(self.path), most):
            day = day_of(path, self.path)
            yield from islice(self._file_rows(path, day, day, {}, Account()), rows)

    def _file_rows(
        self,
        path: Path,
        day: dt.date | None,
        dated: dt.date | None,
        columns: dict[Path, frozenset[str]],
        account: Account,
    ) -> Iterator[tuple[dt.date, LandedRow]]:
        """Yield the rows of a day in a file with their day, or without a day all of them.

        `columns` gets its columns of scores, if it has any. Files of one day that bring scores have
        the same: half a day is not decided by a threshold.
        """
        names = self._names(path)
        if names is None:
            return
        usual = cache(can_have_comments)  # of each row, but there are few days
        for current, moment, record in self._dated_records(path, dated, account):
            if day not in (None, current):
                if usual(current):
                    account.count("other_day")
                else:
                    account.count("unusual_day", where=f"{path}:{record.line}")
                continue
            if path not in columns:
                columns[path] = frozenset(names) & frozenset(SCORE_COLUMNS)
                _raise_on_mixed_columns(current, columns)
            yield current, self._row(path, record, moment, names)

    def _dated_records(
        self, path: Path, dated: dt.date | None, account: Account
    ) -> Iterator[tuple[dt.date, Moment, Record]]:
        """Yield the records of a file with their day and time; all are of the day `dated`, if any.

        A day in the settings is the time, too.
        """
        midnight = None
        if self.day is not None:
            dated = dated or dt.date.fromisoformat(self.day)
            midnight = read_moment(dated, dt.UTC)
        current = dated or self._first_day(path)
        for record in read_records(path, form=self.form, account=account):
            moment = midnight or self._moment(record.values)
            current = dated or moment.day or current
            if current is None:
                account.count("undated")
            else:
                yield current, moment, record

    def _files(self, day: dt.date) -> list[Path]:
        pattern = self._pattern(day)
        found = find_files(pattern)
        if not found:
            raise SourceError(
                f"No file matches {pattern}; check MODWATCH_SOURCE__PATH (a day without comments "
                "is a file with no rows)."
            )
        return found

    def _pattern(self, day: dt.date) -> str:
        return str(self.path).replace(_DAY, day.isoformat())

    def _names(self, path: Path) -> dict[str, str] | None:
        """Return the file's column of each Modwatch column it has; None for an empty file."""
        # Records of JSON lines leave out what is null: scores may be in any of them.
        most = 1000 if self.own_scores is None else None
        available = table_columns(path, form=self.form, most=most)
        if not available and next(read_records(path, form=self.form), None) is None:
            return None
        # JSON omits null values, so only the other formats must have every mapped column.
        omitted = set(self.columns) - {"comment_id", "text", *SCORE_COLUMNS}
        optional = omitted if file_format(path) == "json" else set()
        generated = {"comment_id": self.generate_ids, "created_at": self.day is not None}
        names = self._source_columns(
            available,
            optional=optional | {name for name, is_generated in generated.items() if is_generated},
            where=str(path),
            remedy=f"correct the file, which is read as {self.form.encoding}",
        )
        exact = {self.timestamp_column, *(names[name] for name in names.keys() & IDS)}
        if rounded := sorted(exact & rounded_columns(path)):
            raise SourceError(
                f"{path} has ids or times in floats of 32 bits or less, which are rounded (times "
                f"to two minutes): {', '.join(shown_names(rounded))}; write them as int64 or text."
            )
        return names

    def _first_day(self, path: Path) -> dt.date | None:
        """Return the day of the first readable timestamp; None for a file without rows."""
        record = None
        for record in read_records(path, form=self.form):
            if day := self._moment(record.values).day:
                return day
        if record is not None:
            self._names(path)  # names the column if there is none
            raise SourceError(
                f"No row of {path} has a readable time in column {self.timestamp_column!r}; set "
                "MODWATCH_SOURCE__TIMESTAMP_COLUMN or MODWATCH_SOURCE__TIMESTAMP_FORMAT, or use "
                f"one file per day with {_DAY} in MODWATCH_SOURCE__PATH."
            )
        return None

    def _row(
        self, path: Path, record: Record, moment: Moment, names: Mapping[str, str]
    ) -> LandedRow:
        origin = f"{path}:{record.line}"
        if record.problem:
            text = decodable(record.raw or "")[0]
            return LandedRow(origin=origin, values={"text": text}, problem=record.problem)
        row = self._landed_row(origin, record.values, names, moment)
        if self.generate_ids:
            row = replace(row, values={**row.values, "comment_id": self._id(path, record)})
        return row

    def _id(self, path: Path, record: Record) -> str:
        known = repr([*record.values.items()])
        if self.day is not None:
            parts = takewhile(lambda part: not set(part) & set("{*?["), Path(self.path).parts)
            fixed = Path(*parts)
            folder = fixed if fixed.is_dir() else fixed.parent
            known += repr((path.relative_to(folder).as_posix(), record.line))
        return hashlib.blake2b(known.encode(errors="surrogatepass"), digest_size=10).hexdigest()


def find_files(path: str | Path) -> list[Path]:
    """Return a file, the data of a folder and its subfolders, or the files of a glob, in order.

    `{dt}` in the path stands for any day.
    """
    given = Path(str(path).replace(_DAY, "????-??-??"))
    if given.is_dir():
        return sorted(found for found in given.rglob("*") if found.is_file() and _is_data(found))
    if given.exists():
        return [given]
    # Path.glob takes no absolute pattern.
    matches = glob.glob(str(given), recursive=True)  # noqa: PTH207
    files = [Path(match) for match in matches if Path(match).is_file()]
    return sorted(file for file in files if str(path) == str(given) or day_of(file, path))


def day_of(path: Path, pattern: str | Path) -> dt.date | None:
    """Return the day in the path of a file where its pattern has `{dt}`; None: there is none.

    >>> day_of(Path("in/2026-03-13.csv"), "in/{dt}.csv")
    datetime.date(2026, 3, 13)
    """
    begin, *rest = re.escape(str(pattern)).split(re.escape(_DAY))
    if not rest:
        return None
    written = begin + r"(\d{4}-\d\d-\d\d)" + r"\1".join(rest)
    found = re.match(re.sub(r"(?:\\[*?])+|\\\[.*?\]", ".*", written), str(path))
    with suppress(ValueError):
        return dt.date.fromisoformat(found[1]) if found else None
    return None


def sampled(files: Sequence[Path], most: int) -> list[tuple[Path, int]]:
    """Return files, evenly spaced if there are many, and how many rows of each are looked at.

    >>> sampled([Path("a.csv"), Path("b.csv")], 1000)
    [(PosixPath('a.csv'), 500), (PosixPath('b.csv'), 500)]
    """
    chosen = files[:: -(-len(files) // _SAMPLED) or 1]
    return [(path, max(most // len(chosen), _FEWEST)) for path in chosen]


def _is_data(path: Path) -> bool:
    """Return whether a file of a folder is data; log a warning for other files."""
    if path.name.startswith((".", "_")):
        return False
    known = Path(uncompressed_name(path)).suffix.lower() in FORMATS
    if not known:
        _log.warning(
            "A file in the source folder has an unknown format and is skipped.",
            extra={"event": "file_passed_over", "file": str(path)},
        )
    return known


def _raise_on_mixed_columns(day: dt.date, columns: Mapping[Path, frozenset[str]]) -> None:
    (first, known), *_ = columns.items()
    for path, these in columns.items():
        if differing := sorted(known ^ these):
            raise SourceError(
                f"The files of {day} have different columns of scores: {first} and {path} differ "
                f"in {', '.join(differing)}; write the same columns into each of them."
            )
