import datetime
import json
import math
import os
import re
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import modwatch
from modwatch.common.errors import LakeError, SourceError
from modwatch.data.lake import delta
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import LABELS, TABLES, measured_columns

DAY = datetime.date(2026, 1, 5)
NEXT = DAY + datetime.timedelta(days=1)


def labels(ids: list[str], day: datetime.date = DAY) -> pa.RecordBatch:
    moment = datetime.datetime(2026, 1, 6, tzinfo=datetime.UTC)
    row = {"dt": day, "label": 1, "moderator": "m1", "decided_at": moment, "seconds": 2.0}
    return pa.RecordBatch.from_pylist([row | {"comment_id": name} for name in ids], schema=LABELS)


def scores(shard: int) -> pa.RecordBatch:
    """Return the only row of a shard of `staged_scores`."""
    row = {"dt": DAY, "comment_id": "abc"[shard], "model_version": "1", "role": "champion"}
    row |= {"prob": 0.5, "uncertainty": 0.25, "flagged": False, "cut": False}
    row |= {"shard": shard, "piece": 0}
    return pa.RecordBatch.from_pylist([row], schema=TABLES["staged_scores"])


def ids(lake: Lake, day: datetime.date) -> list[str]:
    return lake.table("labels", day, columns=["comment_id"]).column("comment_id").to_pylist()


@pytest.fixture
def lake(tmp_path):
    return Lake(root=str(tmp_path / "lake"))


def test_a_day_is_replaced_and_its_neighbours_are_left_alone(lake):
    lake.replace("labels", DAY, [labels(["a", "b"])])
    lake.replace("labels", NEXT, [labels(["c"], NEXT)])
    assert lake.replace("labels", DAY, [labels(["d"])]) == 1
    assert ids(lake, DAY) == ["d"]
    assert ids(lake, NEXT) == ["c"]
    assert lake.days("labels") == [DAY, NEXT]
    assert (lake.replace("labels", DAY, []), lake.count("labels", DAY)) == (0, 0)


def test_days_are_read_and_those_between_them_are_not(lake):
    for number in (3, 0, 2, 1):
        day = DAY + datetime.timedelta(days=number)
        lake.replace("labels", day, [labels([f"c{number}", "a"], day)])
    far = DAY + datetime.timedelta(days=99)
    found = lake.read("labels", [DAY + datetime.timedelta(days=2), DAY, far])
    assert pa.Table.from_batches(found)["comment_id"].to_pylist() == ["c0", "a", "c2", "a"]
    assert lake.traffic.read["labels"] == 4
    assert list(lake.read("labels", [])) == []
    within = lake.read_between("labels", NEXT, far, columns=["comment_id"], comment_id="a")
    assert sum(batch.num_rows for batch in within) == 3


def test_a_steady_lake_opens_a_table_once_and_sees_what_it_writes_itself(lake, monkeypatch):
    steady, opened = lake.steady(), Counter()
    read = Lake._open
    monkeypatch.setattr(Lake, "_open", lambda self, name: opened.update([name]) or read(self, name))
    assert (ids(steady, DAY), steady.days("labels")) == ([], [])
    lake.replace("labels", DAY, [labels(["a"])])
    assert (ids(lake, DAY), ids(steady, DAY)) == (["a"], []), "there was no table"
    steady.replace("labels", NEXT, [labels(["b"], NEXT)])
    lake.replace("labels", DAY, [labels(["c"])])
    opened.clear()
    assert (ids(steady, DAY), ids(steady, NEXT)) == (["a"], ["b"])
    assert steady.days("labels") == [DAY, NEXT]
    assert not opened
    assert (ids(lake, DAY), ids(lake.steady(), DAY)) == (["c"], ["c"])


