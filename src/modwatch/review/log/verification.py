"""Verification that the decision log was not altered, in the database or in an export of it.

A changed, deleted or reordered row breaks a chain; a truncated chain disagrees with
`decision_chain`. Somebody who can rewrite the whole database can forge both: store
`LogReport.witness` elsewhere, and pass it to the next verification.
"""

import hashlib
import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, Select, exists, select, text

from modwatch.errors import QueueError
from modwatch.review.log.hashing import COVERED, GENESIS, content_sql, row_hash
from modwatch.review.tables import FINAL_ACTIONS, decision, decision_chain, review_item

_MOST_PROBLEMS = 100

#: Columns that format 1 does not cover; they are null in its rows.
_LATER_THAN_1 = ("policy_version", "reason", "refers_to")

#: In the order of time: in that of the chains, the database would read its pages once per person.
#: The database encodes the content, as for a new row, which is impossible for infinite times.
_WALK = text(
    f"""
    SELECT id, moderator_id, position, format, previous_hash, hash,
        CASE WHEN isfinite(dt) AND isfinite(decided_at)
            THEN {content_sql({name: name for name in COVERED})} END AS content
    FROM decision ORDER BY id
    """  # noqa: S608 - our own column names
)

#: Rows fetched at a time.
_BATCH = 2_000


class ChainEnd(NamedTuple):
    """The end of a chain."""

    length: int
    hash: bytes


_EMPTY = ChainEnd(0, GENESIS)


@dataclass(frozen=True, kw_only=True)
class LogReport:
    """The result of `verify_log` or `verify_export`."""

    #: Rows read.
    decisions: int
    #: One sentence each, the first hundred; empty if the log is intact.
    problems: tuple[str, ...]
    #: Rows of an export whose note was omitted: chained, but their hashes cannot be recomputed.
    unproven: int = 0
    #: The last row of each chain, by moderator.
    ends: Mapping[int, ChainEnd] = field(repr=False)

    @property
    def intact(self) -> bool:
        """Whether no row was changed, removed or reordered."""
        return not self.problems

    @property
    def head(self) -> str:
        """SHA-256 of the ends of all chains, in hex; equal logs have equal heads."""
        return hashlib.sha256(self.witness.encode()).hexdigest()

    @property
    def witness(self) -> str:
        """The ends of all chains as a line of JSON: `[[moderator_id, length, hash], …]`."""
        ends = [[number, end.length, end.hash.hex()] for number, end in sorted(self.ends.items())]
        return json.dumps(ends)


def verify_log(engine: Engine, witness: str | None = None) -> LogReport:
    """Verify every chain of the log, in constant memory, on one consistent snapshot.

    `witness` is that of an earlier report, stored out of reach of those who can write to the
    database: every decision that it covers must still be there. Raises `QueueError` if it is
    invalid.
    """
    chains = _Chains(ends_of(witness))
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        for row in connection.execute(_WALK, execution_options={"yield_per": _BATCH}):
            link = _Link(*row)
            chains.follow(link, _hash_of(link))
        chains.finish()
        _compare_ends(connection, chains)
        for item_id in connection.scalars(_decided_without_label().limit(_MOST_PROBLEMS)):
            chains.complain(f"item {item_id} is decided, but the log has no label of it")
    return chains.report()


def verify_export(
    lines: Iterable[str | bytes], witness: str | None = None, *, partial: bool = False
) -> LogReport:
    """Verify every chain of a JSONL export, without the database.

    Only a witness can prove that the end of the log is not missing. Of a row that was exported
    without its note, only the position in the chain is verified; `unproven` counts them. With
    `partial`, for exports of some days, gaps are allowed.
    """
    chains = _Chains(ends_of(witness), partial=partial)
    for number, line in enumerate(lines, 1):
        if line.strip():
            _follow_line(chains, number, line)
    chains.finish()
    return chains.report()


class _Link(NamedTuple):
    """One row of the walk."""

    id: int
    moderator_id: int
    position: int
    format: int
    previous_hash: bytes
    hash: bytes
    #: The content that a hash of format 2 covers; None if it cannot be encoded.
    content: str | None = None


