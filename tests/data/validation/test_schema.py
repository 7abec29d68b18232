import pyarrow as pa
import pytest

from modwatch.data.lake.schemas import LANDED
from modwatch.data.validation.schema import columns_of, schema_faults


@pytest.mark.parametrize("layout", [pa.large_string(), pa.string_view()])
def test_layout_in_memory_is_no_fault(layout):
    other = pa.schema(
        [pa.field(f.name, layout if f.type == pa.string() else f.type) for f in LANDED]
    )

    assert schema_faults(other, LANDED) == ()


def test_more_columns_are_no_fault():
    found = pa.schema([*LANDED, ("<script>", pa.string()), ("\x00", pa.string())])

    assert schema_faults(found, LANDED) == ()


def test_naive_timestamps_are_another_type():
    at = LANDED.get_field_index("created_at")
    found = LANDED.set(at, pa.field("created_at", pa.timestamp("us")))

    assert schema_faults(found, LANDED) == ("created_at has another type",)


def test_unusable_column_is_null():
    batch = pa.RecordBatch.from_pydict({"n": ["not a number"]})

    assert columns_of(batch, pa.schema([("n", pa.int8())]))["n"].null_count == 1
