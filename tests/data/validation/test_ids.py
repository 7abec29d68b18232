import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.data.validation.ids import IdIndex

IDS = st.lists(st.none() | st.text(alphabet="abé🙂", max_size=2), max_size=30)


def one_hash(ids: pa.Array) -> np.ndarray:
    return np.zeros(len(ids), dtype=np.uint64)


def chunks(ids: list[str | None]) -> list[pa.Array]:
    return [pa.array(ids[:3], pa.string()), pa.array(ids[3:], pa.string())]


@pytest.mark.parametrize("hashing", [None, one_hash], ids=["siphash", "every id collides"])
@given(ids=IDS, other=IDS)
def test_index_agrees_with_plain_comparison(hashing, ids, other):
    index = IdIndex.from_chunks(chunks(ids), hashing=hashing)

    expected = [ids.index(x) if x is not None and x in ids else len(ids) for x in other]
    assert index.positions(pa.array(other, pa.string())).tolist() == expected


def test_no_ids_at_all():
    index = IdIndex.from_chunks([])

    assert index.positions(pa.array(["a"])).tolist() == [0]
