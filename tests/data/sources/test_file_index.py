"""Folders of files: each is read once, and a bad one is the fault of its days."""

import datetime as dt
import gzip
import json
import logging
import multiprocessing
import os
import shutil
import zoneinfo
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from modwatch.common.account import Account
from modwatch.common.errors import SourceError
from modwatch.data.sources import readers
from modwatch.data.sources.files import FileSource

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
DAY = dt.date(2026, 11, 15)
DAYS = [DAY + dt.timedelta(days=n) for n in range(-3, 4)]
SECRET = "quillfeather"


def comments(local_day: dt.date) -> list[dict[str, str]]:
    """Return one comment an hour of a day in Berlin."""
    midnight = dt.datetime.combine(local_day, dt.time(), BERLIN)
    hours = (midnight + dt.timedelta(hours=n) for n in range(24))
    return [
        {"comment_id": f"{time:%m-%d.%H}", "text": SECRET, "created_at": time.isoformat()}
        for time in hours
    ]


def write(folder: Path, day: dt.date, suffix: str = "csv", **renamed: str) -> Path:
    """Write the comments of a local day; `renamed` are columns with other names."""
    rows = [
        {renamed.get(name, name): value for name, value in row.items()} for row in comments(day)
    ]
    path = folder / f"comments-{day:%Y%m%d}.{suffix}"
    folder.mkdir(exist_ok=True)
    if suffix == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
        return path
    lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
    if suffix == "jsonl":
        lines = [json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def folder(tmp_path):
    for number, day in enumerate(DAYS):
        write(tmp_path / "in", day, ["csv", "jsonl", "parquet"][number % 3])
    return tmp_path / "in"


@pytest.fixture
def source(tmp_path):
    return FileSource(path=tmp_path / "in", index=tmp_path / "index")


@pytest.fixture
def opened(monkeypatch):
    """The names of the files that are read to their end or to the day's records."""
    names, original = [], readers.read_records

    def recorded(path: Path, **options: object) -> Iterable[readers.Record]:
        if options.get("account") is not None:
            names.append(path.name)
        return original(path, **options)

    monkeypatch.setattr("modwatch.data.sources.files.read_records", recorded)
    return names


def landed(source: FileSource, day: dt.date = DAY) -> int:
    """Return how many rows a day has, after checking that its account closes."""
    account = Account()
    rows = sum(batch.num_rows for batch in source.read(day, account))
    account.count("landed", rows)
    account.close(source.name)
    return rows


@pytest.mark.usefixtures("folder")
def test_a_day_reads_the_files_that_hold_it_and_those_that_are_new(source, opened):
    assert landed(source) == 24
    assert sorted(opened[:7]) == sorted(path.name for path in Path(source.path).iterdir())
    assert len(opened) == 7 + 2
    opened.clear()
    assert landed(source, DAYS[2]) == 24
    assert opened == ["comments-20261114.parquet", "comments-20261115.csv"]
    opened.clear()
    write(Path(source.path), DAYS[-1] + dt.timedelta(days=1))
    assert landed(source, DAYS[-1]) == 24
    assert opened == ["comments-20261119.csv", "comments-20261118.csv", "comments-20261119.csv"]


def test_the_account_is_the_same_whether_files_are_read_or_known(source, folder):
    (folder / "old.csv").write_text("comment_id,text,created_at\n\n1,a,1899-12-30T00:00:00Z\n")
    first, again = Account(), Account()
    for account in (first, again):
        rows = sum(batch.num_rows for batch in source.read(DAY, account))
    assert first == again
    assert (first.places["other_day"], first.places["unusual_day"], rows) == (24 * 6, 1, 24)
    assert first.first == {"unusual_day": f"{folder / 'old.csv'}:3"}


def test_a_renamed_column_fails_the_days_of_its_file_until_it_is_mended(source, folder):
    bad = write(folder, DAY, text="body")  # holds an hour of the day before
    for day in DAYS:
        if day in (DAY - dt.timedelta(days=1), DAY):
            with pytest.raises(SourceError, match=f"{bad.name} has no column 'text'") as caught:
                landed(source, day)
            assert SECRET not in str(caught.value)
        else:
            assert landed(source, day) == (24 if day < DAYS[-1] else 23)
    write(folder, DAY)
    assert landed(source) == 24


@pytest.mark.parametrize("index", [True, False])
def test_without_readable_times_the_days_are_those_of_the_name(source, folder, tmp_path, index):
    source = source if index else FileSource(path=folder)
    bad = write(folder, DAY, created_at="posted")
    assert landed(source, DAY + dt.timedelta(days=1)) == 24
    for day in (DAY, DAY - dt.timedelta(days=1)):
        with pytest.raises(SourceError, match=f"{bad.name} has no column 'created_at'"):
            landed(source, day)
    assert source.counts(DAYS) == {
        day: 23 if day == DAYS[-1] else 24
        for day in DAYS
        if day not in (DAY, DAY - dt.timedelta(days=1))
    }


def test_a_file_that_ends_early_fails_what_was_read_of_it_and_its_name(source, folder):
    path = write(folder, DAY)
    with gzip.open(f"{path}.gz", "wb") as file:
        file.write(path.read_bytes())
    whole = Path(f"{path}.gz").read_bytes()
    Path(f"{path}.gz").write_bytes(whole[: len(whole) // 2])
    path.unlink()
    assert landed(source, DAY + dt.timedelta(days=1)) == 24
    for day in (DAY, DAY - dt.timedelta(days=1)):
        with pytest.raises(SourceError, match="cannot be read"):
            landed(source, day)


def test_a_file_of_unknown_days_is_named_and_stops_only_a_day_without_rows(source, folder, caplog):
    (folder / "export.csv").write_text(f"comment_id,text\n1,{SECRET}\n")
    account = Account()
    with caplog.at_level(logging.WARNING):
        assert sum(batch.num_rows for batch in source.read(DAY, account)) == 24
    assert "export.csv has no column 'created_at'" in caplog.text
    assert SECRET not in caplog.text
    assert account.first["unreadable_file"] == str(folder / "export.csv")
    assert ("Files that cannot be read, of unknown days", 1) in [row[:2] for row in account.rows()]
    with pytest.raises(SourceError, match=r"export\.csv"):
        landed(source, DAY + dt.timedelta(days=30))


def test_a_file_that_is_replaced_with_size_and_time_of_another_is_read_again(source, folder):
    path = write(folder, DAY)
    assert landed(source) == 24
    before, other = path.stat(), folder.parent / "other.csv"
    text = path.read_text().replace("2026-11-15T23", "2026-11-25T23")
    for change in (path.write_text, other.write_text):
        change(text)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert (path.stat().st_size, path.stat().st_mtime_ns) == (
            before.st_size,
            before.st_mtime_ns,
        )
        assert source.counts([DAY]) == {DAY: 23}
        assert landed(source) == 23
        text = text.replace("2026-11-25T23", "2026-11-15T23")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)
    assert landed(source) == 24


def test_files_of_any_time_count_and_one_that_grows_is_read_again(source, folder):
    for year in (1971, 2099):  # the clock of whoever wrote them
        moment = dt.datetime(year, 1, 1, tzinfo=dt.UTC).timestamp()
        for path in folder.iterdir():
            os.utime(path, (moment, moment))
        assert landed(source) == 24
    with (folder / "comments-20261115.csv").open("a") as file:
        file.write(f"late,{SECRET},2026-11-15T12:00:00Z\n")
    assert source.counts([DAY]) == {DAY: 25}
    assert landed(source) == 25


def test_a_file_that_vanishes_fails_the_days_that_it_may_hold(source, folder, monkeypatch):
    gone = folder / "comments-20261117.csv"
    listed = [*folder.iterdir(), gone]
    gone.unlink(missing_ok=True)
    monkeypatch.setattr("modwatch.data.sources.files.find_files", lambda _: listed)
    assert landed(source) == 24
    with pytest.raises(SourceError, match=f"{gone.name} does not exist"):
        landed(source, dt.date(2026, 11, 17))


def test_folders_and_loops_of_links_are_no_files(source, folder):
    (folder / "folder.csv").mkdir()
    (folder / "loop.csv").symlink_to("loop.csv")
    (folder / "up").symlink_to("..", target_is_directory=True)
    os.mkfifo(folder / "pipe.csv")
    assert landed(source) == 24


def test_other_settings_read_other_days(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("comment_id,text,created_at\n1,a,2026-11-15 00:30\n")
    for zone, day in ((None, DAY), ("Europe/Berlin", DAY - dt.timedelta(days=1))):
        source = FileSource(path=path, assume_timezone=zone, index=tmp_path / "index")
        assert landed(source, day) == 1


@pytest.mark.usefixtures("folder")
def test_a_damaged_entry_or_a_lost_index_is_made_again(source):
    assert landed(source) == 24
    for content in ("", "{", "[]", '{"state": 1}', '{"days": {"a": 1}}', "\x00"):
        for entry in source.index.iterdir():
            entry.write_text(content)
        assert landed(source) == 24
    shutil.rmtree(source.index)
    source.index.write_text("no folder")  # nothing can be kept
    assert landed(source) == 24


@pytest.mark.usefixtures("folder")
def test_processes_that_read_at_once_agree(source):
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = pool.starmap(landed, [(source, day) for day in DAYS[:-1] for _ in range(2)])
    assert found == [24] * len(found)
    assert [path.suffix for path in source.index.iterdir()] == [".json"] * len(DAYS)


def test_files_named_after_their_day_are_counted_one_by_one(tmp_path):
    for day in DAYS:
        write(tmp_path, day)
    pattern = tmp_path / "comments-{dt}.csv"
    for path in tmp_path.glob("*.csv"):
        path.rename(
            tmp_path / f"comments-{path.stem[9:13]}-{path.stem[13:15]}-{path.stem[15:]}.csv"
        )
    source = FileSource(path=pattern, index=tmp_path / "index")
    (tmp_path / f"comments-{DAY}.csv").write_bytes(b"PAR1")
    missing = DAY + dt.timedelta(days=30)
    assert source.counts([*DAYS[:3], DAY, missing]) == {**dict.fromkeys(DAYS[:3], 24), missing: 0}
