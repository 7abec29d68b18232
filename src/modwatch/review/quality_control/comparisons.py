"""Judgements of one comment side by side, as the decision log holds them.

Only what somebody labelled without knowing of the other counts: no adjudication, nothing that was
taken back, and of a label corrected later what was said first. A period is of the later judgement,
days UTC, both included.
"""

import datetime as dt
from collections.abc import Collection, Iterator, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
from sqlalchemy import (
    Connection,
    Engine,
    RowMapping,
    Select,
    and_,
    bindparam,
    literal,
    select,
    text,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY, TEXT

from modwatch.errors import QueueError
from modwatch.records import CHECK_ANSWERS
from modwatch.review.log.labels import stands, undone
from modwatch.review.tables import decision, gold_comment, moderator, review_item

#: A label that stands or stood by itself.
_JUDGED = """{0}.action = 'label' AND NOT EXISTS (
    SELECT FROM decision undo WHERE undo.refers_to = {0}.id AND undo.action = 'undo')"""

_IN_PERIOD = f"""d.decided_at >= :begin AND d.decided_at < :end AND {_JUDGED.format("d")}
    AND (:queues IS NULL OR i.queue = ANY (:queues))"""

_SECOND_OPINIONS = f"""
    SELECT first.label AS first, d.label AS second
    FROM decision d JOIN review_item i ON i.id = d.item_id
    CROSS JOIN LATERAL (
        SELECT said.label FROM review_item r JOIN decision said ON said.item_id = r.id
        WHERE r.dt = d.dt AND r.comment_id = d.comment_id AND r.kind = 'review'
            AND said.moderator_id <> d.moderator_id AND {_JUDGED.format("said")}
        ORDER BY said.id LIMIT 1
    ) AS first
    WHERE d.kind = 'second_opinion' AND {_IN_PERIOD} ORDER BY d.id
"""  # noqa: S608 - our own text

_SEVERAL = f"""
    SELECT said.item_id, said.label FROM decision said
    WHERE said.decided_at < :end AND {_JUDGED.format("said")} AND said.item_id IN (
        SELECT d.item_id FROM decision d JOIN review_item i ON i.id = d.item_id
        WHERE d.kind = 'review' AND i.labels_wanted > 1 AND {_IN_PERIOD}
    ) ORDER BY said.id
"""  # noqa: S608 - our own text

_GOLD = f"""
    SELECT d.moderator_id, m.pseudonym, d.label, gold.label AS gold
    FROM decision d JOIN review_item i ON i.id = d.item_id
    JOIN moderator m ON m.id = d.moderator_id
    JOIN gold_comment gold ON gold.comment_id = d.comment_id
        AND gold.retired_at IS NULL AND gold.added_at <= d.decided_at
    WHERE d.kind = 'gold' AND {_IN_PERIOD} ORDER BY d.id
"""  # noqa: S608 - our own text

_RETESTS = f"""
    SELECT d.moderator_id, m.pseudonym, first.label AS first, d.label AS again, first.kind,
        first.stratum, first.inclusion_probability
    FROM decision d JOIN review_item i ON i.id = d.item_id
    JOIN moderator m ON m.id = d.moderator_id
    CROSS JOIN LATERAL (
        SELECT said.label, r.kind, r.stratum, r.inclusion_probability
        FROM review_item r JOIN decision said ON said.item_id = r.id
        WHERE r.comment_id = d.comment_id AND r.kind IN ('review', 'second_opinion')
            AND said.moderator_id = d.moderator_id AND said.id < d.id AND {_JUDGED.format("said")}
        ORDER BY said.id LIMIT 1
    ) AS first
    WHERE d.kind = 'retest' AND {_IN_PERIOD} ORDER BY d.id
"""  # noqa: S608 - our own text

_STATEMENTS = {
    "second opinions": _SECOND_OPINIONS,
    "several labels": _SEVERAL,
    "gold": _GOLD,
    "retests": _RETESTS,
}


def compared(
    connection: Connection,
    what: str,
    first: dt.date,
    last: dt.date,
    queues: Collection[str] | None = None,
) -> Sequence[RowMapping]:
    """Return the rows of one comparison, in the order of the log.

    `second opinions`: `first`, `second`. `several labels`: `item_id`, `label`, of items that
    several people are to label. `gold`: `moderator_id`, `pseudonym`, `label`, `gold`; answers to
    comments that are gold now, and were then. `retests`: `moderator_id`, `pseudonym`, `first`,
    `again`, and `kind`, `stratum`, `inclusion_probability` of the first. Raises `QueueError` when
    `last` is before `first`.
    """
    if last < first:
        raise QueueError(f"the period ends on {last}, before {first}; swap the days")
    begin, end = (
        dt.datetime.combine(day, dt.time.min, dt.UTC) for day in (first, last + dt.timedelta(1))
    )
    statement = text(_STATEMENTS[what]).bindparams(bindparam("queues", type_=ARRAY(TEXT)))
    named = None if queues is None else list(queues)
    values = {"begin": begin, "end": end, "queues": named}
    return connection.execute(statement, values).mappings().all()


def check_answers(engine: Engine, day: date) -> Iterator[pa.RecordBatch]:
    """Yield the answers to the checks of `day` as batches of `records.CHECK_ANSWERS`.

    Only what was said unaware counts: no adjudication, nothing taken back, of a label corrected
    later what was said first. A retest stands beside the same person's own first label of the
    routed comment; gold that is retired, or was not gold yet, does not count.
    """
    with engine.connect() as connection:
        for statement in (_retests(day), _gold(day)):
            rows = connection.execute(statement).mappings().all()
            if rows:
                answers = [dict(row) for row in rows]
                yield pa.RecordBatch.from_pylist(answers, schema=CHECK_ANSWERS)


def _answers(day: date, kind: str, *more: Any) -> Select[Any]:
    copied = (decision.c[name] for name in ("dt", "comment_id", "kind", "label"))
    return (
        select(*copied, moderator.c.pseudonym.label("moderator"), *more)
        .join(moderator, moderator.c.id == decision.c.moderator_id)
        .where(
            decision.c.dt == day,
            decision.c.kind == kind,
            stands("label"),
        )
        .order_by(decision.c.id)
    )


def _retests(day: date) -> Select[Any]:
    said = decision.alias("said")
    first = (
        select(said.c.label, review_item.c.stratum, review_item.c.inclusion_probability)
        .join(review_item, review_item.c.id == said.c.item_id)
        .where(
            review_item.c.comment_id == decision.c.comment_id,
            review_item.c.kind == "review",
            said.c.moderator_id == decision.c.moderator_id,
            said.c.id < decision.c.id,
            said.c.action == "label",
            ~undone(said),
        )
        .order_by(said.c.id)
        .limit(1)
        .correlate(decision)
        .lateral("first")
    )
    more = (first.c.label.label("known"), first.c.stratum, first.c.inclusion_probability)
    return _answers(day, "retest", *more).join(first, true())


def _gold(day: date) -> Select[Any]:
    nothing = (literal(None).label(name) for name in ("stratum", "inclusion_probability"))
    known = and_(
        gold_comment.c.comment_id == decision.c.comment_id,
        gold_comment.c.retired_at.is_(None),
        gold_comment.c.added_at <= decision.c.decided_at,
    )
    more = (gold_comment.c.label.label("known"), *nothing)
    return _answers(day, "gold", *more).join(gold_comment, known)
