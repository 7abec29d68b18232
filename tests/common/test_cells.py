"""No cell is taken for a formula, and what was done to it can be undone."""

import csv
import io

import pandas as pd
import pytest
from formulas import FORMULAS
from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.cells import neutral, neutral_csv, original

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


def test_tables_are_neutralised_cell_by_cell_and_numbers_stay() -> None:
    table = pd.DataFrame(
        {
            "group": [*FORMULAS, "fine"],
            "value": -1.5,
            "n": pd.array([None, *[1] * len(FORMULAS)], "Int64"),
        }
    )
    header, *rows = csv.reader(io.StringIO(neutral_csv(table), newline=""))
    assert header == ["group", "value", "n"]
    groups, values, numbers = zip(*rows, strict=True)
    assert groups == (*(f"'{cell}" for cell in FORMULAS), "fine")
    assert set(values) == {"-1.5"}
    assert numbers == ("", *["1"] * len(FORMULAS))
