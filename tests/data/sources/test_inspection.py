import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modwatch.common.errors import SourceError
from modwatch.data.sources.inspection import (
    describe,
    look,
    require_header,
    time_formats,
)

MOMENTS = st.datetimes(dt.datetime(2001, 10, 1), dt.datetime(2025, 1, 1))  # noqa: DTZ001


@given(
    MOMENTS,
    st.lists(st.timedeltas(dt.timedelta(), dt.timedelta(days=28)), min_size=1),
    st.sampled_from(
        ["%d.%m.%Y %H:%M:%S", "%m/%d/%Y %I:%M %p", "%Y/%m/%d", "%d-%m-%y %H:%M", "%y/%m/%d"]
    ),
)
def test_the_format_that_times_were_written_in_is_always_among_those_found(first, later, form):
    found = time_formats([(first + time).strftime(form) for time in later])
    assert form in [match.written for match in found]
    assert len(found) <= (3 if "%y" in form else 2)


def test_one_day_beyond_the_twelfth_decides_the_order():
    open_order = ["01.02.2026", "03.04.2026"] * 40
    assert [form.written for form in time_formats(open_order)] == ["%d.%m.%Y", "%m.%d.%Y"]
    assert [form.written for form in time_formats([*open_order, "13.02.2026"])] == ["%d.%m.%Y"]
    assert [form.written for form in time_formats([*open_order, "02.13.2026"])] == ["%m.%d.%Y"]


@pytest.mark.parametrize(
    ("values", "has_zone", "example"),
    [
        (["2026-03-01T10:00:00Z"], True, "2026-03-21T12:30:45Z"),
        (["2026-03-01 10:00:00+02:00"], True, "2026-03-21 12:30:45+00:00"),
        (["2026-03-01 10:00:00"], False, "2026-03-21 12:30:45"),
        (["2026-03-01"], False, "2026-03-21"),
        (["1772359200"], True, "1774096245"),
        ([1772359200123], True, "1774096245000"),
        ([1772359200123456789], True, "1774096245000000000"),
        ([dt.datetime(2026, 3, 1, tzinfo=dt.UTC)], True, "2026-03-21 12:30:45+00:00"),
    ],
)
def test_times_that_need_no_format(values, has_zone, example):
    [form] = time_formats(values)
    assert (form.written, form.has_zone, form.example) == (None, has_zone, example)


@pytest.mark.parametrize("values", [["quillfeather"], ["12"], ["1.2.3.4"], [True], [""], []])
def test_other_values_are_no_times(values):
    [column] = look([{"a": value} for value in values], ["a"])
    assert column.kind != "time"


def rows(number: int = 30, **columns) -> list[dict]:
    return [{name: make(row) for name, make in columns.items()} for row in range(number)]


def test_large_numbers_of_ids_are_no_times():
    found = rows(tweet_id=lambda row: 2**60 + row, at=lambda row: 10**18 + row, text=str)
    assert [column.kind for column in look(found, ["tweet_id", "at"])] == ["number", "time"]


def test_typed_values_are_described_as_they_are_read():
    found = [{"id": 1.0, "text": b"caf\xc3\xa9", "none": float("nan")}, {"id": Decimal(1)}]
    by_name = {column.name: column for column in look(found, ["id", "text", "none"])}
    assert (by_name["id"].kind, by_name["id"].distinct) == ("number", 1)
    assert (by_name["text"].kind, by_name["text"].mean_length) == ("text", 4)
    assert by_name["none"].kind == "empty"


def test_only_times_of_a_format_that_is_given_are_times():
    found = rows(a=lambda row: f"{row + 1:02} Mar 2026", b=lambda row: f"2026-03-{row + 1:02}")
    assert [c.kind for c in look(found, ["a", "b"], "%d %b %Y")] == ["time", "text"]


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1))
def test_no_value_is_ever_shown(values):
    hidden = [{"text": f"quillfeather{value}", "a": value} for value in values]
    shown = describe(look(hidden, ["text", "a"]), len(hidden))
    assert "quillfeather" not in shown
    assert "quillfeather" not in describe(
        look([{"quillfeather, dear!": 1}], ["quillfeather, dear!"]), 1
    )


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ([], "has no columns"),
        (["1", "well, quillfeather, I never", "2026-03-01T10:00:00Z"], "its field 3 is a time"),
        (["quillfeather", "1772359200", "2"], "its field 2 is a time"),
        (["21.03.2026 12:30", "quillfeather"], "its field 1 is a time"),
    ],
)
def test_a_file_without_header_is_refused_and_not_quoted(names, reason):
    with pytest.raises(SourceError, match=reason) as caught:
        require_header(names, "a.csv")
    assert "quillfeather" not in str(caught.value)


STRANGE = ["Grad (°C)", "<script>alert('quillfeather')</script>", "", "q" * 41, "a", "a", "a\nb"]


def test_strange_names_are_no_reason_to_refuse_and_are_shown_by_their_position():
    require_header(["id", *STRANGE], "a.csv")
    shown = describe(look([dict.fromkeys(STRANGE, 1)], STRANGE), 1).splitlines()[1:]
    assert [line.split("  ")[0] for line in shown] == [
        "Grad (°C)",
        *(f"column {position}" for position in (2, 3, 4)),
        "a",
        "a",
        "column 7",
    ]
