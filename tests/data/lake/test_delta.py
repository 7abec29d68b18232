import datetime
import json
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path

import pyarrow as pa
import pytest

from modwatch.common.errors import LakeError, SourceError
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import LABELS, TABLES

DAY = datetime.date(2026, 1, 5)
NEXT = DAY + datetime.timedelta(days=1)


def labels(ids: list[str], day: datetime.date = DAY) -> pa.RecordBatch:
    n = len(ids)
    moment = datetime.datetime(2026, 1, 6, tzinfo=datetime.UTC)
    return pa.RecordBatch.from_pylist(
        [
            {
                "dt": day,
                "comment_id": name,
                "label": 1,
                "moderator": "m1",
                "decided_at": moment,
                "seconds": 2.0,
            }
            for name in ids
        ],
        schema=LABELS,
    ).slice(0, n)


def scores(shard: int) -> pa.RecordBatch:
    """Return the only row of a shard of `staged_scores`."""
    row = {"dt": DAY, "comment_id": "abc"[shard], "model_version": "1", "role": "champion"}
    row |= {
        "prob": 0.5,
        "uncertainty": 0.25,
        "flagged": False,
        "cut": False,
        "shard": shard,
        "piece": 0,
    }
    return pa.RecordBatch.from_pylist([row], schema=TABLES["staged_scores"])


def ids(lake: Lake, day: datetime.date) -> list[str]:
    return lake.table("labels", day, columns=["comment_id"]).column("comment_id").to_pylist()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(root=str(tmp_path / "lake"))


def test_a_day_is_replaced_and_its_neighbours_are_left_alone(lake: Lake) -> None:
    lake.replace("labels", DAY, [labels(["a", "b"])])
    lake.replace("labels", NEXT, [labels(["c"], NEXT)])
    assert lake.replace("labels", DAY, [labels(["d"])]) == 1
    assert ids(lake, DAY) == ["d"]
    assert ids(lake, NEXT) == ["c"]
    assert lake.days("labels") == [DAY, NEXT]


def test_an_empty_stream_empties_the_day(lake: Lake) -> None:
    lake.replace("labels", DAY, [labels(["a"])])
    assert lake.replace("labels", DAY, []) == 0
    assert lake.count("labels", DAY) == 0


def test_days_are_read_and_those_between_them_are_not(lake: Lake) -> None:
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


@pytest.mark.parametrize("attempt", range(5))
def test_all_that_write_to_a_new_table_at_once_succeed(lake: Lake, attempt: int) -> None:
    days = [DAY + datetime.timedelta(days=number) for number in range(6)]
    with ThreadPoolExecutor(len(days)) as pool:
        written = pool.map(lambda day: lake.replace("labels", day, [labels(["a"], day)]), days)
        assert [*written] == [1] * len(days)
    assert lake.days("labels") == days


def test_a_table_is_opened_from_a_checkpoint_of_the_last_commits(lake: Lake) -> None:
    log = Path(lake.root) / "labels" / "_delta_log"
    for number in range(1, 25):
        lake.replace("labels", DAY, [labels([f"c{number}"])])
        if number >= 10:
            last = json.loads((log / "_last_checkpoint").read_text())["version"]
            assert number - 10 < last <= number
    for commit in range(20):  # of which the checkpoint tells all
        (log / f"{commit:020}.json").unlink()
    assert ids(lake, DAY) == ["c24"]


def test_a_missing_table_has_no_days_and_no_rows(lake: Lake) -> None:
    assert lake.days("labels") == []
    assert lake.count("labels", DAY) == 0
    assert lake.table("labels", DAY).schema.names == LABELS.names


def test_keys_narrow_what_is_replaced(lake: Lake) -> None:
    lake.replace("labels", DAY, [labels(["a"])], comment_id="a")
    lake.replace("labels", DAY, [labels(["it's"])], comment_id="it's")
    lake.replace("labels", DAY, [labels(["a"])], comment_id="a")
    assert sorted(ids(lake, DAY)) == ["a", "it's"]


def test_rows_come_in_the_same_order_whichever_shard_was_written_last(lake: Lake) -> None:
    """Sums of floating-point numbers depend on it, and days are compared digit by digit."""
    orders = set()
    for written in permutations(range(3)):
        for shard in written:
            lake.replace("staged_scores", DAY, [scores(shard)], shard=shard)
        rows = lake.table("staged_scores", DAY, columns=["comment_id"])
        orders.add("".join(rows.column("comment_id").to_pylist()))
    assert orders == {"abc"}


def test_batches_stream_and_reading_is_in_batches(lake: Lake) -> None:
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


@pytest.mark.parametrize("rows", [range(5), range(0), range(25_000, 48_000), range(52_990, 99_999)])
def test_rows_are_read_in_the_order_of_the_source(lake: Lake, rows: range) -> None:
    lake.replace("landed", DAY, [landed(range(9), DAY)])
    parts = (landed(range(first, first + 5_300), NEXT) for first in range(0, 53_000, 5_300))
    lake.replace("landed", NEXT, parts)
    found = lake.read_rows("landed", NEXT, rows, columns=["comment_id"])
    assert found.column("comment_id").to_pylist() == [f"c{row}" for row in rows if row < 53_000]


def test_rows_of_a_missing_table_or_day_are_none(lake: Lake) -> None:
    assert lake.read_rows("landed", DAY, range(10), columns=["text"]).num_rows == 0
    lake.replace("landed", NEXT, [landed(range(9), NEXT)])
    assert lake.read_rows("landed", DAY, range(10), columns=["text"]).num_rows == 0


def test_a_row_of_another_day_is_refused_without_being_quoted(lake: Lake) -> None:
    lake.replace("labels", DAY, [labels(["before"])])
    with pytest.raises(LakeError) as caught:
        lake.replace("labels", DAY, [labels(["a-secret"], NEXT)])
    assert "a-secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert ids(lake, DAY) == ["before"]


def test_the_schema_is_enforced(lake: Lake) -> None:
    wrong = pa.RecordBatch.from_pydict({"dt": [DAY], "comment_id": ["a"]})
    with pytest.raises(LakeError, match="could not be written"):
        lake.replace("labels", DAY, [wrong])


def test_the_error_of_the_stream_itself_comes_through(lake: Lake) -> None:
    def broken():
        yield labels(["a"])
        raise SourceError("the source broke")

    with pytest.raises(SourceError, match="the source broke"):
        lake.replace("labels", DAY, broken())
    assert lake.count("labels", DAY) == 0


def test_an_unwritable_lake_names_the_setting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    lake = Lake(root=str(tmp_path / "file" / "lake"))
    with pytest.raises(LakeError, match="check MODWATCH_LAKE"):
        lake.replace("labels", DAY, [labels(["a"])])


def test_every_table_begins_with_its_day() -> None:
    assert all(schema.names[0] == "dt" for schema in TABLES.values())
