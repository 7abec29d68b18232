"""The register of audits: every step of every audit, in one chain of its own.

An audit that was abandoned or cancelled, or whose folder was removed, still stands in it. The
register is the file `register.jsonl` next to the folders, a chain as `common.ledger.chain` writes
it. The same steps are events of the database, so that a rewritten register shows there.
"""

import hashlib
import secrets
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import date

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass
from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.dialects.postgresql import array

from modwatch.audits.evidence import START, Event, first_of
from modwatch.audits.seeds import LOG, NUMBER
from modwatch.common.errors import AuditError, LedgerError
from modwatch.common.ledger.chain import line_hash, read_lines, witness_of, written_line
from modwatch.review import tables
from modwatch.review.events import record_event
from modwatch.review.log.verification import recorded_heads, was_witnessed
from modwatch.statistics.audit.plan import AuditPlan

#: Name of the file.
REGISTER = "register.jsonl"

_STEP, _APPROVAL = "audit_step", "audit_approval"


@dataclass(frozen=True, kw_only=True, config=ConfigDict(strict=True, extra="forbid"))
class Entry:
    """A step of an audit in the register."""

    #: In the register, from 1.
    position: int
    audit: str
    #: First and last day of the period, ISO 8601.
    first: str
    last: str
    #: One of `evidence.FOLLOWS`.
    action: str
    #: Of the step, UTC, ISO 8601.
    at: str
    #: Hash of the step in the chain of the audit.
    step: str
    #: Hash of the entry before.
    previous: str

    @property
    def digest(self) -> str:
        """Hash of the entry, in hexadecimal."""
        return line_hash(asdict(self)).hex()


def written(entries: Sequence[Entry]) -> bytes:
    """Return the register as text: one line per entry, with its hash."""
    return "".join(written_line(asdict(entry)) for entry in entries).encode()


def read(content: bytes | None) -> list[Entry]:
    """Return what `written` wrote, nothing for None; AuditError for anything else.

    >>> read(written([])) == read(None) == []
    True
    """
    try:
        return read_lines((content or b"").decode(), REGISTER, lambda fields: Entry(**fields))
    except (LedgerError, UnicodeDecodeError) as exc:
        raise AuditError(f"the register of audits was changed: {exc}") from None


def continued(
    entries: Sequence[Entry], chain: Sequence[Event], first: date, last: date
) -> list[Entry]:
    """Return the register with the steps of a chain that it does not have yet."""
    known, made = {entry.step for entry in entries}, [*entries]
    for event in chain:
        if event.digest not in known:
            made.append(
                Entry(
                    position=len(made) + 1,
                    audit=event.audit,
                    first=first.isoformat(),
                    last=last.isoformat(),
                    action=event.action,
                    at=event.at,
                    step=event.digest,
                    previous=made[-1].digest if made else START,
                )
            )
    return made


def register_problems(
    entries: Sequence[Entry], chain: Sequence[Event], plan: AuditPlan
) -> Iterator[str]:
    """Yield the differences between an audit and the register."""
    mine = {entry.step for entry in entries if entry.audit == plan.audit}
    steps = {event.digest for event in chain}
    if number := len(steps - mine):
        yield (
            f"{number} of {len(steps)} steps of the audit are not in the register of audits: they "
            "were changed, added or written anew; if the last step was interrupted, take it again"
        )
    if others := [
        entry for entry in entries if entry.audit == plan.audit and entry.step not in steps
    ]:
        plans = sum(entry.action == "planned" for entry in others)
        yield (
            f"the register has {len(others)} steps of an audit of this name that are not in its "
            f"chain, {plans} of them plans, from {min(entry.at for entry in others)} on: the "
            "folder was removed and the audit carried out again, or its chain was rewritten or cut"
        )


def same_days(entries: Sequence[Entry], plan: AuditPlan) -> dict[str, list[Entry]]:
    """Return by name the steps of the other audits of days of the same period."""
    others: dict[str, list[Entry]] = {}
    for entry in entries:
        overlap = entry.first <= plan.last.isoformat() and plan.first.isoformat() <= entry.last
        if entry.audit != plan.audit and overlap:
            others.setdefault(entry.audit, []).append(entry)
    return dict(sorted(others.items()))


def register_remarks(
    entries: Sequence[Entry], plan: AuditPlan, folders: Collection[str]
) -> Iterator[str]:
    """Yield the other audits of days of the same period, and those without a folder."""
    for audit, steps in same_days(entries, plan).items():
        done = Counter(entry.action for entry in steps)
        again = f", {done['planned']} times" if done["planned"] > 1 else ""
        yield (
            f"audit {audit!r} is of {steps[0].first} to {steps[0].last}, too: planned at "
            f"{steps[0].at}{again}, last step {steps[-1].action.replace('_', ' ')}. Ask why there "
            "are several, and whether a result was chosen among them"
        )
    yield from removed(entries, folders)


def removed(entries: Sequence[Entry], folders: Collection[str]) -> Iterator[str]:
    """Yield the audits in the register that have none of the `folders`."""
    last = {entry.audit: entry for entry in entries if entry.audit not in folders}
    for audit, entry in sorted(last.items()):
        yield (
            f"the folder of audit {audit!r} was removed: its last step in the register is "
            f"{entry.action.replace('_', ' ')} at {entry.at}"
        )


