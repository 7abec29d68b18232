"""The items of audits: blind, one set per audit, never served to who decided the comment before.

They are served like any other item. Labellers see neither score nor reason nor other labels, and
cannot distinguish them from the rest of the queue.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import (
    Connection,
    Engine,
    Interval,
    and_,
    bindparam,
    case,
    exists,
    func,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from modwatch.common.errors import QueueError
from modwatch.common.text import ERASED
from modwatch.review.log.labels import in_force
from modwatch.review.queue.intake import recorded_erasures, withdraw
from modwatch.review.queue.items import NewItem
from modwatch.review.queue.lanes import Lanes, load_lanes, place, register_lanes
from modwatch.review.tables import decision, moderator, review_item
from modwatch.statistics.audit.labels import AuditLabel, Key

#: Actions that disqualify a person from labelling the comment for an audit.
_DISQUALIFYING = ("label", "adjudicate", "correct", "escalate")


#: Inserts the rows of `_rows`.
_INSERTION = (
    insert(review_item)
    .values(
        serve_by=func.now() + bindparam("ahead", type_=Interval),
        due_at=func.now() + bindparam("promised", type_=Interval),
    )
    .on_conflict_do_nothing(
        index_elements=["dt", "comment_id", "kind", "round", "reserved_for", "audit"]
    )
)


@dataclass(frozen=True, kw_only=True)
class AuditProgress:
    """Progress of the labelling of an audit: number of items by state."""

    waiting: int = 0
    #: Waiting for a lead.
    escalated: int = 0
    decided: int = 0
    #: Withdrawn with a cancelled audit, or dismissed.
    withdrawn: int = 0

    @property
    def items(self) -> int:
        """All items of the audit."""
        return self.waiting + self.escalated + self.decided + self.withdrawn

    @property
    def left(self) -> int:
        """Items that are still to be decided."""
        return self.waiting + self.escalated

    @property
    def open(self) -> str:
        """How many items are still to be decided, in words.

        >>> AuditProgress(waiting=5, escalated=2, decided=93).open
        '7 of 100 items are not decided, 2 of them disputed or escalated to a lead'
        """
        lead = f", {self.escalated:,} of them disputed or escalated to a lead"
        return (
            f"{self.left:,} of {self.items:,} items are not decided{lead if self.escalated else ''}"
        )


@dataclass(frozen=True, kw_only=True)
class Labelling:
    """The progress of the labels of a stage."""

    progress: AuditProgress
    #: Labels are not waited for any longer, UTC.
    deadline: datetime
    #: When the stage was drawn, UTC.
    since: datetime

    @property
    def over(self) -> bool:
        """Whether all items are decided or the deadline has passed."""
        complete = bool(self.progress.items) and not self.progress.left
        return complete or datetime.now(UTC) >= self.deadline

    @property
    def text(self) -> str:
        """The progress in a sentence."""
        progress = self.progress
        lead = f", {progress.escalated:,} are escalated to a lead" if progress.escalated else ""
        return (
            f"{progress.decided:,} of {progress.items:,} comments are decided{lead}; the deadline "
            f"is {self.deadline:%Y-%m-%d %H:%M} UTC."
        )


@dataclass(frozen=True, kw_only=True)
class QueuedComment:
    """An item of an audit as the queue has it."""

    text: str
    parent_text: str | None
    #: decided | closed | waiting | escalated | withdrawn | erased; what is blocked waits.
    outcome: str


def enqueue_audit(
    engine: Engine,
    audit: str,
    items: Iterable[tuple[date, NewItem]],
    lanes: Lanes | None = None,
    *,
    barred: Callable[[str], bool] = lambda _: False,
) -> int:
    """Queue the items of an audit; return how many it has now.

    Who has a pseudonym for which `barred` holds is not served them. One transaction. Existing items
    are left as they are, so the same call again changes nothing.
    Raises `QueueError` for an item of another kind.
    """
    lanes = lanes or load_lanes()
    with engine.begin() as connection:
        rows = _rows(audit, list(items), lanes, recorded_erasures(engine))
        if rows:
            connection.execute(_INSERTION, rows)
        mine = select(review_item.c.queue, review_item.c.reason).where(review_item.c.audit == audit)
        register_lanes(connection, mine.distinct())
        _exclude(connection, audit)
        _bar(connection, audit, barred)
        count = select(func.count()).where(review_item.c.audit == audit)
        return int(connection.execute(count).scalar_one())


@contextmanager
def audit_lock(engine: Engine, audit: str) -> Iterator[None]:
    """Lock an audit, so that only one process runs a step of it; a killed process releases it."""
    name = func.hashtextextended(f"audit {audit}", 0)
    with engine.begin() as connection:
        connection.execute(select(func.pg_advisory_xact_lock(name)))
        yield


def audit_progress(engine: Engine, audit: str) -> AuditProgress:
    """Return the progress of the labelling."""
    statement = (
        select(review_item.c.status, func.count())
        .where(review_item.c.audit == audit)
        .group_by(review_item.c.status)
    )
    with engine.connect() as connection:
        items = Counter({row[0]: row[1] for row in connection.execute(statement)})
    return AuditProgress(
        waiting=items["waiting"] + items["blocked"],
        escalated=items["escalated"],
        decided=items["decided"],
        withdrawn=items["withdrawn"] + items["closed"],
    )


def queued_comments(engine: Engine, audit: str) -> dict[Key, QueuedComment]:
    """Return the items of an audit, by comment."""
    item = review_item.c
    statement = select(
        item.dt,
        item.comment_id,
        item.text,
        item.parent_text,
        case(
            (and_(item.text == ERASED, item.status == "withdrawn"), "erased"),
            (item.status == "blocked", "waiting"),
            else_=item.status,
        ).label("outcome"),
    ).where(item.audit == audit)
    with engine.connect() as connection:
        return {
            (row.dt, row.comment_id): QueuedComment(
                text=row.text, parent_text=row.parent_text, outcome=row.outcome
            )
            for row in connection.execute(statement)
        }


def withdraw_audit(engine: Engine, audit: str) -> int:
    """Withdraw the open items of an audit; return how many."""
    with withdrawing(engine, audit) as number:
        return number


@contextmanager
def withdrawing(engine: Engine, audit: str) -> Iterator[int]:
    """Withdraw the open items of an audit, unless the block raises; yield how many.

    They cannot be decided while the block runs.
    """
    with engine.begin() as connection:
        yield withdraw(connection, review_item.c.audit == audit)


def audit_labels(engine: Engine, audit: str) -> list[AuditLabel]:
    """Return the labels of an audit as the decision log has them now, without undone ones.

    At most one per person and item. Only the last adjudication of an item counts. A correction is
    the label of its person.
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
        .where(review_item.c.audit == audit, in_force("label", "adjudicate", "correct"))
        .order_by(decision.c.id)
    )
    with engine.connect() as connection:
        rows = [dict(row) for row in connection.execute(statement).mappings()]
    of_item: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        of_item[row.pop("id")].append(row)
    return [row for labels in of_item.values() for row in _current(labels)]


