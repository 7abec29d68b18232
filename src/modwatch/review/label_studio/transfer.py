"""Import and export of tasks and labels in Label Studio's JSON format.

An imported task becomes an item of the kind `imported`; existing items are kept, so several files
add up. Annotations become decisions in the log, by disabled accounts `label-studio-ID`; those
marked as `ground_truth` become gold comments. A file is imported completely or not at all, and
importing it again changes nothing.
"""

import datetime as dt
import hashlib
import json
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
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

from modwatch.common.errors import QueueError
from modwatch.review.database import take_turn
from modwatch.review.events import record_event
from modwatch.review.label_studio.tasks import LABELS, Task, invalid, read_tasks
from modwatch.review.log.decision_log import append, entry_of
from modwatch.review.people.accounts import add_account, lock_names
from modwatch.review.quality_control.gold import record_gold
from modwatch.review.queue.items import NewItem
from modwatch.review.queue.lanes import Lanes, load_lanes, place
from modwatch.review.tables import (
    NO_LEASE,
    decision,
    gold_comment,
    lane,
    moderator,
    review_item,
)

logger = logging.getLogger(__name__)

#: Paste this into a Label Studio project under Settings, Labeling Interface, Code.
LABELING_CONFIG = """\
<View>
  <Text name="parent_text" value="$parent_text"/>
  <Text name="text" value="$text"/>
  <Choices name="toxicity" toName="text" choice="single-radio" required="true">
    <Choice value="Toxic" hotkey="1"/>
    <Choice value="Not toxic" hotkey="2"/>
  </Choices>
</View>
"""

#: Two concurrent imports take turns on this number.
_IMPORT_LOCK = 7_104_382_665_190_002

#: Rows or tasks in one statement.
_BATCH = 1_000

#: The last label of each person counts, unless it was undone.
_TASKS = text(
    """
    SELECT i.id, i.dt, i.comment_id, i.text, i.parent_text, i.language, i.platform, (
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
        AND i.dt >= COALESCE(CAST(:first AS date), '-infinity')
        AND i.dt <= COALESCE(CAST(:last AS date), 'infinity')
    ORDER BY i.id
    """
)


def export_tasks(
    engine: Engine,
    *,
    first: dt.date | None = None,
    last: dt.date | None = None,
    kinds: Collection[str] = ("review", "imported"),
) -> Iterator[bytes]:
    """Yield the items of the days `first` to `last`, both included, as one JSON list of tasks.

    Each task has its current labels, by moderator id. Contains texts, so callers must allow this to
    leads only. Constant memory, one consistent snapshot.
    """
    values = {"first": first, "last": last, "kinds": list(kinds)}
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
        "language": row["language"],
        "platform": row["platform"],
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

    #: Tasks of the file.
    tasks: int
    #: New items.
    items: int
    #: New labels.
    labels: int
    #: New gold comments.
    gold: int
    #: Cancelled annotations, which are ignored.
    cancelled: int
    #: Labels that were skipped, because the item was decided in Modwatch, withdrawn or dismissed.
    left: int


def import_tasks(
    engine: Engine,
    content: bytes | Iterable[bytes],
    *,
    day: dt.date | None = None,
    lanes: Lanes | None = None,
    actor_id: int | None = None,
) -> Imported:
    """Import a JSON file of Label Studio in one transaction; return what is new.

    `content` is the file, complete or in parts; `day` is that of tasks without `data.dt`. A task
    without labels waits in the queue with the lowest score; it is decided if its labels agree, and
    escalated if they differ. Raises `QueueError` naming the task.
    """
    tasks = read_tasks(content, day)
    with engine.begin() as connection:
        take_turn(connection, _IMPORT_LOCK)
        _check_times(connection, tasks)
        gold = _add_gold(connection, [task for task in tasks if task.answer is not None])
        queued = [task for task in tasks if task.opinions or task.answer is None]
        items = _queue(connection, queued, lanes or load_lanes())
        labels, left = _log_labels(connection, [task for task in queued if task.opinions])
        done = Imported(
            tasks=len(tasks),
            items=items,
            labels=labels,
            gold=gold,
            cancelled=sum(task.cancelled for task in tasks),
            left=left,
        )
        if items or labels or gold:
            record_event(connection, "import_label_studio", actor_id=actor_id, **asdict(done))
    logger.info(
        "Tasks of Label Studio were imported.",
        extra={"event": "label_studio_imported", **asdict(done)},
    )
    return done


def _check_times(connection: Connection, tasks: Sequence[Task]) -> None:
    latest = connection.execute(select(func.now())).scalar_one() + dt.timedelta(days=1)
    for task in tasks:
        if any(one.created_at and one.created_at > latest for one in task.annotations):
            raise invalid(task.number, "was annotated in the future", "correct its created_at")


def _add_gold(connection: Connection, tasks: Sequence[Task]) -> int:
    added = []
    names = ("comment_id", "text", "parent_text", "language", "platform")
    for task in tasks:
        row = {name: getattr(task, name) for name in names} | {"label": task.answer}
        new = connection.scalar(
            postgresql.insert(gold_comment)
            .values(**row, source="label-studio")
            .on_conflict_do_nothing()
            .returning(gold_comment.c.comment_id)
        )
        if new is not None:
            added.append(new)
        known = select(gold_comment.c.text, gold_comment.c.label).where(
            gold_comment.c.comment_id == task.comment_id
        )
        if tuple(connection.execute(known).one()) != (task.text, task.answer):
            raise invalid(
                task.number,
                "is already a gold comment with another text or label",
                "give it another comment_id, or retire the gold comment first",
            )
    record_gold(connection, "add_gold", added)
    return len(added)


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
    _check_texts(connection, tasks)
    return len(new)


def _item_row(task: Task, lanes: Lanes, now: dt.datetime) -> dict[str, Any]:
    copied = ("comment_id", "text", "parent_text", "language", "platform")
    content: dict[str, Any] = {name: getattr(task, name) for name in copied} | {
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


def _check_texts(connection: Connection, tasks: Sequence[Task]) -> None:
    for task, item in _items_of(connection, tasks):
        if item.text != task.text:
            raise invalid(
                task.number,
                "has another text than the item of its comment_id and day",
                "give it a comment_id of its own",
            )


_PSEUDONYM = "label-studio-"


@dataclass(kw_only=True)
class _Item:
    """An item and its labels so far."""

    row: Row[Any]
    #: Labels by account.
    labels: dict[int, int] = field(default_factory=dict)
    #: Whether a person decided it in Modwatch, or it was withdrawn or dismissed.
    ours: bool = False


def _items_of(connection: Connection, tasks: Sequence[Task]) -> Iterator[tuple[Task, Row[Any]]]:
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


def _log_labels(connection: Connection, tasks: Sequence[Task]) -> tuple[int, int]:
    """Append the new labels of `tasks`; return how many, and how many were skipped.

    Labels of items that were decided in Modwatch are skipped.
    """
    accounts = _accounts(connection, sorted({o.annotator for t in tasks for o in t.opinions}))
    now = connection.execute(select(func.now())).scalar_one()
    items = {task.number: _Item(row=row) for task, row in _items_of(connection, tasks)}
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
