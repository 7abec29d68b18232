"""The register of audits: every step of every audit, as an event of the database.

An audit that was abandoned or cancelled, or whose folder was removed, still stands in it. Its
entries are part of the chain of events, which witnesses of the decision log cover.
"""

import hashlib
import secrets
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.dialects.postgresql import array

from modwatch.audits.evidence import Event, first_of
from modwatch.audits.seeds import LOG, NUMBER
from modwatch.common.ledger.chain import witness_of
from modwatch.review import tables
from modwatch.review.events import record_event
from modwatch.review.log.verification import recorded_heads, was_witnessed
from modwatch.statistics.audit.plan import AuditPlan

_STEP, _APPROVAL = "audit_step", "audit_approval"


class Entry(NamedTuple):
    """A step of an audit in the register, its details in the event."""

    audit: str
    #: First and last day of the period, ISO 8601.
    first: str
    last: str
    #: One of `evidence.FOLLOWS`.
    step: str
    #: Of the step, UTC, ISO 8601.
    at: str
    #: Of the step in the chain of the audit.
    hash: str


def read(database: Engine) -> list[Entry]:
    """Return the register, oldest first; events that lack a detail are none of it."""
    with database.connect() as connection:
        return _entries(connection)


def enter(database: Engine, chain: Sequence[Event], plan: AuditPlan) -> None:
    """Enter the steps of a chain into the register, each once."""
    with database.begin() as connection:
        name = func.hashtextextended(f"steps {plan.audit}", 0)
        connection.execute(select(func.pg_advisory_xact_lock(name)))
        known = {entry.hash for entry in _entries(connection)}
        for event in chain:
            if event.digest not in known:
                entry = Entry(
                    audit=event.audit,
                    first=plan.first.isoformat(),
                    last=plan.last.isoformat(),
                    step=event.action,
                    at=event.at,
                    hash=event.digest,
                )
                record_event(connection, _STEP, actor_id=None, **entry._asdict())


def step_problems(
    entries: Sequence[Entry], chain: Sequence[Event], plan: AuditPlan
) -> Iterator[str]:
    """Yield the differences between the steps of an audit and the register."""
    steps = {event.digest for event in chain}
    period = (plan.audit, plan.first.isoformat(), plan.last.isoformat())
    mine = {entry.hash for entry in entries if entry[:3] == period}
    if number := len(steps - mine):
        yield (
            f"{number} of {len(steps)} steps of the audit are not in the database: they were "
            "changed, added or written anew; if the last step was interrupted, take it again"
        )
    if others := [
        entry for entry in entries if entry.audit == plan.audit and entry.hash not in steps
    ]:
        plans = sum(entry.step == "planned" for entry in others)
        yield (
            f"the database has {len(others)} steps of an audit of this name that are not in its "
            f"chain, {plans} of them plans, from {min(entry.at for entry in others)} on: the "
            "folder was removed and the audit carried out again, or its chain was rewritten or cut"
        )


def missing(entries: Sequence[Entry], chains: Mapping[str, Sequence[Event]]) -> Iterator[str]:
    """Yield the audits whose `chains`, by name, have steps that are not in the register."""
    known = {entry.hash for entry in entries}
    lost = [name for name, chain in chains.items() if {one.digest for one in chain} - known]
    if lost:
        yield (
            f"there are steps of {', '.join(map(repr, lost))} that are not in the database: they "
            "were erased from it, or a last step was interrupted"
        )


def same_days(entries: Sequence[Entry], plan: AuditPlan) -> dict[str, list[Entry]]:
    """Return by name the steps of the other audits of days of the same period."""
    others: dict[str, list[Entry]] = {}
    for entry in entries:
        overlap = entry.first <= plan.last.isoformat() and plan.first.isoformat() <= entry.last
        if entry.audit != plan.audit and overlap:
            others.setdefault(entry.audit, []).append(entry)
    return dict(sorted(others.items()))


def remarks(entries: Sequence[Entry], plan: AuditPlan, folders: Collection[str]) -> Iterator[str]:
    """Yield the other audits of days of the same period, and those without a folder."""
    for audit, steps in same_days(entries, plan).items():
        done = Counter(entry.step for entry in steps)
        again = f", {done['planned']} times" if done["planned"] > 1 else ""
        yield (
            f"audit {audit!r} is of {steps[0].first} to {steps[0].last}, too: planned at "
            f"{steps[0].at}{again}, last step {steps[-1].step.replace('_', ' ')}. Ask why there "
            "are several, and whether a result was chosen among them"
        )
    yield from removed(entries, folders)


def removed(entries: Sequence[Entry], folders: Collection[str]) -> Iterator[str]:
    """Yield the audits in the register that have none of the `folders`."""
    last = {entry.audit: entry for entry in entries if entry.audit not in folders}
    for audit, entry in sorted(last.items()):
        yield (
            f"the folder of audit {audit!r} was removed: its last step in the register is "
            f"{entry.step.replace('_', ' ')} at {entry.at}"
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
            witness = witness_of(recorded_heads(connection))
            log, number = hashlib.sha256(witness.encode()).hexdigest(), random_number()
            kept = {LOG: log, NUMBER: number}
            record_event(
                connection, _APPROVAL, actor_id=None,
                audit=plan.audit, plan=plan.digest, witness=witness,
                decision_log=log, random_number=number,
            )  # fmt: skip
        return {name: str(kept[name]) for name in (LOG, NUMBER)}


def approval_problems(database: Engine, chain: Sequence[Event], plan: AuditPlan) -> Iterator[str]:
    """Yield why the seed is not what the database fixed."""
    approved = first_of(chain, "approved")
    if approved is None:
        return
    with database.connect() as connection:
        kept = _approval(connection, plan)
        if kept is None:
            yield (
                "the database has no approval of this plan, so someone chose what the seed of the "
                "draw is made of"
            )
            return
        if any(approved.facts.get(name) != kept[name] for name in (LOG, NUMBER)):
            yield (
                "the approval fixes another seed than the database did: someone chose the seed, "
                "and with it the sample"
            )
        witness = str(kept["witness"])
        digest = hashlib.sha256(witness.encode()).hexdigest()
        if digest != kept[LOG] or not was_witnessed(connection, witness):
            yield (
                "the decision log does not have the decisions that were its last at the approval: "
                "it was cut or rewritten"
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


def _entries(connection: Connection) -> list[Entry]:
    row = tables.event.c
    columns = (row.details[name].astext for name in Entry._fields)
    statement = (
        select(*columns)
        .where(row.action == _STEP, row.details.has_all(array(Entry._fields)))
        .order_by(row.id)
    )
    return [Entry(*found) for found in connection.execute(statement)]
