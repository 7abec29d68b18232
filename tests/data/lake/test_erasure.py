"""What is recorded as to be erased, in the lake alone."""

import datetime

import pytest

from modwatch.data.lake import erasure
from modwatch.data.lake.delta import Lake

DAY = datetime.date(2026, 1, 5)


@pytest.mark.parametrize(
    ("first", "then", "stays"),
    [("parent", "comment", "comment"), ("comment", "parent", "comment"), ("parent",) * 3],
)
def test_whoever_asks_for_more_gets_more_and_nothing_is_taken_back(tmp_path, first, then, stays):
    """A comment that answered an erased text, whose own author asks for erasure, too."""
    lake = Lake(root=str(tmp_path))
    for part in (first, then):
        erasure.record(lake, {(DAY, "c1"): part})
    assert erasure.recorded(lake) == {(DAY, "c1"): stays}
