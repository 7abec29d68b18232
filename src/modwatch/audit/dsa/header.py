"""Which template a header is, and where its columns are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from modwatch.audit.dsa.characters import echo, key
from modwatch.audit.dsa.findings import Finding
from modwatch.audit.dsa.vocabulary import COLUMNS, QUALITATIVE_COLUMNS


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The columns of a file that a template knows."""

    qualitative: bool
    #: By the template's name, the place of the column from 0; empty when rows cannot be judged.
    places: Mapping[str, int]
    findings: tuple[Finding, ...]


def columns_of(header: Sequence[str]) -> Columns:
    """Return the columns of a header; those of the template that it has more of.

    >>> columns_of(["Indicator", "Value", "Service"]).places
    {'Service': 2, 'Indicator': 0, 'Value': 1}
    """
    if not header:
        return Columns(qualitative=False, places={}, findings=())
    names = [key(name) for name in header]
    apart = {key(name) for name in COLUMNS} - {key(name) for name in QUALITATIVE_COLUMNS}
    qualitative = not apart & set(names)
    template = QUALITATIVE_COLUMNS if qualitative else COLUMNS
    places = {name: names.index(key(name)) for name in template if key(name) in names}
    findings = list(_findings(header, names, template))
    needed = {"Indicator", "Value"} if qualitative else {"Indicator", "Scope", "Value"}
    if not places:
        message = "This is neither part 8 nor part 11 of the template; no row was judged."
        findings = [_found("header", None, message)]
    if not needed <= set(places):
        places = {}
    return Columns(qualitative=qualitative, places=places, findings=tuple(findings))


def _findings(
    header: Sequence[str], names: Sequence[str], template: Sequence[str]
) -> Iterator[Finding]:
    wanted = [key(name) for name in template]
    for name, short in zip(template, wanted, strict=True):
        if short not in names:
            yield _found("header", name, f"The column '{name}' is missing.")
        elif names.count(short) > 1:
            yield _found("header", name, f"The column '{name}' comes more than once.")
        elif header[names.index(short)].strip() != name:
            message = f"{echo(header[names.index(short)])} is written '{name}' in the template."
            yield _found("header-spelling", name, message)
    strange = [at for at, name in enumerate(names) if name not in wanted]
    if strange:
        message = f"Column {strange[0] + 1}, {echo(header[strange[0]])}, is not in the template."
        yield _found("header", None, message)
    known = [name for name in dict.fromkeys(names) if name in wanted]
    if known != [name for name in wanted if name in known]:
        yield _found("header", None, "The columns are not in the template's order.")


def _found(rule: str, column: str | None, message: str) -> Finding:
    return Finding(rule=rule, row=1, column=column, message=message)
