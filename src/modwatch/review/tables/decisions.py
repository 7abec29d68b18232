"""Tables of the decision log, and of what decisions are made by: gold labels and policies."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from modwatch.review.tables.columns import TransactionId, metadata, moment, one_of, salt

#: Actions with a label: a moderator's, a lead's on an escalated item, a later correction.
FINAL_ACTIONS = ("label", "adjudicate", "correct")

#: `undo` reverts a decision; `close` dismisses an item, and `reopen` brings it back.
ACTIONS = (*FINAL_ACTIONS, "skip", "escalate", "undo", "close", "reopen")

#: A trigger rejects UPDATE, DELETE and TRUNCATE; `log.decision_log` chains the rows.
decision = Table(
    "decision",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("item_id", ForeignKey("review_item.id"), nullable=False),
    # Copied from the item, so that the hash chain covers them too.
    Column("dt", Date, nullable=False),
    Column("comment_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("item_version", Integer, nullable=False),
    Column("moderator_id", ForeignKey("moderator.id"), nullable=False),
    Column("action", Text, nullable=False),
    Column("label", SmallInteger),
    Column("policy_version", Text),
    Column("policy_code", Text),
    #: Code of the policy's reason to skip, escalate, correct or close.
    Column("reason", Text),
    #: The hash covers the commitment to the note, which `note_salt` and `note` open.
    Column("note", Text),
    Column("note_salt", LargeBinary),
    Column("note_commitment", LargeBinary),
    Column("seconds", Double),
    Column("idempotency_key", Text, nullable=False),
    #: The decision that this one reverts or replaces.
    Column("refers_to", ForeignKey("decision.id")),
    Column("decided_at", DateTime(timezone=True), nullable=False),
    #: To the item's texts, see `log.decision_log.text_commitment_sql`.
    Column("text_commitment", LargeBinary, nullable=False),
    #: The item's status after the decision.
    Column("outcome", Text, nullable=False),
    Column("position", BigInteger, nullable=False),  # in the moderator's chain, from 1
    Column("previous_hash", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    #: Readers that follow the log read rows in the order of these.
    Column(
        "transaction_id",
        TransactionId,
        nullable=False,
        server_default=text("pg_current_xact_id()"),
    ),
    UniqueConstraint("moderator_id", "idempotency_key"),
    UniqueConstraint("moderator_id", "position"),
    one_of("action", ACTIONS),
    CheckConstraint(
        "(action IN ('label', 'adjudicate', 'correct')) = (label IS NOT NULL)", name="label"
    ),
    CheckConstraint("seconds >= 0", name="seconds"),
    Index("decision_item_id_idx", "item_id"),
    Index("decision_dt_idx", "dt"),
    Index("decision_transaction_id_idx", "transaction_id", "id"),
    # Rows are stored in the order of time, so this index stays tiny and is cheap to maintain.
    Index(
        "decision_decided_at_idx",
        "decided_at",
        postgresql_using="brin",
        postgresql_with={"pages_per_range": "16", "autosummarize": "on"},
    ),
    Index("decision_refers_to_idx", "refers_to", postgresql_where=text("refers_to IS NOT NULL")),
)

#: The end of each moderator's chain: locked while a decision is appended, and compared during
#: verification to find a truncated chain.
decision_chain = Table(
    "decision_chain",
    metadata,
    Column("moderator_id", ForeignKey("moderator.id"), primary_key=True),
    Column("length", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
)

#: Comments whose label is known; moderators are served them unmarked.
gold_comment = Table(
    "gold_comment",
    metadata,
    Column("comment_id", Text, primary_key=True),
    Column("text", Text, nullable=False),
    #: With which events commit to the row, see `log.recorded_state.GOLD_COMMITMENT`.
    salt("salt"),
    Column("parent_text", Text),
    Column("language", Text),
    Column("platform", Text),
    Column("label", SmallInteger, nullable=False),
    Column("policy_code", Text),
    #: Where the label comes from: a person, a panel, a published corpus.
    Column("source", Text, nullable=False),
    moment("added_at"),
    Column("retired_at", DateTime(timezone=True)),
    CheckConstraint("label IN (0, 1)", name="label"),
)

#: Every policy that decisions were made under, complete.
policy_version = Table(
    "policy_version",
    metadata,
    Column("version", Text, primary_key=True),
    #: SHA-256 of the content, in hex.
    Column("digest", Text, nullable=False),
    Column("content", JSONB, nullable=False),
    moment("registered_at"),
)
