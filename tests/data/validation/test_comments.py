"""Each bad input of a day, and what becomes of it."""

import json
import sys
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from published import real_data

from modwatch.common.errors import CheckError
from modwatch.common.text import visible
from modwatch.data import validation
from modwatch.data.validation import comments, expectations
from modwatch.data.validation.rows import first_origins, valid_rows
from modwatch.data.validation.rules import Thresholds
from modwatch.statistics.drift.seasons import Calendar, Volume

DAY = date(2026, 1, 5)


def reasons(checked):
    return [("", *checked.invalid.reasons)[code] for code in checked.invalid.reason]


def failed(checked, severity=None):
    return {r.name for r in checked.result.failed_of("day") if severity in (None, r.severity)}


def at(hour, minute=0, second=0, microsecond=0, day=5):
    return datetime(2026, 1, day, hour, minute, second, microsecond, tzinfo=UTC)


#: One row each: column, bad or extreme value, reason of quarantine or none.
ROWS = [
    ("problem", "malformed_record", "malformed_record"),
    ("problem", "undecodable_text", "undecodable_text"),
    ("comment_id", None, "missing_id"),
    ("comment_id", " ", "missing_id"),
    ("comment_id", "NaN", "missing_id"),
    ("comment_id", "x" * 257, "long_id"),
    ("comment_id", "1.25E+18", "rounded_id"),
    ("comment_id", "4,41E+06", "rounded_id"),
    ("comment_id", "9e07", ""),
    ("text", "a\x00b", "nul_byte"),
    ("created_at", None, "missing_time"),
    ("created_at", at(0, day=6), "time_outside_day"),
    ("created_at", at(23, 59, 59, 999999, day=4), "time_outside_day"),
    ("text", None, "blank_text"),
    ("text", "\u200b \n", "blank_text"),
    ("text", "é" * 50_001, "long_text"),
    ("text", "x" * 1_000_000, "long_text"),
    ("comment_id", "2026-01-05/40", ""),
    ("comment_id", "2026-01-05/40", "duplicate_id"),
    ("comment_id", "x" * 256, ""),
    ("created_at", at(0), ""),
    ("created_at", at(23, 59, 59, 999999), ""),
    ("text", "é" * 50_000, ""),
    ("text", "🙂", ""),
    ("text", "\u202eשלום", ""),
]


#: Texts with something that a reader can see, and texts without.
SEEN = ["🙂", "👩‍👩‍👧‍👦", "שלום", "مرحبا", "\u202eabc", "a\u200b", "\ue000", "0", "ह", "."]
UNSEEN = [
    *(None, "", " ", "\n\t\r", "\u200b\u200d\ufeff", "\u00a0\u3000", "\u2800", "\u3164"),
    *("\u202e", "\ufe0f"),
]


def test_a_text_without_a_visible_character_is_blank(landed, validate):
    checked = validate(landed(20, text=[*SEEN, *UNSEEN]))

    assert reasons(checked) == [""] * 10 + ["blank_text"] * 10


def test_nul_is_found_in_every_stored_string(landed, validate):
    names = ["comment_id", "text", "platform", "thread_id", "parent_text", "language", "author_id"]
    columns = {
        name: [f"a{n}\x00b" if n == number else f"a{n}" for n in range(20)]
        for number, name in enumerate(names)
    }
    groups = [None] * 10 + [[], ["a", "b\x00"], ["c", None], ["\x00", "\x00"]] + [None] * 6

    checked = validate(landed(20, **columns | {"language": ["en"] * 20}, groups=groups))

    nul = {n for n, reason in enumerate(reasons(checked)) if reason == "nul_byte"}
    assert nul == {0, 1, 2, 3, 4, 6, 11, 13}


def test_unreadable_rows_have_no_other_fault(landed, validate):
    batch = landed(10, problem=["malformed_record"] + [None] * 9, text=[None] + ["x"] * 9)

    checked = validate(batch)

    failed_rows = {rule.name for rule in checked.result.failed_of("row")}
    assert failed_rows == {"unreadable"}
    assert checked.result.quarantined == {"malformed_record": 1}


