"""Reads records from CSV, TSV, JSON lines and Parquet files; malformed records are marked.

The readers yield `Record`s in file order, and open the file when the first one is requested.
"""

import csv
import gzip
import io
import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from modwatch.common.errors import SourceError

#: Maximum length of a CSV field; a longer one is an unclosed quotation mark.
MAX_FIELD = 10_000_000

#: Formats by suffix; `.gz` may follow the first five.
FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}

#: What may separate the fields of a `.csv` file: Excel writes `;` where the comma is decimal.
DELIMITERS = (",", ";", "\t", "|")
#: Lines of a file that its delimiter is found by.
_HEAD = 20

#: Records, and characters, that are read ahead.
_CHUNK = 500
_CHUNK_CHARACTERS = 4_000_000
_FIELD_LIMIT_LOCK = threading.Lock()


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One record of a file."""

    #: First line of the record, from 1; in Parquet files the ordinal from 1.
    line: int
    #: Values by the file's column names; empty for a malformed record.
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)
    #: `malformed_record`, or None.
    problem: str | None = None
    #: The raw text of a malformed record.
    raw: str | None = field(default=None, repr=False)


def file_format(path: Path) -> str:
    """Return `csv`, `tsv`, `jsonl` or `parquet`; SourceError for any other suffix.

    >>> file_format(Path("day.csv.gz"))
    'csv'
    """
    suffix = Path(path.name.removesuffix(".gz")).suffix
    if suffix not in FORMATS or (suffix == ".parquet" and path.name.endswith(".gz")):
        raise SourceError(
            f"The format of {path} is unknown; name the file *{', *'.join(FORMATS)} "
            "(text formats also .gz)."
        )
    return FORMATS[suffix]


def read_records(path: Path, *, encoding: str = "utf-8") -> Iterator[Record]:
    """Yield the records of `path`, whatever its format.

    The delimiter of a `.csv` file is one of DELIMITERS: the one that its header has. If it has
    several, the next lines decide.

    Raises SourceError naming the file when it cannot be opened or does not match its suffix.
    """
    kind = file_format(path)
    with _mapped(path, encoding):
        if kind == "parquet":
            yield from _parquet(path)
        elif kind == "jsonl":
            yield from _jsonl(path, encoding)
        else:
            yield from read_delimited(
                path, delimiter="\t" if kind == "tsv" else None, encoding=encoding
            )


def read_delimited(
    path: Path,
    *,
    delimiter: str | None = ",",
    header: Sequence[str] | None = None,
    encoding: str = "utf-8",
) -> Iterator[Record]:
    """Yield the records of a CSV file, gzipped or not; `header` names the columns if it has none.

    The delimiter None is found as of `read_records`. A record with a wrong number of fields or an
    unclosed quotation mark is a `malformed_record`; reading resumes on the next line. Empty lines
    are skipped.
    """
    names = list(header) if header else None
    with _mapped(path, encoding), _open_text(path, encoding) as text:
        for line, fields, raw in _csv_rows(text, delimiter):
            if fields is not None and names is None:
                names = fields
            elif fields is None or len(fields) != len(names or ()):
                yield Record(line=line, problem="malformed_record", raw=raw)
            else:
                yield Record(line=line, values=dict(zip(names or (), fields, strict=True)))


def column_names(path: Path, *, encoding: str = "utf-8") -> tuple[str, ...]:
    """Return the columns of `path`: its header, its schema, or the keys of its first records."""
    kind = file_format(path)
    with _mapped(path, encoding):
        if kind == "parquet":
            return tuple(pq.read_schema(path).names)
        if kind == "jsonl":
            first = islice(_jsonl(path, encoding), 1000)
            return tuple(dict.fromkeys(key for record in first for key in record.values))
        with _open_text(path, encoding) as text:
            rows = _csv_rows(text, "\t" if kind == "tsv" else None)
            _, header, _ = next(rows, (0, None, ""))
            return tuple(header or ())


class _Lines:
    """The lines of a file, with those of the current record."""

    def __init__(self, text: Iterable[str]) -> None:
        self._text = text
        self._used: list[str] = []
        self._begin = 1

    def __iter__(self) -> Iterator[str]:
        for line in self._text:
            self._used.append(line)
            yield line

    def take(self) -> tuple[int, str]:
        """Return the first line and the raw text of the current record, and start the next."""
        begin, raw = self._begin, "".join(self._used)
        self._begin += len(self._used)
        self._used = []
        return begin, raw


def _csv_rows(
    text: Iterable[str], delimiter: str | None
) -> Iterator[tuple[int, list[str] | None, str]]:
    """Yield first line, fields (None when malformed) and raw text of each record."""
    if delimiter is None:
        rest = iter(text)
        head = list(islice(rest, _HEAD))
        text, delimiter = chain(head, rest), _delimiter(head)
    lines = _Lines(text)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    more: bool = True
    while more:
        chunk: list[tuple[int, list[str] | None, str]] = []
        characters = 0
        with _field_limit():
            while more and len(chunk) < _CHUNK and characters < _CHUNK_CHARACTERS:
                try:
                    fields = next(reader, None)
                    more = fields is not None
                except csv.Error:
                    fields = None
                line, raw = lines.take()
                characters += len(raw)
                if fields or (more and fields is None):
                    chunk.append((line, fields, raw))
        yield from chunk


def _delimiter(head: Sequence[str]) -> str:
    """Return the delimiter of the file with these first lines; the comma by default.

    >>> _delimiter(["id;text"]), _delimiter(["a;b,c", "1,2"]), _delimiter(["text", "a;b"])
    (';', ',', ',')
    """
    return max(DELIMITERS, key=lambda delimiter: _fit(head, delimiter))


def _fit(head: Sequence[str], delimiter: str) -> tuple[float, int]:
    """Return the share of records with as many fields as the header, and how many it has."""
    header, *others = [len(fields or ()) for _, fields, _ in _csv_rows(head, delimiter)] or [0]
    if header < 2:
        return 0.0, 0
    return sum(size == header for size in others) / max(len(others), 1), header


@contextmanager
def _field_limit() -> Iterator[None]:
    """Raise the field limit of the csv module, which is global, and restore it afterwards."""
    with _FIELD_LIMIT_LOCK:
        before = csv.field_size_limit(MAX_FIELD)
        try:
            yield
        finally:
            csv.field_size_limit(before)


def _jsonl(path: Path, encoding: str) -> Iterator[Record]:
    with _open_text(path, encoding) as text:
        for number, line in enumerate(text, start=1):
            if not line.strip():
                continue
            try:
                values = json.loads(line)
            except (ValueError, RecursionError):
                values = None
            if isinstance(values, dict):
                yield Record(line=number, values=values)
            else:
                yield Record(line=number, problem="malformed_record", raw=line)


def _parquet(path: Path) -> Iterator[Record]:
    number = 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=_CHUNK):
            columns = [_values(column) for column in batch.columns]
            for values in zip(*columns, strict=True):
                number += 1
                yield Record(line=number, values=dict(zip(batch.schema.names, values, strict=True)))


def _values(column: pa.Array) -> list[Any]:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        # Parquet does not guarantee valid UTF-8, and pyarrow would fail on the whole column.
        raw = column.cast(pa.large_binary()).to_pylist()
        return [None if v is None else v.decode("utf-8", "surrogateescape") for v in raw]
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.timestamp("us", tz=column.type.tz), safe=False)
    return cast(list[Any], column.to_pylist())


@contextmanager
def _open_text(path: Path, encoding: str) -> Iterator[io.TextIOWrapper]:
    """Open a text file; invalid bytes become lone surrogates."""
    bom = "utf-8-sig" if encoding.lower().replace("_", "-") in {"utf-8", "utf8"} else encoding
    with (
        gzip.open(path) if path.suffix == ".gz" else path.open("rb") as binary,
        io.TextIOWrapper(
            cast(BinaryIO, binary), encoding=bom, errors="surrogateescape", newline=""
        ) as text,
    ):
        yield text


@contextmanager
def _mapped(path: Path, encoding: str) -> Iterator[None]:
    """Raise errors of files and decoders as SourceError."""
    try:
        yield
    except UnicodeError as exc:
        raise SourceError(
            f"{path} is not {encoding} text; set `encoding` to the encoding of the file."
        ) from exc
    except FileNotFoundError as exc:
        raise SourceError(f"{path} does not exist; check the path.") from exc
    except (OSError, EOFError, pa.ArrowException, ValueError) as exc:
        raise SourceError(
            f"{path} cannot be read ({type(exc).__name__}); check that it is complete, matches its "
            "suffix, and is readable by this user."
        ) from exc
