"""What can be judged of a row by itself, in either template."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from modwatch.audit.dsa.characters import FORMULA_SIGNS, echo, key, plain
from modwatch.audit.dsa.findings import Finding
from modwatch.audit.dsa.values import MAX_DIGITS
from modwatch.audit.dsa.vocabulary import (
    APPLICABILITY,
    PLACEHOLDER_PERIOD,
    PLACEHOLDER_SCOPE,
    PLACEHOLDER_TEXT,
    Provider,
)

_DATE = r"(\d{4}-\d{2}-\d{2})"
_PERIOD = re.compile(rf"{_DATE}/{_DATE}", re.ASCII)
_NUMBER_LIKE = re.compile(r"[-+]?[\d.,% ]*\d[\d.,% ]*|[-+]", re.ASCII)
_PLACEHOLDERS = frozenset(map(key, (PLACEHOLDER_PERIOD, PLACEHOLDER_SCOPE, PLACEHOLDER_TEXT)))
_APPLICABILITY = {key(words): kind for kind, words in APPLICABILITY.items()}


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row by column; columns that the file does not have are left out."""

    number: int
    cells: Mapping[str, str]

    def has(self, column: str) -> bool:
        """Return whether the cell exists and is not blank."""
        return bool(self.cells.get(column, "").strip())

    def found(self, rule: str, column: str | None, message: str) -> Finding:
        """Return a finding in this row."""
        return Finding(rule=rule, row=self.number, column=column, message=message)


def common(row: Row) -> Iterator[Finding]:
    """Yield what is wrong with service and period, and cells that begin like a formula."""
    for column, cell in row.cells.items():
        if cell.startswith(FORMULA_SIGNS) and not is_number_like(column, cell):
            message = f"{echo(cell)} begins like a formula; a spreadsheet may run it."
            yield row.found("formula", column, message)
    if "Service" in row.cells and not row.has("Service"):
        yield row.found("service-missing", "Service", "The service is not named.")
    if "Reporting period" in row.cells:
        yield from _period_findings(row)


def is_number_like(column: str, cell: str) -> bool:
    """Return whether a value that begins with a sign is a number, or a dash that stands for none.

    >>> is_number_like("Value", "-5"), is_number_like("Value", "-5+A1")
    (True, False)
    """
    short = column == "Value" and len(cell) <= MAX_DIGITS
    return short and bool(_NUMBER_LIKE.fullmatch(cell.strip()))


def has_placeholder(row: Row) -> bool:
    """Return whether the template's own words stand where a provider is to write."""
    return any(key(cell) in _PLACEHOLDERS for cell in row.cells.values())


def period_of(row: Row) -> tuple[date, date] | None:
    """Return first and last day, or None where they are not two dates that exist."""
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
        message = f"{cell} is not two dates that exist, YYYY-MM-DD/YYYY-MM-DD."
        yield row.found("period-format", "Reporting period", message)
    elif period[1] < period[0]:
        message = f"{cell} ends before it begins."
        yield row.found("period-order", "Reporting period", message)


def said_kind(row: Row) -> Provider | None:
    """Return the kind of provider that the first column names, None where it names none."""
    return _APPLICABILITY.get(key(row.cells.get("Applicability", "")))


def applicability(row: Row, asked_of: Provider | None) -> Iterator[Finding]:
    """Yield what is wrong with the first column of a row that is asked of a kind of provider."""
    cell = row.cells.get("Applicability")
    if cell is None:
        return
    kind = said_kind(row)
    if kind is None:
        message = f"{echo(cell)} is not one of the template's words."
        yield row.found("applicability", "Applicability", message)
    elif asked_of is not None and kind is not asked_of:
        message = f"{echo(cell)} stands here; the template says '{APPLICABILITY[asked_of]}'."
        yield row.found("applicability-scope", "Applicability", message)


def spelling(row: Row, column: str, rule: str, meant: str) -> Iterator[Finding]:
    """Yield a finding where a name is not written as in the template."""
    if plain(row.cells[column]) != plain(meant):
        message = f"{echo(row.cells[column])} is written '{meant}' in the template."
        yield row.found(rule, column, message)


def usual(start: date, end: date) -> bool:
    """Return whether a period is one that the regulation knows.

    Calendar years, and half-years of very large platforms, from 2026 on. The first reports reach
    from some day of 2025, when the rules of that day still applied, to the end of that year.

    >>> usual(date(2026, 1, 1), date(2026, 6, 30)), usual(date(2026, 1, 1), date(2026, 3, 31))
    (True, False)
    """
    if start.year != end.year or start.year < 2025:
        return False
    if start.year == 2025:
        return (end.month, end.day) == (12, 31)
    ends = {(1, 1): ((6, 30), (12, 31)), (7, 1): ((12, 31),)}
    return (end.month, end.day) in ends.get((start.month, start.day), ())