def test_a_problem_that_is_no_name_is_unreadable(landed, validate):
    checked = validate(landed(1, problem=["<b>some text</b>"]))

    assert reasons(checked) == ["unreadable"]


@pytest.mark.parametrize("start", [1, -1])
def test_rows_must_be_numbered_from_zero(landed, validate, start):
    with pytest.raises(CheckError, match="2026-01-05 from 0; ingest the day again"):
        validate(landed(2, start=start))


def test_other_layouts_of_strings_are_read_alike(landed, validate):
    batch = landed(3, text=["a", " ", "c"])
    views = pa.RecordBatch.from_arrays(
        [c.cast(pa.string_view()) if c.type == pa.string() else c for c in batch.columns],
        names=batch.schema.names,
    )

    checked = validate(views)

    (schema,) = (rule for rule in checked.result.results if rule.name == "schema")
    assert (schema.passed, schema.observed) == (True, "none")
    assert reasons(checked) == ["", "blank_text", ""]


def test_rows_of_many_chunks_are_judged_alike(landed, validate, monkeypatch):
    ids = ["a", "b", "a", "c", "b", "a", "d"]
    batch = landed(7, comment_id=ids, text=["x", " ", "x", "x\x00", "x", "x", "y"])
    whole = validate(batch)
    for module in (expectations, comments):
        monkeypatch.setattr(module, "CHUNK_ROWS", 2)

    parts = validate(*(batch.slice(start, 2) for start in range(0, 7, 2)))

    assert reasons(parts) == reasons(whole)
    assert reasons(whole) == ["", "blank_text", "duplicate_id", "nul_byte", "", "duplicate_id", ""]
    assert parts.result.to_json() == whole.result.to_json()


def test_each_bad_row_is_quarantined_with_its_reason_and_the_rest_goes_on(landed, validate):
    columns: dict[str, list[object]] = {}
    for number, (name, value, _) in enumerate(ROWS):
        columns.setdefault(name, landed(100).column(name).to_pylist())[number] = value
    columns["comment_id"][40] = "an id of its own"

    checked = validate(landed(100, **columns))

    expected = [reason for _, _, reason in ROWS]
    assert reasons(checked) == expected + [""] * (100 - len(ROWS))
    assert checked.result.quarantined == Counter(reason for reason in expected if reason)
    assert failed(checked) == {"quarantined_many"}


def test_an_id_of_an_earlier_day_stays_with_that_day(landed, validate):
    earlier = [pa.array(["2026-01-05/3", "other"]), pa.array(["2026-01-05/7"])]

    checked = validate(landed(30), earlier_ids=earlier)

    assert checked.result.quarantined == {"id_of_earlier_day": 2}
    assert [n for n, reason in enumerate(reasons(checked)) if reason] == [3, 7]


def test_the_first_conflict_of_an_id_is_named_with_both_rows(landed, validate):
    """A file that is delivered again with corrections contradicts itself."""
    ids = ["c", "a", "b", "a", "a", "d"]
    day = landed(6, comment_id=ids, text=[" ", "as it was", "x", "corrected", "y", "alone"])

    for batches in ([day], [day.slice(3), day.slice(0, 3)]):
        invalid = validate(*batches).invalid
        assert invalid.conflict == (3, 1)
        origins = first_origins(batches, invalid)
        first, second = (day["origin"][row].as_py() for row in (3, 1))
        assert origins["duplicate_id"] == f"{first} has the id of {second}"


def test_the_order_of_batches_does_not_choose_who_keeps_an_id(landed, validate):
    first = landed(2, comment_id=["a", "b"])
    second = landed(2, start=2, comment_id=["b", "a"])

    orders = [[first, second], [second, first]]
    checked = [validate(*batches) for batches in orders]

    assert reasons(checked[0]) == reasons(checked[1]) == ["", "", "duplicate_id", "duplicate_id"]


