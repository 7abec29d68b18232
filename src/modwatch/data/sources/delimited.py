"""Records of delimited text: its dialect, and lines that an unclosed quotation mark swallows.

A dialect is found by the first lines of a file, unless its settings name it. A quotation mark that
nobody closed makes a field of all lines up to the next one. So a record of several lines is read
again, from the line after its first, if it is damaged or if its lines are records by themselves.
"""

import csv
import re
import threading
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import accumulate, chain, islice
from typing import Literal

from modwatch.common.errors import SourceError

#: Maximum length of a CSV field; a longer one is an unclosed quotation mark.
MAX_FIELD = 10_000_000

#: What may separate the fields of a `.csv` file: Excel writes `;` where the comma is decimal.
DELIMITERS = (",", ";", "\t", "|")

Quoting = Literal["minimal", "none"]

#: Lines, and characters, of a file that its dialect is found by.
_HEAD, _HEAD_CHARACTERS = 1_000, 1_000_000
#: Records, and characters, that are read ahead.
_CHUNK, _CHUNK_CHARACTERS = 500, 4_000_000
#: Patterns of a column that its values have, and the share of values that have them.
_PATTERNS, _REGULAR = 4, 0.9
#: Records of one line, at least, that show patterns.
_FEW = 5
#: Lines of one text, at most, in a file of one column.
_LONG = 20
#: Entered again where a suspicious record asks for the patterns of a file.
_FIELD_LIMIT_LOCK = threading.RLock()


