"""Tables of messages to receivers outside, and of incidents: their state and events."""

from sqlalchemy import (
    BigInteger,
    Column,
    Date,
    DateTime,
    ForeignKey,
    Identity,
    Integer,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import JSONB

from modwatch.review.tables.columns import TransactionId, metadata, moment

#: One row per message.
outbox_message = Table(
    "outbox_message",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    #: Idempotency key: the receiver drops a message whose key it has seen.
    Column("key", Text, nullable=False),
    Column("topic", Text, nullable=False),
    #: What the message is about; `sequence` counts the messages of a series, from 1.
    Column("series", Text, nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("dt", Date, nullable=False),
    Column("payload", JSONB, nullable=False),
    moment("created_at"),
)

#: One row per message and channel; channels fail independently.
outbox_delivery = Table(
    "outbox_delivery",
    metadata,
    Column("message_id", ForeignKey("outbox_message.id"), primary_key=True),
    Column("channel", Text, primary_key=True),
    Column("delivered_at", DateTime(timezone=True)),
    Column("attempts", Integer, nullable=False),
    Column("next_attempt_at", DateTime(timezone=True), nullable=False),
    #: When it became a dead letter, until a person sends it again.
    Column("dead_at", DateTime(timezone=True)),
    #: Why the last attempt failed: `answer 500`, `timeout`; never part of the message.
    Column("last_problem", Text),
)

#: How far the decision log has been turned into messages.
outbox_cursor = Table(
    "outbox_cursor",
    metadata,
    Column("topic", Text, primary_key=True),
    Column("transaction_id", TransactionId, nullable=False),
    Column("decision_id", BigInteger, nullable=False),
)

#: One row per incident: what receivers know of it, and what the newest evaluation found.
incident = Table(
    "incident",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    #: `incident`, `annotator_incident`, `failure`, `heartbeat`: rules on days, rules on groups of
    #: moderators, failed tasks, days that are not measured. Each is also the topic of its messages.
    Column("kind", Text, nullable=False),
    #: The cause, the rule and its subject, or the key of a failed task.
    Column("name", Text, nullable=False),
    #: The highest that it reached.
    Column("severity", Text, nullable=False),
    #: The first day, which is the day of the change where one was dated.
    Column("since", Date, nullable=False),
    Column("opened", Date, nullable=False),
    #: The rules that have an incident, by rule and subject: since, opened, and the value on the
    #: day of the message, with the interval of the day of a change.
    Column("members", JSONB, nullable=False),
    #: The rule and subject that the last message leads with; empty where there is no rule.
    Column("rule", Text, nullable=False),
    Column("subject", Text, nullable=False),
    #: Day, number, headline, text and links of the last message, and the headline of the first.
    Column("notified_on", Date, nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("headline", Text, nullable=False),
    Column("first_headline", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("links", JSONB, nullable=False),
    #: Where most of a change is, as a sentence; empty: nowhere, or no such change.
    Column("segment", Text, nullable=False),
    #: What the newest evaluation found while the incident is active; null before the first.
    Column("evaluated", Date),
    Column("newest_headline", Text),
    Column("newest_value", Text),
    #: The day of its end, and how it ended (`recovered`, `withdrawn`, `accepted`); null while it is
    #: active.
    Column("ended", Date),
    Column("outcome", Text),
    moment("created_at"),
)

#: What was sent about incidents and what people did about them, in the order in which it was
#: stored; append-only.
incident_event = Table(
    "incident_event",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("incident_id", ForeignKey("incident.id"), nullable=False),
    #: Of a message: opened, failed, escalated, recovered, withdrawn, accepted. Of a person:
    #: acknowledge, assign, comment, silence, accept.
    Column("event", Text, nullable=False),
    #: The title of a message.
    Column("title", Text),
    #: Who acted, and why.
    Column("person", Text),
    Column("note", Text),
    #: Of `assign`.
    Column("assignee", Text),
    #: Of `silence`: the last day without messages.
    Column("until", Date),
    #: Of `accept`: the first day on which the present level is the reference, and the day from
    #: which that level holds.
    Column("day", Date),
    Column("level_since", Date),
    moment("created_at"),
)