@examples(8)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "c", None]), st.sampled_from(["x", " ", "y\x00"])),
        min_size=1,
        max_size=12,
    )
)
def test_every_row_is_kept_once_and_ids_are_unique(landed, validate, rows):
    ids, texts = map(list, zip(*rows, strict=True))
    batch = landed(len(rows), comment_id=ids, text=texts)

    checked = validate(batch)

    kept = [i for b in valid_rows([batch], checked.invalid) for i in b["comment_id"].to_pylist()]
    good = [i for i, text in rows if i is not None and text == "x"]
    assert Counter(kept) == Counter(set(good))
    assert sum(checked.result.quarantined.values()) + len(kept) == len(rows)
    assert checked.result.valid == len(kept)


def test_an_empty_day_without_history_is_a_warning(validate):
    checked = validate()

    assert failed(checked) == {"empty_day"}
    assert checked.result.status == "warned"
    assert "there are no rows" in checked.result.summary


def test_an_empty_day_after_usual_ones_is_rejected(validate, usual):
    checked = validate(trailing=usual(3, 10))

    assert failed(checked, "critical") == {"volume_collapse"}
    assert checked.result.error == (
        "Validation of the comments of 2026-01-05 failed (volume_collapse: 0 rows, 0.00 times the "
        "trailing median of 10, allowed: at least 10 % of the trailing median). "
        "Open the validation page of the day, fix the cause and run the day again."
    )


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        (9, {"volume_collapse", "volume_shift"}),
        (10, {"volume_shift"}),
        (34, set()),
        (300, set()),
        (1000, {"volume_shift"}),
    ],
)
def test_volume_against_the_trailing_median(landed, validate, usual, rows, names):
    checked = validate(landed(rows), trailing=usual(3, 100))

    assert failed(checked) == names
    assert checked.result.rejected == ("volume_collapse" in names)


def test_the_volume_of_steady_days_is_judged_more_strictly(landed, validate, usual):
    days = (DAY - timedelta(days=n) for n in range(1, 36))
    steady = {day: Volume(rows=100, ratio=1 + day.day % 3 / 20) for day in days}
    assert not failed(validate(landed(50), trailing=usual(3, 100)))
    assert failed(validate(landed(50), trailing=usual(3, 100), volumes=steady)) == {"volume_shift"}


def test_a_volume_that_was_as_low_a_year_before_is_no_warning(landed, validate, usual):
    before = {DAY.replace(year=2025): Volume(rows=25, ratio=0.25)}
    warned = validate(landed(30), trailing=usual(3, 100))
    checked = validate(landed(30), trailing=usual(3, 100), volumes=before)

    (shift,) = (rule for rule in checked.result.results if rule.name == "volume_shift")
    assert (failed(warned), failed(checked)) == ({"volume_shift"}, set())
    assert shift.observed == (
        "skipped: 30 rows, 0.30 times the trailing median of 100; "
        "0.25 times the usual volume on 2025-01-05, too"
    )
    before = {DAY.replace(year=2025): Volume(rows=11, ratio=0.11)}
    collapsed = validate(landed(9), trailing=usual(3, 100), volumes=before)
    assert failed(collapsed) == {"volume_collapse"}


@pytest.mark.parametrize(
    ("volume", "rows", "names"),
    [
        (0.3, 30, set()),
        (0.3, 2, {"volume_collapse", "volume_shift"}),
        (0.3, 0, {"volume_collapse", "volume_shift", "empty_day"}),
        (0.1, 5, set()),
        (0.0, 0, set()),
        (5.0, 1000, set()),
        (5.0, 2000, {"volume_shift"}),
        (5.0, 20, {"volume_shift"}),
    ],
)
def test_the_volume_of_a_holiday_is_judged_by_the_calendar(
    landed, validate, usual, volume, rows, names
):
    calendar = Calendar(days={DAY: ("Epiphany", volume)})
    batches = (landed(rows),) if rows else ()
    checked = validate(*batches, trailing=usual(3, 100), calendar=calendar)
    assert failed(checked) == names
    if not names:
        (shift,) = (rule for rule in checked.result.results if rule.name == "volume_shift")
        assert shift.observed.endswith(
            f"Epiphany, when {volume:g} times the usual volume is expected"
        )


