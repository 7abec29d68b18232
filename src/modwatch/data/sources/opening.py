"""Opens text files: compressed or not, in UTF-8 or UTF-16; names what is no text."""

import codecs
import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from modwatch.common.errors import SourceError

#: Bytes by which a file is recognised.
_HEAD = 512
#: Beginnings of files that are no delimited text, and what they are.
_OTHERS = {
    b"PAR1": "a Parquet file; name it *.parquet",
    b"PK\x03\x04": "a spreadsheet or an archive; name a spreadsheet *.xlsx, unpack an archive",
    b"\xd0\xcf\x11\xe0": "an old Excel file; save it as *.xlsx or as CSV",
    b"%PDF": "a PDF; export the data as CSV",
    b"<!doctype": "an HTML page, such as one to log in; download the data again",
    b"<html": "an HTML page, such as one to log in; download the data again",
    b"<table": "an HTML page; save the table as CSV",
    b"<?xml": "an XML document; export the data as CSV or JSON lines",
    b"\x1f\x8b": "compressed twice; unpack it once",
}


@contextmanager
def open_text(path: Path, encoding: str) -> Iterator[io.TextIOWrapper]:
    """Open a text file; invalid bytes become lone surrogates.

    Compression by gzip or Zstandard is recognised, and UTF-16 where UTF-8 was expected.
    Raises SourceError when the file is no text, such as a spreadsheet or an HTML page.
    """
    with path.open("rb") as raw, _uncompressed(raw) as binary:
        head = binary.peek(_HEAD)[:_HEAD]
        if kind := _kind(head):
            raise SourceError(f"{path} is {kind}.")
        with io.TextIOWrapper(
            cast(BinaryIO, binary),
            encoding=encoding_of(head, encoding),
            errors="surrogateescape",
            # Where lines end with LF, a CR alone is part of a text.
            newline="" if b"\r" in head and b"\n" not in head else "\n",
        ) as text:
            yield text


def require_start(path: Path, start: bytes) -> None:
    """Raise SourceError, with what a file is, unless it begins as files of its suffix do."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if not head.startswith(start):
        kind = _kind(head) if head else "empty"
        raise SourceError(
            f"{path} is {kind or f'no {path.suffix} file; name a text file *.csv or *.jsonl'}."
        )


def _kind(head: bytes) -> str | None:
    """Return what a file is that begins so, and what to do; None: it may be text."""
    begin = head.removeprefix(codecs.BOM_UTF8).lstrip().lower()
    return next((kind for start, kind in _OTHERS.items() if begin.startswith(start.lower())), None)


def _uncompressed(raw: io.BufferedReader) -> io.BufferedReader | gzip.GzipFile:
    start = raw.peek(4)
    if start.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=raw)
    if start.startswith(b"\x28\xb5\x2f\xfd"):
        import pyarrow as pa

        return io.BufferedReader(cast(io.RawIOBase, pa.CompressedInputStream(raw, "zstd")))
    return raw


def encoding_of(head: bytes, encoding: str = "utf-8") -> str:
    """Return the encoding of a file with these first bytes, that was expected in `encoding`."""
    if codecs.lookup(encoding).name != "utf-8":
        return encoding
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for name, zeros in (("utf-16-le", head[1::2]), ("utf-16-be", head[::2])):
        if zeros.count(0) * 2 > len(zeros):
            return name
    return "utf-8-sig"
