"""Rows that arrive after their day was ingested, from the source to the alert and its end."""

import datetime
import logging
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from feed import MARK, good, write_json

from installation import MONDAY, TUESDAY, Installation
from modwatch.common.errors import SourceError
from modwatch.data.sources.files import FileSource
from modwatch.installation.resources import open_resources
from modwatch.monitoring.incidents.actions import history, open_incidents
from modwatch.review.empty_days import declare_empty

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

WEDNESDAY = MONDAY + datetime.timedelta(days=2)
LANDING = ("ingest", "check_comments")
LATE = f"312 comments of {MONDAY} arrived after it was ingested"


def headlines(home: Installation, day: datetime.date) -> list[str]:
    home.run("raise_alerts", day=day)
    with open_resources(home.settings) as resources:
        return [incident.headline for incident in open_incidents(resources.database)]


def messages(home: Installation) -> list[str]:
    with open_resources(home.settings) as resources:
        return [f"{one.what}: {one.text}" for one in history(resources.database).entries]


@pytest.mark.parametrize("pattern", ["{dt}.jsonl", ""])
def test_late_rows_are_reported_once_and_a_repair_ends_it(files, incoming, pattern):
    home = files.but(source={"kind": "files", "path": str(incoming / pattern)})
    for day in (MONDAY, TUESDAY, WEDNESDAY):
        write_json(incoming / f"{day}.jsonl", (good(n, day) for n in range(400)))
    home.run(*LANDING)
    home.run(*LANDING, day=TUESDAY)
    assert headlines(home, TUESDAY) == []
    write_json(incoming / "late" / f"{MONDAY}.jsonl", (good(n) for n in range(400, 712)))
    if pattern:
        write_json(incoming / f"{MONDAY}.jsonl", map(good, range(712)))
    home.run(*LANDING, day=WEDNESDAY)
    assert headlines(home, WEDNESDAY) == [LATE]
    assert headlines(home, WEDNESDAY) == [LATE]
    with open_resources(home.settings) as resources:
        [incident] = open_incidents(resources.database)
    assert f"run `modwatch repair {MONDAY}`" in incident.text
    assert MARK not in incident.text
    assert home.run(*LANDING) == [712, 712]
    assert headlines(home, MONDAY) == []
    assert messages(home) == [
        f"opened: [warning] {LATE}, since 7 January 2026",
        f"recovered: [warning] Recovered: {LATE}, since 7 January 2026",
    ]


def test_rows_of_a_day_that_was_declared_empty_are_reported(files, incoming):
    with open_resources(files.settings) as resources:
        declare_empty(resources.database, TUESDAY, "lea")
    files.run(*LANDING)
    assert files.run("ingest", day=TUESDAY) == [0]
    write_json(incoming / f"{TUESDAY}.jsonl", (good(n, TUESDAY) for n in range(5)))
    write_json(incoming / f"{WEDNESDAY}.jsonl", (good(n, WEDNESDAY) for n in range(40)))
    files.run("ingest", day=WEDNESDAY)
    assert headlines(files, WEDNESDAY) == [f"5 comments of {TUESDAY} arrived after it was ingested"]


def test_a_day_that_differed_is_counted_until_it_is_repaired(files, incoming):
    files.run("ingest")
    later = [MONDAY + datetime.timedelta(days=n) for n in (1, 20, 21)]
    for day in later:
        write_json(incoming / f"{day}.jsonl", (good(n, day) for n in range(40)))
    write_json(incoming / f"{MONDAY}.jsonl", map(good, range(41)))
    late = f"1 comments of {MONDAY} arrived after it was ingested"
    for day in later[:2]:
        files.run("ingest", day=day)
        assert headlines(files, day) == [late]
    files.run("ingest")
    files.run("ingest", day=later[2])
    assert headlines(files, later[2]) == []
    with open_resources(files.settings) as resources:
        counts = resources.checks.load_counts(later[2])
    assert counts == dict.fromkeys(later[1:], (40, 40))


@pytest.mark.parametrize(("left", "reported"), [(290, 0), (250, 1), (10, 0), (0, 0)])
def test_rows_that_are_gone_are_reported_if_neither_few_nor_most(install, tmp_path, left, reported):
    """A database: with a query that ends in a comment, times of Berlin, and rows on no day."""
    path = tmp_path / "forum.db"
    with closing(sqlite3.connect(path)) as forum, forum:
        forum.execute("CREATE TABLE post (comment_id INTEGER, text TEXT, created_at TEXT)")
        rows = [(n, "a", f"2026-01-0{5 + n // 300} 12:00:00.000000") for n in range(900)]
        forum.executemany("INSERT INTO post VALUES (?, ?, ?)", [*rows, (1000, "b", None)])
    source = {
        "kind": "sql",
        "url": f"sqlite:///{path}",
        "query": "SELECT * FROM post WHERE created_at >= :start AND created_at < :end "
        "ORDER BY comment_id; ",
        "undated_query": "SELECT count(*) FROM post WHERE created_at IS NULL",
        "assume_timezone": "Europe/Berlin",
    }
    home = install(source=source)
    assert home.run("ingest") == [300]
    home.run("ingest", day=TUESDAY)
    assert headlines(home, TUESDAY) == []
    with closing(sqlite3.connect(path)) as forum, forum:
        forum.execute("DELETE FROM post WHERE comment_id BETWEEN ? AND 299", [left])
    home.run("ingest", day=WEDNESDAY)
    gone = f"{300 - left} comments of {MONDAY} are no longer in the source"
    assert headlines(home, WEDNESDAY) == [gone] * reported


def test_a_source_that_cannot_be_counted_stops_no_day(files, monkeypatch, caplog):
    def fails(*_: object) -> None:
        raise SourceError("the source is away")

    monkeypatch.setattr(FileSource, "counts", fails)
    with caplog.at_level(logging.WARNING):
        assert files.run("ingest") == [40]
    assert "Late rows were not looked for: the source is away" in caplog.text


def test_days_that_are_ingested_at_once_both_land(files, incoming):
    """And the next count is right, whoever was first."""
    days = [MONDAY, TUESDAY, WEDNESDAY]
    for day in days[1:]:
        write_json(incoming / f"{day}.jsonl", (good(n, day) for n in range(40)))
    with ThreadPoolExecutor(3) as pool:
        found = [*pool.map(lambda day: files.run("ingest", day=day), days)]
    assert found == [[40]] * 3
    files.run("ingest", day=WEDNESDAY)
    with open_resources(files.settings) as resources:
        counts = resources.checks.load_counts(WEDNESDAY)
    assert counts == dict.fromkeys(days, (40, 40))
