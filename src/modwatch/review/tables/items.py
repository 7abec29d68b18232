"""Tables of what waits in the queue, and the states and kinds of an item.

An item is *leased* while its `leased_until` lies in the future: an expired lease ends by itself, so
no cleanup job is needed.
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
    or_,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from modwatch.review.tables.columns import metadata, moment, one_of, salt

#: What an item is for. A `confirmation` is the comment of a `review` item once more, for another
#: person; `imported` came from another tool.
KINDS = ("review", "confirmation", "retest", "gold", "audit", "imported")

#: The kinds that `route` queues.
ROUTED_KINDS = ("review", "confirmation")

#: The second and the third person who label a comment.
CONFIRMATION_ROUNDS = (2, 3)

#: The kinds whose labels the platform acts on: leads may correct and dismiss them.
ACTIONABLE_KINDS = ("review", "imported")

#: Without a decision: waiting for any moderator, for another item (`blocked`), or for a lead.
OPEN_STATUSES = ("waiting", "blocked", "escalated")

#: `closed` items were dismissed by a lead, `withdrawn` ones by what queued them. `leased` is not a
#: status: see above.
STATUSES = (*OPEN_STATUSES, "decided", "withdrawn", "closed")

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
    #: With which decisions commit to both texts, see `log.decision_log.text_commitment_sql`.
    salt("text_salt"),
    Column("language", Text),
    Column("platform", Text),
    #: `moderator_queue` has who works which queue.
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
    #: Order of service: the deadline, moved forward for a high rank. It does not change with time,
    #: so it can be indexed, and older items move to the front.
    Column("serve_by", DateTime(timezone=True), nullable=False, server_default=func.now()),
    #: Deadline; an undecided item is overdue after it.
    Column("due_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    #: Deadline of an escalation for a severe reason, which is served before all others.
    Column("severe_due_at", DateTime(timezone=True)),
    #: The how-manieth person labels the comment: 2 or 3 for confirmations, 1 for all other kinds.
    Column("round", SmallInteger, nullable=False, server_default="1"),
    #: Confirmations: the first labels that are confirmed. Audits: the first labels that a second
    #: person confirms, and a third if these differ; null: as many people label it as
    #: `labels_wanted` from the start.
    Column("confirms", ARRAY(SmallInteger)),
    #: Confirmations: the probability that a first label 0, 1 is confirmed, given that the comment
    #: is routed.
    Column("confirmation_probability_0", Double),
    Column("confirmation_probability_1", Double),
    #: Confirmations: the first label, uncorrected, that this item was opened for; null: none.
    Column("first_label", SmallInteger),
    #: How many people label it, independently of each other.
    Column("labels_wanted", SmallInteger, nullable=False, server_default="1"),
    #: People who are not served it: they decided or skipped it or another item of the comment.
    Column("excluded", ARRAY(BigInteger), nullable=False, server_default="{}"),
    #: The only person who is served it, as with a retest.
    Column("reserved_for", ForeignKey("moderator.id")),
    #: The audit that sampled it; null for all other kinds.
    Column("audit", Text),
    Column("status", Text, nullable=False, server_default="waiting"),
    Column("lease_digest", LargeBinary),
    Column("leased_by", ForeignKey("moderator.id")),
    Column("leased_until", DateTime(timezone=True)),
    Column("claimed_at", DateTime(timezone=True)),
    Column("bulk_close_id", ForeignKey("bulk_close.id")),
    Column("version", Integer, nullable=False, server_default="1"),
    UniqueConstraint(
        "dt",
        "comment_id",
        "kind",
        "round",
        "reserved_for",
        "audit",
        postgresql_nulls_not_distinct=True,
    ),
    one_of("kind", KINDS),
    one_of("status", STATUSES),
    CheckConstraint(
        "CASE WHEN kind = 'confirmation' THEN round IN (2, 3) AND confirms <@ '{0,1}' "
        "AND confirms IS NOT NULL "
        "AND confirmation_probability_0 BETWEEN 0 AND 1 "
        "AND confirmation_probability_0 IS NOT NULL "
        "AND confirmation_probability_1 BETWEEN 0 AND 1 "
        "AND confirmation_probability_1 IS NOT NULL ELSE round = 1 END",
        name="round",
    ),
    CheckConstraint("first_label IN (0, 1)", name="first_label"),
    CheckConstraint(
        "inclusion_probability > 0 AND inclusion_probability <= 1", name="inclusion_probability"
    ),
    CheckConstraint("labels_wanted BETWEEN 1 AND 9", name="labels_wanted"),
    # A lease changes no indexed column, so it is a heap-only update, and the indexes that serve the
    # next item do not grow with every lease.
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
        "severe_due_at",
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

#: The values that end a lease; `claimed_at`, the time of the last claim, stays.
NO_LEASE = dict.fromkeys(("lease_digest", "leased_by", "leased_until"))

#: A literal, because PostgreSQL uses a partial index only if it sees the constant while planning.
waiting = review_item.c.status == literal_column("'waiting'")

is_open = review_item.c.status.in_(OPEN_STATUSES)

#: Not leased now.
unleased = or_(review_item.c.leased_until.is_(None), review_item.c.leased_until <= func.now())

#: Every queue and reason that ever had an item.
lane = Table(
    "lane",
    metadata,
    Column("queue", Text, primary_key=True),
    Column("reason", Text, primary_key=True),
)

#: Bulk dismissals; cancelling one reopens its items.
bulk_close = Table(
    "bulk_close",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("moderator_id", ForeignKey("moderator.id"), nullable=False),
    #: `queue.dismissal.Criteria` as JSON.
    Column("criteria", JSONB, nullable=False),
    Column("reason", Text, nullable=False),
    #: How many items matched when the lead confirmed.
    Column("matched", BigInteger, nullable=False),
    moment("started_at"),
    #: When the last item was dismissed, or reopened after a cancel.
    Column("finished_at", DateTime(timezone=True)),
    Column("cancelled_at", DateTime(timezone=True)),
    Column("cancelled_by", ForeignKey("moderator.id")),
)
