"""Labelled comments for training: files in any readable format, or a database."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import text as statement

from modwatch.common.errors import SourceError
from modwatch.data.sources.corpora.corpus import LabelledTexts
from modwatch.data.sources.readers import column_names, read_records
from modwatch.data.sources.sql import connected, parse_url, public_name

_YES, _NO = frozenset({"true", "t", "yes"}), frozenset({"false", "f", "no"})


@dataclass(frozen=True, kw_only=True)
class LabelColumns:
    """The columns of a labelled source, and what its labels mean."""

    text: str = "text"
    #: A number in [0, 1] (the share of toxic votes), true or false, a list of such votes, or one of
    #: the words of `toxic_values` and any other.
    label: str = "label"
    #: Rows with the same id are votes on one comment; None: each row is a comment.
    comment_id: str | None = None
    language: str | None = None
    #: A list of the identities that a comment mentions; None: not known.
    groups: str | None = None
    #: Words that mean toxic; other words mean not toxic.
    toxic_values: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class _Row:
    origin: str
    text: str
    share: float
    key: object
    language: str | None
    groups: tuple[str, ...]


def read_labelled(
    sources: Sequence[str | Path],
    *,
    columns: LabelColumns | None = None,
    query: str | None = None,
) -> LabelledTexts:
    """Return the labelled texts of all sources, in order.

    Rows without text or label are left out and counted.

    Args:
        sources: CSV, TSV, JSON lines or Parquet files, or one SQLAlchemy URL.
        columns: default: `text` and `label`.
        query: a SELECT, for the URL.

    Raises:
        SourceError: a source cannot be read, a column is missing, or a label is none of those
            allowed. The message names the row and quotes nothing.
    """
    columns = columns or LabelColumns()
    left_out: Counter[str] = Counter()
    outside: list[str] = []
    rows: dict[object, list[_Row]] = {}
    for source in sources:
        for origin, values in _records(source, columns, query, left_out):
            row = _row(origin, values, columns, left_out, outside)
            if row is not None:
                rows.setdefault(row.key, []).append(row)
    if outside:
        raise SourceError(
            f"{len(outside)} rows (the first: {outside[0]}) have a label in column "
            f"{columns.label!r} that is no number from 0 to 1, no true or false, and no list of "
            "these; correct them, or name the words that mean toxic with --toxic-values."
        )
    return LabelledTexts(
        texts=tuple(votes[0].text for votes in rows.values()),
        labels=np.array([np.mean([vote.share for vote in votes]) for votes in rows.values()]),
        left_out=left_out,
        languages=tuple(votes[0].language for votes in rows.values()) if columns.language else (),
        groups=tuple(votes[0].groups for votes in rows.values()) if columns.groups else (),
    )


def _records(
    source: str | Path, columns: LabelColumns, query: str | None, left_out: Counter[str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the origin and the values of each row."""
    if "://" in str(source):
        yield from _selected(str(source), columns, query)
        return
    path = Path(source)
    _check(path.name, columns, column_names(path))
    for record in read_records(path):
        if record.problem:
            left_out[record.problem] += 1
        else:
            yield f"{path.name}, line {record.line}", record.values


def _selected(
    url: str, columns: LabelColumns, query: str | None
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not query:
        raise SourceError("A database requires a query; pass --query 'SELECT text, label FROM …'.")
    parsed = parse_url(url)
    name = public_name(parsed)
    with connected(parsed, name) as connection:
        result = connection.execution_options(stream_results=True).execute(statement(query))
        _check(name, columns, list(result.keys()))
        for number, row in enumerate(result.mappings(), start=1):
            yield f"{name}, row {number}", {str(key): value for key, value in row.items()}


def _check(name: str, columns: LabelColumns, available: Sequence[str]) -> None:
    wanted = [columns.text, columns.label, columns.comment_id, columns.language, columns.groups]
    missing = [column for column in wanted if column and column not in available]
    if missing:
        raise SourceError(
            f"{name} has no column {missing[0]!r}; name its columns with --text-column and "
            "--label-column."
        )


def _row(
    origin: str,
    values: Mapping[str, Any],
    columns: LabelColumns,
    left_out: Counter[str],
    outside: list[str],
) -> _Row | None:
    text, label = values.get(columns.text), values.get(columns.label)
    if not isinstance(text, str) or not text.strip():
        left_out["no_text"] += 1
        return None
    if label is None or (isinstance(label, str) and not label.strip()):
        left_out["no_label"] += 1
        return None
    share = _share(label, columns.toxic_values)
    if share is None:
        outside.append(origin)
        return None
    language = values.get(columns.language) if columns.language else None
    return _Row(
        origin=origin,
        text=text.encode("utf-8", "replace").decode("utf-8"),
        share=share,
        key=values.get(columns.comment_id) if columns.comment_id else (origin,),
        language=None if language is None else str(language),
        groups=_names(values.get(columns.groups)) if columns.groups else (),
    )


def _names(value: object) -> tuple[str, ...]:
    """Return the names in a list, or in the JSON list of a text file.

    >>> _names('["women"]'), _names(None)
    (('women',), ())
    """
    if isinstance(value, str) and value.strip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            return ()
    if value is None or isinstance(value, str):
        return (value.strip(),) if value else ()
    return tuple(str(name) for name in value) if isinstance(value, Iterable) else ()


def _share(label: object, toxic: frozenset[str]) -> float | None:
    """Return the share of votes that say toxic; None if the label is none of those allowed.

    >>> _share("0.25", frozenset()), _share([1, 0, None], frozenset())
    (0.25, 0.5)
    >>> _share("abusive", frozenset({"abusive"})), _share("5", frozenset())
    (1.0, None)
    """
    if isinstance(label, str) and label.strip().startswith("["):
        try:
            label = json.loads(label)
        except ValueError:
            return None
    if isinstance(label, Sequence) and not isinstance(label, str):
        votes = [_share(vote, toxic) for vote in label if vote is not None]
        known = [vote for vote in votes if vote is not None]
        return sum(known) / len(known) if known and len(known) == len(votes) else None
    word = str(label).strip().lower()
    if toxic:
        return float(word in {value.lower() for value in toxic})
    if word in _YES | _NO:
        return float(word in _YES)
    try:
        number = float(word)
    except ValueError:
        return None
    return number if math.isfinite(number) and 0 <= number <= 1 else None
