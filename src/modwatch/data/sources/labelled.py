"""Labelled comments for training: files in any readable format, or a database."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import text as statement

from modwatch.common.account import Account
from modwatch.common.errors import SourceError
from modwatch.common.text import folded, id_problem, text_problem
from modwatch.data.sources.delimited import TextFormat
from modwatch.data.sources.labels import label_of, shown_label
from modwatch.data.sources.readers import (
    Record,
    read_records,
    require_columns,
    table_columns,
    unique_names,
)
from modwatch.data.sources.sql import connected, parse_url, public_name
from modwatch.data.sources.values import (
    Vocabulary,
    listed,
    names_of,
    number_of,
    plain,
    text_of,
    vote_of,
)

#: Words of a label column, at most; and characters and parts of a word that is shown.
_WORDS, _CHARACTERS, _PARTS = 50, 40, 3
#: Reasons that most records of a source cannot have, and what to do.
_REMEDIES = {
    "undecodable_text": "name the encoding of the file with --encoding, such as cp1252, or convert "
    "the data to UTF-8",
    "malformed_record": "check that the text column holds text, and export the data again",
    "missing_id": "correct --column id=…, or leave it out if each row is a comment",
    "other_text_of_id": "another row with the same id has another text; correct --column id=…",
}


@dataclass(frozen=True, kw_only=True)
class LabelledTexts:
    """N labelled texts for training."""

    #: N texts, left out of the representation.
    texts: tuple[str, ...] = field(repr=False)
    #: (N,) in [0, 1]: 1 toxic, 0 not, or the share of annotators who labelled it toxic.
    labels: NDArray[Any] = field(repr=False)
    #: Where the rows of the source ended; N were used.
    account: Account
    #: N languages, None where unknown; empty if the source has none.
    languages: tuple[str | None, ...] = ()
    #: N lists of the identities that each text mentions; empty if the source has none.
    groups: tuple[tuple[str, ...], ...] = ()
    #: No person wrote them.
    invented: bool = False
    #: Share of toxic comments where they were selected from, in [0, 1]; None: not known.
    prevalence: float | None = None

    def without(self, rows: NDArray[np.bool_], reason: str) -> "LabelledTexts":
        """Return the texts but for some `rows` (N,), which count as left out for a reason."""
        account, number = deepcopy(self.account), int(rows.sum())
        account.move("used", {"used": len(rows) - number, reason: number})
        return replace(
            self,
            texts=tuple(compress(self.texts, ~rows)),
            labels=self.labels[~rows],
            account=account,
            languages=tuple(compress(self.languages, ~rows)),
            groups=tuple(compress(self.groups, ~rows)),
        )


@dataclass(frozen=True, kw_only=True)
class LabelColumns:
    """The columns of a labelled source, and what its labels mean."""

    text: str = "text"
    #: A number in [0, 1] (the share of toxic votes), a vote such as true or no, a list of these,
    #: or a word of the vocabulary.
    label: str = "label"
    #: Columns that hold a vote each, instead of `label`; a blank is no vote.
    votes: tuple[str, ...] = ()
    #: Rows with the same id are votes on one comment; None: each row is a comment.
    comment_id: str | None = None
    language: str | None = None
    #: A list of the identities that a comment mentions; a source may lack it. None: not read.
    groups: str | None = None
    vocabulary: Vocabulary = field(default_factory=Vocabulary)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Comment:
    text: str
    language: str | None
    groups: tuple[str, ...]
    votes: list[float] = field(default_factory=list)


def read_labelled(
    sources: Sequence[str | Path],
    *,
    columns: LabelColumns | None = None,
    query: str | None = None,
    encoding: str | None = None,
) -> LabelledTexts:
    """Return the labelled texts of all sources, in order, with the account of their rows.

    Rows without a usable text, id or label are left out and counted. So is a row whose text is not
    that of the first row with the same id, and one that repeats another in every value.

    Args:
        sources: CSV, TSV, JSON lines, Parquet or Excel files, or one SQLAlchemy URL.
        columns: default: `text` and `label`.
        query: a SELECT, for the URL.
        encoding: of text files; default: UTF-8, or UTF-16 where a file shows it.

    Raises:
        SourceError: a source cannot be read, a column is missing, most rows of a source are left
            out for the same fault, or a label is none of those allowed. The message names the
            first such row.
    """
    reading = _Reading(columns=columns or LabelColumns())
    form = TextFormat(encoding=encoding or "utf-8")
    for source in sources:
        reading.read(source, query, form)
    if reading.unknown:
        raise SourceError(reading.unknown_labels())
    if not reading.comments and reading.account.left_out:
        raise SourceError(f"no row can be used: {reading.account.faults(_REMEDIES)}")
    comments = reading.comments.values()
    columns = reading.columns
    return LabelledTexts(
        texts=tuple(comment.text for comment in comments),
        labels=np.array([sum(comment.votes) / len(comment.votes) for comment in comments]),
        account=reading.account,
        languages=tuple(comment.language for comment in comments) if columns.language else (),
        groups=tuple(comment.groups for comment in comments) if columns.groups else (),
    )


@dataclass(kw_only=True)
class _Reading:
    """What was read so far."""

    columns: LabelColumns
    account: Account = field(default_factory=Account)
    #: By id; without ids by an object of their own.
    comments: dict[object, _Comment] = field(default_factory=dict)
    #: Labels that are none, with the number of rows.
    unknown: Counter[str] = field(default_factory=Counter)
    #: Hashes of whole rows, of sources that tell rows apart.
    seen: set[int] = field(default_factory=set)

    def read(self, source: str | Path, query: str | None, form: TextFormat) -> None:
        """Add the rows of a source to the comments and the account."""
        account, is_url = Account(), "://" in str(source)
        name = public_name(parse_url(str(source))) if is_url else Path(source).name
        if is_url:
            records = _selected(str(source), name, query, self.columns, account)
        else:
            _check(name, self.columns, table_columns(Path(source), form=form))
            records = read_records(Path(source), form=form, account=account)
        for record in records:
            place = record.problem or self._place(record.values)
            account.count(place, where=f"{name}, {'row' if is_url else 'line'} {record.line}")
        account.close(name)
        account.require_most(name, _REMEDIES)
        self.account.add(account)

    def _is_repeated(self, values: Mapping[Any, Any]) -> bool:
        """Return whether a row is alike another one in every value, such as who voted and when.

        Where no column besides those that are read could tell, rows alike are of several people.
        """
        if values.keys() <= self._read:
            return False
        row = hash(repr([*values.items()]))
        known = row in self.seen
        self.seen.add(row)
        return known

    @cached_property
    def _read(self) -> set[str | None]:
        mine = self.columns
        return {mine.text, mine.label, *mine.votes, mine.comment_id, mine.language, mine.groups}

    def _place(self, values: Mapping[Any, Any]) -> str:
        """Add a row to the comments; return its place in the account."""
        if self._is_repeated(values):
            return "repeated"
        columns = self.columns
        comment, problem = _comment(values, columns)
        comment_id, fault = text_of(values.get(columns.comment_id))
        if columns.comment_id:
            problem = problem or fault or id_problem(comment_id)
        votes, unknown = _votes(values, columns)
        if problem or unknown:
            self.unknown.update(() if problem else unknown)
            return problem or "unreadable_label"
        if not votes:
            return "no_label"
        first = self.comments.setdefault(comment_id or object(), comment)
        if first.text != comment.text:
            return "other_text_of_id"
        first.votes.append(sum(votes) / len(votes))
        return "used" if first is comment else "merged"

    def unknown_labels(self) -> str:
        """Return the message on labels that are none; it lists them if they look like words."""
        columns, unknown, account = self.columns, self.unknown, self.account
        named = columns.vocabulary.votes
        wrong = "no option names" if named else "is no number from 0 to 1 and no vote"
        begin = (
            f"{account.places['unreadable_label']:,} rows (the first: "
            f"{account.first['unreadable_label']}) have a label in column "
            f"{', '.join(map(repr, columns.votes or [columns.label]))} that {wrong}"
        )
        words = [word for word, rows in unknown.most_common() if _is_name(word, rows)]
        if len(unknown) > _WORDS or not words:
            return (
                f"{begin}, with {len(unknown):,} different values; name the column of the labels "
                "with --column label=…, or correct them."
            )
        found = [f"{shown_label(word)} ({unknown[word]:,})" for word in words]
        others = [f"{len(unknown) - len(words):,} others"] if len(unknown) > len(words) else []
        return (
            f"{begin}: {', '.join(found + others)}. Say what each means: --value WORD=toxic or "
            "--value WORD=other; of people who did not judge, --value WORD=abstain; where there "
            "is no label, --value WORD=missing."
        )


def _comment(values: Mapping[Any, Any], columns: LabelColumns) -> tuple[_Comment, str | None]:
    """Return the comment of a row without votes, and its problem."""
    text, problem = text_of(values.get(columns.text))
    groups, malformed = names_of(values.get(columns.groups))
    language, unreadable = text_of(values.get(columns.language))
    comment = _Comment(
        text=text or "",
        language=None if unreadable else (language or "").strip() or None,
        groups=tuple(name.strip() for name in groups or () if name.strip()),
    )
    return comment, problem or text_problem(text) or malformed


def _votes(values: Mapping[Any, Any], columns: LabelColumns) -> tuple[list[float], set[str]]:
    """Return the votes of a row, and its labels that are none."""
    label = values.get(columns.label)
    votes = [values.get(name) for name in columns.votes] or listed(plain(label))
    pairs = [_vote(vote, columns.vocabulary) for vote in ([label] if votes is None else votes)]
    return [v for v, _ in pairs if v is not None], {w for _, w in pairs if w is not None}


def _selected(
    url: str, name: str, query: str | None, columns: LabelColumns, account: Account
) -> Iterator[Record]:
    if not query:
        raise SourceError("A database requires a query; pass --query 'SELECT text, label FROM …'.")
    with connected(parse_url(url), name) as connection:
        result = connection.execution_options(stream_results=True).execute(statement(query))
        names = unique_names(list(result.keys()))
        _check(name, columns, names)
        for number, row in enumerate(result, start=1):
            account.read += 1
            yield Record(line=number, values=dict(zip(names, row, strict=True)))


def _check(source: str, columns: LabelColumns, available: Sequence[str]) -> None:
    options = {columns.text: "--column text=…"}
    options |= dict.fromkeys(columns.votes, "--votes") or {columns.label: "--column label=…"}
    others = {columns.comment_id: "--column id=…", columns.language: "--column language=…"}
    options |= {column: option for column, option in others.items() if column}
    needed = {name: f"For {name!r} name one with {option}." for name, option in options.items()}
    needed |= {name: "" for name in [columns.groups] if name and name in available}
    require_columns(source, available, needed)


def _vote(value: object, vocabulary: Vocabulary) -> tuple[float | None, str | None]:
    """Return a vote in [0, 1], or the label that is none; both are None where it is missing.

    >>> [_vote(value, Vocabulary()) for value in ("0.25", True, "5", None, "NA")]
    [(0.25, None), (1.0, None), (None, '5'), (None, None), (None, None)]
    >>> hate = Vocabulary.of(["hate=toxic"])
    >>> _vote("HATE ", hate), _vote("hate_insult", hate)
    ((1.0, None), (None, 'hate_insult'))
    """
    if not vocabulary.votes:
        number, problem = number_of(value)
        if not problem and number is not None and 0 <= number <= 1:
            return float(number), None
    vote, _ = vote_of(value, vocabulary)
    label, problem = label_of(value)
    word = folded(label or text_of(value)[0] or "")
    missing = (
        vote is not None
        or problem == "no_label"
        or vocabulary.is_no_vote(value)
        or (word == "none" and not vocabulary.votes)
    )
    return None if vote is None else float(vote), None if missing else word


def _is_name(word: str, rows: int) -> bool:
    """Return whether a label may be printed: a comment by mistake is longer, and occurs once."""
    parts = len(word.split())
    return len(word) <= _CHARACTERS and (parts == 1 or (parts <= _PARTS and rows > 1))
