"""Converts records of a source to Arrow batches of the table `landed`.

No row is dropped: a value that cannot be read becomes null, and `problem` says why.
"""

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

from modwatch.common.errors import SourceError
from modwatch.data.lake.schemas import LANDED
from modwatch.data.sources.own_scores import SCORE_COLUMNS, OwnScores
from modwatch.data.sources.timestamps import Moment

#: Maximum size of a batch in rows …
BATCH_ROWS = 10_000
#: … and in characters of text, whichever is reached first.
BATCH_CHARACTERS = 16_000_000

#: The columns of `landed` that a source may map to columns of its own.
FILLABLE = (
    "comment_id",
    "text",
    "platform",
    "thread_id",
    "parent_text",
    "language",
    "author_id",
    "groups",
    "label",
)

_LABELS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}


@dataclass(frozen=True, kw_only=True, slots=True)
class LandedRow:
    """One row of `landed` without `dt` and `row`, which `batches` adds."""

    #: File and line, or query and ordinal.
    origin: str
    #: UTC; None when it could not be read.
    created_at: dt.datetime | None = None
    #: Converted values by the names of FILLABLE and SCORE_COLUMNS.
    values: Mapping[str, Any] = field(repr=False)
    #: Why the row could not be read, or None.
    problem: str | None = None


def batches(day: dt.date, rows: Iterable[LandedRow]) -> Iterator[pa.RecordBatch]:
    """Yield `rows` as batches with the schema LANDED, numbered from 0 in their order."""
    pending: list[LandedRow] = []
    first, characters = 0, 0
    for row in rows:
        pending.append(row)
        characters += len(row.values.get("text") or "") + len(row.values.get("parent_text") or "")
        if len(pending) >= BATCH_ROWS or characters >= BATCH_CHARACTERS:
            yield _batch(day, first, pending)
            first, characters, pending = first + len(pending), 0, []
    if pending:
        yield _batch(day, first, pending)


def column_batch(
    day: dt.date, first: int, columns: Mapping[str, Sequence[Any] | pa.Array]
) -> pa.RecordBatch:
    """Return one batch with the schema LANDED from `columns`; absent columns are null.

    `columns` must include `origin`; `first` is the ordinal of the first row within the day.
    """
    size = len(columns["origin"])
    given = {"dt": [day] * size, "row": range(first, first + size), **columns}
    arrays = [
        pa.array(given[field.name], field.type)
        if field.name in given
        else pa.nulls(size, field.type)
        for field in LANDED
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=LANDED)


def check_columns(columns: Mapping[str, str], own_scores: OwnScores | None) -> None:
    """Raise SourceError when `columns` maps something that is no column of `landed`.

    Without `own_scores` nor may it map the columns of scores.
    """
    unknown = sorted(set(columns) - set(FILLABLE) - set(SCORE_COLUMNS))
    scores = sorted(set(columns) & set(SCORE_COLUMNS))
    if scores and own_scores is None:
        raise SourceError(
            f"`columns` maps {', '.join(scores)}, but a model scores the comments; set "
            "MODWATCH_SOURCE__OWN_SCORES=true to take the scores of the source."
        )
    if unknown:
        raise SourceError(
            f"`columns` maps {', '.join(unknown)}, which Modwatch does not have; it may map "
            f"{', '.join(FILLABLE)} (the time is `timestamp_column`)."
        )


def source_columns(
    columns: Mapping[str, str],
    available: Collection[str],
    *,
    timestamp_column: str,
    own_scores: OwnScores | None = None,
    optional: Collection[str] = (),
    missing: Callable[[str], SourceError],
) -> dict[str, str]:
    """Return the source's column of each Modwatch column that it has.

    Required are the columns of id, text and time, of the probability if the source brings scores,
    and those in `columns` but not in `optional`.

    Raises:
        SourceError: `missing(column)`, for the first required column that is not available.
    """
    fillable = FILLABLE if own_scores is None else (*FILLABLE, *SCORE_COLUMNS)
    names = {name: columns.get(name, name) for name in fillable}
    required = {"comment_id", "text", *columns} - set(optional)
    if own_scores is not None:
        required.add("prob")
    for column in (*(names[name] for name in fillable if name in required), timestamp_column):
        if column not in available:
            raise missing(column)
    return {name: column for name, column in names.items() if column in available}


