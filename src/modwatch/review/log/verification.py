"""Verification that the decision log was not altered, in the database or in an export of it.

A changed, deleted or reordered entry breaks a chain; a truncated chain disagrees with its recorded
end; an item, account, gold comment or policy that was changed without an entry disagrees with the
log. Someone who can rewrite the whole database can forge all of that: store `LogReport.witness`
out of their reach, and pass it to the next verification; `witnesses` does so every day.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, Engine, RowMapping, select, text, tuple_

from modwatch.common.ledger.chain import (
    Entry,
    Head,
    Verification,
    entry_hash,
    heads_of,
    opens,
    whole,
    witness_of,
)
from modwatch.review.events import EVENT_CONTENT
from modwatch.review.log.decision_log import COVERED, commitment_sql, content_sql, row_hash
from modwatch.review.log.recorded_state import RecordedState, state_problems
from modwatch.review.tables import decision, decision_chain, event, event_chain

#: The chain of the events; the other chains have the number of their moderator, from 1.
EVENTS = 0

#: In the order of time: in that of the chains, the database would read its pages once per person.
#: The database encodes the content, as for a new row, which is impossible for infinite times.
_DECISIONS = text(
    f"""
    SELECT id, moderator_id AS chain, position, previous_hash, hash,
        CASE WHEN num_nulls(note, note_salt, note_commitment) = 3 THEN true
            ELSE coalesce(note_commitment = {commitment_sql("note_salt", "note")}, false)
        END AS note_opens,
        CASE WHEN isfinite(dt) AND isfinite(decided_at)
            THEN {content_sql({name: name for name in COVERED})} END AS content
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
    #: The last entry of each chain: by moderator, and of the events as 0.
    heads: Mapping[int, Head] = field(repr=False)

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
        """The heads of all chains as a line of JSON: `[[chain, length, hash], …]`."""
        return witness_of(self.heads)


def verify_log(engine: Engine, witness: str | None = None) -> LogReport:
    """Verify every chain of the log, in constant memory, on one consistent snapshot.

    Compares items, accounts, gold comments and policies with it. `witness` is that of an earlier
    report, stored out of reach of those who can write to the database: every entry that it covers
    must still be there. Raises `LedgerError` if it is invalid.
    """
    chains, state, decisions = Verification(heads_of(witness), name=_name), RecordedState(), 0
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        streamed = {"yield_per": _BATCH}
        for row in connection.execute(_DECISIONS, execution_options=streamed).mappings():
            _follow(chains, row, _content_hash(row), note_opens=row["note_opens"])
            decisions += 1
        for row in connection.execute(_EVENTS, execution_options=streamed).mappings():
            _follow(chains, row, _content_hash(row))
            state.add(row["action"], row["subject_id"], row["details"])
        chains.finish()
        chains.compare(recorded_heads(connection))
        for problem in state_problems(connection, state):
            chains.report(problem)
    return LogReport(decisions=decisions, problems=tuple(chains.problems), heads=chains.heads)


def verify_export(
    lines: Iterable[str | bytes], witness: str | None = None, *, partial: bool = False
) -> LogReport:
    """Verify every chain of decisions in a JSONL export, without the database.

    Only a witness can prove that the end of the log is not missing. An export without notes
    verifies too, because an entry binds only the commitment to its note; notes that are there are
    compared with it. With `partial`, for exports of some days, gaps are allowed.
    """
    witnessed = heads_of(witness)
    witnessed.pop(EVENTS, None)  # an export has no events
    chains, decisions = Verification(witnessed, partial=partial, name=_name), 0
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                row = _exported_row(line)
                note_opens = "note" not in row or opens(
                    row["note_commitment"], row["note_salt"], row["note"]
                )
                _follow(chains, row, row_hash(row), note_opens=note_opens)
            except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
                chains.report(f"line {number} is not a decision as Modwatch exports it")
                continue
            decisions += 1
    chains.finish()
    return LogReport(decisions=decisions, problems=tuple(chains.problems), heads=chains.heads)


def recorded_heads(connection: Connection) -> dict[int, Head]:
    """Return the recorded head of each chain that has one, without reading the log."""
    columns = (decision_chain.c.moderator_id, decision_chain.c.length, decision_chain.c.hash)
    heads = {row[0]: Head(row[1], row[2]) for row in connection.execute(select(*columns))}
    events = connection.execute(select(event_chain.c.length, event_chain.c.hash)).one_or_none()
    if events is not None and events.length:
        heads[EVENTS] = Head(*events)
    return heads


def was_witnessed(connection: Connection, witness: str) -> bool:
    """Return whether the log has every head in a witness where it had it.

    Whether the entries between are intact is for `verify_log`. Raises `LedgerError` for an invalid
    witness.
    """
    heads = {(chain, *head) for chain, head in heads_of(witness).items() if head.length}
    row = tuple_(decision.c.moderator_id, decision.c.position, decision.c.hash)
    found = connection.execute(
        select(decision.c.moderator_id, decision.c.position, decision.c.hash).where(
            row.in_([head for head in heads if head[0] != EVENTS])
        )
    )
    last = [head[1] for head in heads if head[0] == EVENTS]
    events = connection.execute(
        select(event.c.position, event.c.hash).where(event.c.position.in_(last))
    )
    return {*map(tuple, found), *((EVENTS, *row) for row in events)} == heads


def _name(chain: int) -> str:
    return "the chain of events" if chain == EVENTS else f"the chain of moderator {chain}"


def _follow(
    chains: Verification,
    row: Mapping[Any, Any] | RowMapping,
    expected: bytes | None,
    *,
    note_opens: bool = True,
) -> None:
    chain, position = row["chain"], row["position"]
    if chain == EVENTS:
        place = f"event {row['id']} (position {position})"
    else:
        place = f"decision {row['id']} (moderator {chain}, position {position})"
    chains.follow(Entry(chain, position, row["previous_hash"], row["hash"], place), expected)
    if not note_opens:
        chains.report(f"{place} was changed: its note is not the one that it commits to")


def _content_hash(row: RowMapping) -> bytes | None:
    return None if row["content"] is None else entry_hash(row["previous_hash"], row["content"])


def _exported_row(line: str | bytes) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(line)
    row["dt"] = date.fromisoformat(row["dt"])
    row["decided_at"] = datetime.fromisoformat(row["decided_at"])
    row["seconds"] = None if row["seconds"] is None else float(row["seconds"])
    for name in ("text_commitment", "previous_hash", "hash"):
        row[name] = bytes.fromhex(row[name])
    for name in ("note_commitment", "note_salt"):
        if row.get(name) is not None:
            row[name] = bytes.fromhex(row[name])
    for name in ("id", "moderator_id", "position"):
        row[name] = whole(row[name])
    return row | {"chain": row["moderator_id"]}
