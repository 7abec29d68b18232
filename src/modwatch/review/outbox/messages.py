"""Messages to people outside: kept first, then sent, each channel by itself.

A message is written in the same database as everything that people do, with one row a channel.
Sending marks that row in the transaction in which it sends: a process that is killed in between
sends once more, under the same key, and nothing else is sent twice.
"""

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, func, insert, select, text, update
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.dialects.postgresql import insert as upsert

from modwatch.review.tables import outbox_delivery, outbox_message


@dataclass(frozen=True, kw_only=True)
class OutboxMessage:
    """One message."""

    #: The same whenever it is sent again.
    key: str
    topic: str
    #: What it is about; the messages of a series are sent in order.
    series: str
    #: Its number in the series, from 1.
    sequence: int
    #: The day that it is about.
    dt: dt.date
    #: What is sent, as JSON.
    payload: dict[str, Any]


def post(engine: Engine, message: OutboxMessage, channels: Iterable[str]) -> bool:
    """Keep a message for these channels; return False if it was there already."""
    row = {name: getattr(message, name) for name in message.__dataclass_fields__}
    with engine.begin() as connection:
        added = connection.scalar(
            upsert(outbox_message)
            .values(row)
            .on_conflict_do_nothing()
            .returning(outbox_message.c.id)
        )
        pending = [{"message_id": added, "channel": channel} for channel in channels]
        if added is not None and pending:
            connection.execute(insert(outbox_delivery), pending)
    return added is not None


def latest(engine: Engine, topic: str) -> dict[str, OutboxMessage]:
    """Return the last message of each series of a topic."""
    last = (
        select(outbox_message)
        .ext(distinct_on(outbox_message.c.series))
        .where(outbox_message.c.topic == topic)
        .order_by(outbox_message.c.series, outbox_message.c.sequence.desc())
    )
    with engine.connect() as connection:
        return {row.series: _message(row) for row in connection.execute(last)}


def pending(engine: Engine, channel: str, *, younger_than: dt.timedelta) -> list[OutboxMessage]:
    """Return what `channel` has not got yet, oldest first.

    Messages that were posted longer ago than `younger_than` are given up.
    """
    mine = outbox_delivery.c
    waiting = (
        select(outbox_message)
        .join(outbox_delivery)
        .where(mine.channel == channel, mine.delivered_at.is_(None), mine.dead_at.is_(None))
        .where(outbox_message.c.created_at > func.now() - younger_than)
        .order_by(outbox_message.c.id)
    )
    with engine.connect() as connection:
        return [_message(row) for row in connection.execute(waiting)]


def send(
    engine: Engine, message: OutboxMessage, channel: str, deliver: Callable[[OutboxMessage], None]
) -> bool:
    """Call `deliver` with the message and mark it as sent; return False if somebody else was first.

    What `deliver` raises leaves it pending. Of two processes one waits for the other.
    """
    ours = select(outbox_message.c.id).where(outbox_message.c.key == message.key).scalar_subquery()
    mine = (outbox_delivery.c.message_id == ours, outbox_delivery.c.channel == channel)
    open_still = select(outbox_delivery).where(*mine, outbox_delivery.c.delivered_at.is_(None))
    with engine.begin() as connection:
        connection.execute(text("SET LOCAL lock_timeout = '5min'"))
        if connection.execute(open_still.with_for_update()).first() is None:
            return False
        deliver(message)
        sent = update(outbox_delivery).where(*mine).values(delivered_at=func.clock_timestamp())
        connection.execute(sent)
    return True


def _message(row: Any) -> OutboxMessage:
    names = OutboxMessage.__dataclass_fields__
    return OutboxMessage(**{name: getattr(row, name) for name in names})
