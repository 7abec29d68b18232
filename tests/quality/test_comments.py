"""Each bad input of a day, and what becomes of it."""

from collections import Counter
from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from published import real_data

from modwatch.quality import Thresholds, accepted_rows, check_comments, profile_comments, rejection


def reasons(checked):
    return [("", *checked.refusals.reasons)[code] for code in checked.refusals.reason]


def failed(checked, severity=None):
    return {r.name for r in checked.verdict.failed_of("day") if severity in (None, r.severity)}


def at(hour, minute=0, second=0, microsecond=0, day=5):
    return datetime(2026, 1, day, hour, minute, second, microsecond, tzinfo=UTC)


#: One row each: column, bad or extreme value, reason of quarantine or none.
ROWS = [
    ("problem", "malformed_record", "malformed_record"),
    ("problem", "undecodable_text", "undecodable_text"),
    ("comment_id", None, "missing_id"),
    ("comment_id", " ", "missing_id"),
    ("comment_id", "x" * 257, "long_id"),
    ("text", "a\x00b", "nul_byte"),
    ("created_at", None, "missing_time"),
    ("created_at", at(0, day=6), "time_outside_day"),
    ("created_at", at(23, 59, 59, 999999, day=4), "time_outside_day"),
    ("text", None, "blank_text"),
    ("text", "\u200b \n", "blank_text"),
    ("text", "é" * 50_001, "long_text"),
    ("text", "x" * 1_000_000, "long_text"),
    ("language", "no language", "malformed_language"),
    ("comment_id", "2026-01-05/40", ""),
    ("comment_id", "2026-01-05/40", "duplicate_id"),
    ("comment_id", "x" * 256, ""),
    ("created_at", at(0), ""),
    ("created_at", at(23, 59, 59, 999999), ""),
    ("text", "é" * 50_000, ""),
    ("text", "🙂", ""),
    ("text", "\u202eשלום", ""),
]


def test_each_bad_row_is_quarantined_with_its_reason_and_the_rest_goes_on(landed, check):
    columns: dict[str, list[object]] = {}
    for number, (name, value, _) in enumerate(ROWS):
        columns.setdefault(name, landed(100).column(name).to_pylist())[number] = value
    columns["comment_id"][40] = "an id of its own"

    checked = check(landed(100, **columns))

    expected = [reason for _, _, reason in ROWS]
    assert reasons(checked) == expected + [""] * (100 - len(ROWS))
    assert checked.verdict.quarantined == Counter(reason for reason in expected if reason)
    assert failed(checked) == {"quarantined_many"}


def test_an_id_of_an_earlier_day_stays_with_that_day(landed, day):
    earlier = [pa.array(["2026-01-05/3", "other"]), pa.array(["2026-01-05/7"])]

    checked = check_comments(profile_comments([landed(30)], day=day, earlier_ids=earlier))

    assert checked.verdict.quarantined == {"id_of_earlier_day": 2}
    assert [n for n, reason in enumerate(reasons(checked)) if reason] == [3, 7]


def test_the_first_good_row_keeps_an_id(landed, check):
    ids = ["a", "a", "a", "b"]
    texts = [" ", "good", "good", "good"]

    checked = check(landed(4, comment_id=ids, text=texts))

    assert reasons(checked) == ["blank_text", "", "duplicate_id", ""]


def test_the_order_of_batches_does_not_choose_who_keeps_an_id(landed, day):
    first = landed(2, comment_id=["a", "b"])
    second = landed(2, start=2, comment_id=["b", "a"])

    orders = [[first, second], [second, first]]
    checked = [check_comments(profile_comments(batches, day=day)) for batches in orders]

    assert reasons(checked[0]) == reasons(checked[1]) == ["", "", "duplicate_id", "duplicate_id"]


