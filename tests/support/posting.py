"""A message in the outbox, in a transaction of its own."""

from collections.abc import Iterable

from sqlalchemy import Engine

from modwatch.review.outbox.messages import OutboxMessage, store


def post(engine: Engine, message: OutboxMessage, channels: Iterable[str]) -> bool:
    """Store a message for these channels; return False if its key exists already."""
    with engine.begin() as connection:
        return bool(store(connection, [message], lambda _: channels))
