"""The path of a request of a person: what is kept about them, and its erasure.

    find → record → erase_reviews → apply → certificate

What is to be erased is recorded first: after a kill, the next call of `erase` completes it. Every
row stays without its text, so that figures, chains, witnesses and sealed audits stay valid.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
from pydantic import ConfigDict, TypeAdapter, ValidationError

from modwatch.common.errors import QueueError
from modwatch.common.text import ERASED
from modwatch.data.lake import erasure
from modwatch.data.lake.erasure import Key, Part, Subject
from modwatch.installation.resources import Resources
from modwatch.review.erasure import (
    decisions_about,
    erase_reviews,
    queued_texts,
    recorded_erasures,
)

#: The tables of the lake with rows about a comment, besides those with its texts.
_ABOUT = ("scores", "routed", "labels")

#: Columns that are about other people, or of no use to anyone.
_NOT_EXPORTED = {"parent_text", "salt", "moderator", "first_moderator"}


@dataclass(frozen=True, kw_only=True)
class Found:
    """What an erasure is about."""

    #: The comments, and those that answer them.
    parts: Mapping[Key, Part] = field(repr=False)
    #: The texts of the comments.
    texts: frozenset[str] = field(repr=False)
    #: Rows and items by place.
    places: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What was erased and when, which `problems` compares with log, queue and lake.

    It has no text and no author, but the ids of comments.
    """

    __pydantic_config__ = ConfigDict(
        ser_json_bytes="hex", val_json_bytes="hex", extra="forbid", hide_input_in_errors=True
    )

    erased_at: datetime
    #: As given, such as the number of the request.
    reference: str
    #: The erased comments, and the answers to them.
    comments: list[tuple[date, str, Part]]
    #: Rows and items that were erased, by place.
    places: dict[str, int]
    #: Position and hash of the event.
    position: int
    hash: bytes
    #: Whether the files of the database were written anew; those of another server were not.
    database_files: bool

    @property
    def comment_ids(self) -> frozenset[str]:
        """The erased comments, without answers to them."""
        return frozenset(comment_id for _, comment_id, part in self.comments if part == "comment")

    def to_json(self) -> bytes:
        """Return the certificate as a file."""
        return _CERTIFICATE.dump_json(self, indent=1) + b"\n"

    @classmethod
    def from_json(cls, content: bytes) -> "Certificate":
        """Return the certificate of `to_json`; QueueError for anything else."""
        try:
            return _CERTIFICATE.validate_json(content)
        except ValidationError:
            raise QueueError("this is not the certificate of an erasure") from None


_CERTIFICATE = TypeAdapter(Certificate)


def find(resources: Resources, subject: Subject) -> Found:
    """Return what there is to erase; nothing is changed.

    Raises:
        QueueError: there is no comment of the subject.
    """
    places, own, texts = Counter[str](), set[Key](), set[str]()
    for table, rows in erasure.rows_of(resources.lake, subject):
        places[table] += rows.num_rows
        own |= {(row["dt"], row["comment_id"]) for row in rows.to_pylist() if row["comment_id"]}
        texts |= set(rows.column("text").to_pylist())
    ids = subject.comment_ids | {comment_id for _, comment_id in own}
    for day, comment_id, content in queued_texts(resources.database, ids):
        places["queue"] += 1
        own.add((day, comment_id))
        texts.add(content)
    if not +places:
        raise QueueError("there is no such comment, in the lake or in the queue")
    texts -= {ERASED, "", None}
    answers = erasure.quoting(resources.lake, texts) - own
    places["answers"] = len(answers)
    parts: dict[Key, Part] = {key: "comment" if key in own else "parent" for key in own | answers}
    return Found(parts=parts, texts=frozenset(texts), places=+places)


def erase(
    resources: Resources, subject: Subject, *, reference: str = "", dry_run: bool = False
) -> Certificate:
    """Erase the comments of a subject everywhere; return the certificate.

    With `dry_run` nothing is changed, and the certificate has only the places of what would be.

    Raises:
        QueueError: there is no comment of the subject.
    """
    found = find(resources, subject)
    if not dry_run:
        erasure.record(resources.lake, found.parts)
    done = erase_reviews(resources.database, found.parts, found.texts, dry_run=dry_run)
    compacted = False
    if not dry_run:
        erasure.apply(resources.lake, subject.author)
        compacted = resources.compact_database()
    return Certificate(
        erased_at=datetime.now(UTC),
        reference=reference,
        comments=[(*key, part) for key, part in sorted(found.parts.items())],
        places={**found.places, "queue": done.items, "gold": done.gold, "notes": done.notes},
        position=done.position,
        hash=done.hash,
        database_files=compacted,
    )


def problems(resources: Resources, certificate: Certificate) -> list[str]:
    """Return how log, queue and lake differ from a certificate; empty: they are as it says."""
    found, ids = [], certificate.comment_ids
    recorded = recorded_erasures(resources.database, certificate.position, certificate.hash)
    if recorded != {(day, comment_id): part for day, comment_id, part in certificate.comments}:
        found.append(
            f"the log has no erasure of these comments at position {certificate.position}: it was "
            "restored from a backup, or the certificate is of another installation"
        )
    rows = erasure.rows_of(resources.lake, Subject(comment_ids=ids))
    kept = sum(row["text"] != ERASED for _, batch in rows for row in batch.to_pylist())
    kept += sum(text != ERASED for *_, text in queued_texts(resources.database, ids))
    if kept:
        found.append(
            f"{kept} rows and items have a text of these comments, as after a restored backup: run "
            "`modwatch erase --again` with this certificate"
        )
    return found


def export(resources: Resources, subject: Subject) -> dict[str, list[dict[str, Any]]]:
    """Return what is kept about a subject, as rows by place, without what is about others."""
    kept: dict[str, list[dict[str, Any]]] = {}
    days, ids = set[date](), set(subject.comment_ids)
    for table, batch in erasure.rows_of(resources.lake, subject):
        kept.setdefault(table, []).extend(_exported(batch))
        days |= set(batch.column("dt").to_pylist())
        ids |= set(batch.column("comment_id").to_pylist()) - {None}
    wanted = Subject(comment_ids=frozenset(ids))
    for table in _ABOUT:
        for batch in resources.lake.read(table, sorted(days)):
            kept.setdefault(table, []).extend(_exported(batch.filter(wanted.of(batch))))
    kept["decisions"] = decisions_about(resources.database, ids)
    return {place: rows for place, rows in kept.items() if rows}


def _exported(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    names = [name for name in batch.schema.names if name not in _NOT_EXPORTED]
    rows: list[dict[str, Any]] = batch.select(names).to_pylist()
    return rows