@settings(max_examples=8)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "c", None]), st.sampled_from(["x", " ", "y\x00"])),
        min_size=1,
        max_size=12,
    )
)
def test_every_row_is_kept_once_and_ids_are_unique(landed, day, rows):
    ids, texts = map(list, zip(*rows, strict=True))
    batch = landed(len(rows), comment_id=ids, text=texts)

    checked = check_comments(profile_comments([batch], day=day))

    kept = [
        i for b in accepted_rows([batch], checked.refusals) for i in b["comment_id"].to_pylist()
    ]
    good = [i for i, text in rows if i is not None and text == "x"]
    assert Counter(kept) == Counter(set(good))
    assert sum(checked.verdict.quarantined.values()) + len(kept) == len(rows)
    assert checked.verdict.accepted == len(kept)


def test_an_empty_day_without_history_is_a_warning(day):
    checked = check_comments(profile_comments([], day=day))

    assert failed(checked) == {"empty_day"}
    assert checked.verdict.status == "warned"
    assert "there are none" in checked.verdict.sentence


def test_an_empty_day_after_usual_ones_is_rejected(day, usual):
    checked = check_comments(profile_comments([], day=day), history=usual(3, 10))

    assert failed(checked, "critical") == {"volume_collapse"}
    assert rejection(checked.verdict) == (
        "the comments of 2026-01-05 were rejected (volume_collapse: 0 rows, 0.00 times the "
        "trailing mean of 10, allowed is at least 10 % of the trailing mean); "
        "open the check page of the day, mend the cause and run the day again"
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
def test_volume_against_the_trailing_mean(landed, check, usual, rows, names):
    checked = check(landed(rows), history=usual(3, 100))

    assert failed(checked) == names
    assert checked.verdict.rejected == ("volume_collapse" in names)


def test_volume_is_not_judged_by_two_days(landed, check, usual):
    assert failed(check(landed(1), history=usual(2, 100))) == set()


def test_rejected_and_later_days_are_no_measure(landed, check, usual):
    history = usual(4, 100)
    empty = check_comments(profile_comments([], day=date(2026, 1, 4)), history=history[:3])
    later = check(landed(5000, dt=date(2026, 1, 9)), dt=date(2026, 1, 9))

    checked = check(landed(100), history=[later.verdict, empty.verdict, *history[:3]])

    assert empty.verdict.rejected
    assert failed(checked) == set()


def test_a_change_of_languages_is_a_warning(landed, check, usual):
    languages = ["en"] * 150 + ["de"] * 100

    checked = check(landed(250, language=languages), history=usual(3, 250))

    assert failed(checked) == {"language_shift"}
    assert not checked.verdict.rejected


def test_a_lost_column_is_a_warning(landed, check, usual):
    checked = check(landed(250), history=usual(3, 250, platform="forum"))

    assert failed(checked) == {"null_share_platform"}


def test_small_days_are_not_judged_by_shares(landed, check, usual):
    checked = check(landed(50, language=["de"] * 50), history=usual(3, 50, platform="forum"))

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
def test_share_of_quarantined_rows(landed, check, rows, blank, names):
    texts = [" "] * blank + ["good"] * (rows - blank)

    checked = check(landed(rows, text=texts))

    assert failed(checked) == names
    assert checked.verdict.rejected == ("quarantined_most" in names)


def test_a_missing_column_rejects_the_day(landed, day):
    batch = landed(10).drop_columns(["text"])

    checked = check_comments(profile_comments([batch], day=day))

    assert "schema" in failed(checked, "critical")
    assert "text is missing" in rejection(checked.verdict)


def test_bounds_can_be_chosen(landed, check):
    checked = check(landed(3, text=["a", "bb", "ccc"]), thresholds=Thresholds(max_text_length=2))

    assert reasons(checked) == ["", "", "long_text"]


def test_a_second_check_gives_the_same_verdict(landed, check, usual):
    batch, history = landed(40, text=[" "] * 3 + ["x"] * 37), usual(3, 40)

    first, second = check(batch, history=history), check(batch, history=history)

    assert first.verdict.to_json() == second.verdict.to_json()
    assert np.array_equal(first.refusals.reason, second.refusals.reason)


def test_real_comments_pass(landed, check):
    stream = pd.read_csv(real_data("wikipedia_talk/context_gc.csv.gz"))

    checked = check(landed(len(stream), text=stream["text"].tolist()))

    assert checked.verdict.status == "passed"
    assert checked.verdict.quarantined == {}
