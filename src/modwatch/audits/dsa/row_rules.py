"""Rules on a single row: those of both templates, and those of part 8."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from modwatch.audits.dsa.cells import (
    FORMULA_SIGNS,
    MAX_DIGITS,
    Value,
    count,
    echo,
    key,
    plain,
    rate,
)
from modwatch.audits.dsa.findings import Finding
from modwatch.audits.dsa.vocabulary import (
    APPLICABILITY,
    COUNTRIES,
    LANGUAGES,
    LANGUAGES_ONLY,
    PLACEHOLDER_PERIOD,
    PLACEHOLDER_SCOPE,
    PLACEHOLDER_TEXT,
    RATES,
    REQUIRED_OF,
    SECTION,
    TOTAL,
    Indicator,
    Provider,
    indicators_of,
)

_DATE = r"(\d{4}-\d{2}-\d{2})"
_PERIOD = re.compile(rf"{_DATE}/{_DATE}", re.ASCII)
_NUMBER_LIKE = re.compile(r"[-+]?[\d.,% ]*\d[\d.,% ]*|[-+]", re.ASCII)
_PLACEHOLDERS = frozenset(map(key, (PLACEHOLDER_PERIOD, PLACEHOLDER_SCOPE, PLACEHOLDER_TEXT)))
_APPLICABILITY = {key(words): kind for kind, words in APPLICABILITY.items()}
_INDICATORS = {key(indicator.value): indicator for indicator in Indicator}
_SCOPES = {key(scope): scope for scope in REQUIRED_OF} | {"total": TOTAL}
_NAMES = {key(name): code for code, name in LANGUAGES.items()}


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row by column; columns that the file lacks are omitted.

    Indicator, scope and value are those of part 8, as far as they can be interpreted.
    """

    number: int
    cells: Mapping[str, str]

    @cached_property
    def indicator(self) -> Indicator | None:
        """The indicator; None if the template does not have it."""
        return _INDICATORS.get(key(self.cells["Indicator"]))

    @cached_property
    def scope(self) -> str | None:
        """The scope; None if the template does not have it."""
        return _SCOPES.get(key(self.cells["Scope"]))

    @cached_property
    def value(self) -> Value:
        """The value, by the indicator; without a number if there is none."""
        if self.indicator is None or not self.has("Value"):
            return Value()
        cell = self.cells["Value"]
        return rate(cell) if self.indicator in RATES else count(cell)

    def has(self, column: str) -> bool:
        """Return whether the cell exists and is not blank."""
        return bool(self.cells.get(column, "").strip())

    def finding(self, rule: str, column: str | None, message: str) -> Finding:
        """Return a finding in this row."""
        return Finding(rule, message, row=self.number, column=column)


def common(row: Row) -> Iterator[Finding]:
    """Yield findings about service and period, and cells that start like a formula."""
    for column, cell in row.cells.items():
        if cell.startswith(FORMULA_SIGNS) and not is_number_like(column, cell):
            message = f"{echo(cell)} starts like a formula; a spreadsheet may run it."
            yield row.finding("formula", column, message)
    if "Service" in row.cells and not row.has("Service"):
        yield row.finding("service-missing", "Service", "The service is missing.")
    if "Reporting period" in row.cells:
        yield from _period_findings(row)


def is_number_like(column: str, cell: str) -> bool:
    """Return whether a value that starts with a sign is a number, or a dash for none.

    >>> is_number_like("Value", "-5"), is_number_like("Value", "-5+A1")
    (True, False)
    """
    short = column == "Value" and len(cell) <= MAX_DIGITS
    return short and bool(_NUMBER_LIKE.fullmatch(cell.strip()))


def period_of(row: Row) -> tuple[date, date] | None:
    """Return first and last day, or None if they are not two valid dates."""
    match = _PERIOD.fullmatch(row.cells.get("Reporting period", "").strip())
    if match is None:
        return None
    try:
        return date.fromisoformat(match[1]), date.fromisoformat(match[2])
    except ValueError:
        return None


def _period_findings(row: Row) -> Iterator[Finding]:
    period = period_of(row)
    cell = echo(row.cells["Reporting period"])
    if period is None:
        message = f"{cell} is not two valid dates, YYYY-MM-DD/YYYY-MM-DD."
        yield row.finding("period-format", "Reporting period", message)
    elif period[1] < period[0]:
        message = f"{cell} ends before it starts."
        yield row.finding("period-order", "Reporting period", message)


def stated_kind(row: Row) -> Provider | None:
    """Return the kind of provider in the first column; None if there is none."""
    return _APPLICABILITY.get(key(row.cells.get("Applicability", "")))


def applicability(row: Row, required_of: Provider | None) -> Iterator[Finding]:
    """Yield findings about the first column of a row that is required of a kind of provider."""
    cell = row.cells.get("Applicability")
    if cell is None:
        return
    kind = stated_kind(row)
    if kind is None:
        message = f"{echo(cell)} is not one of the template's texts."
        yield row.finding("applicability", "Applicability", message)
    elif required_of is not None and kind is not required_of:
        message = f"{echo(cell)} should be '{APPLICABILITY[required_of]}', as in the template."
        yield row.finding("applicability-scope", "Applicability", message)


