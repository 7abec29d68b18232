"""Samples of files and tables that `modwatch init` looks at, and the settings that read them."""

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Connection, inspect, select, table, text

from modwatch.common.account import Account
from modwatch.common.days import possible_days
from modwatch.common.errors import SourceError
from modwatch.data.sources.delimited import TextFormat
from modwatch.data.sources.files import day_of, find_files, sampled
from modwatch.data.sources.inspection import TimeFormat, require_header
from modwatch.data.sources.readers import FORMATS, Record, file_format, read_records, table_columns
from modwatch.data.sources.sql import SqlSource, connected, for_days, parse_url
from modwatch.data.sources.timestamps import (
    epoch_scale,
    is_eight_digit_date,
    read_moment,
    zone,
)
from modwatch.data.sources.values import text_of

#: Rows that are looked at.
_ROWS = 1000
#: Rows of a file whose times decide whether all of them are of its day.
_FILE_ROWS = 200
#: Rows of files whose days are counted.
_COUNTED = 500_000
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The first rows of a source."""

    #: The source, for messages; no secrets.
    where: str
    names: Sequence[str]
    #: Those that are alike in every value, once.
    rows: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Times:
    """The times of a source."""

    column: str
    form: TimeFormat
    #: IANA zone of times without one.
    zone: str | None
    #: One of them, as the source has it.
    one: object

    def day(self, value: object) -> dt.date | None:
        """Return the day of a value of the column; None: it cannot be read."""
        return read_moment(value, zone(self.zone), self.form.written).day


@dataclass(frozen=True, kw_only=True)
class FileData:
    """Comments in files: one, a folder, a glob, or one for each day."""

    #: As MODWATCH_SOURCE__PATH; with `{dt}` for one file a day.
    path: str
    #: The same without `{dt}`.
    whole: str
    files: Sequence[Path]
    form: TextFormat

    @classmethod
    def find(cls, given: str, *, form: TextFormat) -> "FileData":
        """Return the data in a file, folder or glob; SourceError when there is none."""
        path = str(Path(given).expanduser().absolute())
        files = find_files(path)
        if not files:
            raise SourceError(
                f"{path} is no file and no folder with files *{', *'.join(FORMATS)} (text formats "
                "also .gz); correct the path"
            )
        by_day = path if "{dt}" in path else _by_day(files)
        whole = path.replace("{dt}", "????-??-??")
        return cls(path=by_day or path, whole=whole, files=files, form=form)

    def sample(self) -> Sample:
        """Return the first rows, of several files if there are; SourceError if there is none."""
        found = {
            path: table_columns(path, form=self.form) for path, _ in sampled(self.files, _ROWS)
        }
        path = next((path for path, names in found.items() if names), self.files[0])
        names = found[path]
        rows = [dict(record.values) for _, record in self._records() if record.problem is None]
        if file_format(path) not in ("json", "parquet") and (rows or names):
            require_header(names, str(path), rows)
        if not rows:
            raise SourceError(self._why_no_row(len(names)))
        return Sample(where=self.path, names=names, rows=_unlike(rows))

    def _records(self, account: Account | None = None) -> Iterator[tuple[Path, Record]]:
        for path, rows in sampled(self.files, _ROWS):
            for record in islice(read_records(path, form=self.form, account=account), rows):
                yield path, record

    def _why_no_row(self, names: int) -> str:
        account = Account()
        damaged = list(self._records(account))
        if not damaged:
            empty = "has the names of its columns and no row" if account.read else "is empty"
            return f"{self.path} {empty}; point to data with comments"
        path, first = damaged[0]
        if file_format(path) == "json":
            return f"line {first.line} of {path} is no JSON object; name CSV *.csv"
        [(size, number)] = Counter(record.fields for _, record in damaged).most_common(1)
        problem = (
            "damaged quotation marks; add --quoting none, or --escape with the character before a "
            "quotation mark in a text"
            if size is None
            else f"{size} fields under {names} name{'s' * (names > 1)}; " + _remedy(size, names)
        )
        return (
            f"no row of {path} can be read: {number:,} of {len(damaged):,}, from line {first.line} "
            f"on, have {problem}"
        )

    def dated(self, times: Times | None) -> "FileData":
        """Return the same data, without `{dt}` if the first rows of a file are of another UTC day.

        A file of a day in another zone has rows of two days in UTC.
        """
        if "{dt}" not in self.path or times is None:
            return self
        for path in self.files:
            for record in islice(read_records(path, form=self.form), _FILE_ROWS):
                day = times.day(record.values.get(times.column))
                if day not in (None, day_of(path, self.path)):
                    return replace(self, path=self.whole)
        return self

    def days(self, times: Times | None) -> Counter[dt.date]:
        """Return how many rows each day has; of one file a day, by its name, one each."""
        if "{dt}" in self.path:
            return Counter(day for path in self.files if (day := day_of(path, self.path)))
        if times is None:
            return Counter()
        records = chain.from_iterable(read_records(path, form=self.form) for path in self.files)
        days = (times.day(r.values.get(times.column)) for r in islice(records, _COUNTED))
        return Counter(day for day in days if day is not None)


@dataclass(frozen=True, kw_only=True)
class TableData:
    """Comments in a table of a database."""

    url: str
    table: str

    def sample(self) -> Sample:
        """Return the first rows of the table."""
        first = select(text("*")).select_from(table(self.table)).limit(_ROWS)
        with _connected(self.url) as connection:
            names = [str(column["name"]) for column in inspect(connection).get_columns(self.table)]
            rows = [dict(row) for row in connection.execute(first).mappings()]
        return Sample(where=f"table {self.table}", names=names, rows=_unlike(rows))

    def size(self) -> int:
        """Return how many rows the table has."""
        with _connected(self.url) as connection:
            return int(connection.execute(text(f"SELECT COUNT(*) {self._rows}")).scalar_one())

    def days(self, times: Times) -> Counter[dt.date]:
        """Return the first and the last possible day of the table."""
        time = self._quoted(times.column)
        ends = f"SELECT MIN({time}), MAX({time}) {self._rows} WHERE {self._within(times)}"
        with _connected(self.url) as connection:
            query = for_days(ends, *possible_days(), zone(times.zone))
            found = connection.execute(query).one()
        return Counter(day for value in found if (day := times.day(value)))

    @property
    def _rows(self) -> str:
        return f"FROM {self._quoted(self.table)}"

    def _quoted(self, name: str) -> str:
        return parse_url(self.url).get_dialect()().identifier_preparer.quote(name)

    def _within(self, times: Times) -> str:
        """Return the condition that a row is between `:start` and `:end`."""
        dialect = parse_url(self.url).get_backend_name()
        time, start, end = _comparison(dialect, self._quoted(times.column), times)
        return f"{time} >= {start} AND {time} < {end}"

    def queries(self, columns: Sequence[str], order: str, times: Times) -> tuple[str, str]:
        """Return the query for one day, and that for the number of rows on none of many days.

        Rows are sorted by their time and the column `order`.

        Raises:
            SourceError: the database cannot compare times that are written in this way.
        """
        wanted = dict.fromkeys([*columns, times.column])
        if strange := [name for name in (*wanted, self.table) if ":" in name]:
            raise SourceError(f"the name {strange[0]!r} has a colon; rename it in a view")
        within, columns = self._within(times), ", ".join(map(self._quoted, wanted))
        sorting = f"ORDER BY {self._quoted(times.column)}, {self._quoted(order)}"
        undated = f"SELECT COUNT(*) - COUNT(CASE WHEN {within} THEN 1 END) {self._rows}"
        return f"SELECT {columns} {self._rows} WHERE {within} {sorting}", undated


def table_names(url: str) -> list[str]:
    """Return the tables and views of a database; SourceError when it cannot be read."""
    with _connected(url) as connection:
        inspector = inspect(connection)
        return sorted([*inspector.get_table_names(), *inspector.get_view_names()])


def database_url(given: str) -> str | None:
    """Return the URL of a database that is given as one, or as a SQLite file; None for others.

    >>> database_url("postgresql://reader@db/forum"), database_url("comments.csv")
    ('postgresql+psycopg://reader@db/forum', None)
    """
    if "://" in given:
        return re.sub(r"^postgres(ql)?://", "postgresql+psycopg://", given)
    path = Path(given).expanduser().absolute()
    if path.suffix in (".db", ".sqlite", ".sqlite3"):
        if not path.is_file():
            raise SourceError(f"{path} does not exist; correct the path")
        return f"sqlite:///{path}"
    return None


def _comparison(dialect: str, column: str, times: Times) -> tuple[str, str, str]:
    """Return expressions of SQL for the time of a row, and for both ends of a day."""
    value, form = times.one, times.form
    if isinstance(value, dt.datetime):
        return column, ":start", ":end"
    is_date, is_free = is_eight_digit_date(text_of(value)[0]), form.written is None
    is_number = isinstance(value, int | float) and is_free and not is_date
    scale = epoch_scale(cast(float, value)) if is_number else None
    if scale is not None and dialect == "sqlite":
        of = "CAST(strftime('%s', {}) AS INTEGER) * {}"
        return column, of.format(":start", scale), of.format(":end", scale)
    if scale is not None and dialect == "postgresql":
        return f"to_timestamp({column} / {scale}.0)", ":start", ":end"
    if isinstance(value, str) and is_free and dialect == "sqlite" and not is_date:
        return f"datetime({column})", "datetime(:start)", "datetime(:end)"
    if isinstance(value, str) and is_free and dialect == "postgresql":
        kind = "timestamptz" if form.has_zone else "timestamp"
        return f"CAST({column} AS {kind})", ":start", ":end"
    raise SourceError(
        f"{dialect} cannot compare the times in {column}; make a view with a column of real times"
    )


def _unlike(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [*{repr(row): row for row in rows}.values()]


def _by_day(files: Sequence[Path]) -> str | None:
    """Return the path with `{dt}` that stands for just these files, each with a day in its name."""
    patterns = {str(path.parent / _DATE.sub("{dt}", path.name, count=1)) for path in files}
    pattern = patterns.pop()
    return pattern if len(files) > 1 and not patterns and "{dt}" in pattern else None


def _remedy(fields: int, names: int) -> str:
    """Return what to do where all rows have other numbers of fields than the header."""
    if names == 1:
        return "delete the lines above the names, or add --delimiter"
    start = "name the first column (R writes row names without one), or " * (fields == names + 1)
    return start + "put texts in quotation marks, or add --delimiter, --quoting or --escape"


def _connected(url: str) -> AbstractContextManager[Connection]:
    source = SqlSource(url=url, query="SELECT :start, :end")  # refuses a file that does not exist
    return connected(parse_url(url), source.name)
