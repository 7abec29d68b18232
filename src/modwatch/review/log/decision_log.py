"""The append-only log of decisions.

Every moderator's decisions form a chain of their own: each row holds its position, the hash of the
row before, and a hash over both and everything it says. Chains side by side let people decide at
once; one chain for all would make each commit wait for the one before. `formats` says what a
hash covers, `check` finds whatever breaks a chain, `standing` reads the labels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, insert, select, update
from sqlalchemy.dialects import postgresql

from modwatch.review.log.hashing import COVERED, CURRENT, GENESIS, row_hash
from modwatch.review.tables import decision, decision_chain


@dataclass(frozen=True, kw_only=True)
class Decision:
    """One row of the log."""

    id: int
    item_id: int
    dt: date
    comment_id: str
    #: review | retest | gold | audit | second_opinion | imported
    kind: str
    #: The item's version before the decision.
    item_version: int
    moderator_id: int
    #: label | adjudicate | correct | skip | escalate | undo | close | reopen
    action: str
    #: 1 toxic, 0 not; None for an action that is not about a label.
    label: int | None
    policy_version: str | None
    policy_code: str | None
    #: A word from a list: why it was skipped, escalated, corrected or closed.
    reason: str | None
    note: str | None = field(repr=False)
    #: Between claim and decision.
    seconds: float | None
    idempotency_key: str
    #: The decision that this one takes back or replaces.
    refers_to: int | None
    decided_at: datetime
    #: In the moderator's chain, from 1.
    position: int
    #: Which columns the hash covers.
    format: int
    previous_hash: bytes = field(repr=False)
    hash: bytes = field(repr=False)


#: The columns of `Decision`.
COLUMNS = tuple(decision.c[name] for name in Decision.__dataclass_fields__)


def start_chain(connection: Connection, moderator_id: int) -> None:
    """Begin the empty chain of a moderator, unless there is one."""
    connection.execute(
        postgresql.insert(decision_chain)
        .values(moderator_id=moderator_id, length=0, hash=GENESIS)
        .on_conflict_do_nothing()
    )


def entry_of(item: RowMapping, **said: object) -> dict[str, Any]:
    """Return an entry for `append`: what is `said` of a row of `review_item`, by column of the log.

    What `said` leaves out is null.
    """
    return {
        **dict.fromkeys(name for name in COVERED if name not in ("position", "moderator_id")),
        "item_id": item["id"],
        "dt": item["dt"],
        "comment_id": item["comment_id"],
        "kind": item["kind"],
        "item_version": item["version"],
        **said,
    }


def append(
    connection: Connection, moderator_id: int, entries: Sequence[Mapping[str, Any]]
) -> list[Decision]:
    """Return the decisions appended to the chain of a moderator, in the caller's transaction.

    `entry_of` makes the entries. Their keys must be new; `queue` has a statement of its own for the
    one decision that people make all day.
    """
    if not entries:
        return []
    mine = decision_chain.c.moderator_id == moderator_id
    chain = connection.execute(
        select(decision_chain.c.length, decision_chain.c.hash).where(mine).with_for_update()
    ).one()
    rows, last = [], chain.hash
    for position, entry in enumerate(entries, chain.length + 1):
        row = {
            **entry,
            "moderator_id": moderator_id,
            "position": position,
            "format": CURRENT,
            "previous_hash": last,
        }
        last = row["hash"] = row_hash(row)
        rows.append(row)
    ids = connection.scalars(
        insert(decision).returning(decision.c.id, sort_by_parameter_order=True), rows
    ).all()
    connection.execute(
        update(decision_chain).where(mine).values(length=rows[-1]["position"], hash=last)
    )
    return [Decision(id=new, **row) for new, row in zip(ids, rows, strict=True)]


def made_under(moderator_id: int, idempotency_key: str) -> Select[Any]:
    """Return the query of the decision that this person made under a key, if there is one."""
    return select(*COLUMNS).where(
        decision.c.moderator_id == moderator_id, decision.c.idempotency_key == idempotency_key
    )
