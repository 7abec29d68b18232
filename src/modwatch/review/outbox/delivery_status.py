"""Delivery status by channel, and dead letters: listed, and sent again."""

import datetime as dt
import logging
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Engine, func, select, update

from modwatch.review.database import at_once
from modwatch.review.outbox.decision_events import TOPIC
from modwatch.review.tables import outbox_delivery, outbox_message

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class DeadLetter:
    """A message that will not be sent until a person sends it again."""

    message_id: int
    key: str
    series: str
    sequence: int
    #: decided | changed | withdrawn
    event: str
    attempts: int
    #: `answer 410`, `TimeoutError`.
    last_problem: str | None
    created_at: dt.datetime
    dead_at: dt.datetime


@dataclass(frozen=True, kw_only=True)
class DeliveryState:
    """The delivery status of a channel."""

    pending: int
    dead: int
    #: How long the oldest pending message has been waiting; None if there is none.
    oldest_pending: dt.timedelta | None


def dead_letters(
    engine: Engine, channel: str, *, after: int = 0, limit: int = 100
) -> list[DeadLetter]:
    """Return the first `limit` dead letters of a channel after the message id `after`."""
    message, delivery = outbox_message.c, outbox_delivery.c
    letters = (
        select(
            delivery.message_id,
            message.key,
            message.series,
            message.sequence,
            message.payload["event"].astext.label("event"),
            delivery.attempts,
            delivery.last_problem,
            message.created_at,
            delivery.dead_at,
        )
        .join(outbox_delivery, delivery.message_id == message.id)
        .where(
            delivery.channel == channel,
            delivery.dead_at.is_not(None),
            delivery.message_id > after,
            message.topic == TOPIC,
        )
        .order_by(delivery.message_id)
        .limit(limit)
    )
    return [DeadLetter(**row) for row in at_once(engine, letters)]


def resend(engine: Engine, channel: str, ids: Collection[int] | None = None) -> int:
    """Make dead letters of a channel due again, all or those with these message ids.

    Returns how many; other messages are ignored.
    """
    mine = [outbox_delivery.c.channel == channel, outbox_delivery.c.dead_at.is_not(None)]
    if ids is not None:
        mine.append(outbox_delivery.c.message_id.in_(list(ids)))
    again = update(outbox_delivery).where(*mine)
    with engine.begin() as connection:
        done = connection.execute(
            again.values(dead_at=None, attempts=0, next_attempt_at=func.now())
        ).rowcount
    logger.info(
        "Dead letters were made due again.",
        extra={"event": "dead_letters_resent", "channel": channel, "letters": done},
    )
    return done


def delivery_state(engine: Engine) -> dict[str, DeliveryState]:
    """Return the status of every channel with undelivered decision events."""
    delivery = outbox_delivery.c
    dead = delivery.dead_at.is_not(None)
    waits = func.now() - func.min(outbox_message.c.created_at).filter(~dead)
    states = (
        select(
            delivery.channel,
            func.count().filter(~dead).label("pending"),
            func.count().filter(dead).label("dead"),
            waits.label("oldest_pending"),
        )
        .join(outbox_message, outbox_message.c.id == delivery.message_id)
        .where(delivery.delivered_at.is_(None), outbox_message.c.topic == TOPIC)
        .group_by(delivery.channel)
    )
    with engine.connect() as connection:
        return {
            row.channel: DeliveryState(
                pending=row.pending, dead=row.dead, oldest_pending=row.oldest_pending
            )
            for row in connection.execute(states)
        }
