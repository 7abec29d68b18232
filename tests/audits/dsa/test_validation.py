"""Every rule, by a file that is right but for one thing."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modwatch.audits.dsa.findings import RULES, exit_status, printed
from modwatch.audits.dsa.validation import validate
from modwatch.audits.dsa.vocabulary import (
    NAM_TOTAL,
    NAM_TRUSTED_FLAGGER,
    OWN_INITIATIVE,
    PLACEHOLDER_PERIOD,
    PLACEHOLDER_SCOPE,
    RATES,
    SECTION,
    TOTAL,
    Indicator,
)

SOLELY, OTHERS = Indicator.MEASURES_SOLELY.value, Indicator.MEASURES_NOT.value
ACCURACY, RECALL = Indicator.ACCURACY.value, Indicator.RECALL.value
CONTEXT = "Contextual Information"
YEAR = "2026-01-01/2026-12-31"


def put(column: str, cell: str, *words: str) -> Callable:
    """A change of one cell, in the first row with these words."""

    def change(table) -> None:
        table.put(table.at(*words), column, cell)

    return change


def drop(*words: str) -> Callable:
    def change(table) -> None:
        del table.rows[table.at(*words)]

    return change


def blank(*words: str) -> Callable:
    def change(table) -> None:
        for column in ("Value", CONTEXT):
            table.put(table.at(*words), column, "")

    return change


def again(*words: str) -> Callable:
    def change(table) -> None:
        table.rows.append(list(table.rows[table.at(*words)]))

    return change


def rename(old: str, new: str) -> Callable:
    def change(table) -> None:
        table.rows[0][table.names.index(old)] = new

    return change


def last(column: str, cell: str) -> Callable:
    return lambda table: table.put(len(table.rows) - 1, column, cell)


def insert(row: list[str]) -> Callable:
    def change(table) -> None:
        table.rows.insert(3, row)

    return change


def empty_row(service: str, period: str, scope: str) -> list[str]:
    """A row of the template that a provider which is not very large left as it was."""
    return ["Only for VLOPs", service, period, SECTION, SOLELY, scope, "", ""]


def every_row(change: Callable[[list[str]], object]) -> Callable:
    """A change of each row, the header's included."""

    def change_all(table) -> None:
        for row in table.rows:
            change(row)

    return change_all


def every_cell(column: str, change: Callable[[int, str], str]) -> Callable:
    """A change of a column in each row below the header, by the row's number and its cell."""

    def change_all(table) -> None:
        for at in range(1, len(table.rows)):
            table.put(at, column, change(at, table.get(at, column)))

    return change_all


def both(*changes: Callable) -> Callable:
    def change(table) -> None:
        for one in changes:
            one(table)

    return change


def shorten(table) -> None:
    """A row ends before its last cell, which is empty."""
    table.put(2, CONTEXT, "")
    table.rows[2].pop()


def another_service(table) -> None:
    table.rows.extend([[*row[:1], "Other", *row[2:]] for row in table.rows[1:]])


def rates_alone(table) -> None:
    """Of languages, only rates."""
    table.rows = [row for row in table.rows if len(row[5]) > 2 or row[4] in set(RATES)]


def languages_left_blank(table) -> None:
    for at in range(1, len(table.rows)):
        if table.get(at, "Applicability") == "Only for VLOPs":
            table.put(at, "Value", "")
            table.put(at, CONTEXT, "Languages are not told apart.")


def drop_scope(scope: str) -> Callable:
    def change(table) -> None:
        table.rows = [row for row in table.rows if scope not in row]

    return change


def drop_column(column: str) -> Callable:
    def change(table) -> None:
        at = table.names.index(column)
        for row in table.rows:
            del row[at]

    return change


def countries(table) -> None:
    """One indicator tells of countries: some have a code that no language has."""
    for at, row in enumerate(table.rows):
        if RECALL in row and len(table.get(at, "Scope")) == 2:
            code = table.get(at, "Scope")
            moved = {"cs": "CZ", "da": "DK", "el": "GR", "et": "EE", "sl": "SI", "sv": "SE"}
            table.put(at, "Scope", moved.get(code, {"en": "IE", "ga": "AT"}.get(code, code)))