def moderated_before(engine: Engine, audit: str) -> dict[tuple[date, str], set[str]]:
    """Return who decided or escalated a sampled comment outside audits, by day and comment."""
    drawn = review_item.alias("drawn")
    statement = (
        select(decision.c.dt, decision.c.comment_id, moderator.c.pseudonym)
        .join(moderator, moderator.c.id == decision.c.moderator_id)
        .where(
            decision.c.kind != "audit",
            in_force(*_DISQUALIFYING),
            exists().where(
                drawn.c.audit == audit,
                drawn.c.dt == decision.c.dt,
                drawn.c.comment_id == decision.c.comment_id,
            ),
        )
    )
    people: dict[tuple[date, str], set[str]] = defaultdict(set)
    with engine.connect() as connection:
        for day, comment_id, pseudonym in connection.execute(statement):
            people[day, comment_id].add(pseudonym)
    return dict(people)


def _rows(
    audit: str,
    items: Sequence[tuple[date, NewItem]],
    lanes: Lanes,
    erased: Mapping[tuple[date, str], str],
) -> list[dict[str, Any]]:
    """Return the items as rows: the first of the sample is served first."""
    rows = []
    for number, (day, item) in enumerate(items):
        if item.kind != "audit":
            raise QueueError(
                f"comment {item.comment_id!r} is of kind {item.kind!r}, expected 'audit'"
            )
        there = place(item, lanes)
        pull = lanes.rank_pull * (1 - number / len(items))
        ahead = there.promised * (1 - pull)
        status = "withdrawn" if erased.get((day, item.comment_id)) == "comment" else "waiting"
        more = {"dt": day, "audit": audit, "ahead": ahead, "status": status}
        rows.append(asdict(item) | asdict(there) | more)
    return rows


def _exclude(connection: Connection, audit: str) -> None:
    """Exclude from each item everyone who decided or escalated its comment before."""
    people = (
        select(func.array_agg(decision.c.moderator_id.distinct()))
        .where(
            decision.c.dt == review_item.c.dt,
            decision.c.comment_id == review_item.c.comment_id,
            decision.c.item_id != review_item.c.id,
            in_force(*_DISQUALIFYING),
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


def _bar(connection: Connection, audit: str, barred: Callable[[str], bool]) -> None:
    """Exclude from the waiting items everyone whose pseudonym is barred."""
    people = connection.execute(select(moderator.c.id, moderator.c.pseudonym))
    for person in [row.id for row in people if barred(row.pseudonym)]:
        connection.execute(
            update(review_item)
            .where(
                review_item.c.audit == audit,
                review_item.c.status == "waiting",
                ~review_item.c.excluded.contains([person]),
            )
            .values(excluded=func.array_append(review_item.c.excluded, person))
        )


def _current(rows: list[dict[str, Any]]) -> Iterator[AuditLabel]:
    """Yield the labels of one item that count."""
    adjudicators = {row["labeller"] for row in rows if row["action"] == "adjudicate"}
    settled = [r for r in rows if r["labeller"] in adjudicators and r["action"] != "label"][-1:]
    over = {row["labeller"] for row in settled}
    own = [r for r in rows if r["action"] != "adjudicate" and r["labeller"] not in over]
    for row in [*{row["labeller"]: row for row in own}.values(), *settled]:
        yield AuditLabel(
            day=row["day"],
            comment_id=row["comment_id"],
            labeller=row["labeller"],
            action="adjudicate" if row in settled else row["action"],
            label=row["label"],
            decided_at=row["decided_at"].isoformat(),
            decision=row["hash"].hex(),
        )
