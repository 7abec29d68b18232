"""Invisible characters."""

import csv
import io
import json
import re
import sys
import unicodedata
from importlib.resources import files

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from formulas import FORMULAS
from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.text import (
    BIDI_CONTROLS,
    CONTROLS,
    INVISIBLE,
    id_problem,
    is_invisible,
    neutral,
    neutral_csv,
    original,
    text_problem,
    visible,
)


@pytest.mark.parametrize(
    "character",
    ["\x00", "\x7f", "\xad", "\u200b", "\u202e", "\u2028", "\u3164", "\ufe0f", "\ud800"],
)
def test_what_is_not_drawn_is_invisible(character):
    assert is_invisible(character)
    assert not any(map(is_invisible, "aéü日👩-\xa0"))


@pytest.mark.parametrize(
    "text", ["", "a line\tand\r\nanother", "a\x85b\u2028c\u2029d\x0be", "naïve", "日本 😀", "हि"]
)
def test_what_separates_or_is_drawn_stays(text):
    assert visible(text) == text


@given(st.text())
def test_a_visible_text_is_its_own_visible_text(text):
    assert visible(visible(text)) == visible(text)
    assert visible("you\u2800there") == "you there"


def test_the_classes_are_classes_of_regular_expressions():
    bidi = re.compile(f"[{BIDI_CONTROLS}]")
    named = {chr(point) for point in range(0x3000) if bidi.match(chr(point))}
    assert {unicodedata.bidirectional(item) for item in named} <= {
        "L", "R", "AL", "LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI", "BN",
    }  # fmt: skip
    assert len(named) == 12
    assert not re.search(f"[{CONTROLS}{INVISIBLE}]", "a line\tand\r\nanother")


HARMLESS = ["fine", "", "a=b", "1", "2026-01-01", "é", "😀", "x\n=1", "(-1)", "c-1"]


@pytest.mark.parametrize("cell", FORMULAS)
def test_what_a_spreadsheet_might_run_is_neutralised(cell):
    assert neutral(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", [*HARMLESS, None])
def test_what_is_harmless_stays_as_it_is(cell):
    assert neutral(cell) == cell


@given(st.text() | st.sampled_from("=+-@\t\r'\" ").flatmap(lambda c: st.text().map(c.__add__)))
def test_neutralising_can_be_undone(cell):
    made = neutral(cell)
    assert made is not None
    assert original(made) == cell
    assert made.lstrip()[:1] not in {"=", "+", "-", "@"}
    assert made[:1] not in {"\t", "\r", "\n"}


def test_tables_are_neutralised_cell_by_cell_and_numbers_stay():
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


def test_the_row_rules_are_those_of_validation():
    suite = json.loads((files("modwatch.data.validation") / "suites/comments.json").read_text())
    rules = {rule["meta"]["modwatch"]["rule"]: rule["kwargs"] for rule in suite["expectations"]}
    every = map(chr, range(sys.maxunicode + 1))  # but for what newer versions of Unicode assign
    characters = [sign for sign in every if unicodedata.category(sign) not in ("Cn", "Cs")]
    visible = pc.match_substring_regex(pa.array(characters), rules["blank_text"]["regex"])
    blank = [text_problem(character) == "blank_text" for character in characters]
    assert blank == pc.invert(visible).to_pylist()
    words = ["nan", " NaN ", "NULL", "<NA>", "NaT", "nano", "c1"]
    missing = pc.match_substring_regex(pa.array(words), rules["missing_id"]["regex"])
    assert [id_problem(word) == "missing_id" for word in words] == missing.to_pylist()
