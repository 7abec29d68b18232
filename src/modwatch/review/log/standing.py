"""The labels that stand: what was decided, less what was taken back or replaced."""

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
from sqlalchemy import ColumnElement, Engine, FromClause, Select, and_, exists, select
from sqlalchemy.dialects.postgresql import distinct_on

from modwatch.lake.schemas import LABELS
from modwatch.review.tables import FINAL_ACTIONS, decision, moderator, review_item


def decisions(
    engine: Engine,
    day: date,
    *,
    kind: str = "review",
    unaware: bool = False,
    batch_size: int = 10_000,
) -> Iterator[pa.RecordBatch]:
    """Yield the standing labels of `day`, at most one an item, as batches of `records.LABELS`.

    An item of several labels has one when it is decided: the one all gave, or the one a lead
    settled on. Only items of `kind` count: those of the kind `review` are what the day's estimates
    are made of. `unaware`: only what people said by themselves, no settlement and no correction.
    """
    actions = ("label",) if unaware else FINAL_ACTIONS
    with engine.connect() as connection:
        rows = connection.execution_options(yield_per=batch_size).execute(
            _standing(day, kind, actions)
        )
        for part in rows.mappings().partitions():
            yield pa.RecordBatch.from_pylist([dict(row) for row in part], schema=LABELS)


def undone(said: FromClause = decision) -> ColumnElement[bool]:
    """Return the condition that a decision, a row of the log or of its alias `said`, was undone."""
    undo = decision.alias("undone")
    return exists().where(undo.c.refers_to == said.c.id, undo.c.action == "undo")


def stands(*actions: str) -> ColumnElement[bool]:
    """Return the condition that a decision is one of `actions` and was not undone."""
    return and_(decision.c.action.in_(actions), ~undone())


def final_decision(item_id: Any, *columns: ColumnElement[Any]) -> Select[Any]:
    """Return the query of the decision whose label stands of an item: the last with a label."""
    return (
        select(*columns)
        .where(decision.c.item_id == item_id, stands(*FINAL_ACTIONS))
        .order_by(decision.c.id.desc())
        .limit(1)
    )


def _standing(day: date, kind: str, actions: Sequence[str]) -> Select[Any]:
    latest = (
        select(decision)
        .ext(distinct_on(decision.c.item_id))
        .join(
            review_item,
            and_(review_item.c.id == decision.c.item_id, review_item.c.status == "decided"),
        )
        .where(
            decision.c.dt == day,
            decision.c.kind == kind,
            stands(*actions),
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
        .order_by(latest.c.item_id)
    )
