"""Validation of a file of any provider, with the rules across its rows.

Those of part 8 are about duplicates, missing rows and sums; `row_rules` has those on a single row.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from itertools import chain, islice
from math import inf

from modwatch.audits.dsa.cells import echo, key
from modwatch.audits.dsa.findings import Finding
from modwatch.audits.dsa.reading import Columns, Sheet, columns_of, other_part, read
from modwatch.audits.dsa.row_rules import (
    Row,
    ambiguous_codes,
    applicability,
    common,
    is_code,
    kind_of,
    period_of,
    quantitative,
    spelling,
    unfilled,
    usual,
)
from modwatch.audits.dsa.vocabulary import (
    ALL_QUALITATIVE,
    COLUMNS,
    LANGUAGES,
    NAM_TOTAL,
    NAM_TRUSTED_FLAGGER,
    OWN_INITIATIVE,
    PLACEHOLDER_TEXT,
    QUALITATIVE,
    RATES,
    TOTAL,
    Indicator,
    counts_of,
    indicators_of,
)
from modwatch.common.errors import DsaReportError

#: Maximum findings; one more states that there are others.
MAX_FINDINGS = 1000

_TEXTS = {key(name): name for name in ALL_QUALITATIVE}
_SOLELY = (Indicator.MEASURES_SOLELY, Indicator.NOTICES_SOLELY)


def validate(content: bytes) -> list[Finding]:
    r"""Return the findings about part 8 or part 11 of a transparency report, by row.

    The header decides which part it is. Accepts any bytes: unreadable content becomes a finding,
    and equal warnings are merged. An empty list means that no rule is broken, not that the values
    are correct; another part of the template gets a note. Raises DsaReportError if `content` is not
    bytes.

    >>> [finding.rule for finding in validate(b"")]
    ['file-empty']
    """
    try:
        data = bytes(memoryview(content))
    except TypeError as error:
        raise DsaReportError("content: must be the bytes of the file.") from error
    sheet = read(data)
    if part := other_part(sheet):
        message = f"This is {part}; Modwatch validates parts 8 and 11 only."
        return [Finding("other-part", message)]
    columns = columns_of(sheet.header)
    every = chain(sheet.findings, columns.findings, _of_rows(sheet, columns))
    findings = list(islice(every, MAX_FINDINGS + 1))
    if len(findings) > MAX_FINDINGS:
        message = f"Only {MAX_FINDINGS} findings are listed; fix them and validate again."
        rest = Finding("too-many-findings", message)
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
        yield from _part_11(table)
    else:
        yield from _part_8(table)


def _part_8(table: Sequence[Row]) -> Iterator[Finding]:
    blank = unfilled(table)
    if blank:
        message = "Rows of the template are not filled in, starting with this one; fill or remove."
        first = next(row for row in table if row.number in blank)
        yield first.finding("placeholder", None, message)
    rows = [row for row in table if row.number not in blank]
    for row in rows:
        yield from quantitative(row)
    yield from ambiguous_codes(rows)
    mixed = list(_one_report(rows))
    yield from mixed
    if not any(finding.rule in ("several-services", "several-periods") for finding in mixed):
        yield from chain(
            _duplicates(rows), _missing_rows(rows), _rates_of_nothing(rows), _sums(rows)
        )


def _one_report(table: Sequence[Row]) -> Iterator[Finding]:
    """Yield findings about services and periods of a file, in either template."""
    services: dict[str, Row] = {}
    periods: dict[tuple[date, date], Row] = {}
    for row in table:
        if row.has("Service"):
            services.setdefault(row.cells["Service"].strip(), row)
        period = period_of(row)
        if period and period[0] <= period[1]:
            periods.setdefault(period, row)
    if len(services) > 1:
        row = list(services.values())[1]
        message = "Another service starts here; use a file per service, so that all rules apply."
        yield row.finding("several-services", "Service", message)
    if len(periods) > 1:
        row = list(periods.values())[1]
        message = "Another period starts here; use a file per period, so that all rules apply."
        yield row.finding("several-periods", "Reporting period", message)
    for (start, end), row in periods.items():
        if not usual(start, end):
            message = f"{start}/{end} is neither a year nor a half-year of 2026 or later."
            yield row.finding("period-unusual", "Reporting period", message)


def _duplicates(rows: Sequence[Row]) -> Iterator[Finding]:
    """Rates may recur by moderation system, if the context names it."""
    first: dict[tuple[str, ...], int] = {}
    for row in rows:
        if row.indicator is None or row.scope is None:
            continue
        context = row.cells.get("Contextual Information", "").strip()
        name = (row.indicator, row.scope, context if row.indicator in RATES else "")
        if name in first:
            message = f"Row {first[name]} has the same indicator and scope."
            if row.indicator in RATES:
                message = f"{message[:-1]}, and the contexts are equal."
            yield row.finding("duplicate-row", "Indicator", message)
        first.setdefault(name, row.number)


def _missing_rows(rows: Sequence[Row]) -> Iterator[Finding]:
    """A row that cannot be interpreted counts as any of the rows that it may be."""
    by_scope: defaultdict[str, list[Row]] = defaultdict(list)
    unclear: set[tuple[Indicator | None, str | None, bool]] = set()
    for row in rows:
        if row.scope is None:
            unclear.add((row.indicator, None, is_code(row.cells["Scope"])))
        elif row.indicator in indicators_of(row.scope):
            by_scope[row.scope].append(row)
        else:
            unclear.add((None, row.scope, False))

    def excused(indicator: Indicator, scope: str) -> bool:
        return any(
            (known is None or known is indicator)
            and (place == scope or (place is None and (scope in LANGUAGES or not code_like)))
            for known, place, code_like in unclear
        )

    for scope in kind_of(rows).scopes:
        here = {row.indicator for row in by_scope[scope]}
        missing = [
            indicator
            for indicator in indicators_of(scope)
            if indicator not in here and not excused(indicator, scope)
        ]
        yield from _missing_of_scope(scope, missing, by_scope[scope])


def _missing_of_scope(scope: str, missing: list[Indicator], rows: list[Row]) -> Iterator[Finding]:
    counts = [indicator for indicator in missing if indicator not in RATES]
    rates = [row for row in rows if row.indicator in RATES and row.has("Value")]
    if len(counts) == 1:
        message = f"The scope '{scope}' lacks '{counts[0].value}', the other of its two counts."
        yield Finding("automation-unpaired", message, column="Indicator")
    elif counts and rates:
        message = f"The scope '{scope}' lacks the count of decisions solely by automated means."
        yield rates[0].finding("rate-without-count", "Indicator", message)
    left = [
        indicator for indicator in missing if indicator in RATES or (len(counts) == 2 and not rates)
    ]
    if len(left) == len(indicators_of(scope)):
        yield Finding("missing-row", f"The scope '{scope}' is missing.", column="Indicator")
    elif left:
        names = ", ".join(f"'{indicator.value}'" for indicator in left)
        yield Finding("missing-row", f"The scope '{scope}' lacks {names}.", column="Indicator")


def _rates_of_nothing(rows: Sequence[Row]) -> Iterator[Finding]:
    without = {row.scope for row in rows if row.indicator in _SOLELY and row.value.number == 0}
    for row in rows:
        if (
            row.indicator in RATES
            and row.scope in without
            and row.value.number is not None
            and not row.has("Contextual Information")
        ):
            message = (
                f"'{row.scope}' has no decisions solely by automated means; state in the "
                "context what the rate refers to, or leave it blank."
            )
            yield row.finding("rate-of-nothing", "Value", message)


def _sums(rows: Sequence[Row]) -> Iterator[Finding]:
    counts: dict[tuple[Indicator, str], int] = {}
    rows_: dict[tuple[Indicator, str], Row] = {}
    for row in rows:
        if row.indicator is None or row.scope is None or row.value.number is None:
            continue
        if row.indicator in counts_of(row.scope):
            counts.setdefault((row.indicator, row.scope), int(row.value.number))
            rows_.setdefault((row.indicator, row.scope), row)
    wholes = dict.fromkeys((OWN_INITIATIVE, *LANGUAGES), TOTAL)
    wholes[NAM_TRUSTED_FLAGGER] = NAM_TOTAL
    for indicator, part in counts:
        whole = wholes.get(part, part)
        if counts[indicator, part] <= counts.get((indicator, whole), inf):
            continue
        message = f"'{part}' has {counts[indicator, part]}, '{whole}' {counts[indicator, whole]}."
        yield rows_[indicator, part].finding("part-exceeds-whole", "Value", message)
    for measures, notices in zip(counts_of(TOTAL), counts_of(NAM_TOTAL), strict=True):
        names = ((measures, TOTAL), (measures, OWN_INITIATIVE), (notices, NAM_TOTAL))
        if all(name in counts for name in names):
            total, own, noticed = (counts[name] for name in names)
            if own <= total != own + noticed:
                message = (
                    f"Own initiative and notices add up to {own + noticed}, not {total}; explain "
                    "the difference in the context."
                )
                yield rows_[names[0]].finding("totals-differ", "Value", message)


def _part_11(table: Sequence[Row]) -> Iterator[Finding]:
    """Yield findings about part 11; missing rows only for those on automated means."""
    first: dict[str, int] = {}
    unknown = False
    for row in table:
        name = _TEXTS.get(key(row.cells["Indicator"]))
        yield from common(row)
        yield from applicability(row, ALL_QUALITATIVE[name] if name else None)
        yield from _of_text(row)
        if name is None:
            unknown = True
            message = f"{echo(row.cells['Indicator'])} is not an indicator of the template."
            yield row.finding("indicator", "Indicator", message)
            continue
        yield from spelling(row, "Indicator", "indicator-spelling", name)
        if name in first:
            message = f"Row {first[name]} has the same indicator."
            yield row.finding("duplicate-row", "Indicator", message)
        first.setdefault(name, row.number)
    yield from _one_report(table)
    if not unknown:
        for name in QUALITATIVE:
            if name not in first:
                message = f"The row '{name}' is missing."
                yield Finding("missing-row", message, column="Indicator")


def _of_text(row: Row) -> Iterator[Finding]:
    if not row.has("Value"):
        message = "The text is missing; write one, or the reason why there is none."
        yield row.finding("blank-without-reason", "Value", message)
    elif key(row.cells["Value"]) == key(PLACEHOLDER_TEXT):
        message = "The placeholder of the template is still here; write the text."
        yield row.finding("placeholder", "Value", message)
