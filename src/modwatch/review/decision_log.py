"""The append-only log of decisions, and the check that nobody touched it.

Every moderator's decisions form a chain of their own: each row holds its position, the hash of the
row before, and a hash over both and everything it says. Chains side by side let people decide at
once; one chain for all would make each commit wait for the one before. A change, a deletion or a
reordering breaks the chain; a cut at its end disagrees with `decision_chain`. Whoever may rewrite
the whole database can forge both: keep `LogReport.head` somewhere else, and compare.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa
from sqlalchemy import Connection, Engine, RowMapping, Select, exists, func, select, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import distinct_on

from modwatch.records import LABELS
from modwatch.review.tables import decision, decision_chain, moderator, review_item

#: The hash before a moderator's first decision.
GENESIS = bytes(32)

#: What a row's hash covers, beside the hash of the row before, in this order.
COVERED = (
    "position",
    "item_id",
    "dt",
    "comment_id",
    "kind",
    "item_version",
    "moderator_id",
    "action",
    "label",
    "policy_code",
    "note",
    "seconds",
    "idempotency_key",
    "decided_at",
)

_MOST_PROBLEMS = 100


@dataclass(frozen=True, kw_only=True)
class Decision:
    """One row of the log."""

    id: int
    item_id: int
    dt: date
    comment_id: str
    #: review | retest | gold | audit | second_opinion
    kind: str
    #: The item's version before the decision.
    item_version: int
    moderator_id: int
    #: label | skip | escalate | undo
    action: str
    #: 1 toxic, 0 not; None for another action.
    label: int | None
    policy_code: str | None
    note: str | None = field(repr=False)
    #: Between claim and decision.
    seconds: float | None
    idempotency_key: str
    decided_at: datetime
    #: In the moderator's chain, from 1.
    position: int
    previous_hash: bytes = field(repr=False)
    hash: bytes = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class LogReport:
    """What `verify_log` found."""

    #: Rows read.
    decisions: int
    #: One sentence each, the first hundred; none when the log is whole.
    problems: tuple[str, ...]
    #: SHA-256 over the ends of all chains, in hex: note it elsewhere to witness the log so far.
    head: str

    @property
    def intact(self) -> bool:
        """Whether nothing was changed, removed or reordered."""
        return not self.problems


def start_chain(connection: Connection, moderator_id: int) -> None:
    """Begin the empty chain of a moderator, unless there is one."""
    connection.execute(
        postgresql.insert(decision_chain)
        .values(moderator_id=moderator_id, length=0, hash=GENESIS)
        .on_conflict_do_nothing()
    )


def append(connection: Connection, content: Mapping[str, Any]) -> Decision | None:
    """Return the decision appended to the chain of its moderator, in the caller's transaction.

    `content` holds every column of `COVERED` but `position`. None, and nothing is appended, when
    the moderator has used its idempotency key before.
    """
    chain = connection.execute(
        select(decision_chain.c.length, decision_chain.c.hash)
        .where(decision_chain.c.moderator_id == content["moderator_id"])
        .with_for_update()
    ).one()
    row = {**content, "position": chain.length + 1, "previous_hash": chain.hash}
    row["hash"] = row_hash(row)
    decision_id = connection.scalar(
        postgresql.insert(decision)
        .values(row)
        .on_conflict_do_nothing(index_elements=["moderator_id", "idempotency_key"])
        .returning(decision.c.id)
    )
    if decision_id is None:
        return None
    connection.execute(
        update(decision_chain)
        .where(decision_chain.c.moderator_id == content["moderator_id"])
        .values(length=row["position"], hash=row["hash"])
    )
    return Decision(id=decision_id, **row)


def row_hash(row: RowMapping | Mapping[str, Any]) -> bytes:
    """Return the SHA-256 of a row's previous hash and its covered columns as a JSON list.

    >>> empty = dict.fromkeys(COVERED) | {"previous_hash": GENESIS}
    >>> row_hash(empty).hex()[:8] == row_hash(empty | {"label": 1}).hex()[:8]
    False
    """
    content = json.dumps([row[name] for name in COVERED], default=_plain, separators=(",", ":"))
    return hashlib.sha256(row["previous_hash"] + content.encode()).digest()


def _plain(value: date | datetime) -> str:
    if isinstance(value, datetime):
        value = value.astimezone(UTC)
    return value.isoformat()


def decisions(
    engine: Engine, day: date, *, kind: str = "review", batch_size: int = 10_000
) -> Iterator[pa.RecordBatch]:
    """Yield the standing labels of `day`, at most one an item, as batches of `records.LABELS`.

    A label stands unless it was taken back or replaced. Only items of `kind` count: those of the
    kind `review` are what the day's estimates are made of.
    """
    with engine.connect() as connection:
        rows = connection.execution_options(yield_per=batch_size).execute(_standing(day, kind))
        for part in rows.mappings().partitions():
            yield pa.RecordBatch.from_pylist([dict(row) for row in part], schema=LABELS)


def _standing(day: date, kind: str) -> Select[Any]:
    latest = (
        select(decision)
        .ext(distinct_on(decision.c.item_id))
        .where(
            decision.c.dt == day,
            decision.c.kind == kind,
            decision.c.action.in_(["label", "undo"]),
        )
        .order_by(decision.c.item_id, decision.c.id.desc())
        .subquery()
    )
    return (
        select(
            latest.c.dt,
            latest.c.comment_id,
            latest.c.label,
            moderator.c.pseudonym.label("moderator"),
            latest.c.decided_at,
            latest.c.seconds,
        )
        .join(moderator, moderator.c.id == latest.c.moderator_id)
        .where(latest.c.action == "label")
        .order_by(latest.c.item_id)
    )


def verify_log(engine: Engine) -> LogReport:
    """Return what a walk along every chain found: constant memory, one consistent snapshot."""
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        ends = {
            row.moderator_id: _End(row.length, row.hash)
            for row in connection.execute(select(decision_chain))
        }
        problems = tuple(islice(_problems(connection, ends), _MOST_PROBLEMS))
        count = connection.scalar(select(func.count()).select_from(decision))
    return LogReport(decisions=count or 0, problems=problems, head=_head(ends))


class _End(NamedTuple):
    """Where a chain ends."""

    length: int
    hash: bytes


_EMPTY = _End(0, GENESIS)


def _problems(connection: Connection, ends: Mapping[int, _End]) -> Iterator[str]:
    found: dict[int, _End] = {}
    log = select(decision).order_by(decision.c.moderator_id, decision.c.position)
    for row in connection.execute(log, execution_options={"yield_per": 5_000}).mappings():
        yield from _link_problems(row, found.get(row["moderator_id"], _EMPTY))
        found[row["moderator_id"]] = _End(row["position"], row["hash"])
    for moderator_id in sorted(found.keys() | ends.keys()):
        end, witness = found.get(moderator_id, _EMPTY), ends.get(moderator_id)
        if end != witness:
            yield (
                f"the chain of moderator {moderator_id} ends at position {end.length}, which is "
                f"not the end on record ({witness.length if witness else 'none'})"
            )
    for item_id in connection.scalars(_decided_without_label().limit(_MOST_PROBLEMS)):
        yield f"item {item_id} is decided, and the log has no label of it"


def _link_problems(row: RowMapping, last: _End) -> Iterator[str]:
    where = f"decision {row['id']} (moderator {row['moderator_id']}, position {row['position']})"
    if row["position"] != last.length + 1:
        yield f"before {where} decisions are missing: the chain stood at position {last.length}"
    elif row["previous_hash"] != last.hash:
        yield f"{where} does not follow the decision before it"
    if row["hash"] != row_hash(row):
        yield f"{where} was changed: its hash does not fit what it says"


def _decided_without_label() -> Select[tuple[int]]:
    labelled = exists().where(decision.c.item_id == review_item.c.id, decision.c.action == "label")
    return (
        select(review_item.c.id)
        .where(review_item.c.status == "decided", ~labelled)
        .order_by(review_item.c.id)
    )


def _head(ends: Mapping[int, _End]) -> str:
    content = [[moderator_id, *end] for moderator_id, end in sorted(ends.items())]
    return hashlib.sha256(json.dumps(content, default=bytes.hex).encode()).hexdigest()
