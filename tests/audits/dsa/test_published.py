"""Faults that reports published since 2026 have, one file with many of each."""

from modwatch.audits.dsa.validation import validate
from modwatch.audits.dsa.vocabulary import PLACEHOLDER_PERIOD, RATES

CONTEXT = "Contextual Information"


def test_the_empty_template(tables):
    table = tables["platform"]
    for at in range(1, len(table.rows)):
        for column, cell in (("Service", ""), ("Value", ""), (CONTEXT, "")):
            table.put(at, column, cell)
        table.put(at, "Reporting period", PLACEHOLDER_PERIOD)

    assert table.rules() == ["missing-row", "missing-row", "placeholder"]


def test_dates_that_a_spreadsheet_counted_up(tables):
    table = tables["platform"]
    for at in range(1, len(table.rows)):
        table.put(at, "Reporting period", f"2026-01-01/2026-12-{30 + at}")

    assert table.rules() == ["period-format"] * 19


def test_cells_without_names_behind_the_header(tables):
    table = tables["platform"]
    for row in table.rows:
        row.extend([""] * 3)

    assert table.rules() == ["header"]


def test_rows_that_end_early(tables):
    table = tables["platform"]
    table.put(2, CONTEXT, "")
    table.rows[2].pop()

    assert table.rules() == ["ragged-row"]


def test_several_services_wait_with_what_goes_across_rows(tables):
    table = tables["platform"]
    other = [[*row[:1], "Other", *row[2:]] for row in table.rows[1:]]
    table.rows.extend(other)

    assert table.rules() == ["several-services"]


def test_rates_alone_of_languages(tables):
    table = tables["vlop"]
    table.rows = [row for row in table.rows if len(row[5]) > 2 or row[4] in set(RATES)]
    rules = table.rules()

    assert set(rules) == {"rate-without-count", "missing-row"}
    assert rules.count("rate-without-count") == 2
    assert rules.count("missing-row") == 22


def test_zeros_where_nothing_was_automated(tables):
    table = tables["platform"]
    for at in range(1, len(table.rows)):
        table.put(at, "Value", "0")
        table.put(at, CONTEXT, "")

    assert table.rules() == ["rate-of-nothing"] * 4


def test_warnings_that_are_alike_are_one(tables):
    table = tables["platform"]
    for at in range(1, len(table.rows)):
        table.put(at, "Scope", table.get(at, "Scope").upper())
    findings = validate(table.content())

    assert [(finding.row, finding.rule) for finding in findings] == [
        (at, "scope-spelling") for at in (2, 7, 12, 17)
    ]
    assert all(
        finding.message.endswith("in the template; similar rows: 4.") for finding in findings
    )