def witness(database: Engine, chain: Sequence[Event], plan: AuditPlan) -> None:
    """Record the steps of a chain in the database, each once."""
    if not chain:
        return
    with database.begin() as connection:
        known = _steps(connection, chain[0].audit)
        for event in chain:
            if event.digest not in known:
                record_event(
                    connection, _STEP, actor_id=None,
                    audit=event.audit, step=event.action, hash=event.digest,
                    first=plan.first.isoformat(), last=plan.last.isoformat(),
                )  # fmt: skip


def witness_problems(database: Engine, chain: Sequence[Event], plan: AuditPlan) -> Iterator[str]:
    """Yield the differences between the steps of an audit and the database."""
    with database.connect() as connection:
        known = _steps(connection, plan.audit)
        steps = {event.digest for event in chain}
        if missing := len(steps - known):
            yield (
                f"{missing} of {len(steps)} steps of the audit are not in the database: they were "
                "changed, added or written anew; if the last step was interrupted, take it again"
            )
        if others := len(known - steps):
            yield (
                f"the database has {others} steps of an audit of this name that are not in its "
                "chain: the folder was removed and the audit carried out again, or its chain was "
                "rewritten or cut"
            )
        yield from _approval_problems(connection, chain, plan)


def erased(database: Engine, entries: Sequence[Entry], audit: str) -> Iterator[str]:
    """Yield the differences between the database and the register, of audits besides `audit`."""
    with database.connect() as connection:
        every = _periods(connection)
    listed = {(entry.step, entry.audit, entry.first, entry.last) for entry in entries}
    if lost := every - listed:
        yield (
            f"the database has {len(lost)} steps of audits that are not in the register, or "
            "with another name or period: it was rewritten, so that audits do not show in it"
        )
    if names := sorted({repr(name) for _, name, _, _ in listed - every if name != audit}):
        yield (
            f"the register has steps of {', '.join(names)} that are not in the database: they were "
            "erased from it, or a last step was interrupted"
        )


def random_number() -> str:
    """Return 256 random bits, in hexadecimal."""
    return secrets.token_hex(32)


def approval_facts(database: Engine, plan: AuditPlan) -> dict[str, str]:
    """Return what the approval of a plan fixes for the seed: the first time made, and then kept."""
    with database.begin() as connection:
        name = func.hashtextextended(f"approval {plan.digest}", 0)
        connection.execute(select(func.pg_advisory_xact_lock(name)))
        kept = _approval(connection, plan)
        if kept is None:
            witness_ = witness_of(recorded_heads(connection))
            log, number = hashlib.sha256(witness_.encode()).hexdigest(), random_number()
            kept = {LOG: log, NUMBER: number}
            record_event(
                connection, _APPROVAL, actor_id=None,
                audit=plan.audit, plan=plan.digest, witness=witness_,
                decision_log=log, random_number=number,
            )  # fmt: skip
        return {name: str(kept[name]) for name in (LOG, NUMBER)}


def _approval_problems(
    connection: Connection, chain: Sequence[Event], plan: AuditPlan
) -> Iterator[str]:
    """Yield why the seed is not what the database fixed."""
    approved = first_of(chain, "approved")
    if approved is None:
        return
    kept = _approval(connection, plan)
    if kept is None:
        yield (
            "the database has no approval of this plan, so someone chose what the seed of the "
            "draw is made of"
        )
        return
    if any(approved.facts.get(name) != kept[name] for name in (LOG, NUMBER)):
        yield (
            "the approval fixes another seed than the database did: someone chose the seed, and "
            "with it the sample"
        )
    witness_ = str(kept["witness"])
    if hashlib.sha256(witness_.encode()).hexdigest() != kept[LOG] or not was_witnessed(
        connection, witness_
    ):
        yield (
            "the decision log does not have the decisions that were its last at the approval: it "
            "was cut or rewritten"
        )


def _approval(connection: Connection, plan: AuditPlan) -> Mapping[str, object] | None:
    """Return the first approval of a plan in the database that has all facts."""
    row = tables.event.c
    statement = (
        select(row.details)
        .where(row.action == _APPROVAL, row.details["plan"].astext == plan.digest)
        .where(row.details.has_all(array(["witness", LOG, NUMBER])))
        .order_by(row.id)
        .limit(1)
    )
    found: Mapping[str, object] | None = connection.execute(statement).scalar_one_or_none()
    return found


def _steps(connection: Connection, audit: str) -> set[str]:
    """Return the hashes of the steps of an audit in the database."""
    return {step for step, of, _, _ in _periods(connection) if of == audit}


def _periods(connection: Connection) -> set[tuple[str, str, str, str]]:
    """Return hash, audit, first and last day of every step in the database."""
    row = tables.event.c
    columns = (row.details[name].astext for name in ("hash", "audit", "first", "last"))
    rows = connection.execute(select(*columns).where(row.action == _STEP))
    return {(step, audit, first, last) for step, audit, first, last in rows}
