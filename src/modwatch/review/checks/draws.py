"""Which comments a person meets as a check: drawn by chance, from a bounded number of rows."""

import datetime as dt
import random
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, exists, func, literal, or_, select, true

from modwatch.review.checks.at_work import STREAM, Person
from modwatch.review.queue.lanes import GENERAL, Lanes
from modwatch.review.tables import decision, gold_comment, review_item

#: Labels of a person among which retests are drawn, the latest of those that are old enough.
LATEST_LABELS = 20_000

#: Gold comments among which those of a person and day are drawn.
GOLD_DRAWN = 2_000

_COPIED = (
    "comment_id", "text", "parent_text", "language", "platform", "queue", "stratum", "rank",
    "review_score", "prob", "uncertainty", "model_version",
)  # fmt: skip

#: A gold comment was neither routed nor scored today.
_NEUTRAL = {
    "stratum": 0,
    "rank": 1,
    "review_score": 0.0,
    "prob": 0.5,
    "uncertainty": 0.25,
    "model_version": "",
}


def draw_retests(
    connection: Connection, person: Person, n: int, chance: random.Random, least_days: float
) -> list[dict[str, Any]]:
    """Return at most `n` comments that the person labelled long ago, and met only then.

    Places in their chain are drawn first, and only the rows there are read.
    """
    places = range(max(1, person.last_old - LATEST_LABELS + 1), person.last_old + 1)
    if n < 1 or not places:
        return []
    drawn = chance.sample(places, min(len(places), 20 * n + 50))
    found = connection.execute(
        select(decision.c.position, *(review_item.c[name] for name in _COPIED))
        .join(review_item, review_item.c.id == decision.c.item_id)
        .where(
            decision.c.moderator_id == person.id,
            decision.c.position.in_(drawn),
            decision.c.action == "label",
            decision.c.kind.in_(STREAM),
            decision.c.decided_at <= func.now() - dt.timedelta(days=least_days),
            review_item.c.reason.not_in(person.opt_outs),
            _works(person, review_item.c.queue),
            ~_met(person, review_item.c.comment_id, but=decision.c.id),
        )
    ).mappings()
    by_place = {row["position"]: {name: row[name] for name in _COPIED} for row in found}
    return [by_place[place] for place in drawn if place in by_place][:n]


def draw_gold(
    connection: Connection, person: Person, n: int, seed: str, lanes: Lanes
) -> list[dict[str, Any]]:
    """Return at most `n` gold comments that the person neither met nor may meet otherwise."""
    if n < 1:
        return []
    order = func.md5(literal(seed) + gold_comment.c.comment_id)
    by = {"none": None, "language": "language", "platform": "platform"}[lanes.queue_by]
    queue = func.coalesce(gold_comment.c[by], GENERAL) if by else literal(GENERAL)
    pool = (
        select(gold_comment, order.label("turn"), queue.label("queue"))
        .where(gold_comment.c.retired_at.is_(None))
        .order_by("turn")
        .limit(GOLD_DRAWN)
        .subquery()
    )
    open_item = review_item.alias("open_item")
    coming = exists().where(
        open_item.c.comment_id == pool.c.comment_id,
        open_item.c.reserved_for.is_(None),
        open_item.c.status.in_(["waiting", "blocked", "escalated"]),
    )
    known = [pool.c[name] for name in _COPIED if name not in _NEUTRAL]
    found = connection.execute(
        select(*known)
        .where(_works(person, pool.c.queue), ~coming, ~_met(person, pool.c.comment_id))
        .order_by(pool.c.turn)
        .limit(n)
    ).mappings()
    return [{**row, **_NEUTRAL} for row in found]


def _works(person: Person, queue: ColumnElement[str]) -> ColumnElement[bool]:
    return true() if person.queues is None else queue.in_(person.queues)


def _met(
    person: Person, comment_id: ColumnElement[str], but: ColumnElement[int] | None = None
) -> ColumnElement[bool]:
    """Return whether a person had a check of the comment, or decided it (not only in `but`).

    A check that was withdrawn before they saw it may come again.
    """
    item, said = review_item.alias("met_item"), decision.alias("met_said")
    theirs = and_(said.c.item_id == item.c.id, said.c.moderator_id == person.id)
    decided = said.c.id.is_not(None) if but is None else said.c.id != but
    seen = or_(item.c.status != "withdrawn", item.c.claimed_at.is_not(None))
    checked = and_(item.c.reserved_for == person.id, seen)
    return exists(
        select(item.c.id)
        .join(said, theirs, isouter=True)
        .where(item.c.comment_id == comment_id, or_(checked, decided))
    )
