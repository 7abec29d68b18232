"""Sources of comments, and the conversion of their records to batches of the table `landed`.

No row is dropped but those that repeat another one. A value that cannot be read becomes null: of an
optional column it is named in `faults`, of any other in `problem`, and the row cannot be used.
Sources: `files.FileSource`, `sql.SqlSource`, and those of entry points (`docs/extending.md`).
"""

import datetime as dt
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from modwatch.common.account import Account
from modwatch.common.columns import COLUMNS, OPTIONAL, Column
from modwatch.common.errors import SourceError
from modwatch.data.lake.schemas import NO_DECISION, schema_of
from modwatch.data.sources.readers import require_columns
from modwatch.data.sources.timestamps import Moment, check_format, read_moment, zone
from modwatch.data.sources.values import (
    DECISIONS,
    LANGUAGE,
    TAKERS,
    USUAL,
    Vocabulary,
    decision_of,
    majority,
    names_of,
    number_of,
    probability_of,
    taker_of,
    text_of,
    vote_of,
)
from modwatch.statistics.decisions import is_flagged

#: Maximum size of a batch in rows …
BATCH_ROWS = 10_000
#: … and in characters of text, whichever is reached first.
BATCH_CHARACTERS = 16_000_000

#: The columns of `landed` that a source may map to columns of its own.
FILLABLE = tuple(column.name for column in COLUMNS)

#: Those that are ids, which must be exact.
IDS = {column.name for column in COLUMNS if column.type == "id"}

#: The columns of `landed` that a source of scores may map, too. `prob` is required.
SCORE_COLUMNS = ("prob", "model_version", "flagged")

#: Those whose value a row cannot do without, if the source has them.
_NEEDED = ("comment_id", "text", *SCORE_COLUMNS)


