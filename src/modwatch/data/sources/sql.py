"""Comments from any database that SQLAlchemy supports."""

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Connection,
    DateTime,
    TextClause,
    bindparam,
    create_engine,
    event,
    func,
    make_url,
    select,
    text,
)
from sqlalchemy.exc import SQLAlchemyError

from modwatch.common.account import Account
from modwatch.common.days import possible_days
from modwatch.common.errors import SourceError
from modwatch.data.sources.landing import LandedRow, MappedSource
from modwatch.data.sources.readers import unique_names

#: Rows fetched from the server at a time.
_FETCH = 1000


@dataclass(frozen=True, kw_only=True)
class SqlSource(MappedSource):
    """Comments from a database, streamed by a server-side cursor.

    The query selects one day by the parameters `:start` and `:end`, and sorts it:
    `… WHERE posted >= :start AND posted < :end ORDER BY posted, id`. Both are UTC times with zone,
    or, if `assume_timezone` is set, wall-clock times of that zone without zone.

    Every row belongs to the day it was selected for; problems are marked as in `FileSource`.
    Messages and representations contain no password.

    >>> source = SqlSource(
    ...     url="postgresql+psycopg://reader:secret@db/forum",
    ...     query="SELECT id, body, posted FROM post WHERE posted >= :start AND posted < :end",
    ...     columns={"comment_id": "id", "text": "body"},
    ...     timestamp_column="posted",
    ... )
    >>> source.name, "secret" in repr(source)
    ('sql:postgresql+psycopg://db/forum', False)
    """

    #: Any SQLAlchemy URL.
    url: str | URL = field(repr=False)
    #: A SELECT with `:start` and `:end`.
    query: str
    #: Counts the rows that the query selects on no day, of which `:start` and `:end` are the first
    #: and the last; None: they are unknown.
    undated_query: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_file()
        for name in ("start", "end"):
            if not re.search(rf"(?<![:\w]):{name}\b", self.query):
                raise SourceError(
                    f"The query of {self.name} has no :{name}; select one day with "
                    "`WHERE time >= :start AND time < :end`."
                )

    @property
    def name(self) -> str:
        """Driver, host and database, without user, password or options."""
        return f"sql:{public_name(parse_url(self.url))}"

    def first_rows(self, most: int, day: dt.date) -> Iterator[tuple[dt.date, LandedRow]]:
        """Yield up to `most` rows of a day, with the day."""
        return ((day, row) for row in islice(self._rows(day, Account()), most))

    def undated(self) -> int:
        """Return how many rows are on no possible day, by `undated_query`; without it, 0."""
        with connected(parse_url(self.url), self.name) as connection:
            return self._undated(connection)

    def counts(self, days: Sequence[dt.date]) -> dict[dt.date, int]:
        """Return how many rows the query selects of each day."""
        query = self.query.rstrip().removesuffix(";") + "\n"  # after a comment at its end
        with connected(parse_url(self.url), self.name) as connection:
            found = {}
            for day in days:
                rows = for_days(query, day, day, self._zone).columns().subquery("of_the_day")
                found[day] = connection.execute(select(func.count()).select_from(rows)).scalar_one()
        return found

    def _undated(self, connection: Connection) -> int:
        if self.undated_query is None:
            return 0
        query = for_days(self.undated_query, *possible_days(), self._zone)
        return int(connection.execute(query).scalar_one())

    def _rows(self, day: dt.date, account: Account) -> Iterator[LandedRow]:
        with connected(parse_url(self.url), self.name) as connection:
            if undated := self._undated(connection):
                account.read += undated
                account.count("undated", undated)
            streaming = connection.execution_options(stream_results=True, yield_per=_FETCH)
            result = streaming.execute(for_days(self.query, day, day, self._zone))
            available = unique_names(list(result.keys()))
            where, remedy = f"the query of {self.name}", "name it in MODWATCH_SOURCE__QUERY"
            names = self._source_columns(available, where=where, remedy=remedy)
            for number, row in enumerate(result, start=1):
                account.read += 1
                record = dict(zip(available, row, strict=True))
                yield self._landed_row(f"{self.name}:{number}", record, names, self._moment(record))

    def _require_file(self) -> None:
        """Raise SourceError when SQLite would make a new, empty database."""
        url = parse_url(self.url)
        file = url.database or ""
        if url.get_backend_name() != "sqlite" or file in ("", ":memory:"):
            return
        if not file.startswith("file:") and not Path(file).is_file():
            raise SourceError(
                f"The SQLite file {file} does not exist; correct MODWATCH_SOURCE__URL (an absolute "
                "path has four slashes, sqlite:////srv/forum.db)."
            )


def for_days(query: str, first: dt.date, last: dt.date, zone: dt.tzinfo | None) -> TextClause:
    """Return a query whose parameters `:start` and `:end` are the bounds of UTC days.

    `end` is that of `last`. With a `zone`, both are wall-clock times of it.
    """
    days = {"start": first, "end": last + dt.timedelta(days=1)}
    times = {name: dt.datetime.combine(day, dt.time(), dt.UTC) for name, day in days.items()}
    if zone is not None:
        times = {name: t.astimezone(zone).replace(tzinfo=None) for name, t in times.items()}
    kind, statement = DateTime(timezone=zone is None), text(query)
    wanted = statement.compile().params
    bound = [bindparam(name, time, kind) for name, time in times.items() if name in wanted]
    return statement.bindparams(*bound)


def parse_url(url: str | URL) -> URL:
    """Return a database URL; SourceError when it cannot be parsed."""
    try:
        return make_url(url)
    except (SQLAlchemyError, ValueError):
        # Not chained: the message of the parser may contain part of the password.
        raise SourceError(
            "The database URL of the source cannot be parsed; write it as "
            "driver://user:password@host/database, with special characters percent-encoded."
        ) from None


def public_name(url: URL) -> str:
    """Return driver, host and database of a URL."""
    return f"{url.drivername}://{url.host or ''}/{url.database or ''}"


def _keep_bytes(connection: Any, _: object) -> None:
    """Read bytes of SQLite that are not UTF-8 as lone surrogates: they would end the query."""
    connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")


@contextmanager
def connected(url: URL, name: str) -> Iterator[Connection]:
    """Open a database, and map its errors to SourceError; `name` has no secrets."""
    try:
        engine = create_engine(url, hide_parameters=True)
        if url.get_backend_name() == "sqlite":
            event.listen(engine, "connect", _keep_bytes)
    except (SQLAlchemyError, ImportError) as exc:
        raise SourceError(
            f"The driver of {name} cannot be loaded; install it or change the URL."
        ) from exc
    try:
        with engine.connect() as connection:
            yield connection
    except SQLAlchemyError as exc:
        # The message of a database may quote a row, so only the class of the error is shown.
        raise SourceError(
            f"The query of {name} failed ({type(exc).__name__}); check the server, the "
            "permissions of the account, and the query."
        ) from exc
    finally:
        engine.dispose()