def landed_row(
    origin: str,
    record: Mapping[str, object],
    names: Mapping[str, str],
    moment: Moment,
    *,
    platform: str | None,
    own_scores: OwnScores | None = None,
) -> LandedRow:
    """Return a record as a row; `names` are as from `source_columns`, `platform` is the default."""
    values, problems = {}, [moment.problem]
    for name, column in names.items():
        values[name], problem = convert(name, record.get(column))
        problems.append(problem)
    if values.get("platform") is None:
        values["platform"] = platform
    if own_scores is not None:
        values |= own_scores.left_out(values, available=names)
    problem = next(filter(None, problems), None)
    return LandedRow(origin=origin, created_at=moment.created_at, values=values, problem=problem)


def _batch(day: dt.date, first: int, rows: Sequence[LandedRow]) -> pa.RecordBatch:
    columns: dict[str, list[Any]] = {
        "origin": [row.origin for row in rows],
        "created_at": [row.created_at for row in rows],
        "problem": [row.problem for row in rows],
    }
    for name in (*FILLABLE, *SCORE_COLUMNS):
        columns[name] = [row.values.get(name) for row in rows]
    return column_batch(day, first, columns)


def convert(name: str, value: object) -> tuple[Any, str | None]:
    """Return `value` converted for column `name` of `landed`, and its problem or None.

    >>> convert("label", "1"), convert("label", "maybe")
    ((1, None), (None, 'unreadable_label'))
    >>> convert("comment_id", 17), convert("comment_id", "")
    (('17', None), (None, None))
    >>> convert("groups", "bakers|shepherds")
    (['bakers', 'shepherds'], None)
    >>> convert("prob", "0.25"), convert("prob", "0,25"), convert("flagged", "true")
    ((0.25, None), (None, 'unreadable_probability'), (True, None))
    """
    if value is None:
        return None, None
    if name == "label":
        return _label(value)
    if name == "groups":
        return _groups(value)
    if name == "prob":
        return _probability(value)
    if name == "flagged":
        return _decision(value)
    if value == "" and name != "text":  # the only null of a CSV file
        return None, None
    return _string(value)


def _string(value: object) -> tuple[str | None, str | None]:
    if isinstance(value, bool | list | dict):
        return str(value), "malformed_record"
    return decodable(str(value))


def decodable(text: str) -> tuple[str, str | None]:
    """Return `text` as valid UTF-8, and `undecodable_text` if characters were replaced.

    >>> decodable("fine"), decodable(b"caf\\xe9".decode("utf-8", "surrogateescape"))
    (('fine', None), ('caf\ufffd', 'undecodable_text'))
    """
    if text.isascii():
        return text, None
    try:
        text.encode()
    except UnicodeEncodeError:
        # errors="replace" would write "?", an ordinary character.
        replaced = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
        return replaced, "undecodable_text"
    return text, None


def _label(value: object) -> tuple[int | None, str | None]:
    written = str(value).strip().lower()
    if not written:
        return None, None
    if written not in _LABELS:
        return None, "unreadable_label"
    return _LABELS[written], None


def _probability(value: object) -> tuple[float | None, str | None]:
    if isinstance(value, str) and not value.strip():
        return None, None
    if isinstance(value, str | int | float | Decimal) and not isinstance(value, bool):
        try:
            return float(value), None
        except (ValueError, OverflowError):
            pass
    return None, "unreadable_probability"


def _decision(value: object) -> tuple[bool | None, str | None]:
    label, problem = _label(value)
    return None if label is None else label == 1, problem and "unreadable_decision"


def _groups(value: object) -> tuple[list[str] | None, str | None]:
    if isinstance(value, str):
        names: list[object] = [name for name in value.split("|") if name]
    elif isinstance(value, list | tuple):
        names = [name for name in value if name is not None]
    else:
        return None, "malformed_record"
    pairs = [_string(name) for name in names]
    return [text for text, _ in pairs if text], next((p for _, p in pairs if p), None)
