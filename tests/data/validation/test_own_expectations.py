"""Expectations of a file of the installation, from the file to the alert."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from modwatch.common.errors import DayRejectedError, SettingsError
from modwatch.data.lake.delta import Lake
from modwatch.data.validation import own_expectations
from modwatch.data.validation.own_expectations import load_expectations
from modwatch.data.validation.page import publish_result, render_page
from modwatch.data.validation.result import CheckStore
from modwatch.data.validation.scores import validate_scores
from modwatch.monitoring.incidents.metrics import metric_values

EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "expectations.json"
SECRET = "hostile words"
NULL = "expect_column_values_to_be_null"
BETWEEN = "expect_column_values_to_be_between"
DAY_START = {"$PARAMETER": "day_start"}


@pytest.fixture
def load(tmp_path):
    def write(*expectations):
        path = tmp_path / "expectations.json"
        path.write_text(json.dumps({"name": "own", "expectations": expectations}), "utf-8")
        return load_expectations(path)

    return write


def of(kind, severity="warning", table="comments", **kwargs):
    meta = {"modwatch": {"table": table}}
    return {"type": kind, "kwargs": kwargs, "severity": severity, "meta": meta}


def own(checked):
    return {(r.type, r.column): r for r in checked.result.results if r.own}


def test_the_example_of_the_documentation(landed, validate, usual, scores, day):
    expectations = load_expectations(EXAMPLE)
    batch = landed(
        100,
        platform=["web"] * 99 + ["fax"],
        text=["you &amp; me"] * 60 + [f"words of some length, {n}" for n in range(40)],
    )

    first = validate(batch, expectations=expectations)
    later = validate(batch, expectations=expectations, trailing=usual(3, 49))
    ids = batch["comment_id"]
    scored = validate_scores(
        [scores(ids.to_pylist(), [0.9] * 100)],
        day=day,
        comment_ids=[ids],
        expectations=expectations,
    )

    assert [(r.name, r.passed, r.observed) for r in own(first).values()] == [
        ("unknown_platform", False, "1 of 100 rows (1.0 %)"),
        ("expect_column_values_to_not_match_regex", False, "60 of 100 rows (60.0 %)"),
        ("expect_column_mean_to_be_between", False, "16.7"),
        ("expect_column_proportion_of_unique_values_to_be_between", False, "0.41"),
        ("expect_table_row_count_to_be_between", True, "skipped: there is nothing to compare with"),
    ]
    assert not own(later)["expect_table_row_count_to_be_between", ""].passed
    assert first.result.rejected
    assert "unknown_platform: 1 of 100 rows" in first.result.error
    assert [(r.passed, r.observed) for r in own(scored).values()] == [(False, "other")]
    assert scored.result.status == "warned"
    page = render_page([first.result, scored.result])
    assert "<h2>Own expectations</h2>" in page
    assert "comments come from the platforms that we moderate" in page


def test_the_page_of_the_documentation_has_the_example():
    page = EXAMPLE.parents[1] / "validation.md"
    assert EXAMPLE.read_text("utf-8") in page.read_text("utf-8")


def test_what_an_expectation_of_a_severity_does(landed, validate, load):
    def status(severity):
        rule = of("expect_column_values_to_be_in_set", severity, column="text", value_set=["a"])
        return validate(landed(3), expectations=load(rule)).result.status

    assert [status(s) for s in ("critical", "warning", "info")] == ["rejected", "warned", "passed"]


def test_a_rejected_day_is_an_alert_and_a_warned_one_too(landed, validate, load, tmp_path, day):
    checks, lake = CheckStore(root=str(tmp_path / "checks")), Lake(root=str(tmp_path / "lake"))

    def found():
        values = metric_values(lake, checks, day, day)
        return {",".join(filter(None, (v.metric, v.feature))): v.value for v in values if v.value}

    warning, critical = (
        load(of("expect_column_values_to_be_null", severity, column="text"))
        for severity in ("warning", "critical")
    )
    publish_result(checks, validate(landed(3), expectations=warning).result)
    assert found() == {"checks_warned,expect_column_values_to_be_null": 1.0}
    with pytest.raises(DayRejectedError, match="expect_column_values_to_be_null: 3 of 3 rows"):
        publish_result(checks, validate(landed(3), expectations=critical).result)
    assert found() == {"checks_rejected": 1.0}


def test_results_and_pages_hold_no_text(landed, validate, load):
    columns = ("text", "platform", "language", "comment_id", "author_id", "thread_id")
    words = {"quantiles": [0.5], "value_ranges": [["a", "b"]]}
    rules = [
        *(of("expect_column_values_to_be_null", column=name) for name in columns),
        *(of("expect_column_values_to_be_unique", column=name) for name in columns),
        *(of("expect_column_value_lengths_to_equal", column=name, value=2) for name in columns),
        of("expect_column_most_common_value_to_be_in_set", column="platform", value_set=["a"]),
        of("expect_column_distinct_values_to_equal_set", column="platform", value_set=["a"]),
        of("expect_column_quantile_values_to_be_between", column="language", quantile_ranges=words),
        of("expect_compound_columns_to_be_unique", column_list=["text", "platform"]),
        of("expect_column_pair_values_to_be_equal", column_A="text", column_B="author_id"),
    ]
    texts = {name: [SECRET, SECRET, f"{SECRET} {name}"] for name in columns if name != "language"}

    texts["comment_id"][1] = f"{SECRET} too"

    checked = validate(landed(3, language=[None] * 3, **texts), expectations=load(*rules))

    results = own(checked)
    assert len(results) == len(rules)
    middle = results["expect_column_quantile_values_to_be_between", "language"]
    assert middle.observed.startswith("Great Exp")
    assert SECRET not in checked.result.to_json() + render_page([checked.result])
    unlike = ("comment_id", "language")
    assert not any(r.passed for (_, column), r in results.items() if column not in unlike)


@pytest.mark.parametrize(
    ("kind", "ignored", "columns"),
    [
        (
            "expect_column_pair_values_to_be_equal",
            "either_value_is_missing",
            {"column_A": "thread_id", "column_B": "author_id"},
        ),
        (
            "expect_compound_columns_to_be_unique",
            "any_value_is_missing",
            {"column_list": ["thread_id", "author_id"]},
        ),
    ],
)
def test_a_row_with_one_missing_value_breaks_what_compares_columns(
    landed, validate, load, kind, ignored, columns
):
    rows = landed(4, thread_id=["a", "b", "c", "c"], author_id=["a", "b", None, None])
    counted, left_out = (
        own(validate(rows, expectations=load(of(kind, **columns, **more))))
        for more in ({}, {"ignore_row_if": ignored})
    )
    assert [result.passed for result in counted.values()] == [False]
    assert [result.passed for result in left_out.values()] == [True]


def test_chunks_give_the_same_counts_and_whole_columns_are_whole(
    landed, validate, load, monkeypatch
):
    rules = load(
        of("expect_column_values_to_match_regex", column="text", regex="^a", mostly=0.5),
        of("expect_column_values_to_not_be_null", column="platform"),
        of("expect_column_values_to_be_unique", column="text"),
        of("expect_column_distinct_values_to_be_in_set", column="platform", value_set=["a", "b"]),
        of("expect_column_mean_to_be_between", column="text_length", min_value=2, max_value=2),
    )
    batch = landed(
        6, text=["a1", "b1", " ", "a2", "b1", "a3"], platform=["a", "", "c", "b", None, "a"]
    )
    whole = validate(batch, expectations=rules)
    monkeypatch.setattr(own_expectations, "CHUNK_ROWS", 2)
    parts = validate(*(batch.slice(n, 1) for n in range(6)), expectations=rules)

    assert own(parts) == own(whole)
    assert [(r.passed, r.observed) for r in own(whole).values()] == [
        (True, "2 of 5 rows (40.0 %)"),
        (False, "2 of 5 rows (40.0 %)"),
        (False, "2"),
        (True, "as expected"),
        (True, "2"),
    ]


def test_a_day_without_rows_has_nothing_to_judge(validate, load):
    rules = load(
        of("expect_column_mean_to_be_between", column="text_length", min_value=2),
        of("expect_column_values_to_not_be_null", column="text"),
        of("expect_table_row_count_to_be_between", min_value=1),
    )

    assert [r.passed for r in own(validate(expectations=rules)).values()] == [True, True, False]


@pytest.mark.parametrize(
    ("expectation", "fault"),
    [
        ("text", "is not an object"),
        ({"type": "expect_it"}, "has the type 'expect_it', which is not supported"),
        (of("unexpected_rows_expectation"), "not supported"),
        (of(NULL, column="lang"), "names the column 'lang'"),
        (of(NULL, table="scores", column="text"), "which scores do not have"),
        (of(NULL, table="labels", column="x"), "the table 'labels'"),
        (of(NULL, "fatal", column="text"), "the severity 'fatal'"),
        (of("expect_column_values_to_match_regex", column="text", regx="a"), "invalid kwargs"),
        (of("expect_column_max_to_be_between", column="text", max_value=3), "all values of 'text'"),
        (
            of("expect_table_row_count_to_be_between", max_value={"$PARAMETER": "2 * median"}),
            "refers to the parameter 'median'",
        ),
        (of(NULL, column="text", row_condition="x"), "has a row_condition"),
        (of(BETWEEN, column="created_at", min_value="then"), "compares times with 'then'"),
        (of(BETWEEN, column="created_at", max_value=5), "compares times with '5'"),
        (of(BETWEEN, column="text", min_value=5), "cannot be evaluated on values of its columns"),
        (of("expect_column_sum_to_be_between", column="created_at"), "cannot be evaluated"),
        (
            of("expect_column_stdev_to_be_between", column="prob", min_value=DAY_START),
            "cannot be evaluated",
        ),
        (
            of("expect_column_most_common_value_to_be_in_set", column="created_at", value_set=[]),
            "finds no times",
        ),
    ],
)
def test_a_bad_expectation_is_named_with_its_place(load, expectation, fault):
    good = of("expect_column_values_to_not_be_null", column="text")
    with pytest.raises(SettingsError, match=r".*: expectation 2") as error:
        load(good, expectation)
    assert fault in str(error.value)
    assert "docs/validation.md" in str(error.value)


@pytest.mark.parametrize(
    "noon",
    ["2026-01-05T12:00", "2026-01-05 12:00:00", "2026-01-05T12:00:00Z", "2026-01-05T17:30+05:30"],
)
def test_times_without_a_zone_are_utc(landed, validate, load, noon):
    """The comments are of 12:00 UTC; day 5 of the month began before, and day 6 begins after."""
    sets = ("values_to_be_in_set", "distinct_values_to_equal_set", "values_to_not_be_in_set")
    ends = ("values", "min", "max", "mean", "median")
    exact = {"quantiles": [0.5], "value_ranges": [[noon, noon]]}
    rules = [
        *(of(f"expect_column_{name}", column="created_at", value_set=[noon]) for name in sets),
        *(
            of(f"expect_column_{name}_to_be_between", column="created_at", min_value=first)
            for name in ends
            for first in ("2026-01-05", "2026-01-06")
        ),
        of(
            "expect_column_quantile_values_to_be_between",
            column="created_at",
            quantile_ranges=exact,
        ),
        of("expect_column_unique_value_count_to_be_between", column="created_at", max_value=1),
    ]

    checked = validate(landed(3), expectations=load(*rules))

    passed = [result.passed for result in checked.result.results if result.own]
    assert passed == [True, True, False, *[True, False] * len(ends), True, True]


def test_all_bad_expectations_are_named_at_once(load):
    with pytest.raises(SettingsError, match=r"expectation 1 .*; expectation 3 "):
        load(of("expect_it"), of("expect_column_values_to_not_be_null", column="text"), "text")


def test_a_suite_of_great_expectations_before_version_1_is_read(tmp_path):
    path = tmp_path / "suite.json"
    old = {
        "expectation_type": "expect_column_values_to_not_be_null",
        "kwargs": {"column": "language", "mostly": 0.9},
        "meta": {},
    }
    suite = {"expectation_suite_name": "comments", "expectations": [old], "meta": {}}
    path.write_text(json.dumps(suite), "utf-8")
    [rule] = load_expectations(path)
    assert (rule.type, dict(rule.kwargs)) == (old["expectation_type"], old["kwargs"])


@pytest.mark.parametrize("content", [None, "{", "[]", '{"expectations": {}}'])
def test_a_bad_file_is_named(tmp_path, content):
    path = tmp_path / "expectations.json"
    if content is not None:
        path.write_text(content, "utf-8")
    with pytest.raises(SettingsError, match=r".*expectations\.json"):
        load_expectations(path)


def test_every_supported_expectation_is_one_of_great_expectations():
    from great_expectations.expectations.registry import list_registered_expectation_implementations

    from modwatch.data.validation.expectations import great_expectations

    great_expectations()
    assert set(list_registered_expectation_implementations()) >= own_expectations.SUPPORTED
    assert pa.types.is_string(own_expectations.expected_tables()["comments"].field("platform").type)
