"""Files that mean harm: whatever is in them, there are findings, soon, and no more than that."""

import time

import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modwatch.audits.dsa.findings import Finding, exit_status
from modwatch.audits.dsa.validation import MAX_FINDINGS, validate
from modwatch.audits.dsa.vocabulary import COLUMNS
from modwatch.common.errors import DsaReportError


@examples(300)
@given(st.binary(max_size=300))
def test_any_bytes_have_findings(content):
    assert all(isinstance(item, Finding) for item in validate(content))


@examples(300)
@given(st.text(max_size=300))
def test_any_rows_have_findings(text):
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


@pytest.mark.parametrize("content", [None, "text", 5, ["a"], object()])
def test_what_is_not_bytes_is_refused(content):
    with pytest.raises(DsaReportError, match="must be the bytes"):
        validate(content)


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_other_kinds_of_bytes_will_do(tables, kind):
    assert validate(kind(tables["platform"].content())) == []


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


@pytest.mark.parametrize("repeated", range(6))
def test_large_files_are_judged_in_bounded_time(tables, repeated):
    table = tables["platform"]
    long = "-" + "1" * 10**6 + "x"
    rows = {
        0: [[*table.rows[5][:6], "0.5", f"system {number} " * 20] for number in range(19_000)],
        1: [[*table.rows[5][:6], long, long]] * 5,
        2: [[*table.rows[5][:5], long, "", ""]] * 9,
        3: [[long] * 8] * 1,
        4: [[*table.rows[5][:5], f"{number:x}", "1", ""] for number in range(19_000)],
        5: [
            [*table.rows[5][:4], f"{number:x}", f"{number:x}", "1", "x"] for number in range(19_000)
        ],
    }[repeated]
    table.rows.extend(rows)
    content = table.content()
    start = time.process_time()

    assert validate(content) == [] or repeated
    assert time.process_time() - start < 30
