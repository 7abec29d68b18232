"""The check of a file, whoever published it."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice

from modwatch.audit.dsa import qualitative, quantitative, whole
from modwatch.audit.dsa.errors import DsaReportError
from modwatch.audit.dsa.findings import Finding
from modwatch.audit.dsa.header import Columns, columns_of
from modwatch.audit.dsa.reading import Sheet, read
from modwatch.audit.dsa.rows import Row
from modwatch.audit.dsa.vocabulary import COLUMNS

#: Findings that are listed; one more says that there were others.
MAX_FINDINGS = 1000


def validate(content: bytes) -> list[Finding]:
    r"""Return what is wrong with part 8 or part 11 of a transparency report, by row.

    Which part it is, the header tells. Any bytes will do, of any length: what cannot be read
    becomes a finding; warnings that are alike become one. An empty list means that no rule is
    broken, not that the figures are right. Raises DsaReportError where `content` is not bytes.

    >>> [finding.rule for finding in validate(b"")]
    ['file-empty']
    """
    try:
        data = bytes(memoryview(content))
    except TypeError as error:
        raise DsaReportError("content: hand over the bytes of the file.") from error
    sheet = read(data)
    columns = columns_of(sheet.header)
    every = chain(sheet.findings, columns.findings, _of_rows(sheet, columns))
    found = list(islice(every, MAX_FINDINGS + 1))
    if len(found) > MAX_FINDINGS:
        message = f"Only {MAX_FINDINGS} findings are listed; mend them and look again."
        rest = Finding(rule="too-many-findings", row=None, column=None, message=message)
        found = [*found[:MAX_FINDINGS], rest]
    return sorted(_gathered(found), key=_place)


def _gathered(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield errors as they are, and warnings that differ by their row alone as one."""
    alike: defaultdict[Finding, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.severity == "error":
            yield finding
        else:
            alike[replace(finding, row=None)].append(finding)
    for first, *others in alike.values():
        more = f"; rows like it: {len(others)}." if others else "."
        yield replace(first, message=first.message.removesuffix(".") + more)


def _place(finding: Finding) -> tuple[int, int]:
    column = finding.column
    return finding.row or 0, COLUMNS.index(column) if column in COLUMNS else -1


def _of_rows(sheet: Sheet, columns: Columns) -> Iterator[Finding]:
    if not columns.places:
        return
    table = [
        Row(number=number, cells={name: cells[at] for name, at in columns.places.items()})
        for number, cells in sheet.rows
    ]
    if columns.qualitative:
        yield from qualitative.findings(table)
    else:
        yield from _quantitative(table)


def _quantitative(table: Sequence[Row]) -> Iterator[Finding]:
    gone = quantitative.left_over(table)
    if gone:
        message = "Rows of the empty template are left over, this one first; fill in or remove."
        first = next(row for row in table if row.number in gone)
        yield first.found("placeholder", None, message)
    table = [row for row in table if row.number not in gone]
    entries = []
    for row in table:
        entry, findings = quantitative.judged(row)
        entries.append(entry)
        yield from findings
    yield from quantitative.ambiguous_codes(entries)
    mixed = list(whole.one_report(table))
    yield from mixed
    if not any(each.rule in ("several-services", "several-periods") for each in mixed):
        yield from whole.across(entries)
