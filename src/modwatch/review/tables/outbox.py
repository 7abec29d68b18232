"""Tables of messages to receivers outside."""

from sqlalchemy import (
    BigInteger,
    Column,
    Date,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from modwatch.review.tables.columns import TransactionId, metadata, moment

#: One row per message.
outbox_message = Table(
    "outbox_message",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    #: Idempotency key: the receiver drops a message whose key it has seen.
    Column("key", Text, nullable=False, unique=True),
    Column("topic", Text, nullable=False),
    #: What the message is about; `sequence` counts the messages of a series, from 1.
    Column("series", Text, nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("dt", Date, nullable=False),
    Column("payload", JSONB, nullable=False),
    moment("created_at"),
    UniqueConstraint("topic", "series", "sequence"),
)

#: One row per message and channel; channels fail independently.
outbox_delivery = Table(
    "outbox_delivery",
    metadata,
    Column("message_id", ForeignKey("outbox_message.id"), primary_key=True),
    Column("channel", Text, primary_key=True),
    Column("delivered_at", DateTime(timezone=True)),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("next_attempt_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    #: When it became a dead letter, until a person sends it again.
    Column("dead_at", DateTime(timezone=True)),
    #: Why the last attempt failed: `answer 500`, `timeout`; never part of the message.
    Column("last_problem", Text),
    Index(
        "outbox_delivery_pending_idx",
        "channel",
        "message_id",
        postgresql_where=text("delivered_at IS NULL AND dead_at IS NULL"),
    ),
    Index(
        "outbox_delivery_dead_idx",
        "channel",
        "message_id",
        postgresql_where=text("dead_at IS NOT NULL"),
    ),
)

#: How far the decision log has been turned into messages.
outbox_cursor = Table(
    "outbox_cursor",
    metadata,
    Column("topic", Text, primary_key=True),
    Column("transaction_id", TransactionId, nullable=False),
    Column("decision_id", BigInteger, nullable=False),
)
