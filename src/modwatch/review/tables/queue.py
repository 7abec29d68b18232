"""Tables of the queue and of the decision log: items, decisions, gold comments and policies.

An item is *leased* while its `leased_until` lies in the future: an expired lease ends by itself, so
no cleanup job is needed.
"""

from sqlalchemy import (
    REAL,
    BigInteger,
    Column,
    Date,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    func,
    literal_column,
    or_,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from modwatch.review.tables.columns import TransactionId, metadata, moment

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
    Column("text_salt", LargeBinary),
    Column("language", Text),
    Column("platform", Text),
    #: `moderator_queue` has who works which queue.
    Column("queue", Text, nullable=False),
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
    Column("serve_by", DateTime(timezone=True), nullable=False),
    #: Deadline; an undecided item is overdue after it.
    Column("due_at", DateTime(timezone=True), nullable=False),
    #: Deadline of an escalation for a severe reason, which is served before all others.
    Column("severe_due_at", DateTime(timezone=True)),
    #: The round of labelling the comment: 2 or 3 for confirmations, 1 for all other kinds.
    Column("round", SmallInteger, nullable=False),
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
    Column("labels_wanted", SmallInteger, nullable=False),
    #: People who are not served it: they decided or skipped it or another item of the comment.
    Column("excluded", ARRAY(BigInteger), nullable=False),
    #: The only person who is served it, as with a retest.
    Column("reserved_for", ForeignKey("moderator.id")),
    #: The audit that sampled it; null for all other kinds.
    Column("audit", Text),
    Column("status", Text, nullable=False),
    Column("lease_digest", LargeBinary),
    Column("leased_by", ForeignKey("moderator.id")),
    Column("leased_until", DateTime(timezone=True)),
    Column("claimed_at", DateTime(timezone=True)),
    Column("bulk_close_id", ForeignKey("bulk_close.id")),
    Column("version", Integer, nullable=False),
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

#: Actions with a label: a moderator's, a lead's on an escalated item, a later correction.
FINAL_ACTIONS = ("label", "adjudicate", "correct")

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
    #: One of `FINAL_ACTIONS`, `skip`, `escalate`, `undo` (reverts a decision), `close` (dismisses
    #: an item), `reopen` (brings it back).
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
    ),
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
    Column("salt", LargeBinary),
    Column("parent_text", Text),
    Column("language", Text),
    Column("platform", Text),
    Column("label", SmallInteger, nullable=False),
    Column("policy_code", Text),
    #: Where the label comes from: a person, a panel, a published corpus.
    Column("source", Text, nullable=False),
    moment("added_at"),
    Column("retired_at", DateTime(timezone=True)),
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