class Source(Protocol):
    """Provides the comments of a day."""

    @property
    def name(self) -> str:
        """The source, for messages and provenance; no secrets."""
        ...

    def read(self, day: dt.date, account: Account | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the comments of the UTC day `day` with the schema `LANDED` of the lake.

        After its columns may come any that MODWATCH_COLUMNS adds.
        `account` gets what was read, and all of it that is no row of the day.

        Batches have at most 10,000 rows; `row` counts from 0 within the day; the same day gives the
        same rows in the same order. Rows that cannot be read have `problem` set; none is dropped.
        Raises SourceError when the source itself cannot be read.
        """
        ...


@runtime_checkable
class CountedSource(Source, Protocol):
    """A source that rows are added to when their day has long been read."""

    def counts(self, days: Sequence[dt.date]) -> dict[dt.date, int]:
        """Return how many rows `read` would yield of each day, but for days that are unknown.

        Raises SourceError when the source itself cannot be read.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class LandedRow:
    """One row of `landed` without `dt` and `row`, which `batches` adds."""

    #: File and line, or query and ordinal.
    origin: str
    #: UTC; None when it could not be read.
    created_at: dt.datetime | None = None
    #: Converted values by the names of FILLABLE, SCORE_COLUMNS, and the platform's own.
    values: Mapping[str, Any] = field(repr=False)
    #: Why the row could not be read, or None.
    problem: str | None = None
    #: Optional columns whose value could not be read and is missing, each with the reason.
    faults: Sequence[str] = ()


def batches(
    day: dt.date,
    rows: Iterable[LandedRow],
    account: Account | None = None,
    own: Sequence[Column] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield `rows` as batches with the schema LANDED, numbered from 0 in their order.

    A row that repeats an earlier one is counted in `account` and left out; see `distinct`. `own`
    are the columns of the platform.
    """
    return in_batches(day, distinct(rows, account or Account()), own)


def in_batches(
    day: dt.date, rows: Iterable[LandedRow], own: Sequence[Column] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield all of `rows` as `batches` does, also those that repeat another one."""
    pending: list[LandedRow] = []
    first, characters = 0, 0
    for row in rows:
        pending.append(_typed(row, own) if own else row)
        characters += len(row.values.get("text") or "") + len(row.values.get("parent_text") or "")
        if len(pending) >= BATCH_ROWS or characters >= BATCH_CHARACTERS:
            yield _batch(day, first, pending, own)
            first, characters, pending = first + len(pending), 0, []
    if pending:
        yield _batch(day, first, pending, own)


def _typed(row: LandedRow, own: Sequence[Column]) -> LandedRow:
    """Return a row with the values of the platform's columns in their types, or missing."""
    read = {column.name: converted(column.type, row.values.get(column.name)) for column in own}
    values = {name: value for name, (value, _) in read.items()}
    faults = (f"{name}: {problem}" for name, (_, problem) in read.items() if problem)
    return replace(row, values={**row.values, **values}, faults=[*row.faults, *faults])


def distinct(rows: Iterable[LandedRow], account: Account) -> Iterator[LandedRow]:
    """Yield the rows but those that have id, time and all values of an earlier one.

    Exports and feeds bring the same comment more than once; it counts once. Rows without an id may
    be different comments.

    >>> account, row = Account(), LandedRow(origin="a.csv:2", values={"comment_id": "1"})
    >>> len([*distinct([row, row], account)]), account.places["repeated"]
    (1, 1)
    """
    seen: set[int] = set()
    for row in rows:
        # Of 64 bits, with a key of this process, of all but where the row is from.
        values = (row.created_at, row.problem, *row.faults, *row.values.values())
        try:
            contents = hash(values)
        except TypeError:  # a list of groups
            contents = hash(repr(values))
        if contents not in seen:
            seen.add(contents)
        elif row.values.get("comment_id") is not None:
            account.count("repeated", where=row.origin)
            continue
        yield row


def counted(batches: Iterable[pa.RecordBatch], account: Account | None) -> Iterator[pa.RecordBatch]:
    """Yield batches of a source that has rows of the day only, and count them as read."""
    for batch in batches:
        if account is not None:
            account.read += batch.num_rows
        yield batch


def column_batch(
    day: dt.date,
    first: int,
    columns: Mapping[str, Sequence[Any] | pa.Array],
    own: Sequence[Column] = (),
) -> pa.RecordBatch:
    """Return one batch with the schema LANDED from `columns`; absent columns are null.

    `columns` must include `origin`; `first` is the ordinal of the first row within the day. Values
    of optional columns, and of the platform's `own`, that cannot be are null, and named in
    `faults`.
    """
    size, schema = len(columns["origin"]), schema_of("landed", own)
    nulls = {name: pa.nulls(size) for name in schema.names}
    given = {**nulls, "dt": [day] * size, "row": range(first, first + size), **columns}
    named = (*OPTIONAL, *(column.name for column in own))
    return _without_faults(pa.RecordBatch.from_pydict(given, schema=schema), named)


def _without_faults(batch: pa.RecordBatch, optional: Iterable[str]) -> pa.RecordBatch:
    faults: list[list[str] | None] | None = None
    for name in optional:
        column = batch.column(name)
        for fault, bad in _bad_values(name, column):
            rows = np.flatnonzero(pc.fill_null(bad, False).to_numpy(zero_copy_only=False))
            if not rows.size:
                continue
            faults = batch.column("faults").to_pylist() if faults is None else faults
            for row in rows:
                faults[row] = [*(faults[row] or ()), f"{name}: {fault}"]
            at = batch.schema.get_field_index(name)
            batch = batch.set_column(at, batch.schema.field(at), pc.if_else(bad, None, column))
    if faults is None:
        return batch
    at = batch.schema.get_field_index("faults")
    field = batch.schema.field(at)
    return batch.set_column(at, field, pa.array(faults, field.type))


def _bad_values(name: str, column: pa.Array) -> Iterator[tuple[str, pa.BooleanArray]]:
    """Yield which values of an optional column cannot be, with the reason."""
    if column.type == pa.string():
        yield "nul_byte", pc.match_substring(column, "\x00")
    if name == "groups":
        named = pc.fill_null(pc.binary_join(column, " "), "")
        yield "nul_byte", pc.match_substring(named, "\x00")
    if name == "language":
        yield "malformed_language", pc.invert(pc.match_substring_regex(column, f"^({LANGUAGE})$"))
    if name in _ALLOWED:
        known = pc.is_in(column, pa.array(_ALLOWED[name]))
        yield f"unreadable_{name}", pc.and_(pc.invert(known), column.is_valid())


@dataclass(frozen=True, kw_only=True)
class OwnScores:
    """What stands for the columns that a source of scores does not have.

    >>> OwnScores(threshold=0.7).left_out({"prob": 0.8}, available=["prob", "model_version"])
    {'flagged': True}
    """

    #: In [0, 1]; without a column `flagged`, comments with prob > threshold are flagged.
    threshold: float = 0.5
    #: Without a column `model_version`.
    model_version: str = "own"
    #: What a score of certainly toxic is: 1, or 100 in per cent.
    scale: float = 1

    def left_out(
        self, values: Mapping[str, Any], *, available: Collection[str]
    ) -> dict[str, bool | str | None]:
        """Return the values of the score columns that are not `available`, for a row of values.

        A column that the source has is taken as it is: a missing value of it stays missing.
        """
        filled: dict[str, bool | str | None] = {}
        if "model_version" not in available:
            filled["model_version"] = self.model_version
        if "flagged" not in available:
            prob = values.get("prob")
            filled["flagged"] = None if prob is None else bool(is_flagged(prob, self.threshold))
        return filled


@dataclass(frozen=True, kw_only=True)
class MappedSource:
    """A source of records with named columns, which it maps to those of `landed`."""

    #: The source's name of each Modwatch column (`comment_id`, `text`, `language`, …) that it names
    #: differently; `""`: it is not read. Lists of groups are JSON arrays or names separated by `|`.
    columns: Mapping[str, str] = field(default_factory=dict)
    #: The source's column for `created_at`.
    timestamp_column: str = "created_at"
    #: Format of times in text, in the notation of strptime; None: ISO 8601, or seconds since 1970.
    timestamp_format: str | None = None
    #: IANA zone of times without one; None: such times are a problem.
    assume_timezone: str | None = None
    #: Platform of rows without one.
    platform: str | None = None
    #: Who took the decisions that do not say: model | rule | person.
    decided_by: str | None = None
    #: What the words of labels, votes and decisions mean.
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    #: Texts that stand for a comment that was deleted: its row is left out, and counted. As values
    #: of other columns they are missing.
    deleted_texts: Collection[str] = ()
    #: Columns with one vote each: the known label is that of most votes; of a tie, there is none.
    votes: Sequence[str] = ()
    #: The source brings scores, in columns `prob`, `model_version` and `flagged`; None: it does
    #: not.
    own_scores: OwnScores | None = None
    #: The columns of the platform, of MODWATCH_COLUMNS.
    own: Sequence[Column] = ()

    def __post_init__(self) -> None:
        unknown = sorted(set(self.columns) - {*self._fillable, *SCORE_COLUMNS})
        scores = sorted(set(self.columns) & set(SCORE_COLUMNS))
        if scores and self.own_scores is None:
            raise SourceError(
                f"`columns` maps {', '.join(scores)}, but a model scores the comments; set "
                "MODWATCH_SOURCE__OWN_SCORES=true to take the scores of the source."
            )
        if unknown:
            raise SourceError(
                f"`columns` maps {', '.join(unknown)}, which Modwatch does not have; it may map "
                f"{', '.join(self._fillable)} (the time is `timestamp_column`), and what "
                "MODWATCH_COLUMNS adds."
            )
        zone(self.assume_timezone)
        check_format(self.timestamp_format)

    def read(self, day: dt.date, account: Account | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `day` as batches with the schema LANDED, in the order of the source.

        Raises SourceError when there is no file, a file or query cannot be read, or a column is
        missing.
        """
        account = account or Account()
        return batches(day, self.undeleted(self._rows(day, account), account), account, self.own)

    def undeleted(self, rows: Iterable[LandedRow], account: Account) -> Iterable[LandedRow]:
        """Return the rows but those whose text stands for a deleted comment, which are counted."""
        return self._undeleted(rows, account) if self.deleted_texts else rows

    def _undeleted(self, rows: Iterable[LandedRow], account: Account) -> Iterator[LandedRow]:
        for row in rows:
            if row.values.get("text") in self.deleted_texts:
                account.count("deleted", where=row.origin)
            else:
                yield row

    def _rows(self, day: dt.date, account: Account) -> Iterator[LandedRow]:
        raise NotImplementedError

    @cached_property
    def _fillable(self) -> tuple[str, ...]:
        return (*FILLABLE, *self._own)

    @cached_property
    def _own(self) -> dict[str, str]:
        """The type of each column of the platform."""
        return {column.name: column.type for column in self.own}

    @cached_property
    def _zone(self) -> dt.tzinfo | None:
        return zone(self.assume_timezone)

    def _moment(self, record: Mapping[str, object]) -> Moment:
        """Return the time of a record."""
        return read_moment(record.get(self.timestamp_column), self._zone, self.timestamp_format)

    def _source_columns(
        self,
        available: Sequence[str],
        *,
        where: str,
        remedy: str,
        optional: Collection[str] = (),
    ) -> dict[str, str]:
        """Return the source's column of each Modwatch column that it has.

        Required are the columns of id, text and time, of the probability if the source brings
        scores, and those in `columns` and `votes`; none in `optional`.

        Raises:
            SourceError: a required column is not available; `where` and `remedy` are named.
        """
        scores = () if self.own_scores is None else SCORE_COLUMNS
        fillable = (*self._fillable, *scores)
        names = {name: self.columns.get(name, name) for name in fillable}
        names = {name: column for name, column in names.items() if column}
        if self.votes:
            names.pop("label", None)
        required = {"comment_id", "text", *self.columns} - set(optional)
        if self.own_scores is not None:
            required.add("prob")
        needed = [names[name] for name in names if name in required] + [*self.votes]
        needed += [] if "created_at" in optional else [self.timestamp_column]
        settings = "MODWATCH_SOURCE__COLUMNS or MODWATCH_SOURCE__TIMESTAMP_COLUMN"
        missing = (name for name in needed if name not in available)  # of several, the first counts
        remedies = dict.fromkeys(missing, f"Map it with {settings}, or {remedy}.")
        require_columns(where, available, remedies)
        return {name: column for name, column in names.items() if column in available}

    def _landed_row(
        self, origin: str, record: Mapping[str, object], names: Mapping[str, str], moment: Moment
    ) -> LandedRow:
        """Return a record as a row; `names` are from `_source_columns`."""
        values: dict[str, Any] = {}
        unread, faults, deleted = moment.problem, [], self.deleted_texts
        for name, column in names.items():
            values[name], problem = self._converted(name, record.get(column))
            if problem and name in _NEEDED:
                unread = unread or problem
            elif problem:
                values[name] = None
                faults.append(f"{name}: {problem}")
            elif deleted and name not in _NEEDED and values[name] in deleted:
                values[name] = None
        if self.votes:
            votes = [vote_of(record.get(column), self.vocabulary) for column in self.votes]
            problem = next((problem for _, problem in votes if problem), None)
            values["label"] = None if problem else majority(vote for vote, _ in votes)[0]
            if problem:
                faults.append(f"label: {problem}")
        if values.get("platform") is None:
            values["platform"] = self.platform
        if values.get("decision") in DECISIONS and values.get("decided_by") is None:
            values["decided_by"] = self.decided_by
        if self.own_scores is not None:
            if values.get("prob") is not None:
                values["prob"] /= self.own_scores.scale
            values |= self.own_scores.left_out(values, available=names)
        return LandedRow(
            origin=origin,
            created_at=moment.created_at,
            values=values,
            problem=unread,
            faults=faults,
        )

    def _converted(self, name: str, value: object) -> tuple[Any, str | None]:
        kind = self._own.get(name)
        if name != "decided_at" and kind != "time":
            return (value, None) if kind else convert(name, value, self.vocabulary)
        if self.vocabulary.is_no_vote(value):
            return None, None
        moment = read_moment(value, self._zone, self.timestamp_format)
        return moment.created_at, moment.problem


def _batch(
    day: dt.date, first: int, rows: Sequence[LandedRow], own: Sequence[Column]
) -> pa.RecordBatch:
    columns: dict[str, list[Any]] = {
        "origin": [row.origin for row in rows],
        "created_at": [row.created_at for row in rows],
        "problem": [row.problem for row in rows],
        "faults": [row.faults or None for row in rows],
    }
    for name in (*FILLABLE, *SCORE_COLUMNS, *(column.name for column in own)):
        columns[name] = [row.values.get(name) for row in rows]
    return column_batch(day, first, columns, own)


def _views(value: object) -> tuple[float | None, str | None]:
    number, problem = number_of(value)
    unreadable = problem or not 0 <= (number or 0) < math.inf
    return (None, "unreadable_views") if unreadable else (number, None)


#: The values that a source may give where they are words.
_ALLOWED = {"decision": (*DECISIONS, NO_DECISION), "decided_by": TAKERS}
#: How the columns of `landed` that are no text and no vote are read.
_CONVERTERS = {"groups": names_of, "views": _views, "prob": probability_of}
#: Those that are a word of the vocabulary.
_WORDS = {"decision": decision_of, "decided_by": taker_of}
#: Those that are a vote.
_VOTES = ("label", "flagged")
#: Their problems that name a column.
_PROBLEMS = {
    ("prob", "unreadable_number"): "unreadable_probability",
    ("flagged", "unreadable_label"): "unreadable_flag",
}


def convert(name: str, value: object, vocabulary: Vocabulary = USUAL) -> tuple[Any, str | None]:
    """Return `value` converted for column `name` of `landed`, and its problem or None.

    >>> convert("label", "1"), convert("label", "maybe")
    ((1, None), (None, 'unreadable_label'))
    >>> convert("comment_id", 17), convert("comment_id", "")
    (('17', None), (None, None))
    >>> convert("prob", "0,25"), convert("prob", "high"), convert("flagged", "true")
    ((0.25, None), (None, 'unreadable_probability'), (True, None))
    """
    if name in _WORDS:
        return _WORDS[name](value, vocabulary)
    if value is None:
        return None, None
    if name in _VOTES:
        vote, problem = vote_of(value, vocabulary)
        found = vote == 1 if name == "flagged" and vote is not None else vote
        return found, problem and _PROBLEMS.get((name, problem), problem)
    if name not in _CONVERTERS:
        text, problem = text_of(value)
        # A blank text is named by validation; of any other column it is the null of a CSV file.
        return (text if text or name == "text" else None), problem
    converted, problem = _CONVERTERS[name](value)
    return converted, problem and _PROBLEMS.get((name, problem), problem)


def converted(kind: str, value: object) -> tuple[Any, str | None]:
    """Return `value` converted for a column of the platform of a type, and its problem or None.

    >>> converted("integer", "17"), converted("integer", "17.5"), converted("boolean", "yes")
    ((17, None), (None, 'unreadable_integer'), (True, None))
    >>> converted("number", " "), converted("number", "inf"), converted("text", "")
    ((None, None), (None, 'unreadable_number'), (None, None))
    """
    if kind == "text":
        text, problem = text_of(value)
        return text or None, problem
    if USUAL.is_no_vote(value):
        return None, None
    found: Any = None
    if kind == "time":
        found = read_moment(value, None).created_at
    elif kind == "boolean":
        vote, _ = vote_of(value)
        found = None if vote is None else vote == 1
    else:
        number, _ = number_of(value)
        if number is not None and math.isfinite(number):
            found = number if kind == "number" else _whole(value, number)
    return found, f"unreadable_{kind}" if found is None else None


def _whole(value: object, number: float) -> int | None:
    """Return a whole number of 64 bits exactly; None for any other."""
    text, problem = text_of(value)
    if problem or number != int(number) or abs(number) >= 2.0**63:
        return None
    written = (text or "").strip()
    return int(written) if re.fullmatch(r"[+-]?\d+", written) else int(number)
