"""Bytes to rows, by RFC 4180, telling what is not as it should be and going on where possible.

The csv module of the standard library lets stray quotes pass and does not say where it stopped;
hence this scanner. It looks at each byte once, and stops at fixed numbers of rows and cells.
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

from modwatch.audit.dsa.characters import HARMFUL
from modwatch.audit.dsa.findings import Finding

#: Largest file that is read, in bytes. The template filled in has some ten thousand.
MAX_BYTES = 16 * 2**20
#: Rows that are read, the header among them.
MAX_ROWS = 20_000
#: Cells in a row, after which reading stops.
MAX_CELLS = 256

_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_QUOTED = re.compile(r'"([^"]*+(?:""[^"]*+)*+)"')
_ENDING = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """The rows of a file, and what is wrong with its shape."""

    #: Names of the columns; empty when nothing could be read.
    header: tuple[str, ...]
    #: Row number (the header has 1) and as many cells as the header has.
    rows: tuple[tuple[int, tuple[str, ...]], ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, kw_only=True)
class _Record:
    cells: tuple[str, ...]
    #: Code of a rule and number of the cell, from 1.
    faults: tuple[tuple[str, int], ...]
    #: Where the next record begins.
    end: int
    #: What the record ends in; empty at the end of the text.
    ending: str


def read(content: bytes) -> Sheet:
    r"""Return header and rows of a CSV file, and findings about its shape.

    >>> read(b"a,b\r\n1,2\r\n").rows
    ((2, ('1', '2')),)
    """
    if len(content) > MAX_BYTES:
        return _unread("file-too-large", f"The file has more than {MAX_BYTES} bytes.")
    if content.startswith(_MARKS):
        return _unread("encoding", "The file is UTF-16 or UTF-32; save it as UTF-8.")
    text, findings = _decoded(content)
    if not text.strip("\r\n\t ,;"):
        return _unread("file-empty", "There is nothing in the file.")
    delimiter = _delimiter(text)
    if delimiter != ",":
        name = "tabs" if delimiter == "\t" else f"'{delimiter}'"
        findings.append(_whole("delimiter", f"Cells are parted by {name}; use commas."))
    rows: list[tuple[int, tuple[str, ...]]] = []
    findings.extend(_rows(text, delimiter, rows))
    header = rows[0][1] if rows else ()
    return Sheet(header=header, rows=tuple(rows[1:]), findings=tuple(findings))


def _unread(rule: str, message: str) -> Sheet:
    return Sheet(header=(), rows=(), findings=(_whole(rule, message),))


def _whole(rule: str, message: str) -> Finding:
    return Finding(rule=rule, row=None, column=None, message=message)


def _decoded(content: bytes) -> tuple[str, list[Finding]]:
    findings = []
    if content.startswith(codecs.BOM_UTF8):
        content = content[len(codecs.BOM_UTF8) :]
        findings.append(_whole("byte-order-mark", "The file begins with a byte order mark."))
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = f"Byte {error.start + 1}, in line {line}, is not UTF-8; save the file as UTF-8."
        findings.append(_whole("encoding", message))
        text = content.decode(errors="replace")
    return text, findings


def _delimiter(text: str) -> str:
    """Return what parts the cells of the first row, if it is a single cell by commas."""
    first = _record(text, 0, ",").cells
    if len(first) == 1:
        return next((each for each in ";\t|" if each in first[0]), ",")
    return ","


def _rows(text: str, delimiter: str, rows: list[tuple[int, tuple[str, ...]]]) -> Iterator[Finding]:
    """Append the rows of a text, each as wide as the first, and yield what is odd about them."""
    at, number, told = 0, 0, False
    while at < len(text):
        number += 1
        if number > MAX_ROWS:
            yield _whole("file-too-large", f"Only the first {MAX_ROWS} rows were read.")
            return
        record = _record(text, at, delimiter)
        at = record.end
        if record.ending in ("\n", "\r") and not told:
            told = True
            message = "Rows end in LF or CR alone, this one first; end them in CR LF."
            yield Finding(rule="line-ending", row=number, column=None, message=message)
        yield from _faults(number, record)
        if any(fault == "unclosed-quote" for fault, _ in record.faults):
            return
        if not any(cell.strip() for cell in record.cells):
            yield Finding(
                rule="blank-row", row=number, column=None, message="The row is empty; remove it."
            )
            continue
        width = len(rows[0][1]) if rows else len(record.cells)
        if len(record.cells) != width:
            message = f"The row has {len(record.cells)} cells, the header {width}."
            yield Finding(rule="ragged-row", row=number, column=None, message=message)
        rows.append((number, (*record.cells, *[""] * width)[:width]))


def _faults(number: int, record: _Record) -> Iterator[Finding]:
    for rule, cell in record.faults:
        message = {
            "stray-quote": f"Cell {cell} has a quotation mark where none may stand; quote the cell "
            "and double the mark.",
            "unclosed-quote": f"The quotes of cell {cell} never end; the rest was not read.",
            "ragged-row": f"The row has more than {MAX_CELLS} cells; the rest was not read.",
        }[rule]
        yield Finding(rule=rule, row=number, column=None, message=message)
    for cell, content in enumerate(record.cells, start=1):
        harm = HARMFUL.search(content)
        if harm:
            message = f"Cell {cell} has the character U+{ord(harm[0]):04X}, which nobody sees."
            yield Finding(rule="control-character", row=number, column=None, message=message)


def _record(text: str, start: int, delimiter: str) -> _Record:
    """Return the record that begins at `start`."""
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
    """Return a cell, where it ends, and the rule that it breaks."""
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
    found = bare.match(text, at)
    return at if found is None else found.end()