#: The rules that a change breaks, the file, and the change.
CHANGES: list[tuple[str, str, Callable]] = [
    ("ragged-row", "platform", lambda table: table.rows[2].append("more")),
    ("ragged-row", "platform", shorten),
    ("blank-row", "platform", insert([])),
    ("blank-row", "platform", insert([""] * 8)),
    ("control-character", "platform", put(CONTEXT, "a\0b", ACCURACY)),
    ("header", "platform", drop_column("Section")),
    ("header", "platform", drop_column("Applicability")),
    ("header", "platform", every_row(lambda row: row.insert(0, row.pop(1)))),
    ("header", "platform", every_row(lambda row: row.extend([""] * 3))),
    ("header header", "platform", rename(CONTEXT, "Notes")),
    ("header", "texts", drop_column("Service")),
    ("header-spelling", "platform", rename("Reporting period", "reporting Period")),
    ("header-spelling", "texts", rename("Indicator", "INDICATOR")),
    ("section", "platform", put("Section", "", RECALL)),
    ("section", "platform", put("Section", "Notices", RECALL)),
    ("service-missing", "platform", put("Service", " ", RECALL)),
    ("service-missing", "texts", put("Service", "", "All")),
    ("several-services", "platform", put("Service", "Other Forum", RECALL)),
    ("several-services", "platform", another_service),
    ("several-services", "texts", put("Service", "Other Forum", "All")),
    ("period-format", "platform", put("Reporting period", "2026-01-01/2026-06-31", RECALL)),
    ("period-format", "platform", put("Reporting period", "01.01.2026-31.12.2026", RECALL)),
    ("period-format", "platform", put("Reporting period", PLACEHOLDER_PERIOD, RECALL)),
    ("period-format", "texts", put("Reporting period", "2026", "All")),
    ("period-order", "platform", put("Reporting period", "2026-12-31/2026-01-01", RECALL)),
    ("several-periods", "platform", put("Reporting period", "2027-01-01/2027-12-31", RECALL)),
    ("applicability", "platform", put("Applicability", "VLOPs", RECALL)),
    ("applicability", "texts", put("Applicability", "", "All")),
    ("applicability-scope", "platform", put("Applicability", "All", NAM_TOTAL)),
    ("applicability-scope", "texts", put("Applicability", "Only for VLOPs", "All")),
    ("indicator", "platform", put("Indicator", "Number of flags", SOLELY)),
    ("indicator", "platform", put("Indicator", "Number of measures partially automated", OTHERS)),
    ("indicator", "vlop", put("Indicator", "Accuracy", ACCURACY, "de")),
    ("indicator", "texts", put("Indicator", "Our values", "All")),
    ("indicator-spelling", "platform", put("Indicator", ACCURACY.upper(), ACCURACY)),
    ("scope", "platform", put("Scope", "All sources", RECALL)),
    ("scope", "platform", put("Scope", "", SOLELY)),
    ("scope", "vlop", put("Scope", "ru", SOLELY, "de")),
    ("scope", "vlop", put("Scope", "German", SOLELY, "de")),
    ("scope", "vlop", put("Scope", "de-AT", SOLELY, "de")),
    ("scope", "vlop", put("Scope", PLACEHOLDER_SCOPE, SOLELY, "de")),
    ("scope-spelling", "platform", put("Scope", "total", RECALL)),
    ("scope-spelling", "platform", put("Scope", "own initiative  ", OWN_INITIATIVE)),
    ("scope-spelling", "vlop", put("Scope", "DE", SOLELY, "de")),
    ("country-code", "vlop", put("Scope", "AT", SOLELY, "de")),
    ("country-code", "vlop", put("Scope", "GB", SOLELY, "en")),
    ("country-code", "vlop", put("Scope", "gr", RECALL, "el")),
    ("indicator-scope", "platform", put("Indicator", SOLELY, NAM_TOTAL)),
    ("placeholder", "platform", insert(empty_row("", PLACEHOLDER_PERIOD, "bg"))),
    ("placeholder", "platform", insert(empty_row("Example Forum", YEAR, PLACEHOLDER_SCOPE))),
    ("placeholder", "platform", insert(empty_row("Example Forum", YEAR, "sv"))),
    ("placeholder", "vlop", insert(empty_row("", "2026-01-01/2026-06-30", "sv"))),
    ("", "vlop", languages_left_blank),
    ("placeholder", "texts", put("Value", "Free text", "All")),
    ("blank-without-reason", "platform", blank(RECALL)),
    ("blank-without-reason", "platform", blank(SOLELY)),
    ("blank-without-reason", "vlop", blank(SOLELY, "sv")),
    ("blank-without-reason", "texts", put("Value", "", "All")),
    ("count-decimals", "platform", put("Value", "900.0", SOLELY)),
    ("duplicate-row", "platform", again(SOLELY)),
    ("duplicate-row", "platform", again(RECALL)),
    ("duplicate-row", "platform", both(again(SOLELY), last(CONTEXT, "Images only."))),
    ("", "platform", both(again(RECALL), last(CONTEXT, "Images only."))),  # rates by system
    ("duplicate-row", "texts", again("All")),
    ("missing-row", "platform", drop(RECALL, OWN_INITIATIVE)),
    ("missing-row", "platform", drop_scope(OWN_INITIATIVE)),
    ("missing-row", "platform", drop_scope(NAM_TOTAL)),
    ("missing-row", "vlop", drop_scope("mt")),
    ("missing-row", "vlop", drop_scope(NAM_TRUSTED_FLAGGER)),
    ("missing-row missing-row placeholder", "platform", both(
        *(every_cell(column, lambda *_: "") for column in ("Service", "Value", CONTEXT)),
        every_cell("Reporting period", lambda *_: PLACEHOLDER_PERIOD))),  # the empty template
    ("missing-row scope", "platform",
     both(put("Scope", "All sources", RECALL), drop(ACCURACY, OWN_INITIATIVE))),
    ("missing-row", "texts", drop("Safeguards applied to the use of automated means")),
    ("automation-unpaired", "platform", drop(SOLELY, TOTAL)),
    ("automation-unpaired", "platform", drop(OTHERS, OWN_INITIATIVE)),
    ("automation-unpaired", "vlop", drop(OTHERS, "mt")),
    ("automation-unpaired country-code", "vlop",
     both(put("Scope", "AT", SOLELY, "de"), drop(SOLELY, OWN_INITIATIVE))),
    ("rate-without-count", "vlop", both(drop(SOLELY, "de"), drop(OTHERS, "de"))),
    (" ".join(["missing-row"] * 22 + ["rate-without-count"] * 2), "vlop", rates_alone),
    ("rate-of-nothing", "vlop",
     both(put("Value", "0", SOLELY, "de"), put(CONTEXT, "", ACCURACY, "de"))),
    ("", "vlop", both(put("Value", "0", OTHERS, "de"), put(CONTEXT, "", ACCURACY, "de"))),
    (" ".join(["rate-of-nothing"] * 4), "platform",
     both(every_cell("Value", lambda *_: "0"), every_cell(CONTEXT, lambda *_: ""))),
    ("part-exceeds-whole", "vlop", put("Value", "901", SOLELY, "de")),
    ("part-exceeds-whole", "platform", put("Value", "301", NAM_TRUSTED_FLAGGER, "30")),
    ("part-exceeds-whole", "platform", put("Value", "901", SOLELY, OWN_INITIATIVE)),
    ("totals-differ", "platform", put("Value", "901", SOLELY, TOTAL)),
    ("totals-differ", "platform", put("Value", "700", SOLELY, TOTAL)),
    ("formula", "platform", put(CONTEXT, "=HYPERLINK(A1)", RECALL)),
    ("formula", "platform", put(CONTEXT, "-5", RECALL)),
    ("formula", "texts", put("Value", "@SUM(A1)", "All")),
    *(("formula value-not-number", "platform", put("Value", cell, *place))
      for cell in ("=900", "@SUM(A1)", "+A1", "-5+A1", "＝1")
      for place in ((SOLELY, OWN_INITIATIVE), (RECALL,))),
    ("", "platform", both(*(
        every_cell(column, lambda _, cell: cell.replace(" - ", " – ") + " ")
        for column in ("Indicator", "Scope")))),  # blanks at the end are the template's own
]  # fmt: skip