def test_all_that_write_to_a_new_table_at_once_succeed(lake, monkeypatch):
    days = [DAY + datetime.timedelta(days=number) for number in range(6)]
    all_look, opened = threading.Barrier(len(days), timeout=60), Lake._open

    def look(lake: Lake, table: str) -> DeltaTable | None:
        found = opened(lake, table)
        if found is None:
            all_look.wait()
        return found

    monkeypatch.setattr(Lake, "_open", look)
    with ThreadPoolExecutor(len(days)) as pool:
        written = pool.map(lambda day: lake.replace("labels", day, [labels(["a"], day)]), days)
        assert [*written] == [1] * len(days)
    assert lake.days("labels") == days


def test_a_table_is_opened_from_a_checkpoint_of_the_last_commits(lake):
    log = Path(lake.root) / "labels" / "_delta_log"
    for number in range(1, 25):
        lake.replace("labels", DAY, [labels([f"c{number}"])])
        if number >= 10:
            last = json.loads((log / "_last_checkpoint").read_text())["version"]
            assert number - 10 < last <= number
    for commit in range(20):  # of which the checkpoint tells all
        (log / f"{commit:020}.json").unlink()
    assert ids(lake, DAY) == ["c24"]


def test_a_missing_table_has_no_days_and_no_rows(lake):
    assert lake.days("labels") == []
    assert lake.count("labels", DAY) == 0
    assert lake.table("labels", DAY).schema.names == LABELS.names


def test_keys_narrow_what_is_replaced(lake):
    lake.replace("labels", DAY, [labels(["a"])], comment_id="a")
    lake.replace("labels", DAY, [labels(["it's"])], comment_id="it's")
    lake.replace("labels", DAY, [labels(["a"])], comment_id="a")
    assert sorted(ids(lake, DAY)) == ["a", "it's"]


def test_rows_come_in_the_same_order_whichever_shard_was_written_last(lake):
    """Sums of floating-point numbers depend on it, and days are compared digit by digit."""
    orders = set()
    for written in permutations(range(3)):
        for shard in written:
            lake.replace("staged_scores", DAY, [scores(shard)], shard=shard)
        rows = lake.table("staged_scores", DAY, columns=["comment_id"])
        orders.add("".join(rows.column("comment_id").to_pylist()))
    assert orders == {"abc"}


def test_batches_stream_and_reading_is_in_batches(lake):
    many = [labels([f"{i}-{j}" for j in range(7_000)]) for i in range(4)]
    assert lake.replace("labels", DAY, iter(many)) == 28_000
    sizes = [batch.num_rows for batch in lake.read("labels", DAY)]
    assert sum(sizes) == 28_000
    assert max(sizes) <= 10_000


def landed(rows: range, day: datetime.date) -> pa.RecordBatch:
    values = {"dt": [day] * len(rows), "row": list(rows), "comment_id": [f"c{row}" for row in rows]}
    schema = TABLES["landed"]
    nulls = {name: pa.nulls(len(rows), schema.field(name).type) for name in schema.names}
    return pa.RecordBatch.from_pydict(nulls | values, schema=schema)


def test_rows_are_read_in_the_order_of_the_source(lake):
    lake.replace("landed", DAY, [landed(range(9), DAY)])
    parts = (landed(range(first, first + 5_300), NEXT) for first in range(0, 53_000, 5_300))
    lake.replace("landed", NEXT, parts)
    for rows in (range(5), range(0), range(25_000, 48_000), range(52_990, 99_999)):
        found = lake.read_rows("landed", NEXT, rows, columns=["comment_id"])
        assert found.column("comment_id").to_pylist() == [f"c{row}" for row in rows if row < 53_000]
    missing = lake.read_rows("landed", NEXT + (NEXT - DAY), range(10), columns=["text"])
    assert missing.num_rows == 0


def test_rows_of_a_missing_table_are_none(lake):
    assert lake.read_rows("landed", DAY, range(10), columns=["text"]).num_rows == 0


def test_a_row_of_another_day_is_refused_without_being_quoted(lake):
    lake.replace("labels", DAY, [labels(["before"])])
    with pytest.raises(LakeError) as caught:
        lake.replace("labels", DAY, [labels(["a-secret"], NEXT)])
    assert "a-secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert ids(lake, DAY) == ["before"]


