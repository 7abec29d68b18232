import datetime as dt
import sqlite3
from contextlib import closing

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from modwatch.common.account import Account
from modwatch.common.errors import SourceError
from modwatch.data.lake.schemas import LANDED
from modwatch.data.sources import landing
from modwatch.data.sources.sql import SqlSource
from modwatch.review.embedded import embedded

DAY = dt.date(2024, 3, 31)  # summer time begins in Berlin
QUERY = "SELECT * FROM post WHERE created_at >= :start AND created_at < :end ORDER BY comment_id"


def run(url: str, *statements: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


def landed(source: SqlSource, day: dt.date = DAY) -> list[dict]:
    return pa.Table.from_batches(source.read(day), LANDED).to_pylist()


@pytest.fixture
def sqlite(tmp_path):
    url = f"sqlite:///{tmp_path / 'forum.db'}"
    run(
        url,
        "CREATE TABLE post (comment_id INTEGER, text TEXT, created_at TEXT)",
        "INSERT INTO post VALUES (1, 'a', '2024-03-31 00:00:00.000000'), "
        "(2, '', '2024-03-31 23:59:59.999999'), (3, 'c', '2024-04-01 00:00:00.000000'), "
        "(4, NULL, '2024-03-31 nonsense')",
    )
    return url


@pytest.fixture(scope="module")
def postgres(tmp_path_factory, services):
    with embedded(tmp_path_factory.mktemp("forum")) as server:
        url = server.url("forum")
        run(
            url,
            "CREATE TABLE post (comment_id TEXT, text TEXT, created_at TIMESTAMPTZ)",
            "INSERT INTO post SELECT n::text, 'x', timestamptz '2024-03-31 00:00Z' "
            "+ n * interval '1 minute' FROM generate_series(-1, 2000) n",
            "CREATE TABLE local_post AS SELECT comment_id, text, "
            "created_at AT TIME ZONE 'Europe/Berlin' AS created_at FROM post",
        )
        yield url


def test_one_day_of_sqlite_with_its_unreadable_rows(sqlite):
    rows = landed(SqlSource(url=sqlite, query=QUERY, assume_timezone="UTC", platform="forum"))
    assert [row["comment_id"] for row in rows] == ["1", "2", "4"]
    assert [row["problem"] for row in rows] == [None, None, "unreadable_timestamp"]
    assert [row["text"] for row in rows] == ["a", "", None]
    assert rows[0]["created_at"] == dt.datetime(2024, 3, 31, tzinfo=dt.UTC)
    assert rows[0]["origin"] == f"sql:{sqlite}:1"
    assert {(row["dt"], row["platform"]) for row in rows} == {(DAY, "forum")}


def test_times_without_zone_are_a_problem_unless_one_is_assumed(sqlite):
    rows = landed(SqlSource(url=sqlite, query=QUERY))
    assert {row["problem"] for row in rows} == {"timestamp_without_zone", "unreadable_timestamp"}


def test_one_day_of_postgres_streams_in_batches(postgres, monkeypatch):
    monkeypatch.setattr(landing, "BATCH_ROWS", 1_000)
    source = SqlSource(url=postgres, query=QUERY.replace("ORDER BY comment_id", ""))
    batches = list(source.read(DAY))
    assert [batch.num_rows for batch in batches] == [1_000, 440]
    days = [DAY + dt.timedelta(days=n) for n in (-1, 0, 1)]
    found = [row["comment_id"] for day in days for row in landed(source, day)]
    assert len(found) == len(set(found)) == 2_002


def test_wall_clock_columns_are_selected_in_their_own_zone(postgres):
    query = QUERY.replace("FROM post", "FROM local_post")
    source = SqlSource(url=postgres, query=query, assume_timezone="Europe/Berlin")
    rows = landed(source)
    assert len(rows) == 1_440
    assert min(row["created_at"] for row in rows) == dt.datetime(2024, 3, 31, tzinfo=dt.UTC)
    assert {row["created_at"].date() for row in rows} == {DAY}


def test_columns_are_mapped_and_a_missing_one_is_named(sqlite):
    query = QUERY.replace("*", "comment_id AS id, text AS body, created_at AS at")
    source = SqlSource(url=sqlite, query=query, columns={"comment_id": "id"}, timestamp_column="at")
    with pytest.raises(
        SourceError, match=r"query of .* has no column 'text'; it has id, body, at. Map"
    ):
        landed(source)


@pytest.mark.parametrize(("missing", "other"), [(":start", "::start"), (":end", "'2024'")])
def test_a_query_without_bounds_is_refused_at_once(missing, other):
    with pytest.raises(SourceError, match=f"has no {missing}; select one day with"):
        SqlSource(url="sqlite://", query=QUERY.replace(missing, other))  # a cast is no bound


def test_a_refused_query_names_the_database_and_not_its_password(sqlite):
    with pytest.raises(SourceError, match=r"The query of .* failed \(OperationalError\)"):
        landed(SqlSource(url=sqlite, query=QUERY.replace("post", "gone")))


def test_a_database_that_is_down_does_not_tell_its_password():
    url = "postgresql+psycopg://reader:hunter2@127.0.0.1:1/forum?connect_timeout=5&options=hunter3"
    source = SqlSource(url=url, query=QUERY)
    with pytest.raises(SourceError, match=r"sql:postgresql\+psycopg://127.0.0.1/forum") as caught:
        landed(source)
    assert "hunter" not in f"{caught.value}{source!r}{source.name}{caught.value.__cause__}"


@pytest.mark.parametrize("url", ["no url", "postgresql://u:hunter2@h:port/db"])
def test_a_broken_url_is_refused_without_being_shown(url):
    with pytest.raises(SourceError, match="cannot be parsed") as caught:
        SqlSource(url=url, query=QUERY)
    assert caught.value.__cause__ is None
    assert "hunter" not in str(caught.value)


def test_a_driver_that_is_not_installed():
    with pytest.raises(SourceError, match="driver of sql:oracle://host/ cannot be loaded"):
        landed(SqlSource(url="oracle://host", query=QUERY))


def test_a_mistyped_sqlite_file_is_refused_and_not_created(tmp_path):
    path = tmp_path / "forun.db"
    with pytest.raises(SourceError, match=r"forun\.db does not exist; correct MODWATCH"):
        SqlSource(url=f"sqlite:///{path}", query=QUERY)
    assert not path.exists()


def test_times_as_text_are_read_by_the_format(tmp_path):
    url = f"sqlite:///{tmp_path / 'forum.db'}"
    run(
        url,
        "CREATE TABLE post (comment_id INTEGER, text TEXT, created_at TEXT, day TEXT)",
        "INSERT INTO post VALUES (1, 'a', '31.03.2024 12:00', '2024-03-31')",
    )
    query = "SELECT * FROM post WHERE day >= date(:start) AND day < date(:end)"
    form = "%d.%m.%Y %H:%M"
    [row] = landed(SqlSource(url=url, query=query, timestamp_format=form, assume_timezone="UTC"))
    assert row["created_at"] == dt.datetime(2024, 3, 31, 12, tzinfo=dt.UTC)


def test_text_that_is_not_utf_8_costs_its_row_only(sqlite):
    run(sqlite, "UPDATE post SET text = CAST(x'636166e9' AS TEXT) WHERE comment_id = 2")
    rows = landed(SqlSource(url=sqlite, query=QUERY, assume_timezone="UTC"))
    assert [row["problem"] for row in rows] == [None, "undecodable_text", "unreadable_timestamp"]


sound = st.tuples(st.integers(0, 2**62) | st.uuids().map(str), st.text(min_size=1, max_size=9))
typed = st.one_of(st.none(), st.integers(-9, 9), st.floats(), st.binary(max_size=9), st.just(""))
moment = st.sampled_from(["2024-03-31 12:00:00", "2024-03-30 12:00:00", None, "soon", b"\xff", 7])


@given(
    rows=st.lists(sound, max_size=9, unique_by=lambda row: str(row[0])),
    damaged=st.lists(st.tuples(typed, typed, moment)),
)
def test_every_row_of_a_table_is_accounted_for(tmp_path_factory, rows, damaged):
    path = tmp_path_factory.mktemp("sql") / "forum.db"
    good = [(*row, "2024-03-31 12:00:00") for row in rows]
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE post (comment_id, text, created_at)")
        database.executemany("INSERT INTO post VALUES (?, ?, ?)", [*good, *damaged])
    source = SqlSource(
        url=f"sqlite:///{path}",
        query="SELECT * FROM post WHERE created_at >= :start AND created_at < :end ORDER BY rowid",
        undated_query="SELECT COUNT(*) FROM post WHERE datetime(created_at) IS NULL",
        assume_timezone="UTC",
    )
    account = Account()
    found = pa.Table.from_batches(source.read(DAY, account), LANDED).to_pylist()
    account.count("landed", len(found))
    account.close(source.name)
    kept = [(row["comment_id"], row["text"]) for row in found[: len(rows)]]
    assert kept == [(str(comment_id), words) for comment_id, words in rows]
    assert [row["problem"] for row in found[: len(rows)]] == [None] * len(rows)
