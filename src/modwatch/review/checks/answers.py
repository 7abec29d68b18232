"""What people answered to the retests and gold items of a day, beside what is known of each."""

from collections.abc import Iterator
from datetime import date
from typing import Any

import pyarrow as pa
from sqlalchemy import Engine, Select, and_, literal, select, true

from modwatch.lake.schemas import CHECK_ANSWERS
from modwatch.review.log.standing import stands, undone
from modwatch.review.tables import decision, gold_comment, moderator, review_item


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
