"""Labels from Label Studio, as decisions in the log."""

import datetime as dt
import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, select, tuple_, update

from modwatch.common.errors import QueueError
from modwatch.review.events import record_event
from modwatch.review.label_studio.tasks import Task, invalid
from modwatch.review.log.decision_log import append, entry_of
from modwatch.review.people.accounts import add_account, lock_names
from modwatch.review.tables import NO_LEASE, decision, moderator, review_item

_PSEUDONYM = "label-studio-"

#: Tasks in one statement.
_BATCH = 1_000


@dataclass(kw_only=True)
class _Item:
    """An item and its labels so far."""

    row: Row[Any]
    #: Labels by account.
    labels: dict[int, int] = field(default_factory=dict)
    #: Whether a person decided it in Modwatch, or it was withdrawn or dismissed.
    ours: bool = False


def items_of(connection: Connection, tasks: Sequence[Task]) -> Iterator[tuple[Task, Row[Any]]]:
    """Yield each task with its item, locked until the transaction ends."""
    place = tuple_(review_item.c.dt, review_item.c.comment_id)
    for begin in range(0, len(tasks), _BATCH):
        part = tasks[begin : begin + _BATCH]
        rows = connection.execute(
            select(review_item)
            .where(
                place.in_([(task.dt, task.comment_id) for task in part]),
                review_item.c.kind == "imported",
                review_item.c.reserved_for.is_(None),
            )
            .order_by(review_item.c.id)
            .with_for_update()
        )
        by_comment = {(row.dt, row.comment_id): row for row in rows}
        yield from ((task, by_comment[task.dt, task.comment_id]) for task in part)


def log_labels(connection: Connection, tasks: Sequence[Task]) -> tuple[int, int]:
    """Append the new labels of `tasks`; return how many, and how many were skipped.

    Labels of items that were decided in Modwatch are skipped.
    """
    accounts = _accounts(connection, sorted({o.annotator for t in tasks for o in t.opinions}))
    now = connection.execute(select(func.now())).scalar_one()
    items = {task.number: _Item(row=row) for task, row in items_of(connection, tasks)}
    _read_log(connection, list(items.values()), set(accounts.values()))
    contents: dict[int, list[dict[str, Any]]] = defaultdict(list)
    changed: list[_Item] = []
    left = 0
    for task in tasks:
        item = items[task.number]
        new = _new_labels(task, item, accounts, now)
        if new and item.ours:
            left += len(new)
        elif new:
            changed.append(item)
            for moderator_id, content in new.items():
                contents[moderator_id].append(content)
                item.labels[moderator_id] = content["label"]
            for content in new.values():
                content["outcome"] = _status(item)
    for moderator_id, chain in sorted(contents.items()):
        append(connection, moderator_id, sorted(chain, key=lambda content: content["decided_at"]))
    _update_items(connection, changed)
    return sum(map(len, contents.values())), left


def _accounts(connection: Connection, annotators: Sequence[int]) -> dict[int, int]:
    """Return the accounts of annotators by their ids in Label Studio; create missing ones."""
    lock_names(connection)
    accounts = {}
    for annotator in annotators:
        pseudonym = f"{_PSEUDONYM}{annotator}"
        known = connection.execute(
            select(moderator.c.id, moderator.c.disabled_at).where(
                moderator.c.pseudonym == pseudonym
            )
        ).one_or_none()
        if known is None:
            accounts[annotator] = add_account(connection, pseudonym, "moderator").id
        elif known.disabled_at is None:
            raise QueueError(
                f"the account {pseudonym} of imported labels is enabled; disable it first"
            )
        else:
            accounts[annotator] = known.id
    disabled = connection.scalars(
        update(moderator)
        .where(moderator.c.id.in_(accounts.values()), moderator.c.disabled_at.is_(None))
        .values(disabled_at=func.now())
        .returning(moderator.c.id)
    )
    for moderator_id in sorted(disabled):
        record_event(connection, "disable", actor_id=None, subject_id=moderator_id)
    return accounts


def _read_log(connection: Connection, items: Sequence[_Item], accounts: set[int]) -> None:
    imported = moderator.c.pseudonym.startswith(_PSEUDONYM, autoescape=True)
    accounts = accounts | set(
        connection.scalars(
            select(moderator.c.id).where(imported, moderator.c.disabled_at.is_not(None))
        )
    )
    by_id = {item.row.id: item for item in items}
    for item in items:
        item.ours = item.row.status in ("withdrawn", "closed")
    rows = select(decision.c.item_id, decision.c.moderator_id, decision.c.label).where(
        decision.c.item_id == func.any(bindparam("items"))
    )
    for row in connection.execute(rows, {"items": list(by_id)}):
        if row.moderator_id in accounts:
            by_id[row.item_id].labels[row.moderator_id] = row.label
        else:
            by_id[row.item_id].ours = True


def _new_labels(
    task: Task, item: _Item, accounts: dict[int, int], now: dt.datetime
) -> dict[int, dict[str, Any]]:
    """Return the first label of each account for the item."""
    new = {}
    for opinion in task.opinions:
        moderator_id = accounts[opinion.annotator]
        before = item.labels.get(moderator_id)
        if before is None:
            new[moderator_id] = entry_of(
                item.row._mapping,
                action="label",
                label=opinion.label,
                reason="imported",
                seconds=opinion.lead_time,
                idempotency_key=_key(task),
                decided_at=opinion.created_at or now,
            )
        elif before != opinion.label:
            raise invalid(
                task.number,
                f"was imported before with another label by {_PSEUDONYM}{opinion.annotator}",
                "correct the label in the console, and remove the task from the file",
            )
    return new


def _key(task: Task) -> str:
    comment = f"{task.dt} {task.comment_id}"
    return f"{_PSEUDONYM}{hashlib.sha256(comment.encode()).hexdigest()}"


#: Maximum of `labels_wanted`.
_MOST_LABELS = 9


def _update_items(connection: Connection, items: Sequence[_Item]) -> None:
    """Update the items: decided if all labels agree, otherwise escalated."""
    places = defaultdict[tuple[str, int], list[int]](list)
    for item in items:
        places[_status(item), min(len(item.labels), _MOST_LABELS)].append(item.row.id)
    for (status, labels), ids in places.items():
        connection.execute(
            update(review_item)
            .where(review_item.c.id == func.any(bindparam("ids")))
            .values(
                status=status,
                # The outbox requires unanimous labels only if several are wanted.
                labels_wanted=func.greatest(review_item.c.labels_wanted, labels),
                version=review_item.c.version + 1,
                **NO_LEASE,
            ),
            {"ids": ids},
        )


def _status(item: _Item) -> str:
    if len(set(item.labels.values())) > 1:
        return "escalated"
    return "decided" if len(item.labels) >= item.row.labels_wanted else "waiting"
