"""Withdrawal: open items that no longer need a decision leave the queue."""

import datetime as dt
from typing import Any

from sqlalchemy import Connection, Engine, update

from modwatch.review.tables import NO_LEASE, is_open, review_item

#: No estimate uses answers to these that come later than its window of days.
_EXPIRING_KINDS = ("second_opinion", "retest", "gold")


def withdraw(connection: Connection, *conditions: Any) -> int:
    """Withdraw the open items that meet `conditions`, leased or not; return how many."""
    return connection.execute(
        update(review_item)
        .where(is_open, *conditions)
        .values(status="withdrawn", version=review_item.c.version + 1, **NO_LEASE)
    ).rowcount


def withdraw_expired(engine: Engine, before: dt.date) -> int:
    """Withdraw open second opinions, retests and gold items of days before `before`.

    Returns how many. They slow the queue down if they accumulate: every lease passes over those
    that its moderator may not decide.
    """
    item = review_item.c
    with engine.begin() as connection:
        return withdraw(connection, item.dt < before, item.kind.in_(_EXPIRING_KINDS))
