"""The rules of part 11: the rows are free texts, of which four are about automated means."""

from collections.abc import Iterator, Sequence

from modwatch.audit.dsa import rows, whole
from modwatch.audit.dsa.characters import echo, key
from modwatch.audit.dsa.findings import Finding
from modwatch.audit.dsa.rows import Row
from modwatch.audit.dsa.vocabulary import ALL_QUALITATIVE, PLACEHOLDER_TEXT, QUALITATIVE

_INDICATORS = {key(name): name for name in ALL_QUALITATIVE}


def findings(table: Sequence[Row]) -> Iterator[Finding]:
    """Yield what is wrong with the rows of part 11; of missing ones, those on automated means."""
    first: dict[str, int] = {}
    unread = False
    for row in table:
        name = _INDICATORS.get(key(row.cells["Indicator"]))
        yield from rows.common(row)
        yield from rows.applicability(row, ALL_QUALITATIVE[name] if name else None)
        yield from _of_text(row)
        if name is None:
            unread = True
            message = f"{echo(row.cells['Indicator'])} is none of the template's indicators."
            yield row.found("indicator", "Indicator", message)
            continue
        yield from rows.spelling(row, "Indicator", "indicator-spelling", name)
        if name in first:
            message = f"Row {first[name]} has the same indicator."
            yield row.found("duplicate-row", "Indicator", message)
        first.setdefault(name, row.number)
    yield from whole.one_report(table)
    if not unread:
        for name in QUALITATIVE:
            if name not in first:
                message = f"The row '{name}' is left out."
                yield Finding(rule="missing-row", row=None, column="Indicator", message=message)


def _of_text(row: Row) -> Iterator[Finding]:
    if not row.has("Value"):
        message = "There is no text; write one, or why there is none."
        yield row.found("blank-without-reason", "Value", message)
    elif key(row.cells["Value"]) == key(PLACEHOLDER_TEXT):
        message = "The template's own words still stand here; write the text."
        yield row.found("placeholder", "Value", message)
