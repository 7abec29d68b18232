"""Reads records from CSV, TSV, JSON, Parquet and Excel files; damaged records are marked.

The readers yield `Record`s in file order, and open the file when the first one is requested.
"""

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, count, islice, repeat
from pathlib import Path
from typing import Any, TextIO, cast
from xml.etree.ElementTree import ParseError
from zipfile import BadZipFile

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from modwatch.common.account import Account
from modwatch.common.errors import SourceError
from modwatch.data.sources.delimited import DELIMITERS, MAX_FIELD, Dialect, Rows, TextFormat
from modwatch.data.sources.inspection import shown_names
from modwatch.data.sources.opening import open_text, require_start
from modwatch.data.sources.values import number_of, object_of, text_of

#: Formats by suffix; `.gz` or `.zst` may follow those of text.
FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".parquet": "parquet",
    ".xlsx": "xlsx",
}
#: How files of a format begin that are no text.
_STARTS = {"parquet": b"PAR1", "xlsx": b"PK"}
_DELIMITED = ("csv", "tsv")
_COMPRESSED = (".gz", ".zst")
#: A file of its own may have this suffix; in folders it is mostly something to read.
_TEXT = ".txt"
#: Records that are read ahead, and characters of a JSON list.
_CHUNK, _CHUNK_CHARACTERS = 500, 1_000_000
#: Names of columns that a message shows.
_MOST_NAMES = 40
_PLAIN = TextFormat()


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One record of a file."""

    #: First line of the record, from 1; in Parquet files and JSON lists the ordinal from 1.
    line: int
    #: Values by the file's column names; empty for a damaged record.
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)
    #: `malformed_record`, `unclosed_quote` or None.
    problem: str | None = None
    #: The raw text of a damaged record.
    raw: str | None = field(default=None, repr=False)
    #: How many fields a damaged record has; None: its quotation marks are damaged.
    fields: int | None = None


def file_format(path: Path) -> str:
    """Return `csv`, `tsv`, `json`, `parquet` or `xlsx`; SourceError for any other suffix.

    >>> file_format(Path("day.csv.gz"))
    'csv'
    """
    name = uncompressed_name(path)
    known = FORMATS | {_TEXT: "csv"}
    suffix = Path(name).suffix.lower()
    if suffix not in known or (known[suffix] in ("parquet", "xlsx") and name != path.name):
        raise SourceError(
            f"The format of {path} is unknown; name the file *{', *'.join(known)} "
            f"(text formats also {' or '.join(_COMPRESSED)}), unpack an archive, save an old "
            "Excel file as *.xlsx, and convert XML to one of these."
        )
    return known[suffix]


def uncompressed_name(path: Path) -> str:
    """Return the name of a file without the suffix of its compression."""
    return path.stem if path.suffix in _COMPRESSED else path.name


def read_records(
    path: Path,
    *,
    form: TextFormat = _PLAIN,
    header: Sequence[str] | None = None,
    account: Account | None = None,
) -> Iterator[Record]:
    """Yield the records of `path`, whatever its format; `header` names the columns of text.

    What `form` leaves open is found by the first lines (`delimited.find_dialect`). `account` gets
    the number of lines or records, and those that are no records; the caller counts the records.

    Raises SourceError naming the file when it cannot be opened or does not match its suffix.
    """
    account = account or Account()
    with _opened(path, form) as kind:
        if header and kind not in _DELIMITED:
            raise SourceError(f"{path} has names of columns; leave out those given for it.")
        if kind == "parquet":
            yield from _parquet(path, account)
        elif kind == "xlsx":
            with _sheet(path) as sheet:
                yield from _xlsx(sheet, account)
        elif kind == "json":
            yield from _json(path, form, account)
        else:
            with _rows(path, kind, form, header) as rows:
                yield from _delimited(rows, header, account)


@contextmanager
def _rows(
    path: Path, kind: str, form: TextFormat, header: Sequence[str] | None = None
) -> Iterator[Rows]:
    if kind == "tsv" and form.delimiter is None:
        form = replace(form, delimiter="\t")
    with open_text(path, form.encoding) as text:
        yield Rows(text, form, header)


def _delimited(rows: Rows, header: Sequence[str] | None, account: Account) -> Iterator[Record]:
    """Yield the records of delimited text; `header` names the columns if it has none.

    A record with a wrong number of fields or damaged quotation marks is a `malformed_record`, one
    with a quotation mark that swallows others an `unclosed_quote`; reading resumes on the next
    line. Blank lines and further headers are left out; a header in another order, as of a file
    that was appended, holds from there on.
    """
    names = unique_names(header) if header else []
    known: set[str] = set()

    def renamed(fields: list[str]) -> list[str] | None:
        found = unique_names([fields[0].lstrip("\ufeff"), *fields[1:]])
        return found if known == {*found} else None

    for line, size, fields, raw, problem in rows:
        account.read += size
        if size > 1:
            account.count("continued", size - 1)
        if fields and len(fields) == len(names):
            if fields[-1] in known and (again := renamed(fields)):
                names = again
                account.count("header")
            else:
                yield Record(line=line, values=dict(zip(names, fields, strict=True)))
        elif fields and not names:
            names = unique_names(fields)
            known = {*names}
            account.count("header")
        elif fields == [] or not raw.strip():
            account.count("header" if raw.strip() else "blank_line")  # a line sep=;
        else:
            problem, found = problem or "malformed_record", len(fields) if fields else None
            yield Record(line=line, problem=problem, raw=raw, fields=found)


def unique_names(names: Sequence[str]) -> list[str]:
    """Return the names of columns, with a number for those that are blank or not the first.

    >>> unique_names(["id", "text", "text", ""])
    ['id', 'text', 'text (2)', 'column 4']
    """
    found: dict[str, None] = {}
    for position, given in enumerate(names, start=1):
        name = re.sub(r"\s*[\r\n]\s*", " ", given) if given.strip() else f"column {position}"
        copies = (f"{name} ({number})" for number in count(2))
        found[next(copy for copy in chain([name], copies) if copy not in found)] = None
    return list(found)


def column_names(
    path: Path, *, form: TextFormat = _PLAIN, most: int | None = 1000
) -> tuple[str, ...]:
    """Return the columns of `path`: its header, its schema, or the keys of its first records.

    `most` is the number of records of JSON that are looked at; None: all.
    """
    with _opened(path, form) as kind:
        if kind == "parquet":
            return tuple(unique_names(pq.read_schema(path).names))
        if kind == "json":
            records = islice(read_records(path, form=form), most)
            return tuple(dict.fromkeys(key for record in records for key in record.values))
        if kind == "xlsx":
            with _sheet(path) as sheet:
                return tuple(next((_sheet_names(cells) for cells in sheet if any(cells)), []))
        with _rows(path, kind, form) as rows:
            header = next((fields for _, _, fields, _, _ in rows if fields != []), None)
            return tuple(unique_names(header or []))


#: What a file is rather than a table, and the remedy.
_OBJECT = (
    "one JSON object with the records in it; save them as a list, in pandas with "
    "to_json(orient='records')"
)
_ONE_FIELD = "a table with each line in one field; split it into columns, or set the delimiter"
_TITLED = "a table with a title; delete the lines above the names of its columns"
_SINGLE = "a table with fields in single quotation marks; write double ones"


def table_columns(path: Path, form: TextFormat, most: int | None = 1000) -> tuple[str, ...]:
    """Return the columns of `path`; SourceError that names the cause if it is no table."""
    names = column_names(path, form=form, most=most)
    records = list(islice(read_records(path, form=form), 2))
    values = [*records[0].values.values()] if records else []
    if records and not names and str(records[0].raw).lstrip().startswith("{"):
        begin = f"line {records[0].line} of {path} is no JSON object"
        raise SourceError(f"{begin}; perhaps the file is {_OBJECT}")
    lone = len(records) == 1 and len(values) > 0
    keys = [record.values.keys() for record in records]
    lists = [v for v in values if isinstance(v, list) and {*map(type, v)} == {dict}]
    ends = [{str(field)[:1] + str(field)[-1:] for field in fields} for fields in (names, values)]
    shapes = {
        _OBJECT: (lone and any(len(found) >= len(values) for found in lists))
        or ({*map(type, values)} == {dict} and len({*map(frozenset, keys)}) == len(keys)),
        _ONE_FIELD: len(names) == len(values) == 1 and any(s in names[0] for s in DELIMITERS),
        _TITLED: len(names) > 2 and [*names[1:]] == unique_names([""] * len(names))[1:],
        _SINGLE: len(names) > 1 and {"''"} in ends,
    }
    if causes := [cause for cause, is_so in shapes.items() if is_so]:
        raise SourceError(f"{path} is {causes[0]}")
    return names


def require_columns(where: str, names: Sequence[str], needed: Mapping[str, str]) -> None:
    """Raise SourceError unless there is one column of each name in `needed`, which has remedies.

    It lists the columns that there are, as far as their names cannot be values of a first row.
    """
    if several := [name for name in needed if f"{name} (2)" in names]:
        raise SourceError(f"{where} has several columns {', '.join(several)}; rename all but one")
    if missing := [name for name in needed if name not in names]:
        has = f"it has {', '.join(shown_names(names[:_MOST_NAMES])) or 'no columns'}"
        if any(number_of(name)[0] is not None for name in names):
            has = "its first line has a number; add one with names of columns"
        remedies = " ".join(dict.fromkeys(filter(None, map(needed.get, missing))))
        named = ", ".join(map(repr, missing))
        raise SourceError(f"{where} has no column {named}; {has}. {remedies}".rstrip())


def rounded_columns(path: Path) -> set[str]:
    """Return the columns of a Parquet file that round whole numbers from 2^24 on; else none."""
    if file_format(path) != "parquet":
        return set()
    with _opened(path, _PLAIN):
        kinds = zip(unique_names((s := pq.read_schema(path)).names), s.types, strict=True)
    return {name for name, kind in kinds if kind in (pa.float16(), pa.float32())}


def dialect_of(path: Path, *, form: TextFormat = _PLAIN) -> Dialect:
    """Return the dialect of a file; of one that is no delimited text, the plain one."""
    with _opened(path, form) as kind:
        if kind not in _DELIMITED:
            return Dialect()
        with _rows(path, kind, form) as rows:
            return rows.dialect


#: NaN and infinities, which JSON does not have, are missing values.
_DECODER = json.JSONDecoder(parse_constant=lambda _: None, object_pairs_hook=object_of)
#: What separates the items of a JSON list.
_BETWEEN = ", \t\r\n"


def _json(path: Path, form: TextFormat, account: Account) -> Iterator[Record]:
    """Yield the records of JSON lines, or of one JSON list."""
    with open_text(path, form.encoding) as text:
        is_list = text.read(_CHUNK).lstrip().startswith("[")
    with open_text(path, form.encoding) as text:
        lines = _json_list(text, path) if is_list else _json_lines(text)
        for number, (raw, values) in enumerate(lines, start=1):
            account.read += 1
            if isinstance(values, dict):
                yield Record(line=number, values=values)
            elif values is None and not raw.strip():
                account.count("blank_line")
            else:
                yield Record(line=number, problem="malformed_record", raw=raw)


def _json_lines(text: TextIO) -> Iterator[tuple[str, object]]:
    for line in text:
        try:
            values = _DECODER.decode(line)
        except (ValueError, RecursionError):
            values = None
        yield line, values


def _json_list(text: TextIO, path: Path) -> Iterator[tuple[str, object]]:
    """Yield the items of a JSON list; only part of the file is in memory."""
    buffer = text.read(_CHUNK_CHARACTERS).lstrip().removeprefix("[")
    for number in count(1):
        while True:
            start = len(buffer) - len(buffer.lstrip(_BETWEEN))
            item, end = _item(buffer, start)
            if buffer[start : start + 1] == "]":
                if (buffer[start + 1 :] + text.read(_CHUNK)).strip():
                    raise SourceError(f"{path} has text after its list; write one list a file.")
                return
            # The end of what was read may be in the middle of an item.
            if end is not None and end < len(buffer):
                break
            part = text.read(_CHUNK_CHARACTERS) if len(buffer) < 4 * MAX_FIELD else ""
            if not part:
                raise SourceError(
                    f"Record {number:,} of {path} is not valid JSON, so that the others cannot be "
                    "found; correct it, or write one record a line (*.jsonl)."
                )
            buffer += part
        yield buffer[start:end], item
        buffer = buffer[end:]


def _item(buffer: str, start: int) -> tuple[object, int | None]:
    """Return the JSON item at `start` and its end; None if it is not complete."""
    try:
        return _DECODER.raw_decode(buffer, start)
    except (ValueError, RecursionError):
        return None, None


@contextmanager
def _sheet(path: Path) -> Iterator[Iterable[Sequence[Any]]]:
    """Open the only sheet that has rows."""
    # Few need it, and it takes 0.2 s.
    from openpyxl import load_workbook  # noqa: PLC0415
    from openpyxl.utils.escape import unescape  # noqa: PLC0415

    try:
        workbook = load_workbook(path, read_only=True, data_only=True)
    except AttributeError as exc:  # a fault of openpyxl
        raise SourceError(f"{path} cannot be read; delete chart sheets without a chart.") from exc
    with closing(workbook) as book:
        sheets = [_filled(sheet.iter_rows(values_only=True)) for sheet in book.worksheets]
        filled = [rows for rows in sheets if rows]
        if len(filled) > 1:
            raise SourceError(
                f"{len(filled)} sheets of {path} have rows; save the one with the data as a file."
            )
        # Excel writes CR, and characters that XML does not have, as _x000D_.
        yield (
            [unescape(cell) if isinstance(cell, str) else cell for cell in cells]
            for rows in filled
            for cells in rows
        )


def _filled(rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]] | None:
    """Return the rows of a sheet, with the blank ones before the first; None if all are blank."""
    first = next(((number, cells) for number, cells in enumerate(rows) if any(cells)), None)
    return first and chain(repeat((), first[0]), [first[1]], rows)


#: What a cell of Excel shows where its formula fails, as for a text that begins with `=`.
_ERRORS = {"#NAME?", "#REF!", "#VALUE!", "#DIV/0!", "#N/A", "#NULL!", "#NUM!"}


def _size(cells: Sequence[Any]) -> int:
    return max((place for place, cell in enumerate(cells, 1) if cell is not None), default=0)


def _sheet_names(cells: Sequence[Any]) -> list[str]:
    return unique_names([text_of(cell)[0] or "" for cell in cells[: _size(cells)]])


def _xlsx(rows: Iterable[Sequence[Any]], account: Account) -> Iterator[Record]:
    """Yield the rows of a sheet; the first that is not blank names the columns."""
    names: list[str] = []
    for number, cells in enumerate(rows, start=1):
        account.read += 1
        size = _size(cells)
        if not size:
            account.count("blank_line")
        elif not names:
            names = _sheet_names(cells)
            account.count("header")
        elif size > len(names):
            yield Record(line=number, problem="malformed_record", raw="", fields=size)
        else:
            # A list is no text, vote or number: the cell is a problem of its row, not a comment.
            read = ([cell] if cell in _ERRORS else cell for cell in cells)
            padded = chain(read, repeat(None))
            yield Record(line=number, values=dict(zip(names, padded, strict=False)))


def _parquet(path: Path, account: Account) -> Iterator[Record]:
    number = 0
    with pq.ParquetFile(path) as file:
        account.read += file.metadata.num_rows
        names = unique_names(file.schema_arrow.names)
        for batch in file.iter_batches(batch_size=_CHUNK):
            columns = [_values(column) for column in batch.columns]
            for values in zip(*columns, strict=True):
                number += 1
                yield Record(line=number, values=dict(zip(names, values, strict=True)))


#: Types of text, such as `large_string` and `fixed_size_binary[4]`.
_TEXTS = re.compile(r"(large_|fixed_size_)?(string|binary)")


def _values(column: pa.Array) -> list[Any]:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if _TEXTS.match(str(kind)):
        # Text is often stored as bytes, and Parquet does not guarantee valid UTF-8: pyarrow would
        # fail on the whole column.
        raw = column.cast(pa.large_binary()).to_pylist()
        return [None if v is None else v.decode("utf-8", "surrogateescape") for v in raw]
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        column = column.cast(pa.timestamp("us", tz=kind.tz), safe=False)
    if pa.types.is_floating(kind):
        column = pc.if_else(pc.is_nan(column), None, column)
    try:
        return cast(list[Any], column.to_pylist())
    except (OverflowError, ValueError):  # times that Python does not have
        return [_time(value) for value in column]


def _time(value: pa.Scalar) -> object:
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return None


#: Errors of readers of compressed files, Excel files and Parquet files.
_DAMAGES = (BadZipFile, zlib.error, ParseError, pa.ArrowException)


@contextmanager
def _opened(path: Path, form: TextFormat) -> Iterator[str]:
    """Yield the format of a file that begins like one; raise errors of reading as SourceError."""
    kind = file_format(path)
    try:
        if kind in _STARTS:
            require_start(path, _STARTS[kind])
        yield kind
    except UnicodeError as exc:
        raise SourceError(
            f"{path} is not {form.encoding} text; set the encoding of the file."
        ) from exc
    except FileNotFoundError as exc:
        raise SourceError(f"{path} does not exist; check the path.") from exc
    except (OSError, EOFError, KeyError, ValueError, *_DAMAGES) as exc:
        raise SourceError(
            f"{path} cannot be read ({type(exc).__name__}); check that it is complete, matches its "
            "suffix, and is readable by this user."
        ) from exc
