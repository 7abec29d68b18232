"""The items of audits: blind, a set for each audit, none for those who decided the comment before.

They are served as any other item; whoever labels them sees neither score nor reason nor what others
said, and cannot tell them from the rest of the queue.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import date
from typing import Any

from sqlalchemy import Connection, Engine, Interval, bindparam, exists, func, select, update
from sqlalchemy.dialects.postgresql import Insert, insert

from modwatch.errors import QueueError
from modwatch.review.log.labels import stands
from modwatch.review.queue.items import NewItem
from modwatch.review.queue.lanes import Lanes, load_lanes, place
from modwatch.review.tables import NO_LEASE, decision, lane, moderator, review_item

_UNDECIDED = ("waiting", "blocked", "escalated")

#: By these a person has had a say in a comment.
_SAYS = ("label", "adjudicate", "correct", "escalate")


@dataclass(frozen=True, kw_only=True)
class AuditProgress:
    """How far the labelling of an audit is; each item is in one place."""

    waiting: int = 0
    #: Handed to a lead, or people differ.
    escalated: int = 0
    decided: int = 0
    #: Given up: the audit was stopped.
    withdrawn: int = 0

    @property
    def items(self) -> int:
        """All items of the audit."""
        return self.waiting + self.escalated + self.decided + self.withdrawn

    @property
    def left(self) -> int:
        """Items that somebody still has to decide."""
        return self.waiting + self.escalated


def enqueue_audit(
    engine: Engine, audit: str, items: Iterable[tuple[date, NewItem]], lanes: Lanes | None = None
) -> int:
    """Queue the items of an audit; return how many it has now.

    One transaction; an item that is there already stays as it is, so the same call twice changes
    nothing the second time. Raises `QueueError` for an item of another kind.
    """
    lanes = lanes or load_lanes()
    with engine.begin() as connection:
        rows = _rows(audit, list(items), lanes)
        if rows:
            connection.execute(_insertion(), rows)
        mine = select(review_item.c.queue, review_item.c.reason).where(review_item.c.audit == audit)
        connection.execute(
            insert(lane).from_select(["queue", "reason"], mine.distinct()).on_conflict_do_nothing()
        )
        _exclude(connection, audit)
        count = select(func.count()).where(review_item.c.audit == audit)
        return int(connection.execute(count).scalar_one())


@contextmanager
def audit_lock(engine: Engine, audit: str) -> Iterator[None]:
    """Hold an audit, so that no two processes take a step of it at once; a killed one lets go."""
    name = func.hashtextextended(f"audit {audit}", 0)
    with engine.begin() as connection:
        connection.execute(select(func.pg_advisory_xact_lock(name)))
        yield


def audit_progress(engine: Engine, audit: str) -> AuditProgress:
    """Return how far the labelling is."""
    statement = (
        select(review_item.c.status, func.count())
        .where(review_item.c.audit == audit)
        .group_by(review_item.c.status)
    )
    with engine.connect() as connection:
        found = {row[0]: row[1] for row in connection.execute(statement)}
    found["withdrawn"] = found.get("withdrawn", 0) + found.pop("closed", 0)
    found["waiting"] = found.get("waiting", 0) + found.pop("blocked", 0)
    names = [field.name for field in fields(AuditProgress)]
    return AuditProgress(**{name: found.get(name, 0) for name in names})


def withdraw_audit(engine: Engine, audit: str) -> int:
    """Withdraw the items that nobody has decided; return how many."""
    with withdrawing(engine, audit) as number:
        return number


@contextmanager
def withdrawing(engine: Engine, audit: str) -> Iterator[int]:
    """Withdraw the items that nobody has decided, unless the block fails; yield how many.

    While it lasts nobody can decide one of them.
    """
    statement = (
        update(review_item)
        .where(review_item.c.audit == audit, review_item.c.status.in_(_UNDECIDED))
        .values(status="withdrawn", version=review_item.c.version + 1, **NO_LEASE)
    )
    with engine.begin() as connection:
        yield connection.execute(statement).rowcount


def audit_labels(engine: Engine, audit: str) -> list[dict[str, Any]]:
    """Return what people said of the items of an audit, what was taken back left out.

    Rows of `day`, `comment_id`, `labeller`, `action` (label | adjudicate), `label`, `decided_at`
    (ISO 8601, UTC) and `decision`, its hash in the log; at most one a person and item. A correction
    counts as a settlement; only the last settlement of an item counts.
    """
    statement = (
        select(
            review_item.c.id,
            review_item.c.dt.label("day"),
            review_item.c.comment_id,
            moderator.c.pseudonym.label("labeller"),
            decision.c.action,
            decision.c.label,
            decision.c.decided_at,
            decision.c.hash,
        )
        .join(decision, decision.c.item_id == review_item.c.id)
        .join(moderator, moderator.c.id == decision.c.moderator_id)
        .where(review_item.c.audit == audit, stands("label", "adjudicate", "correct"))
        .order_by(decision.c.id)
    )
    with engine.connect() as connection:
        rows = [dict(row) for row in connection.execute(statement).mappings()]
    of_item: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        of_item[row.pop("id")].append(row)
    return [row for said in of_item.values() for row in _standing(said)]


def moderated_before(engine: Engine, audit: str) -> dict[tuple[date, str], set[str]]:
    """Return who had a say in a drawn comment outside of audits, by day and comment."""
    drawn = review_item.alias("drawn")
    statement = (
        select(decision.c.dt, decision.c.comment_id, moderator.c.pseudonym)
        .join(moderator, moderator.c.id == decision.c.moderator_id)
        .where(
            decision.c.kind != "audit",
            stands(*_SAYS),
            exists().where(
                drawn.c.audit == audit,
                drawn.c.dt == decision.c.dt,
                drawn.c.comment_id == decision.c.comment_id,
            ),
        )
    )
    found: dict[tuple[date, str], set[str]] = defaultdict(set)
    with engine.connect() as connection:
        for day, comment_id, pseudonym in connection.execute(statement):
            found[day, comment_id].add(pseudonym)
    return dict(found)


def _insertion() -> Insert:
    """Return the statement that takes the rows of `_rows`."""
    return (
        insert(review_item)
        .values(
            serve_by=func.now() + bindparam("ahead", type_=Interval),
            due_at=func.now() + bindparam("promised", type_=Interval),
        )
        .on_conflict_do_nothing(
            index_elements=["dt", "comment_id", "kind", "reserved_for", "audit"]
        )
    )


def _rows(audit: str, items: Sequence[tuple[date, NewItem]], lanes: Lanes) -> list[dict[str, Any]]:
    """Return the items as rows: the first to be drawn is served first, as on any day."""
    rows = []
    for number, (day, item) in enumerate(items):
        if item.kind != "audit":
            raise QueueError(
                f"comment {item.comment_id!r} is of kind {item.kind!r}, not of an audit"
            )
        there = place(item, lanes)
        pull = lanes.rank_pull * (1 - number / len(items))
        rows.append(
            asdict(item)
            | {
                "dt": day,
                "audit": audit,
                "queue": there.queue,
                "labels_wanted": there.labels_wanted,
                "ahead": there.promised * (1 - pull),
                "promised": there.promised,
            }
        )
    return rows


def _exclude(connection: Connection, audit: str) -> None:
    """Let nobody label who has had a say in the comment."""
    people = (
        select(func.array_agg(decision.c.moderator_id.distinct()))
        .where(
            decision.c.dt == review_item.c.dt,
            decision.c.comment_id == review_item.c.comment_id,
            decision.c.item_id != review_item.c.id,
            stands(*_SAYS),
        )
        .scalar_subquery()
    )
    connection.execute(
        update(review_item)
        .where(
            review_item.c.audit == audit,
            review_item.c.status == "waiting",
            people.is_not(None),
            ~review_item.c.excluded.contains(people),
        )
        .values(excluded=func.array_cat(review_item.c.excluded, people))
    )


def _standing(said: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of one item that stand, as an audit keeps them."""
    settled = [row for row in said if row["action"] != "label"][-1:]
    labels = [row for row in said if row["action"] == "label"]
    over = {row["labeller"] for row in settled}
    for row in [*(row for row in labels if row["labeller"] not in over), *settled]:
        yield {
            **{name: row[name] for name in ("day", "comment_id", "labeller", "label")},
            "action": "label" if row["action"] == "label" else "adjudicate",
            "decided_at": row["decided_at"].isoformat(),
            "decision": row["hash"].hex(),
        }
