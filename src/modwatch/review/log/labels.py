"""The current labels: those of the log's decisions that were neither undone nor replaced."""

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from sqlalchemy import ColumnElement, Engine, Select, and_, exists, select, true
from sqlalchemy.dialects.postgresql import distinct_on

from modwatch.lake.schemas import LABELS
from modwatch.review.tables import FINAL_ACTIONS, decision, moderator, review_item


def current_labels(
    engine: Engine,
    day: dt.date,
    *,
    kind: str = "review",
    unaware: bool = False,
    schema: pa.Schema = LABELS,
    batch_size: int = 10_000,
) -> Iterator[pa.RecordBatch]:
    """Yield the current labels of `day`, at most one per item, as batches of `schema`.

    An item that several people label has one once it is decided: their unanimous label, or the
    lead's. Only items of `kind` count; the estimates of a day use `review` and `confirmation`. With
    `unaware`, only independent labels count: no adjudications and no corrections.
    """
    actions = ("label",) if unaware else FINAL_ACTIONS
    with engine.connect() as connection:
        rows = connection.execution_options(yield_per=batch_size).execute(
            _current(day, kind, actions)
        )
        for part in rows.mappings().partitions():
            yield pa.RecordBatch.from_pylist([dict(row) for row in part], schema=schema)


def undone() -> ColumnElement[bool]:
    """Return the condition that a decision was undone."""
    undo = decision.alias("undone")
    return exists().where(undo.c.refers_to == decision.c.id, undo.c.action == "undo")


def in_force(*actions: str) -> ColumnElement[bool]:
    """Return the condition that a decision is one of `actions` and was not undone."""
    return and_(decision.c.action.in_(actions), ~undone())


def decided_between(first: dt.date | None, last: dt.date | None) -> ColumnElement[bool]:
    """Return the condition that a decision was made from `first` to `last`.

    Days in UTC, both included; None: unlimited.
    """
    begin = true() if first is None else decision.c.decided_at >= _midnight(first)
    if last is None or last == dt.date.max:
        return begin
    return and_(begin, decision.c.decided_at < _midnight(last + dt.timedelta(days=1)))


def current_decision(item_id: Any, *columns: ColumnElement[Any]) -> Select[Any]:
    """Return the query of the decision that gives an item its current label: the last with one."""
    return (
        select(*columns)
        .where(decision.c.item_id == item_id, in_force(*FINAL_ACTIONS))
        .order_by(decision.c.id.desc())
        .limit(1)
    )


def _midnight(day: dt.date) -> dt.datetime:
    return dt.datetime.combine(day, dt.time.min, dt.UTC)


def _current(day: dt.date, kind: str, actions: Sequence[str]) -> Select[Any]:
    decided = and_(review_item.c.id == decision.c.item_id, review_item.c.status == "decided")
    latest = (
        select(decision, review_item.c.round)
        .ext(distinct_on(decision.c.item_id))
        .join(review_item, decided)
        .where(decision.c.dt == day, decision.c.kind == kind, in_force(*actions))
        .order_by(decision.c.item_id, decision.c.id.desc())
        .subquery()
    )
    names = ("dt", "comment_id", "label", "decided_at", "seconds", "round")
    return (
        select(*(latest.c[name] for name in names), moderator.c.pseudonym.label("moderator"))
        .join(moderator, moderator.c.id == latest.c.moderator_id)
        .order_by(latest.c.item_id)
    )
