import pyarrow as pa
import pytest

from modwatch.common.errors import CheckError
from modwatch.data.lake.schemas import COMMENTS, LANDED, QUARANTINE
from modwatch.data.validation.rows import columns_of, quarantined_rows, schema_faults, valid_rows


@pytest.fixture
def batches(landed):
    problem = [None, None, None, "malformed_record"]
    bad = landed(4, start=3, text=["d", "x" * 1_000_000, "f\x00", "g"], problem=problem)
    return [landed(3, text=["a", " ", "c"], groups=[["g"], None, []], label=[1, 0, None]), bad]


@pytest.fixture
def invalid(batches, validate):
    return validate(*batches).invalid


def test_rows_are_parted_and_none_is_lost(batches, invalid, day):
    good = list(valid_rows(batches, invalid))
    bad = list(quarantined_rows(batches, invalid))

    assert all(batch.schema == COMMENTS for batch in good)
    assert all(batch.schema == QUARANTINE for batch in bad)
    assert [t for batch in good for t in batch["text"].to_pylist()] == ["a", "c", "d"]
    rows = [row for batch in bad for row in batch.to_pylist()]
    assert [row["rule"] for row in rows] == [
        "blank_text",
        "long_text",
        "nul_byte",
        "malformed_record",
    ]
    assert [len(row["text"]) for row in rows] == [1, 1_000_000, 2, 1]
    assert [row["row"] for row in rows] == [1, 4, 5, 6]
    assert {(row["stage"], row["dt"]) for row in rows} == {("comments", day)}
    assert good[0].to_pylist()[0]["groups"] == ["g"]


def test_batches_may_come_in_another_order(batches, invalid):
    bad = [row for batch in quarantined_rows(batches[::-1], invalid) for row in batch.to_pylist()]

    assert {row["row"]: row["rule"] for row in bad} == {
        1: "blank_text", 4: "long_text", 5: "nul_byte", 6: "malformed_record"
    }  # fmt: skip


def test_a_day_that_changed_meanwhile_is_refused(landed, invalid):
    with pytest.raises(CheckError, match="2026-01-05 changed during validation; run the day"):
        list(valid_rows([landed(1, start=7)], invalid))


@pytest.mark.parametrize("layout", [pa.large_string(), pa.string_view()])
def test_layout_in_memory_and_more_columns_are_no_fault(layout):
    other = pa.schema(
        [pa.field(f.name, layout if f.type == pa.string() else f.type) for f in LANDED]
    )

    assert schema_faults(other, LANDED) == ((), tuple(LANDED.names))
    more = pa.schema([*LANDED, ("<script>", pa.string()), ("\x00", pa.string())])
    assert schema_faults(more, LANDED) == ((), tuple(LANDED.names))


def test_naive_timestamps_are_another_type():
    at = LANDED.get_field_index("created_at")
    found = LANDED.set(at, pa.field("created_at", pa.timestamp("us")))

    faults, good = schema_faults(found, LANDED)
    assert faults == ("created_at has another type",)
    assert good == tuple(name for name in LANDED.names if name != "created_at")


def test_unusable_column_is_null():
    batch = pa.RecordBatch.from_pydict({"n": ["not a number"]})

    assert columns_of(batch, pa.schema([("n", pa.int8())]))["n"].null_count == 1
