"""Files that mean harm: whatever is in them, there are findings, soon, and no more than that."""

import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modwatch.audits.dsa.findings import Finding, exit_status
from modwatch.audits.dsa.validation import MAX_FINDINGS, validate
from modwatch.audits.dsa.vocabulary import COLUMNS
from modwatch.common.errors import DsaReportError


@examples(300)
@given(st.binary(max_size=300), st.text(max_size=300))
def test_any_bytes_and_any_rows_have_findings(content, text):
    assert all(isinstance(item, Finding) for item in validate(content))
    assert validate(f"{','.join(COLUMNS)}\r\n{text}".encode())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.data(),
    cell=st.text(max_size=200) | st.sampled_from(["=cmd|' /C calc'!A0", "<script>", "9" * 5000]),
)
def test_no_cell_can_do_harm(tables, data, cell):
    table = tables[data.draw(st.sampled_from(sorted(tables)))]
    at = data.draw(st.integers(0, len(table.rows) - 1))
    column = data.draw(st.integers(0, len(table.rows[at]) - 1))
    before, table.rows[at][column] = table.rows[at][column], cell
    findings = validate(table.content())
    table.rows[at][column] = before

    for finding in findings:
        assert finding.message.isprintable()
        assert not set('<>="&|') & set(finding.message)
        assert len(finding.message) < 300


def test_bytes_of_any_kind_will_do_and_nothing_else(tables):
    content = tables["platform"].content()
    for kind in (bytearray, memoryview):
        assert validate(kind(content)) == []
    for other in (None, content.decode(), 5, [content]):
        with pytest.raises(DsaReportError, match="must be the bytes"):
            validate(other)


def test_findings_are_listed_up_to_a_number(tables):
    table = tables["platform"]
    row = [*table.rows[5][:6], "high", ""]
    table.rows.extend(list(row) for _ in range(MAX_FINDINGS))
    findings = validate(table.content())

    assert len(findings) == MAX_FINDINGS + 1
    assert exit_status(findings) == 1
    assert [finding.rule for finding in findings].count("too-many-findings") == 1


def test_errors_do_not_hide_behind_warnings(tables):
    table = tables["platform"]
    table.rows[1:1] = [[""] * 8] * MAX_FINDINGS
    table.put(len(table.rows) - 1, "Value", "high")
    findings = validate(table.content())

    assert [finding.rule for finding in findings] == ["too-many-findings", "blank-row"]
    assert f"similar rows: {MAX_FINDINGS - 1}." in findings[1].message
    assert exit_status(findings) == 1


def test_many_rows_and_long_cells_are_judged_once(tables):
    """Rows that are compared with each other, or a cell with each row, would take hours."""
    start = tables["platform"].rows[5]
    long = "-" + "1" * 10**5 + "x"
    for rows, rules in (
        ([[*start[:6], "0.5", f"system {number}"] for number in range(15_000)], set()),
        ([[*start[:6], long, long]] * 2, {"duplicate-row", "formula", "value-not-number"}),
        ([[long] * 8], {"applicability", "formula", "indicator", "period-format", "scope",
                        "section", "several-services"}),
    ):  # fmt: skip
        table = tables["platform"]
        kept = [*table.rows]
        table.rows.extend(rows)
        assert set(table.rules()) == rules
        table.rows = kept
