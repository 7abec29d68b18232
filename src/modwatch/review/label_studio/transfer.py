"""Import and export of tasks and labels in Label Studio's JSON format.

An imported task becomes an item of the kind `imported`; existing items are kept, so several files
add up. Annotations become decisions in the log, by disabled accounts `label-studio-ID`; those
marked as `ground_truth` become gold comments. Tasks that cannot be used are refused, the others are
imported, and importing a file again changes nothing.
"""

import datetime as dt
import hashlib
import json
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import (
    Connection,
    Engine,
    Row,
    RowMapping,
    bindparam,
    func,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.dialects import postgresql

from modwatch.common.account import Account
from modwatch.common.columns import shown
from modwatch.common.errors import QueueError
from modwatch.review.database import take_turn
from modwatch.review.events import record_event
from modwatch.review.label_studio.tasks import LABELS, Task, TaskFile, read_tasks
from modwatch.review.log.decision_log import append, entry_of
from modwatch.review.people.accounts import add_account, lock_names, update_person
from modwatch.review.quality_control.gold import insert_gold, record_gold
from modwatch.review.queue.items import NewItem, facts_of
from modwatch.review.queue.lanes import Lanes, load_lanes, place
from modwatch.review.tables import NO_LEASE, decision, lane, moderator, review_item

logger = logging.getLogger(__name__)

#: Two concurrent imports take turns on this number.
_IMPORT_LOCK = 7_104_382_665_190_002

#: Rows or tasks in one statement.
_BATCH = 1_000

#: The last label of each person counts, unless it was undone.
_TASKS = text(
    """
    SELECT i.id, i.dt, i.comment_id, i.text, i.parent_text, i.shown - 'hidden' AS shown, (
        SELECT json_agg(json_build_array(latest.moderator_id, latest.label, latest.seconds,
                                         latest.decided_at) ORDER BY latest.id)
        FROM (
            SELECT DISTINCT ON (d.moderator_id) d.* FROM decision d
            WHERE d.item_id = i.id AND d.action IN ('label', 'adjudicate', 'correct', 'undo')
            ORDER BY d.moderator_id, d.id DESC
        ) AS latest WHERE latest.action <> 'undo'
    ) AS labels
    FROM review_item i
    WHERE i.kind = ANY (:kinds) AND i.status NOT IN ('withdrawn', 'closed')
    ORDER BY i.id
    """
)


def export_tasks(
    engine: Engine, *, kinds: Collection[str] = ("review", "imported")
) -> Iterator[bytes]:
    """Yield the items of `kinds` as one JSON list of tasks.

    Each task has its current labels, by moderator id. Contains texts, so callers must allow this to
    leads only. Constant memory, one consistent snapshot.
    """
    values = {"kinds": list(kinds)}
    before = b"[\n"
    with (
        engine.connect() as connection,
        connection.execution_options(yield_per=_BATCH).execute(_TASKS, values) as result,
    ):
        for part in result.partitions(_BATCH):
            yield before + b",\n".join(_exported(row._mapping) for row in part)
            before = b",\n"
    yield b"\n]\n" if before == b",\n" else b"[]\n"


def _exported(row: RowMapping) -> bytes:
    data = {
        "text": row["text"],
        "parent_text": row["parent_text"] or "",  # Label Studio rejects null
        "comment_id": row["comment_id"],
        "dt": str(row["dt"]),
        **{column.name: None for column in shown()},
        **facts_of(row["shown"]),
    }
    annotations = [_annotation(*label) for label in row["labels"] or ()]
    task = {"id": row["id"], "data": data, "annotations": annotations}
    return json.dumps(task, ensure_ascii=False).encode()


def _annotation(moderator_id: int, label: int, seconds: float | None, at: str) -> dict[str, Any]:
    choice = next(name for name, value in LABELS.items() if value == label)
    return {
        "completed_by": moderator_id,
        "result": [
            {
                "from_name": "toxicity",
                "to_name": "text",
                "type": "choices",
                "value": {"choices": [choice]},
            }
        ],
        "was_cancelled": False,
        "ground_truth": False,
        "lead_time": seconds,
        "created_at": at,
    }


@dataclass(frozen=True, kw_only=True)
class Imported:
    """The result of `import_tasks`."""

    #: Tasks of the file: used, merged with another one, and refused.
    account: Account
    #: Numbers of the refused tasks, from 1, by reason.
    refused: Mapping[str, Sequence[int]]
    #: New items.
    items: int
    #: New labels.
    labels: int
    #: New gold comments.
    gold: int
    #: Cancelled and empty annotations, which are ignored.
    cancelled: int
    #: Annotations that repeat the label of the same person, or the ground truth.
    repeated: int
    #: Labels that were skipped, because the item was decided in Modwatch, withdrawn or dismissed.
    left: int


def import_tasks(
    engine: Engine,
    content: bytes | Iterable[bytes],
    *,
    first_day: dt.date,
    day: dt.date | None = None,
    lanes: Lanes | None = None,
    actor_id: int | None = None,
) -> Imported:
    """Import a JSON file of Label Studio in one transaction; return what is new, and what refused.

    `content` is the file, complete or in parts; `day` is that of tasks without `data.dt`, and days
    before `first_day` are refused. A task without labels waits in the queue with the lowest score;
    it is decided if its labels agree, and escalated if they differ. Raises `QueueError` if the file
    is not a list of tasks, or an account of imported labels is enabled.
    """
    file = read_tasks(content, day=day, first_day=first_day)
    with engine.begin() as connection:
        take_turn(connection, _IMPORT_LOCK)
        file.refuse(_contradicting(connection, file.tasks))
        gold = _add_gold(connection, file)
        queued = [task for task in file.tasks if task.queued]
        items = _queue(connection, queued, lanes or load_lanes())
        labels, left = _log_labels(connection, [task for task in queued if task.opinions])
        counts: dict[str, Any] = {
            "items": items,
            "labels": labels,
            "gold": gold,
            "cancelled": sum(task.cancelled for task in file.tasks),
            "repeated": sum(task.repeated for task in file.tasks),
            "left": left,
        }
        done = Imported(account=file.close(), refused=file.refused, **counts)
        recorded = counts | {"read": done.account.read, "tasks": dict(done.account.places)}
        if items or labels or gold:
            record_event(connection, "import_label_studio", actor_id=actor_id, **recorded)
    logger.info(
        "Tasks of Label Studio were imported.",
        extra={"event": "label_studio_imported", **recorded},
    )
    return done


def _contradicting(connection: Connection, tasks: Sequence[Task]) -> dict[int, str]:
    """Return why tasks contradict what was imported before, by their numbers."""
    items = _items_of(connection, [task for task in tasks if task.queued])
    reasons = {}
    for task in tasks:
        item = items.get(task.number)
        if item is not None and item.row.text != task.text:
            reasons[task.number] = "other_text"
        elif item is not None and any(
            item.labels.get(one.annotator, one.label) != one.label for one in task.opinions
        ):
            reasons[task.number] = "other_label"
    return reasons


def _add_gold(connection: Connection, file: TaskFile) -> int:
    """Add the ground truths that are no gold comments yet; return how many, and refuse others."""
    known = [task for task in file.tasks if task.answer is not None]
    new = {
        task.number: insert_gold(
            connection,
            _content(task) | {"label": task.answer, "source": "label-studio"},
            again=False,
        )
        for task in known
    }
    added = [task.comment_id for task in known if new[task.number]]
    file.refuse({number: "other_gold" for number, is_new in new.items() if is_new is None})
    record_gold(connection, "add_gold", added)
    return len(added)


def _content(task: Task) -> dict[str, Any]:
    names = ("comment_id", "text", "parent_text", "shown")
    return {name: getattr(task, name) for name in names}


def _queue(connection: Connection, tasks: Sequence[Task], lanes: Lanes) -> int:
    """Queue the tasks that are not queued yet; return how many."""
    now = connection.execute(select(func.now())).scalar_one()
    rows = [_item_row(task, lanes, now) for task in tasks]
    lanes_of = [{"queue": name, "reason": "imported"} for name in {row["queue"] for row in rows}]
    if not rows:
        return 0
    connection.execute(postgresql.insert(lane).on_conflict_do_nothing(), lanes_of)
    new = connection.scalars(
        postgresql.insert(review_item).on_conflict_do_nothing().returning(review_item.c.id), rows
    ).all()
    return len(new)


def _item_row(task: Task, lanes: Lanes, now: dt.datetime) -> dict[str, Any]:
    content = _content(task) | {
        "kind": "imported",
        "reason": "imported",
        "stratum": 0,
        "inclusion_probability": 1.0,
        "rank": task.number,
        "review_score": 0.0,
        "prob": 0.5,
        "uncertainty": 0.25,
        "model_version": "none",
    }
    there = place(NewItem(**content), lanes)
    due = now + there.promised
    lot = {"queue": there.queue, "labels_wanted": there.labels_wanted, "serve_by": due}
    return content | lot | {"dt": task.dt, "due_at": due}


_PSEUDONYM = "label-studio-"


@dataclass(kw_only=True)
class _Item:
    """An item and its labels so far."""

    row: Row[Any]
    #: Labels by the annotator's id in Label Studio.
    labels: dict[int, int] = field(default_factory=dict)
    #: Whether a person decided it in Modwatch, or it was withdrawn or dismissed.
    ours: bool = False


def _items_of(connection: Connection, tasks: Sequence[Task]) -> dict[int, _Item]:
    """Return the items of tasks by number, with their labels, locked to the transaction's end."""
    place = tuple_(review_item.c.dt, review_item.c.comment_id)
    items = {}
    for begin in range(0, len(tasks), _BATCH):
        part = {(task.dt, task.comment_id): task.number for task in tasks[begin : begin + _BATCH]}
        rows = connection.execute(
            select(review_item)
            .where(
                place.in_(list(part)),
                review_item.c.kind == "imported",
                review_item.c.reserved_for.is_(None),
            )
            .order_by(review_item.c.id)
            .with_for_update()
        )
        for row in rows:
            ours = row.status in ("withdrawn", "closed")
            items[part[row.dt, row.comment_id]] = _Item(row=row, ours=ours)
    _read_log(connection, {item.row.id: item for item in items.values()})
    return items


def _log_labels(connection: Connection, tasks: Sequence[Task]) -> tuple[int, int]:
    """Append the new labels of `tasks`; return how many, and how many were skipped.

    Labels of items that were decided in Modwatch are skipped.
    """
    accounts = _accounts(connection, sorted({o.annotator for t in tasks for o in t.opinions}))
    now = connection.execute(select(func.now())).scalar_one()
    items = _items_of(connection, tasks)
    contents: dict[int, list[dict[str, Any]]] = defaultdict(list)
    changed: list[_Item] = []
    left = 0
    for task in tasks:
        item = items[task.number]
        new = _new_labels(task, item, now)
        if new and item.ours:
            left += len(new)
        elif new:
            changed.append(item)
            for annotator, content in new.items():
                contents[accounts[annotator]].append(content)
                item.labels[annotator] = content["label"]
            for content in new.values():
                content["outcome"] = _status(item)
    _update_items(connection, changed)  # first: an entry binds its item as this is then
    for moderator_id, chain in sorted(contents.items()):
        append(connection, moderator_id, sorted(chain, key=lambda content: content["decided_at"]))
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
        if known is not None and known.disabled_at is None:
            raise QueueError(
                f"the account {pseudonym} of imported labels is enabled; disable it first"
            )
        if known is None:
            account = add_account(connection, pseudonym, "moderator").id
            update_person(connection, account, disabled_at=func.now())
            record_event(connection, "disable", actor_id=None, subject_id=account)
        accounts[annotator] = account if known is None else known.id
    return accounts


def _read_log(connection: Connection, items: Mapping[int, _Item]) -> None:
    rows = (
        select(decision.c.item_id, decision.c.label, moderator.c.pseudonym, moderator.c.disabled_at)
        .join(moderator, moderator.c.id == decision.c.moderator_id)
        .where(decision.c.item_id == func.any(bindparam("items")))
        .order_by(decision.c.id)
    )
    for row in connection.execute(rows, {"items": list(items)}):
        annotator = row.pseudonym.removeprefix(_PSEUDONYM)
        if annotator != row.pseudonym and row.disabled_at is not None and annotator.isdecimal():
            items[row.item_id].labels[int(annotator)] = row.label
        else:
            items[row.item_id].ours = True


def _new_labels(task: Task, item: _Item, now: dt.datetime) -> dict[int, dict[str, Any]]:
    """Return the labels of people who have none yet of the item, by annotator."""
    comment = hashlib.sha256(f"{task.dt} {task.comment_id}".encode()).hexdigest()
    return {
        one.annotator: entry_of(
            item.row._mapping,
            action="label",
            label=one.label,
            reason="imported",
            seconds=one.lead_time,
            idempotency_key=f"{_PSEUDONYM}{comment}",
            decided_at=one.created_at or now,
        )
        for one in task.opinions
        if one.annotator not in item.labels
    }


#: Maximum of `labels_wanted`.
_MOST_LABELS = 9


def _update_items(connection: Connection, items: Sequence[_Item]) -> None:
    """Update the items: decided if all labels agree, otherwise escalated."""
    update_item = (
        update(review_item)
        .where(review_item.c.id == bindparam("item"))
        .values(
            status=bindparam("left"),
            # The outbox requires unanimous labels only if several are wanted.
            labels_wanted=func.greatest(review_item.c.labels_wanted, bindparam("labels")),
            version=review_item.c.version + 1,
            **NO_LEASE,
        )
    )
    rows = [
        {"item": one.row.id, "left": _status(one), "labels": min(len(one.labels), _MOST_LABELS)}
        for one in items
    ]
    if rows:
        connection.execute(update_item, rows)


def _status(item: _Item) -> str:
    if len(set(item.labels.values())) > 1:
        return "escalated"
    return "decided" if len(item.labels) >= item.row.labels_wanted else "waiting"
