"""Labels in the log: the current ones, neither undone nor replaced, and all that were given."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from sqlalchemy import (
    ColumnElement,
    Date,
    Engine,
    Executable,
    Select,
    and_,
    cast,
    exists,
    func,
    select,
    text,
    true,
)

from modwatch.data.lake.schemas import ANNOTATIONS, CONFIRMATIONS, LABELS
from modwatch.review.database import at_once
from modwatch.review.tables import FINAL_ACTIONS, decision

#: Rows of a batch.
_BATCH = 10_000

#: Actions that give an item its label; `correct` replaces one.
_FIRST_ACTIONS = ("label", "adjudicate")


def current_labels(
    engine: Engine, day: dt.date, *, kind: str = "review"
) -> Iterator[pa.RecordBatch]:
    """Yield the current labels of `day`, at most one per item, as batches of `records.LABELS`.

    An item that several people label has one once it is decided: their unanimous label, or the
    lead's. A corrected label comes with the first label. Only items of `kind` count; the estimates
    of a day use the kind `review`.
    """
    return _batches(engine, _CURRENT.bindparams(day=day, kind=kind), LABELS)


def confirming_labels(engine: Engine, day: dt.date) -> Iterator[pa.RecordBatch]:
    """Yield the confirmations of `day` that count, as batches of `records.CONFIRMATIONS`.

    A confirmation is given without knowledge of other labels: no adjudications and no corrections.
    It counts while the comment has a first label, of round 3 also one of round 2, and only if its
    person neither labelled the comment in an earlier round nor corrected a label of it before.
    """
    return _batches(engine, _CONFIRMING.bindparams(day=day), CONFIRMATIONS)


def annotation_days(engine: Engine, first: dt.date, last: dt.date) -> list[dt.date]:
    """Return the UTC days from `first` to `last` on which labels were given, in order."""
    day = cast(func.timezone("UTC", decision.c.decided_at), Date).label("day")
    query = select(day).distinct().where(decided_between(first, last), in_force("label"))
    return sorted(row["day"] for row in at_once(engine, query))


def given_labels(engine: Engine, day: dt.date) -> Iterator[pa.RecordBatch]:
    """Yield the labels given on the UTC day `day`, as batches of `schemas.ANNOTATIONS`.

    Labels as they were given, each without knowledge of others: first labels, confirmations,
    retests, answers to gold items, labels of audits and of Label Studio. No corrections and no
    adjudications, and nothing that was undone.
    """
    return _batches(engine, _GIVEN.bindparams(day=day, next=day + dt.timedelta(1)), ANNOTATIONS)


def _batches(engine: Engine, query: Executable, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with engine.connect() as connection:
        rows = connection.execution_options(yield_per=_BATCH).execute(query)
        for part in rows.mappings().partitions():
            yield pa.RecordBatch.from_pylist([dict(row) for row in part], schema=schema)


def first_label_sql(item: str) -> str:
    """Return the SQL expression of the first label of the comment of `item`, before corrections.

    Null: no one labelled the same texts, or the label was undone.
    """
    return _given(item, "kind = 'review'", *_FIRST_ACTIONS)


def second_label_sql(item: str) -> str:
    """Return the SQL expression of the label of round 2 of the comment of `item`, uncorrected.

    Null: there is none; the label of a lead who resolved an escalation does not count.
    """
    return _given(item, "kind = 'confirmation' AND earlier.round = 2", "label")


def in_force_sql(row: str, *actions: str) -> str:
    """Return the SQL condition that the decision `row` is one of `actions` and was not undone."""
    names = ", ".join(f"'{action}'" for action in actions)
    undo = f"SELECT FROM decision AS undo WHERE undo.refers_to = {row}.id AND undo.action = 'undo'"
    return f"{row}.action IN ({names}) AND NOT EXISTS ({undo})"


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
    begin = true() if first is None else decision.c.decided_at >= first  # sessions use UTC
    if last is None or last == dt.date.max:
        return begin
    return and_(begin, decision.c.decided_at < last + dt.timedelta(days=1))


def current_decision(item_id: Any, *columns: ColumnElement[Any]) -> Select[Any]:
    """Return the query of the decision that gives an item its current label: the last with one."""
    return (
        select(*columns)
        .where(decision.c.item_id == item_id, in_force(*FINAL_ACTIONS))
        .order_by(decision.c.id.desc())
        .limit(1)
    )


def _given(item: str, kind: str, *actions: str) -> str:
    return f"""(
        SELECT given.label FROM review_item AS earlier
        JOIN decision AS given ON given.item_id = earlier.id
        WHERE earlier.dt = {item}.dt AND earlier.comment_id = {item}.comment_id
            AND earlier.{kind} AND earlier.status = 'decided' AND earlier.text = {item}.text
            AND earlier.parent_text IS NOT DISTINCT FROM {item}.parent_text
            AND {in_force_sql("given", *actions)}
        ORDER BY given.id DESC LIMIT 1
    )"""  # noqa: S608 - our own text


_GIVEN = text(
    f"""
    SELECT CAST(:day AS date) AS dt, comment_id, dt AS comment_dt, pseudonym AS annotator, label,
        decided_at, kind AS source
    FROM decision JOIN moderator ON moderator.id = moderator_id
    WHERE decided_at >= :day AND decided_at < :next AND {in_force_sql("decision", "label")}
    ORDER BY decision.id
    """  # noqa: S608 - our own text
)

_CURRENT = text(
    f"""
    SELECT latest.dt, latest.comment_id, latest.label, latest.decided_at, latest.seconds,
        pseudonym AS moderator, first_label, first_moderator
    FROM (
        SELECT DISTINCT ON (item_id) decision.* FROM decision
        JOIN review_item ON review_item.id = item_id AND review_item.status = 'decided'
        WHERE decision.dt = :day AND decision.kind = :kind
            AND {in_force_sql("decision", *FINAL_ACTIONS)}
        ORDER BY item_id, decision.id DESC
    ) AS latest JOIN moderator ON moderator.id = moderator_id
    CROSS JOIN LATERAL (
        SELECT label AS first_label, pseudonym AS first_moderator
        FROM decision JOIN moderator ON moderator.id = moderator_id
        WHERE item_id = latest.item_id AND {in_force_sql("decision", *_FIRST_ACTIONS)}
        ORDER BY decision.id DESC LIMIT 1
    ) AS first
    ORDER BY latest.item_id
    """  # noqa: S608 - our own text
)

_CONFIRMING = text(
    f"""
    SELECT DISTINCT ON (item.id) item.dt, item.comment_id, item.round, given.label,
        given.decided_at, given.seconds, moderator.pseudonym AS moderator, second.first_label
    FROM review_item AS item
    JOIN review_item AS second ON second.dt = item.dt AND second.comment_id = item.comment_id
        AND second.kind = 'confirmation' AND second.round = 2
        AND second.status = 'decided' AND second.first_label IS NOT NULL
    JOIN decision AS given ON given.item_id = item.id AND {in_force_sql("given", "label")}
    JOIN moderator ON moderator.id = given.moderator_id
    WHERE item.dt = :day AND item.kind = 'confirmation' AND item.status = 'decided'
        AND {first_label_sql("item")} IS NOT NULL
        AND (item.round = 2 OR {second_label_sql("item")} IS NOT NULL)
        AND NOT EXISTS (
            SELECT FROM review_item AS earlier JOIN decision AS known ON known.item_id = earlier.id
            WHERE earlier.dt = item.dt AND earlier.comment_id = item.comment_id
                AND earlier.kind IN ('review', 'confirmation') AND earlier.round < item.round
                AND known.moderator_id = given.moderator_id
                AND {in_force_sql("known", *FINAL_ACTIONS)}
                AND (known.action <> 'correct' OR known.id < given.id)
        )
    ORDER BY item.id, given.id DESC
    """  # noqa: S608 - our own text
)
