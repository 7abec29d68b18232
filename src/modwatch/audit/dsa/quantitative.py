"""The rules of part 8 that look at one row: what it says, and what is wrong with it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from modwatch.audit.dsa import rows, values
from modwatch.audit.dsa.characters import FORMULA_SIGNS, echo, key
from modwatch.audit.dsa.findings import Finding
from modwatch.audit.dsa.rows import Row
from modwatch.audit.dsa.vocabulary import (
    ASKED_OF,
    COUNTRIES,
    LANGUAGES,
    LANGUAGES_ONLY,
    PLACEHOLDER_SCOPE,
    RATES,
    SECTION,
    TOTAL,
    Indicator,
    Provider,
    indicators_of,
)

_INDICATORS = {key(each.value): each for each in Indicator}
_SCOPES = {key(scope): scope for scope in ASKED_OF} | {"total": TOTAL}
_NAMES = {key(name): code for code, name in LANGUAGES.items()}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What a row of part 8 says, as far as it can be understood."""

    row: Row
    indicator: Indicator | None
    scope: str | None
    #: Whether the scope, if not understood, is at least some code of two or three letters.
    some_code: bool
    number: Decimal | None

    @property
    def blank(self) -> bool:
        """Whether no value is given."""
        return not self.row.has("Value")


def left_over(table: Sequence[Row]) -> frozenset[int]:
    """Return the numbers of the rows that are still those of the empty template.

    They are without value and context. A row of a language counts as left over where its service
    is blank too, or no language has a value: providers that are not very large are asked for none.
    """
    scopes = {row.number: _SCOPES.get(key(row.cells["Scope"])) for row in table}
    filled = any(scopes[row.number] in LANGUAGES and row.has("Value") for row in table)
    return frozenset(
        row.number
        for row in table
        if not row.has("Value")
        and not row.has("Contextual Information")
        and (
            rows.has_placeholder(row)
            or (scopes[row.number] in LANGUAGES and not (filled and row.has("Service")))
        )
    )


def judged(row: Row) -> tuple[Entry, list[Finding]]:
    """Return what a row says, and what is wrong with it."""
    indicator = _INDICATORS.get(key(row.cells["Indicator"]))
    scope = _SCOPES.get(key(row.cells["Scope"]))
    value = _value(row, indicator)
    entry = Entry(
        row=row,
        indicator=indicator,
        scope=scope,
        some_code=scope is None and _is_code(row.cells["Scope"]),
        number=value.number,
    )
    return entry, [*rows.common(row), *_findings(entry, value)]


def _value(row: Row, indicator: Indicator | None) -> values.Value:
    cell = row.cells["Value"]
    formula = cell.startswith(FORMULA_SIGNS) and not rows.is_number_like("Value", cell)
    if indicator is None or not row.has("Value") or formula:
        return values.Value()
    return values.rate(cell) if indicator in RATES else values.count(cell)


def _findings(entry: Entry, value: values.Value) -> Iterator[Finding]:
    row = entry.row
    yield from rows.applicability(row, ASKED_OF[entry.scope] if entry.scope else None)
    section = row.cells.get("Section")
    if section is not None and key(section) != key(SECTION):
        message = f"{echo(section)} stands where the template says '{SECTION}'."
        yield row.found("section", "Section", message)
    yield from _indicator_findings(entry)
    yield from _scope_findings(entry)
    if value.rule:
        yield row.found(value.rule, "Value", value.message)
    context = "Contextual Information"
    if entry.blank and context in row.cells and not row.has(context):
        message = "The value is blank, and the context does not say why."
        yield row.found("blank-without-reason", "Value", message)


def _indicator_findings(entry: Entry) -> Iterator[Finding]:
    row, indicator = entry.row, entry.indicator
    if indicator is None:
        message = f"{echo(row.cells['Indicator'])} is none of the template's indicators."
        yield row.found("indicator", "Indicator", message)
        return
    yield from rows.spelling(row, "Indicator", "indicator-spelling", indicator.value)
    if entry.scope is not None and indicator not in indicators_of(entry.scope):
        message = f"The scope '{entry.scope}' has other indicators than this one."
        yield row.found("indicator-scope", "Indicator", message)


def _scope_findings(entry: Entry) -> Iterator[Finding]:
    row, cell = entry.row, entry.row.cells["Scope"]
    if entry.scope is not None:
        yield from rows.spelling(row, "Scope", "scope-spelling", entry.scope)
        return
    code = key(cell)
    if code in COUNTRIES:
        message = f"{echo(cell)} is the code of {COUNTRIES[code]}, not of a language."
        yield row.found("country-code", "Scope", message)
        return
    yield row.found("scope", "Scope", f"{echo(cell)} {_unknown(cell)}")


def _unknown(cell: str) -> str:
    name, first = key(cell), key(cell).replace("_", " ").split()[:1]
    if name in _NAMES:
        return f"is written by its code, {_NAMES[name]}."
    if name == key(PLACEHOLDER_SCOPE):
        return "is the template's gap; write a code of a language."
    if first and first[0] in LANGUAGES and name != first[0]:
        return f"is more than the code of a language; write {first[0]}."
    if _is_code(cell):
        return "is no official language of the EU."
    return "is none of the template's scopes."


def _is_code(cell: str) -> bool:
    code = cell.strip()
    return code.isascii() and code.isalpha() and 2 <= len(code) <= 3


def ambiguous_codes(entries: Sequence[Entry]) -> Iterator[Finding]:
    """Yield a finding where codes of countries make others doubtful: German, or Germany?

    An indicator that is also told of codes that no country has is told of languages.
    """
    for indicator in Indicator:
        told = [each for each in entries if each.indicator is indicator]
        codes = {key(each.row.cells["Scope"]) for each in told}
        if codes & set(COUNTRIES) and not codes & LANGUAGES_ONLY:
            doubtful = next((each for each in told if each.scope in LANGUAGES), None)
            if doubtful:
                message = (
                    f"{echo(doubtful.row.cells['Scope'])} may mean a country too, as other rows "
                    "have codes of countries."
                )
                yield doubtful.row.found("codes-ambiguous", "Scope", message)
                return


def kind_of(entries: Sequence[Entry]) -> Provider:
    """Return the kind of provider that fills in such scopes, or says that it does."""
    asked = {
        ASKED_OF[each.scope] if each.scope is not None else rows.said_kind(each.row)
        for each in entries
    }
    most = [kind for kind in Provider if kind in asked]
    return most[-1] if most else Provider.INTERMEDIARY