@pytest.mark.parametrize(("rules", "file", "change"), CHANGES)
def test_a_change_breaks_these_rules_alone(tables, rules, file, change):
    table = tables[file]
    assert table.rules() == []

    change(table)

    assert sorted(table.rules()) == rules.split()


def test_another_name_of_a_column_is_one_too_few_and_one_too_many(tables):
    rename(CONTEXT, "Notes")(tables["platform"])
    one_too_many, one_too_few = validate(tables["platform"].content())

    assert "'Contextual Information' is missing" in one_too_few.message
    assert "'Notes', is not in the template" in one_too_many.message


def bytes_of(tables) -> bytes:
    return tables["platform"].content()


SHAPES: list[tuple[str, Callable]] = [
    ("file-empty", lambda tables: b"\r\n"),
    ("file-too-large", lambda tables: bytes_of(tables) + b"\r\n" * 2**23),
    ("encoding", lambda tables: bytes_of(tables).replace(b"Method: s", b"Method: \xe9")),
    ("delimiter", lambda tables: tables["platform"].content(delimiter=";")),
    ("delimiter", lambda tables: tables["texts"].content(delimiter="\t")),
    ("stray-quote", lambda tables: bytes_of(tables).replace(b"two-phase sample", b'a "sample"', 1)),
    ("byte-order-mark", lambda tables: b"\xef\xbb\xbf" + bytes_of(tables)),
    ("line-ending", lambda tables: tables["platform"].content(ending="\n")),
    ("header", lambda tables: b"name,price\r\nbread,2\r\n"),
]


