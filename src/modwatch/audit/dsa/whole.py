"""The rules of part 8 that look across rows: doubles, gaps, sums."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date

from modwatch.audit.dsa.findings import Finding
from modwatch.audit.dsa.quantitative import Entry, kind_of
from modwatch.audit.dsa.rows import Row, period_of, usual
from modwatch.audit.dsa.statement import exceeding
from modwatch.audit.dsa.vocabulary import (
    LANGUAGES,
    NAM_TOTAL,
    OWN_INITIATIVE,
    RATES,
    TOTAL,
    Indicator,
    counts_of,
    indicators_of,
)

_SOLELY = (Indicator.MEASURES_SOLELY, Indicator.NOTICES_SOLELY)


def one_report(table: Sequence[Row]) -> Iterator[Finding]:
    """Yield what is wrong with services and periods of a file, in either template."""
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
        message = "Another service begins here; give each a file, and all rules are applied."
        yield row.found("several-services", "Service", message)
    if len(periods) > 1:
        row = list(periods.values())[1]
        message = "Another period begins here; give each a file, and all rules are applied."
        yield row.found("several-periods", "Reporting period", message)
    for (start, end), row in periods.items():
        if not usual(start, end):
            message = f"{start}/{end} is neither a year nor a half-year of 2026 or later."
            yield row.found("period-unusual", "Reporting period", message)


def across(entries: Sequence[Entry]) -> Iterator[Finding]:
    """Yield what is wrong between rows of one service and one period."""
    yield from _duplicates(entries)
    yield from _gaps(entries)
    yield from _rates_of_nothing(entries)
    yield from _sums(entries)


def _duplicates(entries: Sequence[Entry]) -> Iterator[Finding]:
    """Rates may come once by moderation system, which the context is then to name."""
    first: dict[tuple[str, ...], int] = {}
    for entry in entries:
        if entry.indicator is None or entry.scope is None:
            continue
        context = entry.row.cells.get("Contextual Information", "").strip()
        name = (entry.indicator, entry.scope, context if entry.indicator in RATES else "")
        if name in first:
            message = f"Row {first[name]} has the same indicator and scope."
            if entry.indicator in RATES:
                message = f"{message[:-1]}, and the context does not tell them apart."
            yield entry.row.found("duplicate-row", "Indicator", message)
        first.setdefault(name, entry.row.number)


def _gaps(entries: Sequence[Entry]) -> Iterator[Finding]:
    """Whatever a row that is not understood may stand for counts as there."""
    by_scope: defaultdict[str, list[Entry]] = defaultdict(list)
    unclear: set[tuple[Indicator | None, str | None, bool]] = set()
    for entry in entries:
        if entry.scope is None:
            unclear.add((entry.indicator, None, entry.some_code))
        elif entry.indicator in indicators_of(entry.scope):
            by_scope[entry.scope].append(entry)
        else:
            unclear.add((None, entry.scope, False))

    def excused(indicator: Indicator, scope: str) -> bool:
        return any(
            (known is None or known is indicator)
            and (place == scope or (place is None and (scope in LANGUAGES or not some_code)))
            for known, place, some_code in unclear
        )

    for scope in kind_of(entries).scopes:
        here = {each.indicator for each in by_scope[scope]}
        missing = [
            each for each in indicators_of(scope) if each not in here and not excused(each, scope)
        ]
        yield from _gap(scope, missing, by_scope[scope])


def _gap(scope: str, missing: list[Indicator], entries: list[Entry]) -> Iterator[Finding]:
    counts = [each for each in missing if each not in RATES]
    rates = [each for each in entries if each.indicator in RATES and not each.blank]
    if len(counts) == 1:
        message = f"The scope '{scope}' lacks '{counts[0].value}', the other half of its count."
        yield _of_file("automation-unpaired", message)
    elif counts and rates:
        message = f"The scope '{scope}' does not count what automated means alone did."
        yield rates[0].row.found("rate-without-count", "Indicator", message)
    left = [each for each in missing if each in RATES or (len(counts) == 2 and not rates)]
    if len(left) == len(indicators_of(scope)):
        yield _of_file("missing-row", f"The scope '{scope}' is left out.")
    elif left:
        names = ", ".join(f"'{each.value}'" for each in left)
        yield _of_file("missing-row", f"The scope '{scope}' lacks {names}.")


def _of_file(rule: str, message: str) -> Finding:
    return Finding(rule=rule, row=None, column="Indicator", message=message)


def _rates_of_nothing(entries: Sequence[Entry]) -> Iterator[Finding]:
    nothing = {each.scope for each in entries if each.indicator in _SOLELY and each.number == 0}
    for entry in entries:
        if (
            entry.indicator in RATES
            and entry.scope in nothing
            and entry.number is not None
            and not entry.row.has("Contextual Information")
        ):
            message = (
                f"Automated means alone did nothing in '{entry.scope}'; say in the context what "
                "the rate is of, or leave it blank."
            )
            yield entry.row.found("rate-of-nothing", "Value", message)


def _sums(entries: Sequence[Entry]) -> Iterator[Finding]:
    counts: dict[tuple[Indicator, str], int] = {}
    place: dict[tuple[Indicator, str], Row] = {}
    for entry in entries:
        if entry.indicator is None or entry.scope is None or entry.number is None:
            continue
        if entry.indicator in counts_of(entry.scope):
            counts.setdefault((entry.indicator, entry.scope), int(entry.number))
            place.setdefault((entry.indicator, entry.scope), entry.row)
    for part, whole, indicator in exceeding(counts):
        message = f"'{part}' has {counts[indicator, part]}, '{whole}' {counts[indicator, whole]}."
        yield place[indicator, part].found("part-exceeds-whole", "Value", message)
    for measures, notices in zip(counts_of(TOTAL), counts_of(NAM_TOTAL), strict=True):
        names = ((measures, TOTAL), (measures, OWN_INITIATIVE), (notices, NAM_TOTAL))
        if all(name in counts for name in names):
            total, own, noticed = (counts[name] for name in names)
            if own <= total != own + noticed:
                message = (
                    f"Own initiative and notices make {own + noticed}, not {total}; say in the "
                    "context what else there is, or what a notice did not lead to."
                )
                yield place[names[0]].found("totals-differ", "Value", message)
