"""Messages to receivers outside: stored first, then sent on each channel independently.

A message is stored in the database of the queue, with one row per channel. Sending marks that row
in the same transaction: only if the process is killed in between, the message is sent once more,
under the same key.
"""

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import (
    Connection,
    Engine,
    delete,
    func,
    insert,
    or_,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from modwatch.review.tables import outbox_delivery, outbox_message

#: Failed rounds of delivery before which no message expires, however old the clock says it is: when
#: a slow clock is set right, every message is old at once.
FEWEST_ATTEMPTS = 10


@dataclass(frozen=True, kw_only=True)
class OutboxMessage:
    """One message."""

    #: Idempotency key, the same for every attempt.
    key: str
    topic: str
    #: What the message is about; the messages of a series are sent in order.
    series: str
    #: Its number in the series, from 1.
    sequence: int
    #: The day that the message is about.
    dt: dt.date
    #: The JSON that is sent.
    payload: dict[str, Any]


def store(
    connection: Connection,
    messages: Sequence[OutboxMessage],
    channels: Callable[[OutboxMessage], Iterable[str]],
) -> set[str]:
    """Store messages, each for its channels, with the transaction; return the keys that are new."""
    rows = [asdict(message) for message in messages]
    if not rows:
        return set()
    mine = outbox_message.c
    added = connection.execute(
        upsert(outbox_message).on_conflict_do_nothing().returning(mine.id, mine.key), rows
    ).all()
    of_key = {message.key: channels(message) for message in messages}
    pending = [{"message_id": row.id, "channel": name} for row in added for name in of_key[row.key]]
    if pending:
        connection.execute(insert(outbox_delivery), pending)
    return {row.key for row in added}


def pending(engine: Engine, channel: str, *, younger_than: dt.timedelta) -> list[OutboxMessage]:
    """Return the messages that are still to be sent on `channel`, oldest first.

    Messages that were posted longer ago than `younger_than`, by the clock of the database, and were
    left in `FEWEST_ATTEMPTS` rounds, are not sent any more.
    """
    mine = outbox_delivery.c
    young = outbox_message.c.created_at > func.now() - younger_than
    unsent = (
        select(outbox_message)
        .join(outbox_delivery)
        .where(mine.channel == channel, mine.delivered_at.is_(None), mine.dead_at.is_(None))
        .where(or_(young, mine.attempts < FEWEST_ATTEMPTS))
        .order_by(outbox_message.c.id)
    )
    with engine.connect() as connection:
        return [message_of(row) for row in connection.execute(unsent)]


def send(
    engine: Engine, message: OutboxMessage, channel: str, deliver: Callable[[OutboxMessage], None]
) -> bool:
    """Call `deliver` and mark the message as sent; return False if another process was faster.

    If `deliver` raises, the message stays pending. Concurrent processes wait for each other.
    """
    ours = select(outbox_message.c.id).where(outbox_message.c.key == message.key).scalar_subquery()
    mine = (outbox_delivery.c.message_id == ours, outbox_delivery.c.channel == channel)
    unsent = select(outbox_delivery).where(*mine, outbox_delivery.c.delivered_at.is_(None))
    with engine.begin() as connection:
        connection.execute(text("SET LOCAL lock_timeout = '5min'"))
        if connection.execute(unsent.with_for_update()).first() is None:
            return False
        deliver(message)
        sent = update(outbox_delivery).where(*mine).values(delivered_at=func.clock_timestamp())
        connection.execute(sent)
    return True


def combine(
    engine: Engine,
    channel: str,
    keys: Iterable[str],
    combined: Callable[[list[OutboxMessage]], OutboxMessage],
) -> None:
    """Store one message in place of others that are still to be sent on `channel`.

    Nothing changes if none of them is, or if the key of the combined message is stored already.
    """
    mine = outbox_delivery.c
    unsent = (
        select(outbox_message)
        .join(outbox_delivery)
        .where(outbox_message.c.key.in_(keys), mine.channel == channel, mine.delivered_at.is_(None))
        .order_by(outbox_message.c.id)
        .with_for_update(of=outbox_delivery)
    )
    with engine.begin() as connection:
        rows = connection.execute(unsent).all()
        one = [combined([message_of(row) for row in rows])] if rows else []
        if store(connection, one, lambda _: [channel]):
            those = (mine.message_id.in_([row.id for row in rows]), mine.channel == channel)
            sent = update(outbox_delivery).where(*those)
            connection.execute(sent.values(delivered_at=func.clock_timestamp()))


def count_attempt(engine: Engine, channel: str) -> None:
    """Note that a round of delivery on `channel` failed: for all messages that it left unsent."""
    mine = outbox_delivery.c
    left = update(outbox_delivery).where(
        mine.channel == channel,
        mine.delivered_at.is_(None),
        mine.dead_at.is_(None),
        mine.attempts < FEWEST_ATTEMPTS,  # beyond, the number says nothing more
    )
    with engine.begin() as connection:
        connection.execute(left.values(attempts=mine.attempts + 1))


def remove_delivered(connection: Connection, age: dt.timedelta, *, but: str) -> tuple[int, int]:
    """Delete what is older, by the clock of the database; return how many messages, and left ones.

    A series goes as a whole, as its messages are numbered. Left are those in which one was not sent
    on some channel, or is not that old. Messages of the topic `but` are not looked at.
    """
    mine = outbox_message.c
    sent = or_(outbox_delivery.c.message_id.is_(None), outbox_delivery.c.delivered_at.is_not(None))
    done = (
        select(mine.topic, mine.series)
        .outerjoin(outbox_delivery)
        .where(mine.topic != but)
        .group_by(mine.topic, mine.series)
        .having(func.max(mine.created_at) < func.now() - age, func.bool_and(sent))
    )
    removed = connection.execute(
        delete(outbox_message).where(tuple_(mine.topic, mine.series).in_(done))
    )
    old = select(func.count()).where(mine.topic != but, mine.created_at < func.now() - age)
    return removed.rowcount, connection.scalar(old) or 0


def message_of(row: Any) -> OutboxMessage:
    """Return the message of a row of `outbox_message`."""
    names = OutboxMessage.__dataclass_fields__
    return OutboxMessage(**{name: getattr(row, name) for name in names})