def spelling(row: Row, column: str, rule: str, meant: str) -> Iterator[Finding]:
    """Yield a finding where a name is not spelled as in the template."""
    if plain(row.cells[column]) != plain(meant):
        message = f"{echo(row.cells[column])} is spelled '{meant}' in the template."
        yield row.finding(rule, column, message)


def usual(start: date, end: date) -> bool:
    """Return whether the regulation has such a period.

    Calendar years, and half-years for very large platforms, from 2026 on. The first reports cover
    the time from some day in 2025, under the rules of that day, to the end of that year.

    >>> usual(date(2026, 1, 1), date(2026, 6, 30)), usual(date(2026, 1, 1), date(2026, 3, 31))
    (True, False)
    """
    if start.year != end.year or start.year < 2025:
        return False
    if start.year == 2025:
        return (end.month, end.day) == (12, 31)
    ends = {(1, 1): ((6, 30), (12, 31)), (7, 1): ((12, 31),)}
    return (end.month, end.day) in ends.get((start.month, start.day), ())


def unfilled(table: Sequence[Row]) -> frozenset[int]:
    """Return the numbers of the unfilled rows of the template.

    They have no value and context. A row of a language counts as unfilled if its service is blank
    too, or no language has a value: only very large platforms report languages.
    """
    filled = any(row.scope in LANGUAGES and row.has("Value") for row in table)
    return frozenset(
        row.number
        for row in table
        if not row.has("Value")
        and not row.has("Contextual Information")
        and (
            any(key(cell) in _PLACEHOLDERS for cell in row.cells.values())
            or (row.scope in LANGUAGES and not (filled and row.has("Service")))
        )
    )


def quantitative(row: Row) -> Iterator[Finding]:
    """Yield findings about a row of part 8."""
    yield from common(row)
    yield from applicability(row, REQUIRED_OF[row.scope] if row.scope else None)
    section = row.cells.get("Section")
    if section is not None and key(section) != key(SECTION):
        message = f"{echo(section)} should be '{SECTION}', as in the template."
        yield row.finding("section", "Section", message)
    yield from _indicator_findings(row)
    yield from _scope_findings(row)
    if row.value.rule:
        yield row.finding(row.value.rule, "Value", row.value.message)
    context = "Contextual Information"
    if not row.has("Value") and context in row.cells and not row.has(context):
        message = "The value is blank without a reason in the context."
        yield row.finding("blank-without-reason", "Value", message)


def _indicator_findings(row: Row) -> Iterator[Finding]:
    indicator = row.indicator
    if indicator is None:
        message = f"{echo(row.cells['Indicator'])} is not an indicator of the template."
        yield row.finding("indicator", "Indicator", message)
        return
    yield from spelling(row, "Indicator", "indicator-spelling", indicator.value)
    if row.scope is not None and indicator not in indicators_of(row.scope):
        message = f"The scope '{row.scope}' does not have this indicator."
        yield row.finding("indicator-scope", "Indicator", message)


def _scope_findings(row: Row) -> Iterator[Finding]:
    cell = row.cells["Scope"]
    if row.scope is not None:
        yield from spelling(row, "Scope", "scope-spelling", row.scope)
        return
    code = key(cell)
    if code in COUNTRIES:
        message = f"{echo(cell)} is the country code of {COUNTRIES[code]}, not a language code."
        yield row.finding("country-code", "Scope", message)
        return
    yield row.finding("scope", "Scope", f"{echo(cell)} {_unknown(cell)}")


def _unknown(cell: str) -> str:
    name, first = key(cell), key(cell).replace("_", " ").split()[:1]
    if name in _NAMES:
        return f"must be written as its code, {_NAMES[name]}."
    if name == key(PLACEHOLDER_SCOPE):
        return "is a placeholder of the template; write a language code."
    if first and first[0] in LANGUAGES and name != first[0]:
        return f"is more than a language code; write {first[0]}."
    if is_code(cell):
        return "is not an official language of the EU."
    return "is not a scope of the template."


def is_code(cell: str) -> bool:
    """Return whether a scope is at least a code of two or three letters.

    >>> is_code("jp "), is_code("Japan")
    (True, False)
    """
    code = cell.strip()
    return code.isascii() and code.isalpha() and 2 <= len(code) <= 3


def ambiguous_codes(rows: Sequence[Row]) -> Iterator[Finding]:
    """Yield a finding where country codes make other codes ambiguous: German, or Germany?

    An indicator with codes that are languages only is about languages.
    """
    for indicator in Indicator:
        same = [row for row in rows if row.indicator is indicator]
        codes = {key(row.cells["Scope"]) for row in same}
        if codes & set(COUNTRIES) and not codes & LANGUAGES_ONLY:
            ambiguous = next((row for row in same if row.scope in LANGUAGES), None)
            if ambiguous:
                message = (
                    f"{echo(ambiguous.cells['Scope'])} may also mean a country, as other rows "
                    "have country codes."
                )
                yield ambiguous.finding("codes-ambiguous", "Scope", message)
                return


def kind_of(rows: Sequence[Row]) -> Provider:
    """Return the kind of provider, by its scopes and its first column."""
    asked = {REQUIRED_OF[row.scope] if row.scope is not None else stated_kind(row) for row in rows}
    most = [kind for kind in Provider if kind in asked]
    return most[-1] if most else Provider.INTERMEDIARY
