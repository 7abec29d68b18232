"""The tables of the review queue, as SQLAlchemy Core.

`migrations/` creates them; a test compares the two. An item is *leased* while it is `waiting` and
its `leased_until` lies ahead: a lease that runs out returns by itself, no sweeper is needed.
"""

from sqlalchemy import (
    REAL,
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
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    func,
    literal_column,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

#: What an item is for; only `review` enters the estimates of the day. A `second_opinion` is the
#: comment of a `review` item once more, for somebody else.
KINDS = ("review", "retest", "gold", "audit", "second_opinion")

#: `leased` is not among them: see the module's docstring.
STATUSES = ("waiting", "decided", "withdrawn")

#: `undo` is reserved: a compensating event that takes the item's last label back.
ACTIONS = ("label", "skip", "escalate", "undo")

ROLES = ("moderator", "lead", "auditor", "ops", "admin")

#: An `api` token is pasted or sent as a bearer token; a `session` token lives in a cookie.
TOKEN_PURPOSES = ("api", "session")

metadata = MetaData(
    naming_convention={
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "pk": "%(table_name)s_pkey",
    }
)


def _one_of(column: str, values: tuple[str, ...]) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


moderator = Table(
    "moderator",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("pseudonym", Text, nullable=False, unique=True),
    Column("role", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    _one_of("role", ROLES),
)

#: What moderators say about themselves, if they wish; apart from their accounts, so that access to
#: one is not access to the other.
moderator_group = Table(
    "moderator_group",
    metadata,
    Column("moderator_id", ForeignKey("moderator.id"), primary_key=True),
    Column("group_name", Text, nullable=False),
)

#: Only the SHA-256 of a token is kept; `people` says why that is enough.
access_token = Table(
    "access_token",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("moderator_id", ForeignKey("moderator.id"), nullable=False, index=True),
    Column("purpose", Text, nullable=False),
    #: The API token that opened this session; revoking it ends the session.
    Column("opened_with", ForeignKey("access_token.digest"), index=True),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("expires_at", DateTime(timezone=True)),
    Column("revoked_at", DateTime(timezone=True)),
    _one_of("purpose", TOKEN_PURPOSES),
)

review_item = Table(
    "review_item",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("dt", Date, nullable=False),
    Column("comment_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("parent_text", Text),
    Column("language", Text),
    Column("platform", Text),
    Column("reason", Text, nullable=False),
    Column("stratum", Integer, nullable=False),
    Column("inclusion_probability", Double, nullable=False),
    Column("rank", BigInteger, nullable=False),  # 1 is reviewed first
    Column("review_score", Double, nullable=False),
    Column("prob", REAL, nullable=False),
    Column("uncertainty", REAL, nullable=False),
    Column("model_version", Text, nullable=False),
    Column("queued_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("status", Text, nullable=False, server_default="waiting"),
    Column("lease_digest", LargeBinary),
    Column("leased_by", ForeignKey("moderator.id")),
    Column("leased_until", DateTime(timezone=True)),
    Column("claimed_at", DateTime(timezone=True)),
    Column("version", Integer, nullable=False, server_default="1"),
    UniqueConstraint("dt", "comment_id", "kind"),
    _one_of("kind", KINDS),
    _one_of("status", STATUSES),
    CheckConstraint(
        "inclusion_probability > 0 AND inclusion_probability <= 1", name="inclusion_probability"
    ),
    # A lease changes no column that an index mentions, so it is a heap-only update and the index
    # from which the next item is taken does not grow with every lease.
    Index(
        "review_item_waiting_idx", "dt", "rank", "id", postgresql_where=text("status = 'waiting'")
    ),
    Index("review_item_status_idx", "status", "dt"),
    postgresql_with={"fillfactor": "80", "autovacuum_vacuum_scale_factor": "0.02"},
)

#: Written out, since PostgreSQL uses a partial index only for a constant that it can see.
waiting = review_item.c.status == literal_column("'waiting'")

#: The decision log. A trigger refuses UPDATE, DELETE and TRUNCATE; `decision_log` chains the rows.
decision = Table(
    "decision",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("item_id", ForeignKey("review_item.id"), nullable=False),
    # Copied from the item, so that the chain also covers what was decided about.
    Column("dt", Date, nullable=False),
    Column("comment_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("item_version", Integer, nullable=False),
    Column("moderator_id", ForeignKey("moderator.id"), nullable=False),
    Column("action", Text, nullable=False),
    Column("label", SmallInteger),
    Column("policy_code", Text),
    Column("note", Text),
    Column("seconds", Double),
    Column("idempotency_key", Text, nullable=False),
    Column("decided_at", DateTime(timezone=True), nullable=False),
    Column("position", BigInteger, nullable=False),  # in the moderator's chain, from 1
    Column("previous_hash", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    UniqueConstraint("moderator_id", "idempotency_key"),
    UniqueConstraint("moderator_id", "position"),
    _one_of("action", ACTIONS),
    CheckConstraint("(action = 'label') = (label IS NOT NULL)", name="label"),
    CheckConstraint("seconds >= 0", name="seconds"),
    Index("decision_item_id_idx", "item_id"),
    Index("decision_skip_idx", "moderator_id", "item_id", postgresql_where=text("action = 'skip'")),
    Index("decision_dt_idx", "dt"),
)

#: The end of each moderator's chain: locked while a decision is appended, and the witness that
#: none was cut off.
decision_chain = Table(
    "decision_chain",
    metadata,
    Column("moderator_id", ForeignKey("moderator.id"), primary_key=True),
    Column("length", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
)

#: What is to be told to people outside, one row a message; `outbox` writes and sends them.
outbox_message = Table(
    "outbox_message",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    #: The receiver drops what it has seen under the same key.
    Column("key", Text, nullable=False, unique=True),
    Column("topic", Text, nullable=False),
    #: What the message is about; its messages are counted by `sequence`, from 1.
    Column("series", Text, nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("dt", Date, nullable=False),
    Column("payload", JSONB, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    UniqueConstraint("topic", "series", "sequence"),
)

#: One row a message and channel; each channel may fail by itself.
outbox_delivery = Table(
    "outbox_delivery",
    metadata,
    Column("message_id", ForeignKey("outbox_message.id"), primary_key=True),
    Column("channel", Text, primary_key=True),
    Column("delivered_at", DateTime(timezone=True)),
    Index(
        "outbox_delivery_pending_idx",
        "channel",
        "message_id",
        postgresql_where=text("delivered_at IS NULL"),
    ),
)

#: Written out, as `waiting` is.
skipped = decision.c.action == literal_column("'skip'")
