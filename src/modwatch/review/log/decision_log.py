"""The decisions as a ledger in PostgreSQL: append-only, with one hash chain per moderator.

With one chain for all people, each commit would have to wait for the one before. An entry binds the
columns of `COVERED`: the note and the texts that were read by commitments, whose salts are stored
with the texts (`decision.note_salt`, `review_item.text_salt`), and what figures read of the item by
a digest. The content of an entry is the same JSON in Python and in SQL, so an export verifies
without the database. `verification` finds breaks of a chain, and `labels` reads the current labels.
"""

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import (
    Connection,
    Date,
    DateTime,
    Double,
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

from modwatch.common.ledger.chain import GENESIS, commitment, entry_hash, new_salt
from modwatch.review.database import next_time_sql
from modwatch.review.tables import (
    HIDDEN,
    OTHERS,
    TransactionId,
    decision,
    decision_chain,
    review_item,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Encoding(NamedTuple):
    """How values of a type are written, in Python and, as an expression of `{0}`, in SQL."""

    plain: Callable[[Any], Any]
    sql: str


_AS_IS = _Encoding(lambda value: value, "{0}")

#: By the type of a column; others are written as they are. Times are microseconds since 1970, UTC;
#: numbers are their eight bytes, in hex, so that no digit is lost.
_BY_TYPE = {
    Date: _Encoding(date.isoformat, "to_char({0}, 'YYYY-MM-DD')"),
    DateTime: _Encoding(
        lambda moment: (moment - _EPOCH) // timedelta(microseconds=1),
        "(extract(epoch from {0}) * 1000000)::bigint",
    ),
    Double: _Encoding(
        lambda number: struct.pack(">d", number).hex(), "encode(float8send({0}), 'hex')"
    ),
    LargeBinary: _Encoding(bytes.hex, "encode({0}, 'hex')"),
    TransactionId: _Encoding(lambda number: number, "{0}::text"),
}

#: What the hash covers, in this order.
COVERED = (
    "position", "item_id", "dt", "comment_id", "kind", "item_version", "moderator_id", "action",
    "label", "policy_version", "policy_code", "reason", "note_commitment", "seconds",
    "idempotency_key", "refers_to", "decided_at", "text_commitment", "item_digest", "outcome",
    "transaction_id",
)  # fmt: skip

_ENCODINGS = {name: _BY_TYPE.get(type(decision.c[name].type), _AS_IS) for name in COVERED}


def row_hash(row: Mapping[str, Any]) -> bytes:
    """Return the hash of an entry, of its previous hash and the columns of `COVERED`.

    >>> empty = dict.fromkeys(COVERED) | {"previous_hash": GENESIS}
    >>> row_hash(empty) == row_hash(empty | {"label": 1})
    False
    """
    return entry_hash(row["previous_hash"], content_of(row))


def content_of(row: Mapping[str, Any]) -> str:
    """Return the columns of `COVERED` as JSON.

    >>> content_of(dict.fromkeys(COVERED) | {"position": 1, "seconds": 2.5})[:24]
    '[1, null, null, null, nu'
    """
    return json.dumps(
        [
            None if row[name] is None else encoding.plain(row[name])
            for name, encoding in _ENCODINGS.items()
        ],
        ensure_ascii=False,
    )


def content_sql(expressions: Mapping[str, str]) -> str:
    """Return the SQL expression of `content_of`; `expressions` has one for each column.

    >>> content_sql({name: f"d.{name}" for name in COVERED})[:44]
    'json_build_array(d.position, d.item_id, to_c'
    """
    parts = (encoding.sql.format(expressions[name]) for name, encoding in _ENCODINGS.items())
    return f"json_build_array({', '.join(parts)})::text"


def commitment_sql(salt: str, content: str) -> str:
    """Return the SQL expression of `chain.commitment`.

    >>> commitment_sql("salt", "note")
    "sha256(salt || convert_to(note, 'UTF8'))"
    """
    return f"sha256({salt} || convert_to({content}, 'UTF8'))"


def text_commitment_sql(item: str) -> str:
    """Return the SQL expression of the commitment to what a moderator of `item` reads: both texts.

    >>> text_commitment_sql("held")[:50]
    'sha256(held.text_salt || convert_to(json_build_arr'
    """
    texts = f"json_build_array({item}.text, {item}.parent_text)::text"
    return commitment_sql(f"{item}.text_salt", texts)


#: What figures and messages read of an item, besides its status. The sampling of its comment and
#: what its confirmations are worth follow from it.
_READ = (
    "dt", "comment_id", "kind", "round", "audit", "shown", "queue", "reason", "stratum",
    "inclusion_probability", "rank", "review_score", "prob", "uncertainty", "model_version",
    "confirms", "confirmation_probability_0", "confirmation_probability_1", "first_label",
    "labels_wanted", "reserved_for", "queued_at", "due_at",
)  # fmt: skip


def compared_sql(item: str) -> str:
    """Return the SQL expression of the values of `item` by which comments are compared.

    Of a row that somebody wrote otherwise, all that is there.

    >>> compared_sql("held")[:60]
    "CASE jsonb_typeof(held.shown) WHEN 'object' THEN held.shown "
    """
    shown = f"{item}.shown"
    plain = f"{shown} - ARRAY['{OTHERS}', '{HIDDEN}']"
    return f"CASE jsonb_typeof({shown}) WHEN 'object' THEN {plain} ELSE {shown} END"


def others_sql(item: str) -> str:
    """Return the SQL expression of the names of the other values of `item` that people see."""
    return f"jsonb_path_query_array({item}.shown, '$.{OTHERS}.keyvalue().key', silent => true)"


def item_digest_sql(item: str, **changed: str) -> str:
    """Return the SQL expression of the SHA-256 of what figures read of `item`.

    `changed` has the expressions of columns that the decision itself changes, of the same types.
    The binary form is that of every session, and takes less time than a text.

    >>> item_digest_sql("held", labels_wanted="1::smallint")[:47]
    'sha256(record_send(ROW(held.dt, held.comment_id'
    """
    columns = {name: f"{item}.{name}" for name in _READ} | {"shown": compared_sql(item)} | changed
    return f"sha256(record_send(ROW({', '.join(columns.values())})))"


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
    #: label | adjudicate | correct | skip | escalate | undo (reverts a decision) | close (dismisses
    #: an item) | reopen (brings it back)
    action: str
    #: 1 toxic, 0 not; None for an action without a label.
    label: int | None
    policy_version: str | None
    policy_code: str | None
    #: Code of the policy's reason to skip, escalate, correct or close.
    reason: str | None
    note: str | None = field(repr=False)
    note_salt: bytes | None = field(repr=False)
    note_commitment: bytes | None = field(repr=False)
    #: Time from claim to decision.
    seconds: float | None
    idempotency_key: str
    #: The decision that this one reverts or replaces.
    refers_to: int | None
    decided_at: datetime
    #: To the item's texts, see `text_commitment_sql`.
    text_commitment: bytes = field(repr=False)
    #: Of what figures read of the item, see `item_digest_sql`.
    item_digest: bytes = field(repr=False)
    #: The item's status after the decision.
    outcome: str
    #: The transaction that wrote the row.
    transaction_id: str = field(repr=False)
    #: In the moderator's chain, from 1.
    position: int
    previous_hash: bytes = field(repr=False)
    hash: bytes = field(repr=False)


#: Columns that `append` fills in.
_APPENDED = (
    "position", "moderator_id", "note_commitment", "text_commitment", "item_digest",
    "transaction_id",
)  # fmt: skip

_BOUND = (
    literal_column(text_commitment_sql("review_item"), LargeBinary).label("text_commitment"),
    literal_column(item_digest_sql("review_item"), LargeBinary).label("item_digest"),
)


_NEXT_TIME = literal_column(
    next_time_sql(
        "decision", "decided_at", "moderator_id = decision_chain.moderator_id AND position = length"
    ),
    DateTime(timezone=True),
)

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
        **dict.fromkeys(name for name in (*COVERED, "note") if name not in _APPENDED),
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

    `entry_of` makes the entries, whose idempotency keys must be new; entries without `decided_at`
    get the time. They bind the items as these are now. `queue.statements` has a faster statement
    for the decisions that people make all day.
    """
    if not entries:
        return []
    mine = decision_chain.c.moderator_id == moderator_id
    chain = connection.execute(
        select(
            decision_chain.c.length,
            decision_chain.c.hash,
            func.pg_current_xact_id().label("transaction_id"),
            _NEXT_TIME.label("now"),
        )
        .where(mine)
        .with_for_update()
    ).one()
    items = select(review_item.c.id, *_BOUND).where(
        review_item.c.id.in_({entry["item_id"] for entry in entries})
    )
    read = {row.id: row for row in connection.execute(items)}
    rows, last = [], chain.hash
    for position, entry in enumerate(entries, chain.length + 1):
        note, salt = entry["note"], new_salt()
        row = {
            **entry,
            "moderator_id": moderator_id,
            "note_salt": None if note is None else salt,
            "note_commitment": None if note is None else commitment(salt, note),
            "decided_at": entry["decided_at"] or chain.now,
            "text_commitment": read[entry["item_id"]].text_commitment,
            "item_digest": read[entry["item_id"]].item_digest,
            "transaction_id": chain.transaction_id,
            "position": position,
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
    """Return the query of the decision that this person made with an idempotency key."""
    return select(*COLUMNS).where(
        decision.c.moderator_id == moderator_id, decision.c.idempotency_key == idempotency_key
    )