@dataclass(frozen=True, kw_only=True)
class TextFormat:
    """How a text file is written; None: as its first lines show.

    Raises:
        SourceError: `delimiter` or `escape` is not one character, or there is no such encoding.
    """

    #: Python name of the encoding. The mark of UTF-16 at the beginning of a file overrides it.
    encoding: str = "utf-8"
    delimiter: str | None = None
    #: `none`: a quotation mark is a character like others. `minimal`: a record of several lines
    #: that is not damaged is one, whatever its lines look like.
    quoting: Quoting | None = None
    #: The character that makes the next one part of a field; an empty string: there is none.
    escape: str | None = None

    def __post_init__(self) -> None:
        for name, value in (("DELIMITER", self.delimiter or ","), ("ESCAPE", self.escape or "x")):
            if len(value) != 1 or value in '"\r\n':
                raise SourceError(
                    f"MODWATCH_SOURCE__{name} must be one character, no quotation mark and no line "
                    "break."
                )
        try:
            "".encode(self.encoding)
        except (LookupError, ValueError) as exc:
            raise SourceError(
                f"Encoding {self.encoding!r} does not exist; use one such as 'utf-8' or 'cp1252'."
            ) from exc


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How the fields of a line are separated."""

    delimiter: str = ","
    quoted: bool = True
    escape: str | None = None
    #: A blank follows the delimiter, and is no part of the field.
    blank: bool = False
    #: Lines end with a delimiter that the header does not have.
    trailing: bool = False

    def rows(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """Yield the fields of each record; raise csv.Error for one that is damaged."""
        return csv.reader(
            map(self._escaped, lines) if self.escape else lines,
            delimiter=self.delimiter,
            quoting=csv.QUOTE_MINIMAL if self.quoted else csv.QUOTE_NONE,
            escapechar=self.escape,
            skipinitialspace=self.blank,
            strict=True,
        )

    def _escaped(self, line: str) -> str:
        """Return a line in which an escape character that escapes nothing stands for itself."""
        sign = re.escape(str(self.escape))
        return re.sub(
            rf'{sign}([{sign}"{re.escape(self.delimiter)}\r\n])|{sign}',
            lambda found: found[0] if found[1] else 2 * found[0],
            line,
        )

    def fields(self, line: str) -> list[str]:
        """Return the fields of a line by itself, split at delimiters if its quotes are damaged."""
        try:
            return next(self.rows([line]), [])
        except csv.Error:
            return line.rstrip("\r\n").split(self.delimiter)


#: A record: its first line, from 1; its lines; its fields, none of a blank line and None of a
#: damaged record; its raw text; `malformed_record`, `unclosed_quote` or None.
Row = tuple[int, int, list[str] | None, str, str | None]


class Rows:
    """The rows of a text with its blank lines; the first that is not blank may be the header."""

    def __init__(self, text: Iterable[str], form: TextFormat, header: Sequence[str] | None) -> None:
        """Find the dialect; `header` names the columns of a text without a first line of names."""
        rest = iter(text)
        head = list(_head(rest))
        named = named_delimiter(head[0]) if head else None
        self._named = [head.pop(0)] if named else []
        if named and form.delimiter is None:
            form = replace(form, delimiter=named)
        self.dialect = find_dialect(head, form, header)
        self._text = chain(head, rest)
        self._shape = _Shape(head, self.dialect, header, trusted=form.quoting == "minimal")

    def __iter__(self) -> Iterator[Row]:
        """Return the rows in order."""
        named: list[Row] = [(1, 1, [], line, None) for line in self._named]
        lines = _Lines(self._text, 1 + len(named))
        return chain(named, _rows(lines, self.dialect, self._shape))


def named_delimiter(line: str) -> str | None:
    """Return the delimiter that Excel names in a first line `sep=;`; None: it is no such line."""
    found = re.fullmatch(r'(?i)"?sep=([\t #-~])"?\s*', line)
    return found[1] if found else None


def _head(lines: Iterator[str]) -> Iterator[str]:
    characters = 0
    for line in islice(lines, _HEAD):
        yield line
        characters += len(line)
        if characters > _HEAD_CHARACTERS:
            return


def find_dialect(
    head: Sequence[str], form: TextFormat, header: Sequence[str] | None = None
) -> Dialect:
    """Return the dialect in which most of the first lines of a file are records.

    Of several, it is the first: a comma, quotation marks, no escapes.

    >>> find_dialect(["id;text", "1;a, b"], TextFormat()).delimiter
    ';'
    >>> find_dialect(["id;text", '1;"oh', "2;no"], TextFormat()).quoted
    False
    """

    @cache
    def fit(dialect: Dialect) -> tuple[float, int]:
        return _Shape(head, dialect, header).fit()

    quoted, escape = form.quoting != "none", form.escape or None
    known = [form.delimiter] if form.delimiter else DELIMITERS
    best = max((Dialect(delimiter=sign, quoted=quoted, escape=escape) for sign in known), key=fit)
    share, size = fit(best)
    best = replace(best, blank=_has_blanks(head, best))
    if share < 1 and size > 1:
        best = max([best, *_variants(_Shape(head, best, header), form)], key=fit)
    return best


def _variants(shape: "_Shape", form: TextFormat) -> Iterator[Dialect]:
    """Yield dialects that differ from the one with the best delimiter in other respects.

    Quotation marks are no characters where more fields have them than lines are damaged; those
    that need them, with a delimiter, a quotation mark or a line break, count ten times.
    """
    best = shape.dialect
    yield replace(best, trailing=True)
    wrapped, needed = shape.quotes
    needed += sum(size > 1 and fields is not None for _, size, fields, _, _ in shape.rows())
    damaged = sum(line.count('"') % 2 for line in shape.head[1:])
    free = form.quoting is None and wrapped + 9 * needed < max(damaged, 1)
    plain = [replace(best, quoted=quoted) for quoted in ((True, False) if free else (best.quoted,))]
    yield from plain
    if form.escape is None:
        yield from (replace(dialect, escape="\\") for dialect in plain)


def _has_blanks(head: Sequence[str], dialect: Dialect) -> bool:
    """Return whether a blank follows every delimiter of the first lines."""
    fields = [field for line in head[:20] for field in line.split(dialect.delimiter)[1:]]
    return bool(fields) and all(field.startswith(" ") for field in fields if field.strip())


class _Lines:
    """The lines of a file, with those of the current record, which can be read again."""

    def __init__(self, text: Iterable[str], first: int) -> None:
        self._text = iter(text)
        self._again: deque[str] = deque()
        self._begin = first
        self.used: list[str] = []

    def __iter__(self) -> Iterator[str]:
        use = self.used.append
        while self._again:
            use(self._again[0])
            yield self._again.popleft()
        for line in self._text:
            use(line)
            yield line

    def put_back(self) -> None:
        """End the current record after its first line; the others come in the next iteration."""
        self._again.extendleft(reversed(self.used[1:]))
        del self.used[1:]

    def take(self, fields: list[str] | None, problem: str | None) -> Row:
        """Return the row of the current record; start the next."""
        begin, size = self._begin, len(self.used)
        raw = self.used[0] if size == 1 else "".join(self.used)
        self._begin = begin + size
        self.used.clear()
        return begin, size, fields, raw, problem


class _Shape:
    """What the records of a file have in common: their number of fields, and patterns of these."""

    def __init__(
        self,
        head: Sequence[str],
        dialect: Dialect,
        header: Sequence[str] | None,
        *,
        trusted: bool = False,
    ) -> None:
        """`trusted`: only a damaged record of several lines is several records."""
        self.head, self.dialect, self._header = head, dialect, header
        self._trusted = trusted

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the first lines."""
        return _rows(_Lines(self.head, 1), self.dialect, self)

    def fit(self) -> tuple[float, int]:
        """Return the share of sound records, and how many fields the header has.

        They have as many fields as the header, and an even number of quotation marks.
        """
        rows = [(fields, raw) for _, _, fields, raw, _ in self.rows() if fields != []]
        size = len(self._header or (rows.pop(0)[0] if rows else None) or ())
        if size < 2:
            return 0.0, 0
        good = sum(len(fields or ()) == size and self._is_even(raw) for fields, raw in rows)
        return good / max(len(rows), 1), size

    def _is_even(self, raw: str) -> bool:
        if self.dialect.escape:
            raw = re.sub(rf"(?s){re.escape(self.dialect.escape)}.", "", raw)
        return not self.dialect.quoted or raw.count('"') % 2 == 0

    @cached_property
    def quotes(self) -> tuple[int, int]:
        """How many fields of the first lines are in quotation marks, and how many must be."""
        delimiter = self.dialect.delimiter
        sign = re.escape(delimiter)
        wrapped = re.compile(rf'(?:^|{sign})\s*"((?:[^"]|"")*)"\s*(?={sign}|$)')
        fields = [field for line in self.head[1:] for field in wrapped.findall(line.rstrip("\r\n"))]
        return len(fields), sum(delimiter in field or '""' in field for field in fields)

    def has_swallowed(self, fields: Sequence[str] | None, lines: Sequence[str]) -> bool:
        """Return whether a record of several lines is rather several records.

        It is if it is damaged, or if nearly all of its lines would be records by themselves: a text
        that quotes a table has other lines too. If a column with patterns has a line break, their
        number of fields suffices. Where most fields are in quotation marks, a record that swallows
        others is damaged. In a file of one column, a record of many lines counts as several.
        """
        if fields is None or len(fields) != self._size or not self._is_even("".join(lines)):
            return True
        if self._trusted:
            return False
        if self._size == 1:
            return len(lines) > _LONG
        patterns, _ = self._patterns
        if 2 * self.quotes[0] > len(self.head) or not patterns:
            return False
        torn = any(set(fields[number]) & {"\r", "\n"} for number in patterns)
        fit = sum(self._fits(line, loosely=torn) for line in lines)
        return fit >= max(_REGULAR * len(lines), 2)

    def fitted(self, fields: list[str]) -> list[str]:
        """Return the fields of a record without the empty one after a trailing delimiter."""
        extra = len(fields) == self._size + 1 and not fields[-1]
        return fields[:-1] if extra else fields

    @cached_property
    def _size(self) -> int:
        if self._header is not None:
            return len(self._header)
        try:
            return len(next(filter(None, self.dialect.rows(self.head)), ()))
        except csv.Error:
            return 0

    @cached_property
    def _patterns(self) -> tuple[Mapping[int, frozenset[str]], int]:
        """The patterns of the columns that have few, and the text.

        The text has none: it is the column with the most patterns and characters.
        """
        records = _rows(_Lines(self.head[1:], 2), self.dialect, None)
        rows = [fields for _, size, fields, _, _ in records if size == 1 and fields]
        if len(rows) < _FEW:  # too much is swallowed
            rows = [self.dialect.fields(line) for line in self.head[1:]]
        rows = [row for row in rows if len(row) == self._size]
        columns = list(zip(*rows, strict=True)) if len(rows) >= _FEW else []
        patterns = [Counter(map(_pattern, column)) for column in columns]
        for n, column in enumerate(columns):
            if not _common(patterns[n]) and _common(found := Counter(map(_mixture, column))):
                patterns[n] = found
        variety = [len(found) * sum(map(len, columns[n])) for n, found in enumerate(patterns)]
        common = {n: _common(found) for n, found in enumerate(patterns)}
        for n, values in enumerate(map(Counter, columns)):
            if len(values) * 10 <= len(rows):  # a label or a language: its values tell more
                common[n] = frozenset(values)
        most = max(variety, default=0)
        return {
            n: known
            for n, known in common.items()
            if known and "" not in known and variety[n] < most
        }, variety.index(most) if most else 0

    def _fits(self, line: str, *, loosely: bool) -> bool:
        """Return whether a line would be a record, if delimiters in its text were quoted.

        `loosely`: by its number of fields alone.
        """
        fields = self.dialect.fields(line)
        patterns, text = self._patterns
        more = len(fields) - self._size
        return more >= 0 and all(
            loosely or known & {_pattern(field), _mixture(field), field.strip(' "')}
            for n, known in patterns.items()
            for field in [fields[n if n < text else n + more]]
        )


