"""Verification that the decision log was not altered, in the database or in an export of it.

A changed, deleted or reordered row breaks a chain; a truncated chain disagrees with its recorded
end; an item, account, gold comment or policy that was changed past the log disagrees with it.
Somebody who can rewrite the whole database can forge all of that: store `LogReport.witness`
elsewhere, and pass it to the next verification; `witnesses` does so every day.
"""

import hashlib
import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlalchemy import Engine, RowMapping, text

from modwatch.review.events import EVENT_CONTENT
from modwatch.review.log.chains import (
    EVENTS,
    ChainEnd,
    Chains,
    Link,
    ends_of,
    whole,
    witness_of,
)
from modwatch.review.log.ends import recorded_ends
from modwatch.review.log.hashing import COLUMNS_OF, COVERED, content_sql, row_hash, unbound
from modwatch.review.log.recorded_state import Told, state_problems

_COLUMN_NAMES = {name: name for name in COVERED}

#: In the order of time: in that of the chains, the database would read its pages once per person.
#: The database encodes the content, as for a new row, which is impossible for infinite times.
_DECISIONS = text(
    f"""
    SELECT id, moderator_id AS chain, position, previous_hash, hash, format,
        policy_version, reason, refers_to, text_digest, outcome,
        CASE WHEN isfinite(dt) AND isfinite(decided_at)
            THEN CASE format WHEN 3 THEN {content_sql(_COLUMN_NAMES, 3)}
                ELSE {content_sql(_COLUMN_NAMES, 2)} END
        END AS content
    FROM decision ORDER BY id
    """  # noqa: S608 - our own column names
)

_EVENTS = text(
    f"""
    SELECT id, {EVENTS} AS chain, position, previous_hash, hash, action, subject_id, details,
        CASE WHEN isfinite(happened_at) THEN {EVENT_CONTENT.format("")} END AS content
    FROM event ORDER BY id
    """.replace("::", r"\:\:")  # noqa: S608 - our own column names
)

#: Rows fetched at a time.
_BATCH = 2_000


@dataclass(frozen=True, kw_only=True)
class LogReport:
    """The result of `verify_log` or `verify_export`."""

    #: Decisions read.
    decisions: int
    #: One sentence each, the first hundred; empty if the log is intact.
    problems: tuple[str, ...]
    #: Rows of an export whose note was omitted: chained, but their hashes cannot be recomputed.
    unproven: int = 0
    #: The last row of each chain: by moderator, and of the events as 0.
    ends: Mapping[int, ChainEnd] = field(repr=False)

    @property
    def intact(self) -> bool:
        """Whether no row was changed, removed or reordered."""
        return not self.problems

    @property
    def head(self) -> str:
        """SHA-256 of the ends of all chains of decisions, in hex; equal logs have equal heads."""
        decisions = {chain: end for chain, end in self.ends.items() if chain != EVENTS}
        return hashlib.sha256(witness_of(decisions).encode()).hexdigest()

    @property
    def witness(self) -> str:
        """The ends of all chains as a line of JSON: `[[chain, length, hash], …]`."""
        return witness_of(self.ends)


def verify_log(engine: Engine, witness: str | None = None) -> LogReport:
    """Verify every chain of the log, in constant memory, on one consistent snapshot.

    Compares items, accounts, gold comments and policies with it. `witness` is that of an earlier
    report, stored out of reach of those who can write to the database: every row that it covers
    must still be there. Raises `QueueError` if it is invalid.
    """
    chains, told, decisions = Chains(ends_of(witness)), Told(), 0
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        streamed = {"yield_per": _BATCH}
        for row in connection.execute(_DECISIONS, execution_options=streamed).mappings():
            chains.follow(_link(row), _hash_of(row))
            decisions += 1
        for row in connection.execute(_EVENTS, execution_options=streamed).mappings():
            chains.follow(_link(row), _content_hash(row))
            told.add(row["action"], row["subject_id"], row["details"])
        chains.finish()
        chains.compare(recorded_ends(connection))
        for problem in state_problems(connection, told):
            chains.complain(problem)
    return LogReport(decisions=decisions, problems=tuple(chains.problems), ends=chains.ends)


def verify_export(
    lines: Iterable[str | bytes], witness: str | None = None, *, partial: bool = False
) -> LogReport:
    """Verify every chain of decisions in a JSONL export, without the database.

    Only a witness can prove that the end of the log is not missing. Of a row that was exported
    without its note, only the position in the chain is verified; `unproven` counts them. With
    `partial`, for exports of some days, gaps are allowed.
    """
    witnessed = ends_of(witness)
    witnessed.pop(EVENTS, None)  # an export has no events
    chains, decisions, unproven = Chains(witnessed, partial=partial), 0, 0
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                row = _exported_row(line)
                link = _link(row)
                withheld = row["has_note"] is True and "note" not in row
                expected = link.hash if withheld else _checked_hash({"note": None} | row)
            except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
                chains.complain(f"line {number} is not a decision as Modwatch exports it")
                continue
            decisions += 1
            unproven += withheld
            chains.follow(link, expected)
    chains.finish()
    return LogReport(
        decisions=decisions, problems=tuple(chains.problems), unproven=unproven, ends=chains.ends
    )


def _link(row: Mapping[str, Any] | RowMapping) -> Link:
    return Link(*(row[name] for name in Link._fields))


def _content_hash(row: RowMapping) -> bytes | None:
    if row["content"] is None:
        return None
    return hashlib.sha256(row["previous_hash"] + row["content"].encode()).digest()


def _hash_of(row: RowMapping) -> bytes | None:
    if row["content"] is None or unbound(row):
        return None
    return _hash_1(row) if row["format"] == 1 else _content_hash(row)


def _hash_1(row: RowMapping) -> bytes | None:
    """Return the hash of a row of format 1, whose content is encoded as for format 2."""
    values: dict[str, Any] = dict(zip(COLUMNS_OF[2], json.loads(row["content"]), strict=True))
    try:
        values["dt"] = date.fromisoformat(values["dt"])
        values["decided_at"] = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
            microseconds=values["decided_at"]
        )
    except (ValueError, OverflowError):  # a year that Python's calendar does not have
        return None
    if values["seconds"] is not None:
        (values["seconds"],) = struct.unpack(">d", bytes.fromhex(values["seconds"]))
    return row_hash(values | {"format": 1, "previous_hash": row["previous_hash"]})


def _checked_hash(row: Mapping[str, Any]) -> bytes | None:
    """Return the hash that `row` must have, or None if such a row is impossible."""
    return None if row["format"] not in COLUMNS_OF or unbound(row) else row_hash(row)


def _exported_row(line: str | bytes) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(line)
    row["dt"] = date.fromisoformat(row["dt"])
    row["decided_at"] = datetime.fromisoformat(row["decided_at"])
    row["seconds"] = None if row["seconds"] is None else float(row["seconds"])
    for name in ("previous_hash", "hash"):
        row[name] = bytes.fromhex(row[name])
    if row.get("text_digest") is not None:
        row["text_digest"] = bytes.fromhex(row["text_digest"])
    for name in ("id", "moderator_id", "position", "format"):
        row[name] = whole(row[name])
    return row | {"chain": row["moderator_id"]}
