import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.errors import QueueError
from modwatch.review.queue.items import new_items, storable

COLUMNS = {
    "comment_id": "c1",
    "text": "invented",
    "reason": "random_slice",
    "stratum": 2,
    "inclusion_probability": 0.25,
    "rank": 7,
    "review_score": 0.1,
    "prob": 0.2,
    "uncertainty": 0.16,
    "model_version": "4",
}


def test_rows_of_batches_become_items_and_other_columns_are_left() -> None:
    row = {**COLUMNS, "language": None, "label": 1}
    (item,) = new_items([pa.RecordBatch.from_pylist([row])])
    assert {name: getattr(item, name) for name in COLUMNS} == COLUMNS
    assert item.parent_text is None


def test_texts_never_stand_in_a_repr() -> None:
    (item,) = new_items([pa.RecordBatch.from_pylist([COLUMNS])])
    assert "invented" not in repr(item)


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_ordinary_text_is_storable(value: str) -> None:
    assert storable(value, "text", "comment 'c1'") == value


@pytest.mark.parametrize("value", ["private\0private", "private\ud800"])
def test_what_postgresql_cannot_store_is_refused_by_id_alone(value: str) -> None:
    with pytest.raises(QueueError, match="text of comment 'c1'") as refused:
        storable(value, "text", "comment 'c1'")
    assert "private" not in str(refused.value)
    assert refused.value.__cause__ is None
