"""What waits for people.

An item is *leased* while its `leased_until` lies ahead: a lease that runs out returns by itself, no
sweeper is needed.
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
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    func,
    literal_column,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from modwatch.review.tables.base import metadata, moment, one_of

#: What an item is for; only `review` enters the estimates of the day. A `second_opinion` is the
#: comment of a `review` item once more, for somebody else; `imported` came from another tool.
KINDS = ("review", "retest", "gold", "audit", "second_opinion", "imported")

#: `blocked` items wait for another item, `escalated` ones for a lead; `closed` ones were given up
#: by a person, `withdrawn` ones by `route`. `leased` is not among them: see above.
STATUSES = ("waiting", "blocked", "escalated", "decided", "withdrawn", "closed")

_FREE_FOR_ALL = text("status = 'waiting' AND reserved_for IS NULL")

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
    #: Who may work it is said by queue, in `moderator_queue`.
    Column("queue", Text, nullable=False, server_default="general"),
    Column("reason", Text, nullable=False),
    Column("stratum", Integer, nullable=False),
    Column("inclusion_probability", Double, nullable=False),
    Column("rank", BigInteger, nullable=False),  # 1 is reviewed first
    Column("review_score", Double, nullable=False),
    Column("prob", REAL, nullable=False),
    Column("uncertainty", REAL, nullable=False),
    Column("model_version", Text, nullable=False),
    moment("queued_at"),
    #: The order of service: the deadline, drawn nearer by a high rank. It never changes with time,
    #: so an index holds it, and whoever waits longer comes nearer to the front.
    Column("serve_by", DateTime(timezone=True), nullable=False, server_default=func.now()),
    #: What was promised; an undecided item after it is overdue.
    Column("due_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    #: How many people are to label it, each without knowing of the others.
    Column("labels_wanted", SmallInteger, nullable=False, server_default="1"),
    #: People who may not be served it: they had a say in it, or in its twin.
    Column("excluded", ARRAY(BigInteger), nullable=False, server_default="{}"),
    #: The one person whom it is for, as a retest is.
    Column("reserved_for", ForeignKey("moderator.id")),
    #: The audit that drew it; null for all other kinds.
    Column("audit", Text),
    Column("status", Text, nullable=False, server_default="waiting"),
    Column("lease_digest", LargeBinary),
    Column("leased_by", ForeignKey("moderator.id")),
    Column("leased_until", DateTime(timezone=True)),
    Column("claimed_at", DateTime(timezone=True)),
    Column("bulk_close_id", ForeignKey("bulk_close.id")),
    Column("version", Integer, nullable=False, server_default="1"),
    UniqueConstraint(
        "dt", "comment_id", "kind", "reserved_for", "audit", postgresql_nulls_not_distinct=True
    ),
    one_of("kind", KINDS),
    one_of("status", STATUSES),
    CheckConstraint(
        "inclusion_probability > 0 AND inclusion_probability <= 1", name="inclusion_probability"
    ),
    CheckConstraint("labels_wanted BETWEEN 1 AND 9", name="labels_wanted"),
    # A lease changes no column that an index mentions, so it is a heap-only update and the indexes
    # from which the next item is taken do not grow with every lease.
    Index(
        "review_item_lane_idx", "queue", "reason", "serve_by", "id", postgresql_where=_FREE_FOR_ALL
    ),
    Index(
        "review_item_reserved_idx",
        "reserved_for",
        "serve_by",
        "id",
        postgresql_where=text("status = 'waiting' AND reserved_for IS NOT NULL"),
    ),
    Index(
        "review_item_escalated_idx",
        "queue",
        "serve_by",
        "id",
        postgresql_where=text("status = 'escalated'"),
    ),
    Index("review_item_status_idx", "status", "dt"),
    Index("review_item_comment_id_idx", "comment_id"),
    Index(
        "review_item_bulk_close_id_idx",
        "bulk_close_id",
        postgresql_where=text("bulk_close_id IS NOT NULL"),
    ),
    Index("review_item_audit_idx", "audit", postgresql_where=text("audit IS NOT NULL")),
    postgresql_with={"fillfactor": "80", "autovacuum_vacuum_scale_factor": "0.02"},
)

#: The values of an item that nobody holds; when it was last claimed stays.
NO_LEASE = dict.fromkeys(("lease_digest", "leased_by", "leased_until"))

#: Written out, since PostgreSQL uses a partial index only for a constant that it can see.
waiting = review_item.c.status == literal_column("'waiting'")

#: Every queue and reason that ever had an item.
lane = Table(
    "lane",
    metadata,
    Column("queue", Text, primary_key=True),
    Column("reason", Text, primary_key=True),
)

#: Items given up together; a row may be cancelled, which brings them back.
bulk_close = Table(
    "bulk_close",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("moderator_id", ForeignKey("moderator.id"), nullable=False),
    #: What was to be closed; `closing.Criteria` names the fields.
    Column("criteria", JSONB, nullable=False),
    Column("reason", Text, nullable=False),
    #: How many items it was to be, as the person was told.
    Column("matched", BigInteger, nullable=False),
    moment("started_at"),
    #: When the last item was closed, or brought back after a cancel.
    Column("finished_at", DateTime(timezone=True)),
    Column("cancelled_at", DateTime(timezone=True)),
    Column("cancelled_by", ForeignKey("moderator.id")),
)
