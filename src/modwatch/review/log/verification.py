"""Verification that the decision log was not altered, in the database or in an export of it.

A changed, deleted or reordered entry breaks a chain; a truncated chain disagrees with its recorded
end; an entry that is dated back disagrees with those before it; what was changed without an entry
disagrees with the log: `recorded_state` and `recorded_messages` compare. Someone who can rewrite
the whole database can forge all of that: store `LogReport.witness` out of their reach, and pass it
to the next verification; `witnesses` does so every day.

Whatever a row contains, the verification goes on: a row that cannot be read is a problem.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial as bound
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Engine,
    RowMapping,
    literal,
    select,
    text,
    tuple_,
    union_all,
)
from sqlalchemy.exc import DBAPIError

from modwatch.common.ledger.chain import (
    Entry,
    Head,
    Verification,
    entry_hash,
    opens,
    whole,
    witness_in,
    witness_of,
)
from modwatch.common.text import ERASED
from modwatch.review.events import EVENT_CONTENT
from modwatch.review.log.decision_log import COVERED, commitment_sql, content_of, content_sql
from modwatch.review.log.recorded_messages import message_problems
from modwatch.review.log.recorded_state import STATE, RecordedState
from modwatch.review.tables import decision, event

#: The chain of the events; the other chains have the number of their moderator, from 1.
EVENTS = 0

_ERASED = text("SELECT count(*) FROM review_item WHERE :erased IN (text, parent_text)")

#: What a row that breaks the rules of its table can raise.
MALFORMED = (DBAPIError, ArithmeticError, LookupError, RecursionError, TypeError, ValueError)

#: The columns of an entry, also of a row that the owner stored without them.
_ENTRY = """id, coalesce(position, 0) AS position, coalesce(previous_hash, '') AS previous_hash,
        coalesce(hash, '') AS hash"""

#: Python has no other days, and the database no number of microseconds, which the content of an
#: entry has, for some later times.
_DATED = "BETWEEN '0001-01-01' AND '9999-12-31'"

#: In the order of time: in that of the chains, the database would read its pages once per person.
#: The database encodes the content, as for a new row. The times of imported labels are the file's.
_DECISIONS = text(
    f"""
    SELECT coalesce(moderator_id, 0) AS chain, {_ENTRY},
        CASE WHEN dt {_DATED} THEN dt ELSE 'epoch' END AS day,
        CASE WHEN num_nulls(note, note_salt, note_commitment) = 3 THEN true
            WHEN num_nulls(note, note_salt) = 2 THEN null
            ELSE coalesce(note_commitment = {commitment_sql("note_salt", "note")}, false)
        END AS note_opens,
        CASE WHEN kind <> 'imported' OR reason IS DISTINCT FROM 'imported'
            THEN date_part('epoch', decided_at) END AS at,
        CASE WHEN dt {_DATED} AND decided_at {_DATED}
            THEN {content_sql({name: name for name in COVERED})} END AS content
    FROM decision ORDER BY id
    """  # noqa: S608 - our own column names
)

_EVENTS = text(
    f"""
    SELECT {EVENTS} AS chain, {_ENTRY}, action, subject_id,
        CASE WHEN action IN ({RecordedState.ACTIONS}) THEN details::text END AS details,
        date_part('epoch', happened_at) AS at,
        CASE WHEN happened_at {_DATED} THEN CAST(happened_at AS date) END AS day,
        CASE WHEN happened_at {_DATED} THEN {EVENT_CONTENT.format("")} END AS content
    FROM event ORDER BY id
    """.replace("::", r"\:\:")  # noqa: S608 - our own column names
)

_ENDS = text(
    f"""
    SELECT coalesce(moderator_id, -1), coalesce(length, -1), coalesce(hash, '') FROM decision_chain
    UNION ALL SELECT {EVENTS}, coalesce(length, -1), coalesce(hash, '') FROM event_chain
    """  # noqa: S608 - our own number
)

#: Rows fetched at a time.
_BATCH = 2_000


@dataclass(frozen=True, kw_only=True)
class LogReport:
    """The result of `verify_log` or `verify_export`."""

    #: Decisions read.
    decisions: int
    #: One sentence each, the first twenty of a kind, and how many more there are; empty if the log
    #: is intact.
    problems: tuple[str, ...]
    #: The last entry of each chain: by moderator, and of the events as 0.
    heads: Mapping[int, Head] = field(repr=False)
    #: The time of the verification by the clock of the database, in seconds since 1970; None: an
    #: export was verified.
    at: float | None = None
    #: Items whose texts were erased, and notes.
    erased: int = 0

    @property
    def intact(self) -> bool:
        """Whether no entry was changed, removed or reordered."""
        return not self.problems

    @property
    def head(self) -> str:
        """SHA-256 of the heads of all chains of decisions, in hex; equal logs have equal heads."""
        decisions = {chain: head for chain, head in self.heads.items() if chain != EVENTS}
        return hashlib.sha256(witness_of(decisions).encode()).hexdigest()

    @property
    def witness(self) -> str:
        """The heads of all chains and the time, as a line of JSON."""
        return witness_of(self.heads, self.at)


def verify_log(engine: Engine, witness: str | None = None) -> LogReport:
    """Verify every chain of the log, in constant memory, on one consistent snapshot.

    Compares items, accounts, gold comments, policies and messages with it. `witness` is that of an
    earlier report, stored out of reach of those who can write to the database: every entry that it
    covers must still be there, and none that follows be of an earlier time. Raises `LedgerError` if
    it is invalid, `DatabaseError` if the database is lost or lacks a table.
    """
    known, state, decisions, erased = witness_in(witness), RecordedState(), 0, 0
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        # No temporary table of the session takes the place of a table.
        connection.execute(text("SET LOCAL search_path = public, pg_temp"))
        at: float = connection.scalar(text("SELECT date_part('epoch', clock_timestamp())")) or 0.0
        chains = Verification(known, now=at, name=_name)
        going_on = bound(_going_on, connection, chains)
        streamed = {"yield_per": _BATCH}
        with going_on("decisions"):
            for row in connection.execute(_DECISIONS, execution_options=streamed).mappings():
                _follow(chains, row)
                decisions += 1
                if row["note_opens"] is None:
                    state.missing_notes[row["id"]] = row["day"]
            state.people.update(chains.heads)
        with going_on("events"):
            for row in connection.execute(_EVENTS, execution_options=streamed).mappings():
                _follow(chains, row)
                about = (row["action"], row["subject_id"], row["details"])
                if not state.add(*about, row["day"] or date.min):
                    chains.report(f"{_place(row)} is malformed", "malformed event")
        chains.finish()
        with going_on("recorded ends"):
            chains.compare(recorded_heads(connection))
        with going_on("erased texts"):
            erased = connection.scalar(_ERASED, {"erased": ERASED}) or 0
        for section, find in (*STATE.items(), ("messages", message_problems)):
            with going_on(section):
                for problem in find(connection, state):
                    chains.report(problem, section)
    return LogReport(
        decisions=decisions,
        problems=tuple(chains.problems),
        heads=chains.heads,
        at=at,
        erased=erased + len(state.missing_notes),
    )


@contextmanager
def _going_on(connection: Connection, chains: Verification, section: str) -> Iterator[None]:
    """Report an error of the block, which reads a section, so that the others are verified."""
    try:
        with connection.begin_nested():
            yield
    except MALFORMED as exc:
        chains.report(f"a row of the {section} cannot be read ({type(exc).__name__})", section)


def verify_export(
    lines: Iterable[str | bytes], witness: str | None = None, *, partial: bool = False
) -> LogReport:
    """Verify every chain of decisions in a JSONL export, without the database.

    Only a witness can prove that the end of the log is not missing. An export without notes
    verifies too, also if they were erased, because an entry binds only the commitment to its note;
    notes that are there are compared with it. With `partial`, for exports of some days, gaps are
    allowed.
    """
    seen = witness_in(witness)
    ends = {chain: head for chain, head in seen.heads.items() if chain != EVENTS}
    chains = Verification(seen._replace(heads=ends), partial=partial, name=_name)
    decisions = 0
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                _follow(chains, _exported_row(line))
            except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
                chains.report(f"line {number} is not a decision as Modwatch exports it")
            else:
                decisions += 1
    chains.finish()
    return LogReport(decisions=decisions, problems=tuple(chains.problems), heads=chains.heads)


def recorded_heads(connection: Connection) -> dict[int, Head]:
    """Return the recorded head of each chain that has one, without reading the log."""
    return {
        chain: Head(length, last) for chain, length, last in connection.execute(_ENDS) if length
    }


def was_witnessed(connection: Connection, witness: str) -> bool:
    """Return whether the log has every head in a witness where it had it.

    Whether the entries between are intact is for `verify_log`. Raises `LedgerError` for an invalid
    witness.
    """
    heads = {(chain, *head) for chain, head in witness_in(witness).heads.items() if head.length}
    decisions = select(decision.c.moderator_id, decision.c.position, decision.c.hash)
    events = select(literal(EVENTS, BigInteger), event.c.position, event.c.hash)
    entries = union_all(decisions, events).subquery()
    found = connection.execute(select(entries).where(tuple_(*entries.c).in_(heads)))
    return set(map(tuple, found)) == heads


def _name(chain: int) -> str:
    return "the chain of events" if chain == EVENTS else f"the chain of moderator {chain}"


def _follow(chains: Verification, row: Mapping[Any, Any] | RowMapping) -> None:
    chain, before, content, place = row["chain"], row["previous_hash"], row["content"], _place(row)
    entry = Entry(chain, row["position"], before, row["hash"], place, row["at"])
    chains.follow(entry, None if content is None else entry_hash(before, content))
    if row.get("note_opens") is False:
        chains.report(
            f"{place} was changed: its note is not the one that it commits to", chain, "note"
        )


def _place(row: Mapping[Any, Any] | RowMapping) -> str:
    if row["chain"] == EVENTS:
        return f"event {row['id']} (position {row['position']})"
    return f"decision {row['id']} (moderator {row['chain']}, position {row['position']})"


def _exported_row(line: str | bytes) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(line)
    row["dt"] = date.fromisoformat(row["dt"])
    row["decided_at"] = datetime.fromisoformat(row["decided_at"])
    row["seconds"] = None if row["seconds"] is None else float(row["seconds"])
    imported = row["kind"] == row["reason"] == "imported"
    row["at"] = None if imported else row["decided_at"].timestamp()
    for name in ("text_commitment", "item_digest", "previous_hash", "hash"):
        row[name] = bytes.fromhex(row[name])
    for name in ("note_commitment", "note_salt"):
        if row.get(name) is not None:
            row[name] = bytes.fromhex(row[name])
    for name in ("id", "moderator_id", "position"):
        row[name] = whole(row[name])
    note = row.get("note_salt"), row.get("note")
    note_opens = note == (None, None) or opens(row["note_commitment"], *note)
    read = {"chain": row["moderator_id"], "content": content_of(row), "note_opens": note_opens}
    return row | read
