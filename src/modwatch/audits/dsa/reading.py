"""Reads the bytes of a file into rows (RFC 4180) and recognises the template by the header.

The csv module of the standard library accepts stray quotes and does not report where it stopped;
hence this scanner. It continues after errors where possible, reads each byte once, and stops at a
maximum number of rows and cells.
"""

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from modwatch.audits.dsa.cells import HARMFUL, echo, key
from modwatch.audits.dsa.findings import Finding
from modwatch.audits.dsa.vocabulary import COLUMNS, OTHER_PARTS, QUALITATIVE_COLUMNS, SECTION
from modwatch.data.sources.delimited import named_delimiter
from modwatch.data.sources.opening import encoding_of

#: Maximum size of a file in bytes. A filled-in template has about ten thousand.
MAX_BYTES = 16 * 2**20
#: Maximum rows, including the header.
MAX_ROWS = 20_000
#: Maximum cells of a row; reading stops after them.
MAX_CELLS = 256

_QUOTED = re.compile(r'"([^"]*+(?:""[^"]*+)*+)"')
_ENDING = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """The rows of a file, and findings about its format."""

    #: Names of the columns; empty when the file could not be read.
    header: tuple[str, ...]
    #: Row number (the header is 1) and as many cells as the header has.
    rows: tuple[tuple[int, tuple[str, ...]], ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, kw_only=True)
class _Record:
    cells: tuple[str, ...]
    #: Code of the broken rule and number of the cell, from 1.
    faults: tuple[tuple[str, int], ...]
    #: Position of the next record.
    end: int
    #: Line ending of the record; empty at the end of the text.
    ending: str


def read(content: bytes) -> Sheet:
    r"""Return header and rows of a CSV file, and findings about its format.

    >>> read(b"a,b\r\n1,2\r\n").rows
    ((2, ('1', '2')),)
    """
    if len(content) > MAX_BYTES:
        return _unread("file-too-large", f"The file has more than {MAX_BYTES} bytes.")
    text, findings = _decoded(content)
    first, *rest = _ENDING.split(text, maxsplit=1)
    if named := named_delimiter(first):
        text = "".join(rest)
    if not text.strip("\r\n\t ,;"):
        return _unread("file-empty", "The file is empty.")
    delimiter = named or _delimiter(text)
    if named or delimiter != ",":
        name = "tabs" if delimiter == "\t" else f"'{delimiter}'"
        remedy = "delete the first line, which says so, and use commas" if named else "use commas"
        findings.append(Finding("delimiter", f"Cells are separated by {name}; {remedy}."))
    rows: list[tuple[int, tuple[str, ...]]] = []
    findings.extend(_rows(text, delimiter, rows))
    header = rows[0][1] if rows else ()
    return Sheet(header=header, rows=tuple(rows[1:]), findings=tuple(findings))


def _unread(rule: str, message: str) -> Sheet:
    return Sheet(header=(), rows=(), findings=(Finding(rule, message),))


def _decoded(content: bytes) -> tuple[str, list[Finding]]:
    findings = []
    if (encoding := encoding_of(content)) != "utf-8-sig":
        findings.append(Finding("encoding", "The file is UTF-16 or UTF-32; save it as UTF-8."))
        return content.decode(encoding, errors="replace"), findings
    if content.startswith(codecs.BOM_UTF8):
        content = content[len(codecs.BOM_UTF8) :]
        findings.append(Finding("byte-order-mark", "The file starts with a byte order mark."))
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = f"Byte {error.start + 1}, in line {line}, is not UTF-8; save the file as UTF-8."
        findings.append(Finding("encoding", message))
        text = content.decode(errors="replace")
    return text, findings


def _delimiter(text: str) -> str:
    """Return the delimiter: another than the comma if the first row is a single cell."""
    first = _record(text, 0, ",").cells
    if len(first) == 1:
        return next((sign for sign in ";\t|" if sign in first[0]), ",")
    return ","


def _rows(text: str, delimiter: str, rows: list[tuple[int, tuple[str, ...]]]) -> Iterator[Finding]:
    """Append the rows of a text, each as wide as the first, and yield findings about them."""
    at, number, reported = 0, 0, False
    while at < len(text):
        number += 1
        if number > MAX_ROWS:
            yield Finding("file-too-large", f"Only the first {MAX_ROWS} rows were read.")
            return
        record = _record(text, at, delimiter)
        at = record.end
        if record.ending in ("\n", "\r") and not reported:
            reported = True
            message = "Rows end with LF or CR alone, starting with this one; end them with CR LF."
            yield Finding("line-ending", message, row=number)
        yield from _faults(number, record)
        if any(fault == "unclosed-quote" for fault, _ in record.faults):
            return
        if not any(cell.strip() for cell in record.cells):
            yield Finding("blank-row", "The row is empty; remove it.", row=number)
            continue
        width = len(rows[0][1]) if rows else len(record.cells)
        if len(record.cells) != width:
            message = f"The row has {len(record.cells)} cells, the header {width}."
            yield Finding("ragged-row", message, row=number)
        rows.append((number, (*record.cells, *[""] * width)[:width]))


