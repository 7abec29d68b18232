"""The append-only log of decisions.

The decisions of each moderator form a hash chain: each row contains its position, the hash of the
row before, and a hash over both and its own content. With one chain for all people, each commit
would have to wait for the one before. `hashing` defines what a hash covers, `verification` finds
breaks of a chain, and `labels` reads the current labels.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from sqlalchemy import (
    Connection,
    LargeBinary,
    RowMapping,
    Select,
    func,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects import postgresql

from modwatch.review.log.hashing import COVERED, CURRENT, GENESIS, row_hash, text_digest_sql
from modwatch.review.tables import decision, decision_chain, review_item


@dataclass(frozen=True, kw_only=True)
class Decision:
    """One row of the log."""

    id: int
    item_id: int
    dt: date
    comment_id: str
    #: review | confirmation | retest | gold | audit | imported
    kind: str
    #: The item's version before the decision.
    item_version: int
    moderator_id: int
    #: label | adjudicate | correct | skip | escalate | undo | close | reopen
    action: str
    #: 1 toxic, 0 not; None for an action without a label.
    label: int | None
    policy_version: str | None
    policy_code: str | None
    #: Code of the policy's reason to skip, escalate, correct or close.
    reason: str | None
    note: str | None = field(repr=False)
    #: Time from claim to decision.
    seconds: float | None
    idempotency_key: str
    #: The decision that this one reverts or replaces.
    refers_to: int | None
    decided_at: datetime
    #: SHA-256 of the item's texts, see `hashing.text_digest_sql`; None before format 3.
    text_digest: bytes | None = field(repr=False)
    #: The item's status after the decision; None before format 3.
    outcome: str | None
    #: The transaction that wrote the row.
    transaction_id: str = field(repr=False)
    #: In the moderator's chain, from 1.
    position: int
    #: Format of the hash; see `hashing`.
    format: int
    previous_hash: bytes = field(repr=False)
    hash: bytes = field(repr=False)


#: Columns that `append` fills in.
_APPENDED = ("position", "moderator_id", "text_digest", "transaction_id")

_TEXT_DIGEST = literal_column(text_digest_sql("review_item"), LargeBinary)

#: The columns of `Decision`.
COLUMNS = tuple(decision.c[name] for name in Decision.__dataclass_fields__)


def start_chain(connection: Connection, moderator_id: int) -> None:
    """Create the empty chain of a moderator if it does not exist."""
    connection.execute(
        postgresql.insert(decision_chain)
        .values(moderator_id=moderator_id, length=0, hash=GENESIS)
        .on_conflict_do_nothing()
    )


def entry_of(item: RowMapping, **values: object) -> dict[str, Any]:
    """Return an entry for `append`: `values` by column of the log, for a row of `review_item`.

    Columns that `values` lacks are null. `outcome`, the item's status afterwards, is required.
    """
    return {
        **dict.fromkeys(name for name in COVERED if name not in _APPENDED),
        "item_id": item["id"],
        "dt": item["dt"],
        "comment_id": item["comment_id"],
        "kind": item["kind"],
        "item_version": item["version"],
        **values,
    }


def append(
    connection: Connection, moderator_id: int, entries: Sequence[Mapping[str, Any]]
) -> list[Decision]:
    """Append entries to the chain of a moderator, in the caller's transaction; return them.

    `entry_of` makes the entries, whose idempotency keys must be new. `queue.statements` has a
    faster statement for the decisions that people make all day.
    """
    if not entries:
        return []
    mine = decision_chain.c.moderator_id == moderator_id
    chain = connection.execute(
        select(
            decision_chain.c.length,
            decision_chain.c.hash,
            func.pg_current_xact_id().label("transaction_id"),
        )
        .where(mine)
        .with_for_update()
    ).one()
    digests = _text_digests(connection, {entry["item_id"] for entry in entries})
    rows, last = [], chain.hash
    for position, entry in enumerate(entries, chain.length + 1):
        row = {
            **entry,
            "moderator_id": moderator_id,
            "text_digest": digests[entry["item_id"]],
            "transaction_id": chain.transaction_id,
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


def _text_digests(connection: Connection, item_ids: Collection[int]) -> dict[int, bytes]:
    items = select(review_item.c.id, _TEXT_DIGEST).where(review_item.c.id.in_(item_ids))
    return {row[0]: row[1] for row in connection.execute(items)}


def made_under(moderator_id: int, idempotency_key: str) -> Select[Any]:
    """Return the query of the decision that this person made with an idempotency key."""
    return select(*COLUMNS).where(
        decision.c.moderator_id == moderator_id, decision.c.idempotency_key == idempotency_key
    )
