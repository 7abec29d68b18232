import datetime as dt

import pytest

from modwatch.data.lake.schemas import LANDED
from modwatch.data.sources import landing
from modwatch.data.sources.landing import LandedRow, batches, convert

DAY = dt.date(2024, 3, 1)


def landed(text: str | None) -> LandedRow:
    return LandedRow(origin="here", values={"text": text})


def test_no_rows_make_no_batches():
    assert list(batches(DAY, [])) == []


def test_batches_have_the_schema_and_count_rows_over_the_day(monkeypatch):
    monkeypatch.setattr(landing, "BATCH_ROWS", 2)
    found = list(batches(DAY, [landed(str(i)) for i in range(5)]))
    assert [batch.num_rows for batch in found] == [2, 2, 1]
    assert all(batch.schema == LANDED for batch in found)
    assert [row for batch in found for row in batch["row"].to_pylist()] == [0, 1, 2, 3, 4]


def test_long_texts_end_a_batch_early():
    found = list(batches(DAY, [landed("x" * 9_000_000) for _ in range(3)]))
    assert [batch.num_rows for batch in found] == [2, 1]


def test_a_row_does_not_show_its_text():
    assert "private words" not in repr(landed("private words"))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("text", "", ("", None)),
        ("text", None, (None, None)),
        ("text", "a\x00b", ("a\x00b", None)),
        ("text", {"no": "text"}, ("{'no': 'text'}", "malformed_record")),
        ("text", "\ud83d", ("\ufffd", "undecodable_text")),
        ("text", "שלום 🙂", ("שלום 🙂", None)),
        ("comment_id", 12345678901234567890, ("12345678901234567890", None)),
        ("label", True, (1, None)),
        ("label", "0.0", (0, None)),
        ("label", "", (None, None)),
        ("label", 0.7, (None, "unreadable_label")),
        ("groups", [], ([], None)),
        ("groups", "", ([], None)),
        ("groups", ["a", 3, None], (["a", "3"], None)),
        ("groups", 3, (None, "malformed_record")),
    ],
)
def test_values_are_converted_or_named_as_a_problem(name, value, expected):
    assert convert(name, value) == expected