def test_volume_is_not_compared_with_two_days_nor_with_a_storm_or_on_a_first_weekend(
    landed, validate, usual
):
    saturday = DAY + timedelta(days=5)
    assert failed(validate(landed(1), trailing=usual(2, 100))) == set()
    assert failed(validate(landed(100), trailing=[*usual(2, 100), *usual(1, 9_000)])) == set()
    weekend = validate(landed(30, dt=saturday), trailing=usual(5, 100), dt=saturday)
    assert failed(weekend) == set()


def test_a_change_of_languages_is_a_warning(landed, validate, usual):
    languages = ["en"] * 150 + ["de"] * 100

    checked = validate(landed(250, language=languages), trailing=usual(3, 250))

    assert failed(checked) == {"language_shift"}
    assert not checked.result.rejected


def test_a_lost_column_is_a_warning(landed, validate, usual):
    checked = validate(landed(250), trailing=usual(3, 250, platform=0))

    assert failed(checked) == {"missing_share_platform"}


def test_shares_of_small_days_are_skipped(landed, validate, usual):
    checked = validate(landed(50, language=["de"] * 50), trailing=usual(3, 50, platform=0))

    assert failed(checked) == set()


@pytest.mark.parametrize(
    ("rows", "blank", "names"),
    [
        (100, 2, set()),
        (100, 3, {"quarantined_many"}),
        (100, 20, {"quarantined_many"}),
        (100, 21, {"quarantined_many", "quarantined_most"}),
        (6, 5, {"quarantined_many"}),
        (2, 2, {"quarantined_many", "quarantined_most"}),
    ],
)
def test_share_of_quarantined_rows(landed, validate, rows, blank, names):
    texts = [" "] * blank + ["good"] * (rows - blank)

    checked = validate(landed(rows, text=texts))

    assert failed(checked) == names
    assert checked.result.rejected == ("quarantined_most" in names)


def test_a_missing_column_rejects_the_day(landed, validate):
    batch = landed(10).drop_columns(["text"])

    checked = validate(batch)

    assert "schema" in failed(checked, "critical")
    assert "text is missing" in checked.result.error


def test_bounds_can_be_chosen(landed, validate):
    checked = validate(landed(3, text=["a", "bb", "ccc"]), thresholds=Thresholds(max_text_length=2))

    assert reasons(checked) == ["", "", "long_text"]


def test_real_comments_pass(landed, validate):
    stream = pd.read_csv(real_data("wikipedia_talk/context_gc.csv.gz"))

    checked = validate(landed(len(stream), text=stream["text"].tolist()))

    assert checked.result.status == "passed"
    assert checked.result.quarantined == {}


def test_models_read_no_character_that_the_rule_of_blank_texts_calls_invisible():
    """Spaces are read, and lone surrogates are rejected as texts that are not UTF-8."""
    characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    suite = json.loads((files(validation) / "suites" / "comments.json").read_text("utf-8"))
    (regex,) = {
        rule["kwargs"]["regex"]
        for rule in suite["expectations"]
        if rule["type"] == "expect_column_values_to_match_regex"
        and rule["meta"]["modwatch"]["rule"] == "blank_text"
    }
    seen = pc.match_substring_regex(pa.array(characters), regex).to_pylist()
    unseen = {sign for sign, shown in zip(characters, seen, strict=True) if not shown}
    assert {sign for sign in unseen if visible(sign) and not sign.isspace()} == {"\u2800"}
