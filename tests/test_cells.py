"""No cell is taken for a formula, and what was done to it can be undone."""

import pytest
from formulas import FORMULAS
from hypothesis import given
from hypothesis import strategies as st

from modwatch.cells import neutral, original

HARMLESS = ["fine", "", "a=b", "1", "2026-01-01", "é", "😀", "x\n=1", "(-1)", "c-1"]


@pytest.mark.parametrize("cell", FORMULAS)
def test_what_a_spreadsheet_might_run_is_neutralised(cell: str) -> None:
    assert neutral(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", [*HARMLESS, None])
def test_what_is_harmless_stays_as_it_is(cell: str | None) -> None:
    assert neutral(cell) == cell


@given(st.text() | st.sampled_from("=+-@\t\r'\" ").flatmap(lambda c: st.text().map(c.__add__)))
def test_neutralising_can_be_undone(cell: str) -> None:
    made = neutral(cell)
    assert made is not None
    assert original(made) == cell
    assert made.lstrip()[:1] not in {"=", "+", "-", "@"}
    assert made[:1] not in {"\t", "\r", "\n"}
