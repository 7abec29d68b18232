import pyarrow as pa
import pytest

from modwatch.common.errors import CheckError
from modwatch.data.validation.rows import row_facts


@pytest.mark.parametrize(
    "text",
    ["🙂", "👩‍👩‍👧‍👦", "שלום", "مرحبا", "‮abc", "a\u200b", "\ue000", "0", "ह", "."],
)
def test_what_a_reader_can_see_is_not_blank(landed, day, text):
    facts = row_facts([landed(1, text=[text])], day=day)

    assert not facts.frame["blank_text"][0]
    assert facts.frame["long_text"][0] == len(text)


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
    facts = row_facts([landed(1, text=[text])], day=day)

    assert facts.frame["blank_text"][0]


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
    facts = row_facts([landed(1, language=[language])], day=day)

    assert facts.frame["malformed_language"][0] == malformed


@pytest.mark.parametrize(
    "column",
    ["comment_id", "text", "platform", "thread_id", "parent_text", "language", "author_id"],
)
def test_nul_is_found_in_every_stored_string(landed, day, column):
    facts = row_facts([landed(2, **{column: ["a", "a\x00b"]})], day=day)

    assert facts.frame["nul_byte"].tolist() == [False, True]


def test_nul_is_found_in_groups(landed, day):
    groups = [None, [], ["a", "b\x00"], ["c", None]]

    facts = row_facts([landed(4, groups=groups)], day=day)

    assert facts.frame["nul_byte"].tolist() == [False, False, True, False]


def test_unreadable_rows_have_no_other_fault(landed, day):
    batch = landed(1, problem=["malformed_record"], text=[None], comment_id=[None])

    facts = row_facts([batch], day=day)

    assert facts.problems == ("malformed_record",)
    assert facts.frame.sum().drop("unreadable").eq(0).all()


def test_a_problem_that_is_no_name_is_unreadable(landed, day):
    facts = row_facts([landed(1, problem=["<b>some text</b>"])], day=day)

    assert facts.problems == ("unreadable",)


def test_batches_may_come_in_any_order(landed, day):
    first, second = landed(2, text=["a", " "]), landed(2, start=2, text=["ccc", "dddd"])

    facts = row_facts([second, first], day=day)

    assert facts.frame["long_text"].tolist() == [1, 1, 3, 4]
    assert facts.frame["blank_text"].tolist() == [False, True, False, False]


@pytest.mark.parametrize("start", [1, -1])
def test_rows_must_be_numbered_from_zero(landed, day, start):
    with pytest.raises(CheckError, match="2026-01-05 from 0; ingest the day again"):
        row_facts([landed(2, start=start)], day=day)


def test_other_layouts_of_strings_are_read_alike(landed, day):
    batch = landed(3, text=["a", " ", "c"])
    views = pa.RecordBatch.from_arrays(
        [c.cast(pa.string_view()) if c.type == pa.string() else c for c in batch.columns],
        names=batch.schema.names,
    )

    facts = row_facts([views], day=day)

    assert facts.schema_faults == ()
    assert facts.frame["blank_text"].tolist() == [False, True, False]