class _Chains:
    """The verification of all chains in parallel."""

    def __init__(self, witnessed: Mapping[int, ChainEnd], *, partial: bool = False) -> None:
        self.ends: dict[int, ChainEnd] = {}
        self.unproven = 0
        self._witnessed = witnessed
        self._partial = partial
        self._count = 0
        self._problems: list[str] = []

    def follow(self, link: _Link, expected: bytes | None) -> None:
        """Verify `link`, whose hash must be `expected`."""
        last = self.ends.get(link.moderator_id, _EMPTY)
        if (
            link.position != last.length + 1
            or link.previous_hash != last.hash
            or link.hash != expected
            or self._witnessed
        ):
            self._find_problems(link, last, expected)
        self.ends[link.moderator_id] = ChainEnd(link.position, link.hash)
        self._count += 1

    def finish(self) -> None:
        """Find witnessed decisions that are missing."""
        for moderator_id, seen in sorted(self._witnessed.items()):
            length = self.ends.get(moderator_id, _EMPTY).length
            if length < seen.length:
                self.complain(
                    f"the chain of moderator {moderator_id} ends at position {length}, but the "
                    f"witness covers it up to {seen.length}"
                )

    def complain(self, problem: str) -> None:
        """Record `problem`, unless there are too many."""
        if len(self._problems) < _MOST_PROBLEMS:
            self._problems.append(problem)

    def report(self) -> LogReport:
        """Return the report."""
        return LogReport(
            decisions=self._count,
            problems=tuple(self._problems),
            unproven=self.unproven,
            ends=self.ends,
        )

    def _find_problems(self, link: _Link, last: ChainEnd, expected: bytes | None) -> None:
        where = f"decision {link.id} (moderator {link.moderator_id}, position {link.position})"
        if link.position <= last.length:
            self.complain(f"{where} is out of order: it comes after position {last.length}")
        elif link.position > last.length + 1:
            if not self._partial:
                self.complain(
                    f"decisions are missing before {where}: the chain was at position {last.length}"
                )
        elif link.previous_hash != last.hash:
            self.complain(f"{where} does not follow the decision before it")
        if link.hash != expected:
            self.complain(f"{where} was changed: its hash does not match its content")
        seen = self._witnessed.get(link.moderator_id, _EMPTY)
        if seen.length == link.position and seen.hash != link.hash:
            self.complain(f"{where} is not the decision that was witnessed there")


def _hash_of(link: _Link) -> bytes | None:
    if link.content is None:
        return None
    if link.format == 2:
        return hashlib.sha256(link.previous_hash + link.content.encode()).digest()
    row: dict[str, Any] = dict(zip(COVERED, json.loads(link.content), strict=True))
    try:
        row["dt"] = date.fromisoformat(row["dt"])
        row["decided_at"] = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
            microseconds=row["decided_at"]
        )
    except (ValueError, OverflowError):  # a year that Python's calendar does not have
        return None
    if row["seconds"] is not None:
        (row["seconds"],) = struct.unpack(">d", bytes.fromhex(row["seconds"]))
    return _checked_hash(row | {"format": link.format, "previous_hash": link.previous_hash})


def _checked_hash(row: Mapping[str, Any]) -> bytes | None:
    """Return the hash that `row` must have, or None if such a row is impossible."""
    if row["format"] not in (1, 2):
        return None
    if row["format"] == 1 and any(row[name] is not None for name in _LATER_THAN_1):
        return None
    return row_hash(row)


def _compare_ends(connection: Connection, chains: _Chains) -> None:
    """Compare the ends of the chains with those in `decision_chain`."""
    recorded = {
        row.moderator_id: ChainEnd(row.length, row.hash)
        for row in connection.execute(select(decision_chain))
    }
    for moderator_id in sorted(chains.ends.keys() | recorded.keys()):
        end, record = chains.ends.get(moderator_id, _EMPTY), recorded.get(moderator_id)
        if end != record:
            chains.complain(
                f"the chain of moderator {moderator_id} ends at position {end.length}, but its "
                f"recorded end is {record.length if record else 'none'}"
            )


def _follow_line(chains: _Chains, number: int, line: str | bytes) -> None:
    try:
        row = _exported_row(line)
        link = _Link(*(row[name] for name in _Link._fields[:-1]))
        withheld = row["has_note"] is True and "note" not in row
        expected = link.hash if withheld else _checked_hash({"note": None} | row)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        chains.complain(f"line {number} is not a decision as Modwatch exports it")
        return
    chains.unproven += withheld
    chains.follow(link, expected)


def _exported_row(line: str | bytes) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(line)
    row["dt"] = date.fromisoformat(row["dt"])
    row["decided_at"] = datetime.fromisoformat(row["decided_at"])
    row["seconds"] = None if row["seconds"] is None else float(row["seconds"])
    for name in ("previous_hash", "hash"):
        row[name] = bytes.fromhex(row[name])
    for name in ("id", "moderator_id", "position", "format"):
        row[name] = _whole(row[name])
    return row


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError
    return value


def ends_of(witness: str | None) -> dict[int, ChainEnd]:
    """Return the ends of a witness by moderator, none for None; `QueueError` if it is invalid."""
    try:
        return {
            _whole(moderator_id): ChainEnd(_whole(length), bytes.fromhex(last))
            for moderator_id, length, last in json.loads("[]" if witness is None else witness)
        }
    except (ValueError, TypeError, RecursionError):
        raise QueueError(
            "the witness is not valid; pass the complete line of JSON from `LogReport.witness`"
        ) from None


def _decided_without_label() -> Select[tuple[int]]:
    labelled = exists().where(
        decision.c.item_id == review_item.c.id, decision.c.action.in_(FINAL_ACTIONS)
    )
    return (
        select(review_item.c.id)
        .where(review_item.c.status == "decided", ~labelled)
        .order_by(review_item.c.id)
    )