def test_the_schema_is_enforced(lake):
    wrong = pa.RecordBatch.from_pydict({"dt": [DAY], "comment_id": ["a"]})
    with pytest.raises(LakeError, match="could not be written"):
        lake.replace("labels", DAY, [wrong])


def test_the_error_of_the_stream_itself_comes_through(lake):
    def broken():
        yield labels(["a"])
        raise SourceError("the source broke")

    with pytest.raises(SourceError, match="the source broke"):
        lake.replace("labels", DAY, broken())
    assert lake.count("labels", DAY) == 0


def test_an_unwritable_lake_names_the_setting(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    lake = Lake(root=str(tmp_path / "file" / "lake"))
    with pytest.raises(LakeError, match="check MODWATCH_LAKE"):
        lake.replace("labels", DAY, [labels(["a"])])


def stored(lake: Lake) -> list[Path]:
    return sorted((Path(lake.root) / "labels").glob("dt=*/*.parquet"))


def test_no_statistics_quote_a_text(lake):
    """They are copied to the log, which keeps them after the rows are gone."""
    planted = {"dt": DAY, "row": 0, "text": "planted text", "author_id": "planted author"}
    planted |= {"comment_id": "planted id", "groups": ["planted group"], "label": 1}
    for text in ("planted text", "planted other"):
        rows = pa.RecordBatch.from_pylist([planted | {"text": text}], schema=TABLES["landed"])
        lake.replace("landed", DAY, [rows])
    table = Path(lake.root) / "landed"
    DeltaTable(table).create_checkpoint()
    log = [file.read_bytes() for file in (table / "_delta_log").iterdir()]
    assert len(log) > 3
    assert b"planted" not in b"".join(log)
    for file in table.glob("dt=*/*.parquet"):
        footer = pq.read_metadata(file)
        assert b"planted" in file.read_bytes()
        assert b"planted" not in file.read_bytes()[-footer.serialized_size - 8 :]
        row = footer.row_group(0).column(footer.schema.names.index("row"))
        assert row.statistics.has_min_max  # `read_rows` loads only the row groups it needs


def test_every_table_begins_with_its_day_and_measures_numbers_times_and_flags():
    for schema in TABLES.values():
        assert schema.names[0] == "dt"
        measured = [schema.field(name).type for name in measured_columns(schema)]
        assert all(map(pa.types.is_primitive, measured))


def test_replaced_rows_are_deleted_when_they_are_old_enough(lake):
    for name in "abc":
        lake.replace("labels", DAY, [labels([name])])
    size = sum(file.stat().st_size for file in stored(lake))
    assert lake.vacuum("labels") == Counter()
    old = lake.vacuum("labels", hours=0, dry_run=True)
    assert len(stored(lake)) == 3
    assert lake.vacuum("labels", hours=0) == old
    assert (old["files"], len(stored(lake)), ids(lake, DAY)) == (2, 1, ["c"])
    live = lake.stored("labels")
    assert live == {DAY: {"rows": 1, "files": 1, "bytes": stored(lake)[0].stat().st_size}}
    assert old["bytes"] + live[DAY]["bytes"] == size
    assert lake.vacuum("labels", hours=0) == Counter()
    assert lake.vacuum("profiles") == Counter()
    assert lake.stored("profiles") == {}


def test_files_without_a_commit_are_deleted_after_a_day_only(lake):
    lake.replace("labels", DAY, [labels(["a"])])
    [live] = stored(lake)
    running, killed = live.with_name("running.parquet"), live.with_name("killed.parquet")
    for copy, hours in ((running, 23), (killed, 25)):
        copy.write_bytes(live.read_bytes())
        written = live.stat().st_mtime - hours * 3600
        os.utime(copy, (written, written))
    assert lake.vacuum("labels", hours=0)["files"] == 1
    assert running.exists()
    assert not killed.exists()
    assert ids(lake, DAY) == ["a"]


def test_commits_of_the_log_are_deleted_after_a_week(lake):
    log = Path(lake.root) / "labels" / "_delta_log"
    for number in range(12):
        lake.replace("labels", DAY, [labels([f"c{number}"])])
    lake.vacuum("labels")
    assert len([*log.glob("*.json")]) == 13
    for file in log.iterdir():
        aged = file.stat().st_mtime - 8 * 24 * 3600
        os.utime(file, (aged, aged))
    lake.vacuum("labels")
    assert [file.stem for file in sorted(log.glob("*.json"))] == [f"{n:020}" for n in (10, 11, 12)]
    assert ids(lake, DAY) == ["c11"]


def test_old_files_are_deleted_while_others_write(lake):
    days = [DAY + datetime.timedelta(days=number) for number in range(12)]

    def write(day: datetime.date) -> int:
        lake.replace("labels", day, [labels(["a"], day)])
        return lake.replace("labels", day, [labels(["b"], day)])

    with ThreadPoolExecutor(4) as pool:
        written = [pool.submit(write, day) for day in days]
        while not all(one.done() for one in written):
            lake.vacuum("labels", hours=0)
        assert [one.result() for one in written] == [1] * len(days)
    lake.vacuum("labels", hours=0)
    assert [ids(lake, day) for day in days] == [["b"]] * len(days)
    assert len(stored(lake)) == len(days)


@pytest.fixture
def stores_are_new():
    delta._require_conditional_writes.cache_clear()
    yield
    delta._require_conditional_writes.cache_clear()


def test_a_store_that_lets_a_commit_replace_another_is_refused(
    tmp_path, monkeypatch, stores_are_new
):
    lake = Lake(root=f"file://{tmp_path}/lake")
    lake.replace("labels", DAY, [labels(["a"])])
    assert ids(lake, DAY) == ["a"]
    assert not [*(tmp_path / "lake" / "_trials").rglob("*.json")]

    monkeypatch.setattr(DeltaTable, "create", lambda *_, **__: None)
    other = Lake(root=f"file://{tmp_path}/other")
    for _ in range(2):
        with pytest.raises(LakeError, match="ignores the condition of a write"):
            other.replace("labels", DAY, [labels(["a"])])


def test_tables_are_read_in_one_way():
    """See the comment in `Lake._scan`: other ways of reading end a process before its time."""
    others = r"\b(QueryBuilder|DeltaSharing|load_cdf|to_pyarrow_table|to_pandas)\b"
    elsewhere = re.compile(r"^\s*(from|import) deltalake\b|(scan|read)_delta\(", re.MULTILINE)
    for path in Path(modwatch.__file__).parent.rglob("*.py"):
        content = path.read_text("utf-8")
        if path.match("data/lake/delta.py"):
            assert re.findall(others, content) == []
            assert content.count("to_pyarrow_dataset") == 1
        else:
            assert not elsewhere.search(content), path


FLOATS = [(name, f.name) for name in TABLES for f in TABLES[name] if pa.types.is_floating(f.type)]


@pytest.mark.parametrize(("table", "column"), FLOATS)
def test_a_number_without_a_value_is_null_or_refused_in_every_table(lake, table, column):
    """NaN is above every number for Delta's engine, and nowhere for its readers."""
    schema = TABLES[table]
    row = {field.name: example(field.type) for field in schema}
    rows = pa.Table.from_pylist([row, row | {column: math.nan}], schema=schema).to_batches()
    if not schema.field(column).nullable:
        with pytest.raises(LakeError, match="could not be written"):
            lake.replace(table, DAY, rows)
        return
    lake.replace(table, DAY, rows)
    assert lake.table(table, DAY, columns=[column])[column].null_count == 1


def example(kind: pa.DataType) -> Any:
    """Return a value of a type of the tables."""
    for fits, value in (
        (pa.types.is_date, DAY),
        (pa.types.is_timestamp, datetime.datetime(2026, 1, 6, tzinfo=datetime.UTC)),
        (pa.types.is_boolean, True),
        (pa.types.is_integer, 1),
        (pa.types.is_floating, 0.5),
        (pa.types.is_string, "a"),
        (pa.types.is_binary, b"a"),
    ):
        if fits(kind):
            return value
    return []  # a list
