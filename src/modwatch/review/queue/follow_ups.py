"""Follow-ups: items that still have no label when the review of their day is over.

They keep their ids and look as before. Nobody is served an item that they skipped, and an item that
is skipped again goes on waiting.
"""

import datetime as dt
from collections.abc import Sequence

from sqlalchemy import Engine, and_, case, exists, func, select, text, update

from modwatch.review.database import at_once
from modwatch.review.log.labels import in_force
from modwatch.review.tables import decision, review_item

#: Before every item that has its deadline as the order of service.
_FIRST = review_item.c.queued_at - text("interval '10 years'")


def unlabelled(engine: Engine, day: dt.date) -> dict[str, str] | None:
    """Return why each routed comment of `day` has no label, by its id; None: the review goes on.

    The review of a day is over when the last of its items is due. The reason is `escalated` (a lead
    has not resolved it), `dismissed`, `skipped`, or `waiting` for the first decision.
    """
    item = review_item.c
    of_day = and_(item.dt == day, item.kind == "review", item.status != "withdrawn")
    skipped = exists().where(decision.c.item_id == item.id, in_force("skip"))
    reason = case(
        (item.status == "escalated", "escalated"),
        (item.status == "closed", "dismissed"),
        (skipped, "skipped"),
        else_="waiting",
    )
    over = select(func.max(item.due_at) <= func.now()).where(of_day)
    rows = select(item.comment_id, reason.label("reason")).where(of_day, item.status != "decided")
    with engine.connect() as connection:
        if not connection.scalar(over):
            return None
        return {row.comment_id: row.reason for row in connection.execute(rows)}


def serve_first(engine: Engine, day: dt.date, comment_ids: Sequence[str]) -> int:
    """Serve these open items of `day` before all others of their lane; return how many are open.

    Escalated ones come first among those that leads resolve, after severe ones.
    """
    item = review_item.c
    chosen = and_(
        item.dt == day,
        item.kind == "review",
        item.status.in_(["waiting", "escalated"]),
        item.comment_id.in_(list(comment_ids)),
    )
    late = and_(chosen, item.serve_by > _FIRST)
    with engine.begin() as connection:
        # A locked item is being leased or decided at this moment.
        free = select(item.id).where(late).order_by(item.id).with_for_update(skip_locked=True)
        connection.execute(update(review_item).where(item.id.in_(free)).values(serve_by=_FIRST))
    return int(at_once(engine, select(func.count().label("open")).where(chosen))[0]["open"])
