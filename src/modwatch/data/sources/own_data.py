"""Samples of files and tables that `modwatch init` looks at, and the settings that read them."""

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnClause, Connection, column, func, inspect, select, table, text

from modwatch.common.account import Account
from modwatch.common.errors import SourceError
from modwatch.data.sources.delimited import TextFormat
from modwatch.data.sources.files import day_of, find_files, sampled
from modwatch.data.sources.inspection import TimeFormat, require_header
from modwatch.data.sources.readers import FORMATS, Record, file_format, read_records, table_columns
from modwatch.data.sources.sql import SqlSource, connected, parse_url
from modwatch.data.sources.timestamps import epoch_scale, read_moment, zone

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
    rows: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Times:
    """The times of a source."""

    column: str
    form: TimeFormat
    #: IANA zone of times without one.
    zone: str | None

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
        if file_format(path) in ("csv", "tsv") and (rows or names):
            require_header(names, str(path))
        if not rows:
            raise SourceError(self._why_no_row(len(names)))
        return Sample(where=self.path, names=names, rows=rows)

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
        return Sample(where=f"table {self.table}", names=names, rows=rows)

    def days(self, times: Times) -> Counter[dt.date]:
        """Return the first and the last day of the table."""
        time: ColumnClause[Any] = column(times.column)
        ends = select(func.min(time), func.max(time)).select_from(table(self.table))
        with _connected(self.url) as connection:
            found = connection.execute(ends).one()
        return Counter(day for value in found if (day := times.day(value)))

    def queries(
        self, columns: Sequence[str], order: str, times: Times, value: object
    ) -> tuple[str, str]:
        """Return the query for one day, and that for the number of rows without a time.

        Rows are sorted by their time and the column `order`; `value` is one time, which decides how
        times are compared.

        Raises:
            SourceError: the database cannot compare times that are written in this way.
        """
        dialect = parse_url(self.url).get_dialect()()
        quote = dialect.identifier_preparer.quote
        written = quote(times.column)
        time, start, end = _comparison(dialect.name, written, times.form, value)
        wanted = dict.fromkeys([*columns, times.column])
        if strange := [name for name in (*wanted, self.table) if ":" in name]:
            raise SourceError(f"the name {strange[0]!r} has a colon; rename it in a view")
        rows = f"FROM {quote(self.table)} WHERE"
        query = (
            f"SELECT {', '.join(map(quote, wanted))} {rows} {time} >= {start} AND "
            f"{time} < {end} ORDER BY {written}, {quote(order)}"
        )
        return query, f"SELECT COUNT(*) {rows} {time} IS NULL"


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


def _comparison(dialect: str, column: str, form: TimeFormat, value: object) -> tuple[str, str, str]:
    """Return expressions of SQL for the time of a row, and for both ends of a day."""
    if isinstance(value, dt.datetime):
        return column, ":start", ":end"
    scale = epoch_scale(value) if isinstance(value, int | float) else None
    if scale is not None and dialect == "sqlite":
        of = "CAST(strftime('%s', {}) AS INTEGER) * {}"
        return column, of.format(":start", scale), of.format(":end", scale)
    if scale is not None and dialect == "postgresql":
        return f"to_timestamp({column} / {scale}.0)", ":start", ":end"
    if isinstance(value, str) and form.written is None and dialect == "sqlite":
        return f"datetime({column})", "datetime(:start)", "datetime(:end)"
    if isinstance(value, str) and form.written is None and dialect == "postgresql":
        kind = "timestamptz" if form.has_zone else "timestamp"
        return f"CAST({column} AS {kind})", ":start", ":end"
    raise SourceError(
        f"{dialect} cannot compare the times in {column}; make a view with a column of real times"
    )


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
