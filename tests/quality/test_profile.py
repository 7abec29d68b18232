import pyarrow as pa
import pytest

from modwatch.errors import CheckError
from modwatch.quality import profile_comments


@pytest.mark.parametrize(
    "text",
    ["🙂", "👩‍👩‍👧‍👦", "שלום", "مرحبا", "‮abc", "a\u200b", "\ue000", "0", "ह", "."],
)
def test_what_a_reader_can_see_is_not_blank(landed, day, text):
    profile = profile_comments([landed(1, text=[text])], day=day)

    assert not profile.flags["blank_text"][0]
    assert profile.text_length[0] == len(text)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        " ",
        "\n\t\r",
        "\u200b\u200d\ufeff",
        "\u00a0\u3000",
        "\u2800",
        "\u3164",
        "\u202e",
        "\ufe0f",
    ],
)
def test_what_nobody_can_see_is_blank(landed, day, text):
    profile = profile_comments([landed(1, text=[text])], day=day)

    assert profile.flags["blank_text"][0]


@pytest.mark.parametrize(
    ("language", "malformed"),
    [
        ("en", False),
        ("zh-Hans-CN", False),
        ("EN", False),
        ("", False),
        (None, False),
        ("english", True),
        ("en_US", True),
        ("en\n", True),
        ("<script>", True),
        ("e", True),
    ],
)
def test_language_is_shaped_as_a_tag(landed, day, language, malformed):
    profile = profile_comments([landed(1, language=[language])], day=day)

    assert profile.flags["malformed_language"][0] == malformed


def test_languages_are_counted_by_primary_subtag_and_never_verbatim(landed, day):
    tags = ["en", "en-GB", "EN", "de", None, "", "<b>", "und"]

    profile = profile_comments([landed(8, language=tags)], day=day)

    assert profile.statistics.languages == {"de": 1, "en": 3, "und": 3}


@pytest.mark.parametrize(
    "column",
    ["comment_id", "text", "platform", "thread_id", "parent_text", "language", "author_id"],
)
def test_nul_is_found_in_every_stored_string(landed, day, column):
    profile = profile_comments([landed(2, **{column: ["a", "a\x00b"]})], day=day)

    assert profile.flags["nul_byte"].tolist() == [False, True]


def test_nul_is_found_in_groups(landed, day):
    groups = [None, [], ["a", "b\x00"], ["c", None]]

    profile = profile_comments([landed(4, groups=groups)], day=day)

    assert profile.flags["nul_byte"].tolist() == [False, False, True, False]


def test_unreadable_rows_have_no_other_fault(landed, day):
    batch = landed(1, problem=["malformed_record"], text=[None], comment_id=[None])

    profile = profile_comments([batch], day=day)

    assert profile.problems == ("malformed_record",)
    assert not any(flag.any() for flag in profile.flags.values())


def test_a_problem_that_is_no_name_is_unreadable(landed, day):
    profile = profile_comments([landed(1, problem=["<b>some text</b>"])], day=day)

    assert profile.problems == ("unreadable",)


def test_batches_may_come_in_any_order(landed, day):
    first, second = landed(2, text=["a", " "]), landed(2, start=2, text=["ccc", "dddd"])

    profile = profile_comments([second, first], day=day)

    assert profile.text_length.tolist() == [1, 1, 3, 4]
    assert profile.flags["blank_text"].tolist() == [False, True, False, False]


@pytest.mark.parametrize("start", [1, -1])
def test_rows_must_be_numbered_from_zero(landed, day, start):
    with pytest.raises(CheckError, match="2026-01-05 from 0; ingest the day again"):
        profile_comments([landed(2, start=start)], day=day)


def test_other_layouts_of_strings_are_read_alike(landed, day):
    batch = landed(3, text=["a", " ", "c"])
    views = pa.RecordBatch.from_arrays(
        [c.cast(pa.string_view()) if c.type == pa.string() else c for c in batch.columns],
        names=batch.schema.names,
    )

    profile = profile_comments([views], day=day)

    assert profile.schema_faults == ()
    assert profile.flags["blank_text"].tolist() == [False, True, False]


def test_null_shares_are_those_of_readable_rows(landed, day):
    batch = landed(4, platform=["a", None, None, "b"], problem=[None, None, "broken", None])

    profile = profile_comments([batch], day=day)

    assert profile.statistics.null_shares["platform"] == pytest.approx(1 / 3)
