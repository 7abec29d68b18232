"""Samples of files and tables that `modwatch init` looks at, and the settings that read them."""

import datetime as dt
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, inspect, text
from sqlalchemy.exc import SQLAlchemyError

from modwatch.common.errors import SourceError
from modwatch.data.sources.delimited import TextFormat
from modwatch.data.sources.inspection import TimeFormat, require_header
from modwatch.data.sources.readers import FORMATS, column_names, file_format, is_data, read_records
from modwatch.data.sources.sql import SqlSource
from modwatch.data.sources.timestamps import epoch_scale, read_moment, zone

#: Rows that are looked at, and the most of them from one file.
_ROWS, _FILE_ROWS = 1000, 200
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
        """Return the data in a file or folder; SourceError when there is none."""
        path = Path(given).expanduser().absolute()
        files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if _is_data(p))
        if not files:
            raise SourceError(
                f"{path} is no file and no folder with files *{', *'.join(FORMATS)} (text formats "
                "also .gz); correct the path"
            )
        by_day = _by_day(files)
        return cls(path=by_day or str(path), whole=str(path), files=files, form=form)

    def sample(self) -> Sample:
        """Return the first rows, of several files if there are."""
        names = column_names(self.files[0], form=self.form)
        if file_format(self.files[0]) in ("csv", "tsv"):
            require_header(names, str(self.files[0]))
        most = _ROWS if len(self.files) == 1 else _FILE_ROWS
        records = chain.from_iterable(
            islice(read_records(path, form=self.form), most) for path in self.files
        )
        rows = [dict(r.values) for r in islice(records, _ROWS) if r.problem is None]
        return Sample(where=self.path, names=names, rows=rows)

    def dated(self, column: str, form: TimeFormat, assume: str | None) -> "FileData":
        """Return the same data, without `{dt}` if the first rows of a file are of another UTC day.

        A file of a day in another zone has rows of two days in UTC.
        """
        if "{dt}" not in self.path:
            return self
        local = zone(assume)
        for path in self.files:
            for record in islice(read_records(path, form=self.form), _FILE_ROWS):
                moment = read_moment(record.values.get(column), local, form.written)
                if moment.day is not None and moment.day.isoformat() not in path.name:
                    return replace(self, path=self.whole)
        return self

    def days(self, column: str, form: TimeFormat, assume: str | None) -> Counter[dt.date]:
        """Return how many rows each day has; of one file a day, by its name, one each."""
        if "{dt}" in self.path:
            found = (_DATE.search(path.name) for path in self.files)
            return Counter(dt.date.fromisoformat(day[0]) for day in found if day)
        records = chain.from_iterable(read_records(path, form=self.form) for path in self.files)
        local = zone(assume)
        moments = (
            read_moment(record.values.get(column), local, form.written)
            for record in islice(records, _COUNTED)
        )
        return Counter(moment.day for moment in moments if moment.day is not None)


@dataclass(frozen=True, kw_only=True)
class TableData:
    """Comments in a table of a database."""

    url: str
    table: str

    def sample(self) -> Sample:
        """Return the first rows of the table."""
        rows = self._rows(lambda _, table: f"SELECT * FROM {table} LIMIT {_ROWS}")  # noqa: S608
        return Sample(where=f"table {self.table}", names=self._names(), rows=rows)

    def days(self, column: str, form: TimeFormat, assume: str | None) -> Counter[dt.date]:
        """Return the first and the last day of the table."""
        [row] = self._rows(
            lambda quote, table: (
                f"SELECT MIN({quote(column)}) AS first, MAX({quote(column)}) AS last FROM {table}"  # noqa: S608
            )
        )
        moments = [read_moment(value, zone(assume), form.written) for value in row.values()]
        return Counter(moment.day for moment in moments if moment.day is not None)

    def dated(self, _column: str, _form: TimeFormat, _assume: str | None) -> "TableData":
        """Return the same data: a table is selected by its times."""
        return self

    def query(
        self, columns: Mapping[str, str], column: str, form: TimeFormat, value: object
    ) -> str:
        """Return the query for one day, for MODWATCH_SOURCE__QUERY.

        `columns` are the table's, by Modwatch's names; `value` is one time of `column`, which
        decides how times are compared.

        Raises:
            SourceError: the database cannot compare times that are written in this way.
        """
        with _opened(self.url) as engine:
            quote = engine.dialect.identifier_preparer.quote
            time, start, end = _comparison(engine.dialect.name, quote(column), form, value)
            wanted = dict.fromkeys([*columns.values(), column])
            if strange := [name for name in (*wanted, self.table) if ":" in name]:
                raise SourceError(f"the name {strange[0]!r} has a colon; rename it in a view")
            order = f"{quote(column)}, {quote(columns['comment_id'])}"
            parts = [
                f"SELECT {', '.join(map(quote, wanted))} FROM {quote(self.table)}",  # noqa: S608
                f"WHERE {time} >= {start} AND {time} < {end} ORDER BY {order}",
            ]
            return " ".join(parts)

    def _names(self) -> list[str]:
        with _opened(self.url) as engine:
            return [str(column["name"]) for column in inspect(engine).get_columns(self.table)]

    def _rows(self, statement: Callable[[Callable[[str], str], str], str]) -> list[dict[str, Any]]:
        with _opened(self.url) as engine, engine.connect() as connection:
            quote = engine.dialect.identifier_preparer.quote
            result = connection.execute(text(statement(quote, quote(self.table))))
            return [dict(row) for row in result.mappings()]


def table_names(url: str) -> list[str]:
    """Return the tables and views of a database; SourceError when it cannot be read."""
    with _opened(url) as engine:
        inspector = inspect(engine)
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


def _is_data(path: Path) -> bool:
    return path.is_file() and is_data(path) and not path.name.startswith((".", "_"))


@contextmanager
def _opened(url: str) -> Iterator[Engine]:
    """Open a database; messages give only the class of an error, which may quote rows."""
    SqlSource(url=url, query="SELECT :start, :end")  # refuses a URL or file that does not exist
    try:
        engine = create_engine(url, hide_parameters=True)
        try:
            yield engine
        finally:
            engine.dispose()
    except (SQLAlchemyError, ImportError) as exc:
        raise SourceError(
            f"the database cannot be read ({type(exc).__name__}); check the URL, the server, the "
            "account and the name of the table"
        ) from None
