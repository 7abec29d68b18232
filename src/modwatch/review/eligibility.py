"""Which waiting items a moderator may be served."""

from sqlalchemy import ColumnElement, and_, exists, func, or_, select

from modwatch.review.tables import decision, review_item, skipped


def may_be_served(moderator_id: int) -> ColumnElement[bool]:
    """Return the condition on `review_item`: this person has neither skipped it nor labelled it."""
    return and_(
        ~_skipped_by(moderator_id),
        or_(review_item.c.kind != "second_opinion", _may_give_second_opinion(moderator_id)),
    )


def _skipped_by(moderator_id: int) -> ColumnElement[bool]:
    return exists().where(
        decision.c.item_id == review_item.c.id,
        decision.c.moderator_id == moderator_id,
        skipped,
    )


def _may_give_second_opinion(moderator_id: int) -> ColumnElement[bool]:
    """Return whether the same text has a first label, and this person had no say in it.

    Since the second comes only after the first, nobody can meet the first after the second, and a
    team of one is not kept from any first. A scalar subquery, unlike EXISTS, is looked up item by
    item through the indexes, however many items the planner expects.
    """
    first = review_item.alias("first")
    return (
        select(func.bool_and(decision.c.moderator_id != moderator_id))
        .join(first, first.c.id == decision.c.item_id)
        .where(
            first.c.dt == review_item.c.dt,
            first.c.comment_id == review_item.c.comment_id,
            first.c.kind == "review",
            first.c.status == "decided",
            first.c.text == review_item.c.text,
        )
        .correlate(review_item)
        .scalar_subquery()
    )