@pytest.mark.parametrize(("rule", "content"), SHAPES)
def test_one_fault_of_shape_breaks_one_rule(tables, rule, content):
    assert [item.rule for item in validate(content(tables))] == [rule]


def test_quotes_that_never_end_hide_what_follows(tables):
    content = bytes_of(tables)
    last = content.rindex(b"Only for")
    content = content[:last] + b'"' + content[last:]

    assert [item.rule for item in validate(content)] == ["missing-row", "unclosed-quote"]


def test_periods_that_no_report_has(tables):
    for period, rules in {
        "2026-01-01/2026-06-30": [],
        "2026-07-01/2026-12-31": [],
        "2025-02-17/2025-12-31": [],
        "2025-07-01/2025-12-31": [],
        "2026-01-01/2026-03-31": ["period-unusual"],
        "2026-01-01/2027-12-31": ["period-unusual"],
        "2025-01-01/2025-06-30": ["period-unusual"],
        "2023-01-01/2023-12-31": ["period-unusual"],
        "2026-07-01/2026-06-30": ["period-order"] * 20,
    }.items():
        every_cell("Reporting period", lambda *_, period=period: period)(tables["platform"])
        assert tables["platform"].rules() == rules, period


def test_codes_of_countries_make_others_doubtful(tables):
    countries(tables["vlop"])
    rules = tables["vlop"].rules()

    assert sorted(set(rules)) == ["codes-ambiguous", "country-code"]
    assert rules.count("codes-ambiguous") == 1


def test_every_rule_has_a_test():
    others = {"unclosed-quote", "period-unusual", "codes-ambiguous", "too-many-findings"}
    others |= {"other-part"}
    tested = {rule for rules, *_ in CHANGES for rule in rules.split()}
    tested |= {rule for rule, _ in SHAPES} | {*FAULTY} | others

    assert tested == set(RULES)


def test_rows_are_counted_as_in_a_spreadsheet(tables):
    table = tables["platform"]
    put(CONTEXT, "two\nlines", ACCURACY)(table)
    at = table.at(RECALL, OWN_INITIATIVE)
    table.put(at, "Value", "83%")

    [finding] = validate(table.content())

    assert (finding.row, finding.column) == (at + 1, "Value")
    assert "'83%'" in finding.message
    assert printed([finding]).startswith(f"{at + 1}, Value: ")
    assert exit_status([finding]) == 1


def test_warnings_that_are_alike_are_one(tables):
    every_cell("Scope", lambda _, cell: cell.upper())(tables["platform"])
    findings = validate(tables["platform"].content())

    assert [(finding.row, finding.rule) for finding in findings] == [
        (at, "scope-spelling") for at in (2, 7, 12, 17)
    ]
    assert all(
        finding.message.endswith("in the template; similar rows: 4.") for finding in findings
    )


def test_findings_come_by_row_and_column(tables):
    table = tables["platform"]
    put("Value", "5%", RECALL)(table)
    put("Applicability", "x", RECALL)(table)
    put("Section", "x", SOLELY)(table)
    drop(RECALL, NAM_TOTAL)(table)

    places = [(item.row, item.column) for item in validate(table.content())]

    assert places == [(None, "Indicator"), (2, "Section"), (6, "Applicability"), (6, "Value")]


FAULTY = {
    "count-negative": "-7",
    "count-not-whole": "7.5",
    "thousands-separator": "7,000",
    "percent-sign": "70%",
    "rate-range": "70.5",
    "decimal-comma": "0,7",
    "value-not-number": "n/a",
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), file=st.sampled_from(["vlop", "platform"]))
def test_a_faulty_value_is_found_in_any_row(tables, data, file):
    table = tables[file]
    at = data.draw(st.integers(1, len(table.rows) - 1))
    rate = table.get(at, "Indicator").startswith("Accuracy")
    others = ("count-negative", "count-not-whole", "thousands-separator")
    kinds = [rule for rule in FAULTY if (rule not in others) == rate or rule == "value-not-number"]
    rule = data.draw(st.sampled_from(kinds))
    before = table.get(at, "Value")
    table.put(at, "Value", FAULTY[rule])
    findings = validate(table.content())
    table.put(at, "Value", before)

    assert [(finding.rule, finding.row, finding.column) for finding in findings] == [
        (rule, at + 1, "Value")
    ]