def _common(patterns: Counter[str]) -> frozenset[str]:
    """Return the few patterns that nearly all values of a column have; empty: they have others."""
    most = patterns.most_common(_PATTERNS)
    shares = accumulate(number / patterns.total() for _, number in most)
    enough = sum(share < _REGULAR for share in shares) + 1
    return (
        frozenset(pattern for pattern, _ in most[:enough]) if enough <= len(most) else frozenset()
    )


def _pattern(field: str) -> str:
    """Return a field with `a` for its words and `9` for its numbers."""
    return re.sub(r"\d+", "9", re.sub(r"[^\W\d_]+", "a", field[:80].strip(' "')))


def _mixture(field: str) -> str:
    """Return a field of letters and digits, as random ids are, with the lengths of its words.

    >>> _mixture("98808344-8b52-4b4a-97b7-50923ceb3ffd")
    '8-4-4-4-12'
    """
    field = field[:80].strip(' "')
    if " " in field or not re.search(r"\d", field):
        return field
    return re.sub(r"\w+", lambda found: str(len(found[0])), field)


def _rows(lines: _Lines, dialect: Dialect, shape: _Shape | None) -> Iterator[Row]:
    return chain.from_iterable(_chunks(lines, dialect, shape))


def _chunks(lines: _Lines, dialect: Dialect, shape: _Shape | None) -> Iterator[list[Row]]:
    reader = dialect.rows(lines)
    more, trailing, used = True, dialect.trailing, lines.used
    while more:
        chunk: list[Row] = []
        characters = 0
        with _field_limit():
            while more and len(chunk) < _CHUNK and characters < _CHUNK_CHARACTERS:
                fields, problem = None, None
                try:
                    fields = next(reader, None)
                    more = fields is not None
                except csv.Error:
                    problem = "malformed_record"
                if len(used) > 1 and shape and shape.has_swallowed(fields, used):
                    lines.put_back()
                    reader, more = dialect.rows(lines), True
                    fields, problem = None, "unclosed_quote"
                elif trailing and shape and fields:
                    fields = shape.fitted(fields)
                row = lines.take(fields, problem)
                characters += len(row[3])
                if row[1]:
                    chunk.append(row)
        yield chunk


@contextmanager
def _field_limit() -> Iterator[None]:
    """Raise the field limit of the csv module, which is global, and restore it afterwards."""
    with _FIELD_LIMIT_LOCK:
        before = csv.field_size_limit(MAX_FIELD)
        try:
            yield
        finally:
            csv.field_size_limit(before)
