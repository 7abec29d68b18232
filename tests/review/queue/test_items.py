import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.errors import QueueError
from modwatch.review.queue.items import NewItem, storable

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


def test_texts_never_stand_in_a_repr():
    assert "invented" not in repr(NewItem(**COLUMNS))


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_ordinary_text_is_storable(value):
    assert storable(value, "text", "comment 'c1'") == value


@pytest.mark.parametrize("value", ["private\0private", "private\ud800"])
def test_what_postgresql_cannot_store_is_refused_by_id_alone(value):
    with pytest.raises(QueueError, match="text of comment 'c1'") as refused:
        storable(value, "text", "comment 'c1'")
    assert "private" not in str(refused.value)
    assert refused.value.__cause__ is None
