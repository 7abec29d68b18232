"""The path of a request of a person: what is kept about them, and its erasure.

    find → record → erase_reviews → apply → certificate

What is to be erased is recorded first: after a kill, the next call of `erase` completes it. Every
row stays without its text, so that figures, chains, witnesses and sealed audits stay valid.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Annotated, Any

import pyarrow as pa
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from modwatch.common.errors import QueueError
from modwatch.common.text import ERASED, id_problem
from modwatch.data.lake import erasure
from modwatch.data.lake.erasure import Key, Part, Subject
from modwatch.installation.resources import Resources
from modwatch.review.erasure import (
    decisions_about,
    erase_reviews,
    queued_texts,
    recorded_erasure,
)
from modwatch.review.queue.intake import recorded_erasures
from modwatch.review.tables import HIDDEN, OTHERS

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
        ser_json_bytes="hex",
        val_json_bytes="hex",
        extra="forbid",
        hide_input_in_errors=True,
        strict=True,
    )

    erased_at: datetime
    #: As given, such as the number of the request.
    reference: str
    #: The erased comments, and the answers to them.
    comments: list[tuple[date, Annotated[str, Field(pattern=r"^[^\x00]+$")], Part]]
    #: Rows and items that were erased, by place.
    places: dict[str, int]
    #: Position and hash of the event.
    position: Annotated[int, Field(ge=1, lt=2**63)]
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
        QueueError: there is no comment of the subject, or it names nothing.
    """
    for given in (*filter(None, [subject.author]), *subject.comment_ids):
        if id_problem(given):
            raise QueueError("an author or a comment id is empty, too long, or no valid text")
    places, own, texts = Counter[str](), set[Key](), set[str]()
    for table, rows in erasure.rows_of(resources.lake, subject):
        places[table] += rows.num_rows
        own |= erasure.keys(rows)
        texts |= set(rows.column("text").to_pylist())
    texts -= {ERASED, "", None}
    for row in queued_texts(resources.database, own, texts, subject.comment_ids):
        places["queue"] += 1
        own.add((row["dt"], row["comment_id"]))
        texts |= {row["text"]} - {ERASED}
    if not +places:
        raise QueueError("there is no such comment, in the lake or in the queue")
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
        _complete(resources)
        erasure.record(resources.lake, found.parts)
    done = erase_reviews(
        resources.database, found.parts, found.texts, reference=reference, places=found.places,
        dry_run=dry_run,
    )  # fmt: skip
    compacted = False
    if not dry_run:
        compacted = resources.compact_database()
        erasure.apply(resources.lake, found.parts, found.texts, subject.author)
    return Certificate(
        reference=reference,
        comments=[(*key, part) for key, part in sorted(found.parts.items())],
        database_files=compacted,
        **vars(done),
    )


def _complete(resources: Resources) -> None:
    """Erase from the queue what a killed erasure recorded, and did not come to."""
    logged = recorded_erasures(resources.database).items()
    left = dict(erasure.recorded(resources.lake).items() - logged)
    own = {key for key, part in left.items() if part == "comment"}
    if not left:
        return
    ids = Subject(comment_ids=frozenset(comment_id for _, comment_id in own))
    texts = {
        row["text"]
        for _, rows in erasure.rows_of(resources.lake, ids)
        for row in rows.to_pylist()
        if (row["dt"], row["comment_id"]) in own
    }
    texts |= {row["text"] for row in queued_texts(resources.database, own)}
    erase_reviews(resources.database, left, texts - {ERASED, "", None})


def problems(resources: Resources, certificate: Certificate) -> list[str]:
    """Return how log, queue and lake differ from a certificate; empty: they are as it says."""
    found = []
    logged = recorded_erasure(resources.database, certificate.position)
    said = _CERTIFICATE.dump_python(certificate, mode="json") | {
        "hash": certificate.hash, "erased_at": certificate.erased_at
    }  # fmt: skip
    if any(logged.get(name) != said[name] for name in said.keys() - {"position", "database_files"}):
        found.append(
            f"the log has no erasure of these comments at position {certificate.position}: it was "
            "restored from a backup, or the certificate is of another installation"
        )
    parts = {(day, comment_id): part for day, comment_id, part in certificate.comments}
    queued = queued_texts(resources.database, parts.keys())
    kept = any(
        row["parent_text"] not in (None, ERASED)
        or (
            parts[row["dt"], row["comment_id"]] == "comment"
            and (row["text"] != ERASED or row["shown"].keys() & {OTHERS, HIDDEN})
        )
        for row in queued
    )
    if kept or not erasure.is_erased(resources.lake, parts):
        found.append(
            "lake or queue have texts of these comments, as after a restored backup: run "
            "`modwatch erase --again` with this certificate"
        )
    return found


def export(resources: Resources, subject: Subject) -> dict[str, list[dict[str, Any]]]:
    """Return what is kept about a subject, as rows by place, without what is about others."""
    kept: dict[str, list[dict[str, Any]]] = {}
    own = {key for key, part in find(resources, subject).parts.items() if part == "comment"}
    for table, batch in erasure.rows_of(resources.lake, subject):
        kept.setdefault(table, []).extend(_exported(batch))
    for table in _ABOUT:
        for batch in resources.lake.read(table, sorted({day for day, _ in own})):
            rows = _exported(batch)
            about = (row for row in rows if (row["dt"], row["comment_id"]) in own)
            kept.setdefault(table, []).extend(about)
    kept["queue"] = [
        {name: value for name, value in row.items() if name not in _NOT_EXPORTED}
        for row in queued_texts(resources.database, own)
    ]
    kept["decisions"] = decisions_about(resources.database, own)
    return {place: rows for place, rows in kept.items() if rows}


def _exported(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    names = [name for name in batch.schema.names if name not in _NOT_EXPORTED]
    rows: list[dict[str, Any]] = batch.select(names).to_pylist()
    return rows
