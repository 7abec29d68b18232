"""When a confirmation is open: the first label is one that it confirms, or two people differ.

An item of round 2 is open while the comment's first label is one of those that the item
`confirms`; an item of round 3 while the labels of rounds 1 and 2 differ. Both are the labels before
corrections: a correction opens and closes nothing, so that the probability of a confirmation is
that of the first label as given: a lead may correct a label because a confirmation differs. An item
that is leased stays open.

`statements.DECIDE` opens the items of a comment with the label that it records. `settle` does the
same for whatever else changes, and finds what two simultaneous decisions left.
"""

import datetime as dt
from collections.abc import Collection, Iterable

from sqlalchemy import Connection, Engine, text

from modwatch.review.log.labels import first_label_sql, second_label_sql

#: Not leased. A claim in the future (the clock was set back) does not count. `clock_timestamp`,
#: because another statement may have started and claimed the item after this one started.
FREE = """(leased_until IS NULL OR leased_until <= now()
            OR claimed_at > clock_timestamp() + interval '1 minute')"""


def settle(
    connection: Connection, day: dt.date, comment_ids: Collection[str] | None = None, but: int = 0
) -> int:
    """Open and block the confirmations of `day` by the labels there are; return how many changed.

    Only of `comment_ids`, or of all if None, and not the item `but`. Whoever labelled or skipped
    another item of the comment is excluded. Items that another transaction has locked are being
    leased or decided, and are left as they are.
    """
    ids = None if comment_ids is None else list(comment_ids)
    return connection.execute(_SETTLE, {"day": day, "comment_ids": ids, "but": but}).rowcount


def settle_days(engine: Engine, days: Iterable[dt.date]) -> int:
    """Do the same for all comments of `days`; return how many items changed."""
    changed = 0
    for day in days:
        with engine.begin() as connection:
            changed += settle(connection, day)
    return changed


_SETTLE = text(
    f"""
    WITH item AS MATERIALIZED (
        SELECT * FROM review_item AS held
        WHERE dt = :day AND kind = 'confirmation' AND status IN ('waiting', 'blocked')
            AND (CAST(:comment_ids AS text[]) IS NULL OR comment_id = ANY (:comment_ids))
            AND id <> :but
        ORDER BY id FOR UPDATE SKIP LOCKED
    ), standing AS MATERIALIZED (  -- never joined: the planner takes it for a single row
        SELECT id, round, confirms, {first_label_sql("item")} AS first_label,
            CASE round WHEN 3 THEN {second_label_sql("item")} END AS second_label,
            ARRAY(
                SELECT DISTINCT unnest(other.excluded) FROM review_item AS other
                WHERE other.dt = item.dt AND other.comment_id = item.comment_id
                    AND other.id <> item.id AND other.reserved_for IS NULL
            ) AS acquainted
        FROM item
    ), settled AS MATERIALIZED (
        SELECT *, CASE round
            WHEN 2 THEN first_label = ANY (confirms)
            ELSE first_label <> second_label
        END IS TRUE AS opens
        FROM standing
    )
    UPDATE review_item SET
        status = CASE WHEN opens THEN 'waiting' ELSE 'blocked' END,
        first_label = CASE WHEN opens AND settled.round = 2 THEN settled.first_label END,
        excluded = CASE
            WHEN opens AND NOT excluded @> acquainted THEN excluded || acquainted ELSE excluded
        END
    FROM settled WHERE review_item.id = settled.id AND (
        (opens AND (status = 'blocked' OR NOT excluded @> acquainted
            OR settled.round = 2
                AND review_item.first_label IS DISTINCT FROM settled.first_label))
        OR (NOT opens AND status = 'waiting' AND {FREE})
    )
    """  # noqa: S608 - our own text
)