def _faults(number: int, record: _Record) -> Iterator[Finding]:
    for rule, cell in record.faults:
        message = {
            "stray-quote": f"Cell {cell} has a stray quotation mark; quote the cell and double "
            "the mark.",
            "unclosed-quote": f"The quotes of cell {cell} are not closed; the rest was not read.",
            "ragged-row": f"The row has more than {MAX_CELLS} cells; the rest was not read.",
        }[rule]
        yield Finding(rule, message, row=number)
    for cell, content in enumerate(record.cells, start=1):
        harm = HARMFUL.search(content)
        if harm:
            message = f"Cell {cell} contains the invisible character U+{ord(harm[0]):04X}."
            yield Finding("control-character", message, row=number)


def _record(text: str, start: int, delimiter: str) -> _Record:
    """Return the record at `start`."""
    bare = re.compile(f"[^{re.escape(delimiter)}\r\n]*+")
    cells: list[str] = []
    faults: list[tuple[str, int]] = []
    at = start
    while True:
        cell, at, fault = _cell(text, at, bare)
        cells.append(cell)
        if fault:
            faults.append((fault, len(cells)))
        if len(cells) > MAX_CELLS:
            faults.append(("ragged-row", len(cells)))
            at = len(text)
        if not text.startswith(delimiter, at):
            break
        at += len(delimiter)
    ending = _ENDING.match(text, at)
    return _Record(
        cells=tuple(cells),
        faults=tuple(faults),
        end=ending.end() if ending else at,
        ending=ending[0] if ending else "",
    )


def _cell(text: str, at: int, bare: re.Pattern[str]) -> tuple[str, int, str | None]:
    """Return a cell, its end, and the rule that it breaks."""
    if not text.startswith('"', at):
        end = _end(bare, text, at)
        cell = text[at:end]
        return cell, end, "stray-quote" if '"' in cell else None
    quoted = _QUOTED.match(text, at)
    if quoted is None:
        return text[at + 1 :], len(text), "unclosed-quote"
    end = _end(bare, text, quoted.end())
    rest = text[quoted.end() : end]
    return quoted[1].replace('""', '"') + rest, end, "stray-quote" if rest else None


def _end(bare: re.Pattern[str], text: str, at: int) -> int:
    match = bare.match(text, at)
    return at if match is None else match.end()


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The columns of a file that are in the template."""

    qualitative: bool
    #: Index of each column by its name in the template; empty when rows cannot be validated.
    positions: Mapping[str, int]
    findings: tuple[Finding, ...]


def columns_of(header: Sequence[str]) -> Columns:
    """Return the columns of a header, by the template that it belongs to.

    >>> columns_of(["Indicator", "Value", "Service"]).positions
    {'Service': 2, 'Indicator': 0, 'Value': 1}
    """
    if not header:
        return Columns(qualitative=False, positions={}, findings=())
    names = [key(name) for name in header]
    apart = {key(name) for name in COLUMNS} - {key(name) for name in QUALITATIVE_COLUMNS}
    qualitative = not apart & set(names)
    template = QUALITATIVE_COLUMNS if qualitative else COLUMNS
    positions = {name: names.index(key(name)) for name in template if key(name) in names}
    findings = list(_header_findings(header, names, template))
    needed = {"Indicator", "Value"} if qualitative else {"Indicator", "Scope", "Value"}
    if not positions:
        message = "This is neither part 8 nor part 11 of the template; rows were not validated."
        findings = [Finding("header", message, row=1)]
    if not needed <= set(positions):
        positions = {}
    return Columns(qualitative=qualitative, positions=positions, findings=tuple(findings))


def other_part(sheet: Sheet) -> str | None:
    r"""Return which part of the template a file is if it is one that is not validated.

    >>> other_part(read(b"Section,Indicator,Value\r\nAMAR,,5\r\n"))
    'part 10, average monthly active recipients'
    """
    names = [key(name) for name in sheet.header]
    places = [at for at, name in enumerate(names) if name in ("section", "indicator")]
    found = {*names, *(key(cells[at]) for _, cells in sheet.rows for at in places)}
    if key(SECTION) in found:
        return None
    return next((part for mark, part in OTHER_PARTS.items() if key(mark) in found), None)


def _header_findings(
    header: Sequence[str], names: Sequence[str], template: Sequence[str]
) -> Iterator[Finding]:
    wanted = [key(name) for name in template]
    for name, short in zip(template, wanted, strict=True):
        if short not in names:
            yield Finding("header", f"The column '{name}' is missing.", row=1, column=name)
        elif names.count(short) > 1:
            yield Finding(
                "header", f"The column '{name}' occurs more than once.", row=1, column=name
            )
        elif header[names.index(short)].strip() != name:
            message = f"{echo(header[names.index(short)])} is spelled '{name}' in the template."
            yield Finding("header-spelling", message, row=1, column=name)
    unknown = [at for at, name in enumerate(names) if name not in wanted]
    if unknown:
        message = f"Column {unknown[0] + 1}, {echo(header[unknown[0]])}, is not in the template."
        yield Finding("header", message, row=1)
    known = [name for name in dict.fromkeys(names) if name in wanted]
    if known != [name for name in wanted if name in known]:
        yield Finding("header", "The columns are not in the order of the template.", row=1)
