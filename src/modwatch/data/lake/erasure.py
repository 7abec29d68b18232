"""Erasure of texts and authors from the lake.

The row of an erased comment stays, with `ERASED` in place of its texts and no author, so that every
count, score and figure stays what it was. The table `erasures` lists what was erased: when a day is
read from its source again, or the lake is restored from a backup, it is erased again.

Platforms give the text that a comment answers, and not its id: an erased comment is recognised in
the rows of others by its text.
"""

import datetime
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from modwatch.common.columns import COLUMNS
from modwatch.common.ledger.chain import commitment, new_salt
from modwatch.common.text import ERASED, id_problem
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.schemas import ERASURES, SOURCED

#: A comment of a day.
Key = tuple[datetime.date, str]

#: What of a comment is erased: all of it, or the text that it answers.
Part = Literal["comment", "parent"]

#: What is found by others of the row goes first: texts are found by their authors, and answers by
#: the texts, until nothing is left to do, so a process that is killed can be run again.
_FIRST, _LAST = ("parent_text", "salt"), ("author_id",)

#: What an erased text becomes; all other values are null.
_ERASED = {"text": ERASED, "parent_text": ERASED}

_READ = ["comment_id", "text", "parent_text", "salt"]


def _passes(lake: Lake) -> tuple[tuple[str, ...], ...]:
    """Return the columns with something to erase, in the order in which they are erased."""
    every = (*COLUMNS, *lake.columns)
    erasable = (column.name for column in every if column.erasable)
    return _FIRST, tuple(name for name in erasable if name not in (*_FIRST, *_LAST)), _LAST


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Whose data a request is about: the comments of an author, or the comments of these ids."""

    author: str | None = field(default=None, repr=False)
    comment_ids: frozenset[str] = frozenset()

    def of(self, batch: pa.RecordBatch | pa.Table) -> pa.BooleanArray:
        """Return which rows (k,) of a batch are about the subject."""
        named = pc.is_in(batch.column("comment_id"), pa.array([*self.comment_ids], pa.string()))
        if self.author is None:
            return named
        return pc.or_(named, pc.fill_null(pc.equal(batch.column("author_id"), self.author), False))


def rows_of(lake: Lake, subject: Subject) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows that came from the source about a subject, with their table.

    With all columns that they were ever stored with.
    """
    lake = lake.whole()
    for table in SOURCED:
        for batch in lake.read(table, lake.days(table)):
            yield table, batch.filter(subject.of(batch))


def quoting(lake: Lake, texts: Collection[str]) -> set[Key]:
    """Return the comments that answer one of `texts`."""
    wanted, found = pa.array([*texts], pa.string()), set[Key]()
    for table in SOURCED:
        columns = ["dt", "comment_id", "parent_text"]
        for batch in lake.read(table, lake.days(table), columns=columns):
            rows = batch.filter(pc.is_in(batch.column("parent_text"), wanted))
            found |= keys(rows)
    return found


def keys(batch: pa.RecordBatch) -> set[Key]:
    """Return the comments of a batch; rows without a valid id are none that can be named."""
    pairs = zip(batch.column("dt").to_pylist(), batch.column("comment_id").to_pylist(), strict=True)
    return {(day, comment_id) for day, comment_id in pairs if id_problem(comment_id) is None}


def text_commitments(lake: Lake, day: datetime.date) -> Iterator[tuple[str, bytes]]:
    """Yield id and commitment to the texts of each comment; of erased ones, as they were."""
    erased = {row["comment_id"]: row["commitment"] for row in _erasures(lake, day)}
    for batch in lake.read("comments", day, columns=_READ):
        for comment_id, committed in _commitments(batch):
            yield comment_id, erased.get(comment_id) or committed


