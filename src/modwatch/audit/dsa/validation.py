"""Validation of a file of any provider."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice

from modwatch.audit.dsa.findings import Finding
from modwatch.audit.dsa.reading import Columns, Sheet, columns_of, read
from modwatch.audit.dsa.row_rules import Row, ambiguous_codes, interpret, unfilled
from modwatch.audit.dsa.table_rules import one_report, part_8, part_11
from modwatch.audit.dsa.vocabulary import COLUMNS
from modwatch.errors import DsaReportError

#: Maximum findings; one more says that there are others.
MAX_FINDINGS = 1000


def validate(content: bytes) -> list[Finding]:
    r"""Return the findings about part 8 or part 11 of a transparency report, by row.

    The header decides which part it is. Accepts any bytes: unreadable content becomes a finding,
    and equal warnings are merged. An empty list means that no rule is broken, not that the values
    are correct. Raises DsaReportError if `content` is not bytes.

    >>> [finding.rule for finding in validate(b"")]
    ['file-empty']
    """
    try:
        data = bytes(memoryview(content))
    except TypeError as error:
        raise DsaReportError("content: must be the bytes of the file.") from error
    sheet = read(data)
    columns = columns_of(sheet.header)
    every = chain(sheet.findings, columns.findings, _of_rows(sheet, columns))
    findings = list(islice(every, MAX_FINDINGS + 1))
    if len(findings) > MAX_FINDINGS:
        message = f"Only {MAX_FINDINGS} findings are listed; fix them and validate again."
        rest = Finding(rule="too-many-findings", row=None, column=None, message=message)
        findings = [*findings[:MAX_FINDINGS], rest]
    return sorted(_merged(findings), key=_position)


def _merged(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield errors unchanged, and warnings that differ only by row as one."""
    alike: defaultdict[Finding, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.severity == "error":
            yield finding
        else:
            alike[replace(finding, row=None)].append(finding)
    for first, *others in alike.values():
        more = f"; similar rows: {len(others)}." if others else "."
        yield replace(first, message=first.message.removesuffix(".") + more)


def _position(finding: Finding) -> tuple[int, int]:
    column = finding.column
    return finding.row or 0, COLUMNS.index(column) if column in COLUMNS else -1


def _of_rows(sheet: Sheet, columns: Columns) -> Iterator[Finding]:
    if not columns.positions:
        return
    table = [
        Row(number=number, cells={name: cells[at] for name, at in columns.positions.items()})
        for number, cells in sheet.rows
    ]
    if columns.qualitative:
        yield from part_11(table)
    else:
        yield from _quantitative(table)


def _quantitative(table: Sequence[Row]) -> Iterator[Finding]:
    blank = unfilled(table)
    if blank:
        message = "Rows of the template are not filled in, starting with this one; fill or remove."
        first = next(row for row in table if row.number in blank)
        yield first.finding("placeholder", None, message)
    table = [row for row in table if row.number not in blank]
    rows = []
    for row in table:
        interpreted, findings = interpret(row)
        rows.append(interpreted)
        yield from findings
    yield from ambiguous_codes(rows)
    mixed = list(one_report(table))
    yield from mixed
    if not any(each.rule in ("several-services", "several-periods") for each in mixed):
        yield from part_8(rows)
