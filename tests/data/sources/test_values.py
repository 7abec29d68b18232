import datetime as dt
import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from modwatch.data.sources.values import (
    names_of,
    number_of,
    plain,
    probability_of,
    text_of,
    vote_of,
)

ID = uuid.UUID("12345678-1234-5678-1234-567812345678")


@pytest.mark.parametrize(
    "missing", [None, float("nan"), np.float32("nan"), pd.NaT, pd.NA, Decimal("NaN"), r"\N"]
)
def test_what_is_missing_is_none_for_every_kind_of_value(missing):
    assert plain(missing) is None
    for convert in (text_of, vote_of, number_of, names_of):
        assert convert(missing) == (None, None)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("nan", ("nan", None)),  # Min Nan is a language
        (b"Gr\xc3\xbc\xc3\x9fe", ("Grüße", None)),
        (bytearray(b"tea"), ("tea", None)),
        (memoryview(b"tea"), ("tea", None)),
        (b"caf\xe9", ("caf\ufffd", "undecodable_text")),
        (17, ("17", None)),
        (17.0, ("17", None)),
        (-0.0, ("0", None)),
        (17.25, ("17.25", None)),
        (np.int64(2**60), (str(2**60), None)),
        (float(2**53), (str(2**53), "malformed_record")),
        (float("inf"), ("inf", "malformed_record")),
        (Decimal("17.00"), ("17", None)),
        (Decimal("1E+3"), ("1000", None)),
        (Decimal(2**60), (str(2**60), None)),
        (ID, (str(ID), None)),
        (dt.date(2026, 3, 1), ("2026-03-01", None)),
        (True, ("True", "malformed_record")),
        (["a"], ("['a']", "malformed_record")),
        ({"a": 1}, ("{'a': 1}", "malformed_record")),
        (dt.timedelta(1), ("1 day, 0:00:00", "malformed_record")),
    ],
)
def test_typed_values_are_text_or_a_problem(value, expected):
    assert text_of(value) == expected


@pytest.mark.parametrize("yes", [1, 1.0, True, np.True_, Decimal(1), "1", "1.0", " TRUE ", "Yes",
                                 "ja", "WAHR", b"\x01", b"true"])  # fmt: skip
def test_votes_for_toxic(yes):
    assert vote_of(yes) == (1, None)


@pytest.mark.parametrize("no", [0, -0.0, False, "0", "0.00", "f", "No", "nein", "Falsch", b"\x00"])
def test_votes_against_it(no):
    assert vote_of(no) == (0, None)


@pytest.mark.parametrize("value", [2, 0.5, "maybe", [1], "10", b"\x02", "0_1", "0_0"])
def test_what_is_no_vote(value):
    assert vote_of(value) == (None, "unreadable_label")


@pytest.mark.parametrize("value", ["nan", "NA", " n/a ", "#N/A", "NULL", "", None])
def test_what_is_missing_is_no_vote_and_no_problem(value):
    assert vote_of(value) == (None, None)


@pytest.mark.parametrize(
    ("written", "share"),
    [
        ("0,874", 0.874),
        (",5", 0.5),
        ("87 %", 0.87),
        ("87,4%", 0.874),
        ("1,000", 1),
        ("1e-3", 0.001),
    ],
)
def test_probabilities_may_have_a_comma_or_be_in_per_cent(written, share):
    assert probability_of(written) == (pytest.approx(share), None)
    assert probability_of("1,2,3") == (None, "unreadable_number")


@pytest.mark.parametrize(
    ("text", "number"),
    [("1e-1", 0.1), (" .5 ", 0.5), ("+1", 1), ("１", 1), ("0_1", None), ("1_000", None),
     ("1e1_0", None), ("0x10", None), ("1,5", None), ("1 0", None)],
)  # fmt: skip
def test_what_is_a_number(text, number):
    assert number_of(text) == (number, None if number is not None else "unreadable_number")


def test_names_are_text_without_missing_ones():
    assert names_of(["a", float("nan"), None, 3.0, b"b"]) == (["a", "3", "b"], None)
    assert names_of(np.array(["a", "b"])) == (["a", "b"], None)
    assert names_of('["a", null, "b"]') == (["a", "b"], None)
    assert names_of("[a]") == (["[a]"], None)
    assert names_of(["a", ["b"]]) == (["a", "['b']"], "malformed_record")
    assert names_of(3) == (None, "malformed_record")