def salted(
    lake: Lake, day: datetime.date, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Return batches of `comments` with a salt in each row: of the published row, or a new one.

    So a day that is published again is still the one that an audit was planned with.
    """
    stored = lake.table("comments", day, columns=["comment_id", "salt"]).to_pylist()
    known = {row["comment_id"]: row["salt"] for row in stored}

    def with_salts(batch: pa.RecordBatch) -> pa.RecordBatch:
        salts = [known.get(one) or new_salt() for one in batch.column("comment_id").to_pylist()]
        place = batch.schema.get_field_index("salt")
        return batch.set_column(place, batch.schema.field(place), pa.array(salts, pa.binary()))

    return map(with_salts, batches)


def record(lake: Lake, parts: Mapping[Key, Part]) -> None:
    """Record that these comments are to be erased; what was recorded before stays.

    Nothing is erased yet: a process that is killed between this and `apply` leaves the list.
    """
    for day in sorted({day for day, _ in parts}):
        rows = {row["comment_id"]: row for row in _erasures(lake, day)}
        new = {key[1]: part for key, part in parts.items() if key[0] == day}
        for comment_id, part in new.items():
            row = rows.setdefault(comment_id, {"dt": day, "comment_id": comment_id, "part": part})
            row["part"] = "comment" if "comment" in (row["part"], part) else "parent"
        about = Subject(comment_ids=frozenset(new))
        for batch in lake.read("comments", day, columns=_READ):
            for comment_id, committed in _commitments(batch.filter(about.of(batch))):
                rows[comment_id].setdefault("commitment", committed)
        lake.replace(
            "erasures", day, [pa.RecordBatch.from_pylist([*rows.values()], schema=ERASURES)]
        )


def recorded(lake: Lake, days: Collection[datetime.date] | None = None) -> dict[Key, Part]:
    """Return everything that is to be erased, or was; of `days`, or None: of all."""
    rows = _erasures(lake, lake.days("erasures") if days is None else days)
    return {(row["dt"], row["comment_id"]): row["part"] for row in rows}


def apply(
    lake: Lake, parts: Mapping[Key, Part], texts: Collection[str] = (), author: str | None = None
) -> None:
    """Erase all texts that are recorded, and remove the files that have them.

    Also the authors of `parts`, and what cannot be recorded: in rows without an id, `texts` that
    they answer, and the comments of `author`. The same call again changes nothing. A day that is
    being scored is scored from the start.
    """
    lake = lake.whole()
    texts_of, authors_of = erasing(recorded(lake), texts, author), erasing(parts, (), author)
    for names in _passes(lake):
        of = authors_of if names == _LAST else texts_of
        for table in SOURCED:
            for day in _days_with(lake, table, names, of):
                without = (of(day).without(batch, names) for batch in lake.read(table, day))
                lake.replace(table, day, without)
                lake.replace("staged_scores", day, [])  # with hashes of texts
        for table in (*SOURCED, "staged_scores"):
            lake.vacuum(table, hours=0)


def is_erased(lake: Lake, parts: Mapping[Key, Part]) -> bool:
    """Return whether nothing is left of `parts`."""
    of, lake = erasing(parts), lake.whole()
    return not any(
        _days_with(lake, table, names, of) for table in SOURCED for names in _passes(lake)
    )


def _days_with(
    lake: Lake, table: str, names: Collection[str], of: "Callable[[datetime.date], Erasing]"
) -> list[datetime.date]:
    """Return the days of a table of which something is to be erased from columns `names`."""
    read = {"dt", "comment_id", "author_id", "parent_text", *names} & {*lake.schema(table).names}
    batches = lake.read(table, lake.days(table), columns=sorted(read))
    days = ((batch.column("dt")[0].as_py(), batch) for batch in batches if batch.num_rows)
    return sorted({day for day, batch in days if of(day).without(batch, names) != batch})


@dataclass(frozen=True, kw_only=True)
class Erasing:
    """What to erase of the rows of a day."""

    subject: Subject
    #: Comments, and words, of which the text that they answer is erased.
    parents: pa.StringArray
    texts: pa.StringArray

    def without(self, batch: pa.RecordBatch, names: Collection[str]) -> pa.RecordBatch:
        """Return a batch of the day without what is to be erased from the columns `names`."""
        whole, answers, listed = self._rows(batch)
        for name in names:
            place = batch.schema.get_field_index(name)
            if place >= 0:
                rows = {"parent_text": answers, "salt": listed}.get(name, whole)
                kind, column = batch.schema.field(name), batch.column(name)
                there = pc.and_(rows, column.is_valid())
                erased = pc.if_else(there, pa.scalar(_ERASED.get(name), kind.type), column)
                batch = batch.set_column(place, kind, erased)
        return batch

    def _rows(self, batch: pa.RecordBatch) -> tuple[pa.BooleanArray, ...]:
        """Return the rows (k,) that go whole, that lose what they answer, and that are listed."""
        whole = self.subject.of(batch)
        listed = pc.or_(whole, pc.is_in(batch.column("comment_id"), self.parents))
        return whole, pc.or_(listed, pc.is_in(batch.column("parent_text"), self.texts)), listed


def erasing(
    parts: Mapping[Key, Part], texts: Collection[str] = (), author: str | None = None
) -> Callable[[datetime.date], Erasing]:
    """Return what to erase of each day: `parts`, answers to `texts`, and all of `author`."""
    words, ids = pa.array([*texts], pa.string()), defaultdict[tuple[Any, str], list[str]](list)
    for (day, comment_id), part in parts.items():
        ids[day, part].append(comment_id)

    @cache
    def of(day: datetime.date) -> Erasing:
        subject = Subject(author=author, comment_ids=frozenset(ids[day, "comment"]))
        parents = pa.array(ids[day, "parent"], pa.string())
        return Erasing(subject=subject, parents=parents, texts=words)

    return of


def erased_again(
    lake: Lake, day: datetime.date, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Return batches of a day that is read again, without what was erased of it."""
    without, names = _of_day(lake, day).without, [*chain(*_passes(lake))]
    return (without(batch, names) for batch in batches)


def kept_scores(
    lake: Lake, day: datetime.date, batches: Iterable[pa.RecordBatch], *, role: str = "champion"
) -> Iterable[pa.RecordBatch]:
    """Return new scores of a day, but those that are published and stand for the same.

    Of the same model version and decision, with a probability that differs by less than 0.001: the
    batches of other comments round it otherwise. Of erased comments also any other probability of a
    model, which cannot read them any more. So a day that is run again is the one of its audits.
    """
    old, erased = lake.table("scores", day, role=role), _of_day(lake, day).subject

    def keep(batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        new = pa.Table.from_batches([batch]).cast(old.schema)
        place = pc.index_in(new.column("comment_id"), old.column("comment_id"))
        before = old.take(pc.fill_null(place, 0))
        alike = pc.less(pc.abs(pc.subtract(new.column("prob"), before.column("prob"))), 0.001)
        alike = pc.and_(alike, pc.equal(new.column("flagged"), before.column("flagged")))
        unread = pc.and_(erased.of(new), pc.is_valid(before.column("threshold")))
        same = pc.equal(new.column("model_version"), before.column("model_version"))
        kept = pc.and_(pc.and_(pc.is_valid(place), same), pc.or_(alike, unread))
        own = pa.array(range(old.num_rows, old.num_rows + new.num_rows), pa.int32())
        rows = pc.if_else(pc.fill_null(kept, False), place, own)
        yield from pa.concat_tables([old, new]).take(rows).combine_chunks().to_batches()

    return chain.from_iterable(map(keep, batches)) if old.num_rows else batches


def _of_day(lake: Lake, day: datetime.date) -> Erasing:
    return erasing(recorded(lake, [day]))(day)


def _erasures(lake: Lake, days: datetime.date | Collection[datetime.date]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = lake.table("erasures", days).to_pylist()
    return rows


def _commitments(batch: pa.RecordBatch) -> Iterator[tuple[str, bytes]]:
    """Yield id and commitment to the texts of each row, which has the columns of `_READ`."""
    columns = (batch.column(name).to_pylist() for name in _READ)
    for comment_id, text, parent_text, salt in zip(*columns, strict=True):
        yield comment_id, commitment(salt or b"", json.dumps([text, parent_text]))
