"""The tables of the review queue, as SQLAlchemy Core; `migrations/` creates them.

A test compares the two. An item is *leased* while its `leased_until` lies in the future: an expired
lease ends by itself, so no cleanup job is needed.
"""

from typing import Any

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
    or_,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.types import UserDefinedType

metadata = MetaData(
    naming_convention={
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "pk": "%(table_name)s_pkey",
    }
)


class TransactionId(UserDefinedType[str]):
    """PostgreSQL's `xid8`: which transaction wrote a row, never reused."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """Return the type's name in SQL."""
        return "xid8"


ischema_names["xid8"] = TransactionId  # for reflection


def _one_of(column: str, values: tuple[str, ...]) -> CheckConstraint:
    """Return the constraint that `column` holds one of `values`."""
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


def _moment(name: str) -> Column[Any]:
    """Return a column with the time at which the row was written."""
    return Column(name, DateTime(timezone=True), nullable=False, server_default=func.now())


ROLES = ("moderator", "lead", "auditor", "ops", "admin")

#: An `api` token is pasted or sent as a bearer token; a `session` token is a cookie.
TOKEN_PURPOSES = ("api", "session")

moderator = Table(
    "moderator",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("pseudonym", Text, nullable=False, unique=True),
    Column("role", Text, nullable=False),
    _moment("created_at"),
    #: Argon2id hash, encoded; null: this person logs in by token or OIDC.
    Column("password_hash", Text),
    #: Issuer and subject of the person at the OIDC provider.
    Column("oidc_subject", Text, unique=True),
    Column("disabled_at", DateTime(timezone=True)),
    #: Settings of the console, see `console.preferences.Preferences`.
    Column("preferences", JSONB, nullable=False, server_default="{}"),
    _one_of("role", ROLES),
)

#: The group that moderators assign themselves to, voluntarily. Separate from their accounts, so
#: that access to one is not access to the other.
moderator_group = Table(
    "moderator_group",
    metadata,
    Column("moderator_id", ForeignKey("moderator.id"), primary_key=True),
    Column("group_name", Text, nullable=False),
    #: The group that the person counts in, see `people.groups`; null: not drawn yet.
    Column("counted_as", Text),
)

#: The queues that a person works; a person without rows works all queues.
moderator_queue = Table(
    "moderator_queue",
    metadata,
    Column("moderator_id", ForeignKey("moderator.id"), primary_key=True),
    Column("queue", Text, primary_key=True),
)

#: Only the SHA-256 of a token is stored; `people.access_tokens` explains why that is enough.
access_token = Table(
    "access_token",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    #: Number by which people refer to it.
    Column("id", BigInteger, Identity(always=True), nullable=False, unique=True),
    Column("name", Text),
    Column("moderator_id", ForeignKey("moderator.id"), nullable=False, index=True),
    Column("purpose", Text, nullable=False),
    #: Scopes; null: all of the person's role.
    Column("scopes", ARRAY(Text)),
    #: The token that opened this session; revoking it ends the session.
    Column("opened_with", ForeignKey("access_token.digest"), index=True),
    _moment("created_at"),
    Column("expires_at", DateTime(timezone=True)),
    Column("revoked_at", DateTime(timezone=True)),
    _one_of("purpose", TOKEN_PURPOSES),
)

#: Recent failed log-ins, for the throttle. Digests, because a mistyped name may be a password.
login_attempt = Table(
    "login_attempt",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    #: SHA-256 of the name that was typed, or of the network address.
    Column("origin", LargeBinary, nullable=False),
    _moment("failed_at"),
    Index("login_attempt_origin_idx", "origin", "failed_at"),
    Index("login_attempt_failed_at_idx", "failed_at"),
)

#: One-time codes that log-ins by password ask for; see `people.second_factor`.
second_factor = Table(
    "second_factor",
    metadata,
    Column("moderator_id", ForeignKey("moderator.id"), primary_key=True),
    #: Of the authenticator app, in base 32.
    Column("secret", Text, nullable=False),
    #: Null: the enrolment is in progress, and log-ins ask for no code.
    Column("confirmed_at", DateTime(timezone=True)),
    #: Half minutes since 1970 of the last code that was accepted.
    Column("last_step", BigInteger, nullable=False, server_default="0"),
    #: SHA-256 of the recovery codes that were not used.
    Column("recovery", ARRAY(LargeBinary), nullable=False, server_default="{}"),
    #: SHA-256 of the secret of a browser whose password was right, and until when it counts.
    Column("pending_digest", LargeBinary, unique=True),
    Column("pending_until", DateTime(timezone=True)),
)

#: Browsers and networks from which an account had a successful log-in, for the throttle.
known_origin = Table(
    "known_origin",
    metadata,
    #: SHA-256 of the name with the browser's secret, or with the network.
    Column("origin", LargeBinary, primary_key=True),
    _moment("seen_at"),
    Index("known_origin_seen_at_idx", "seen_at"),
)

#: Changes of accounts, gold comments and policies, exports and log-ins, as one hash chain, which
#: `review.events` writes. A trigger makes the table append-only.
event = Table(
    "event",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    #: Null: the command line.
    Column("actor_id", ForeignKey("moderator.id")),
    Column("subject_id", ForeignKey("moderator.id")),
    Column("action", Text, nullable=False),
    Column("details", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    _moment("happened_at"),
    Column("position", BigInteger, nullable=False, unique=True),  # in the chain, from 1
    Column("previous_hash", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Index("event_subject_id_idx", "subject_id"),
)

#: The end of the chain of events, in one row: locked while an event is appended.
event_chain = Table(
    "event_chain",
    metadata,
    Column("id", SmallInteger, primary_key=True, server_default="1", autoincrement=False),
    Column("length", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    CheckConstraint("id = 1", name="id"),
)

#: What an item is for. A `confirmation` is the comment of a `review` item once more, for somebody
#: else; `imported` came from another tool.
KINDS = ("review", "confirmation", "retest", "gold", "audit", "imported")

#: Before 0.5 a uniform share of first labels had a `second_opinion`: a confirmation of round 2.
_EARLIER_KINDS = ("second_opinion",)

#: The kinds that `route` queues.
ROUTED_KINDS = ("review", "confirmation")

#: The kinds of all items that `route` queues or ever queued.
EVER_ROUTED_KINDS = (*ROUTED_KINDS, *_EARLIER_KINDS)

#: The second and the third person who label a comment.
CONFIRMATION_ROUNDS = (2, 3)

#: The kinds whose labels the platform acts on: leads may correct and dismiss them.
ACTIONABLE_KINDS = ("review", "imported")

#: Without a decision: waiting for anybody, for another item (`blocked`), or for a lead.
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
    Column("language", Text),
    Column("platform", Text),
    #: `moderator_queue` says who works which queue.
    Column("queue", Text, nullable=False, server_default="general"),
    Column("reason", Text, nullable=False),
    Column("stratum", Integer, nullable=False),
    Column("inclusion_probability", Double, nullable=False),
    Column("rank", BigInteger, nullable=False),  # 1 is reviewed first
    Column("review_score", Double, nullable=False),
    Column("prob", REAL, nullable=False),
    Column("uncertainty", REAL, nullable=False),
    Column("model_version", Text, nullable=False),
    _moment("queued_at"),
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
    #: `labels_wanted` says from the start.
    Column("confirms", ARRAY(SmallInteger)),
    #: Confirmations: the probability that a first label 0, 1 is confirmed, given that the comment
    #: is routed.
    Column("confirmation_probability_0", Double),
    Column("confirmation_probability_1", Double),
    #: Confirmations: the first label, as it was given, that this item was opened for; null: none.
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
    _one_of("kind", (*KINDS, *_EARLIER_KINDS)),
    _one_of("status", STATUSES),
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

#: Nobody holds it now.
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
    _moment("started_at"),
    #: When the last item was dismissed, or reopened after a cancel.
    Column("finished_at", DateTime(timezone=True)),
    Column("cancelled_at", DateTime(timezone=True)),
    Column("cancelled_by", ForeignKey("moderator.id")),
)

#: Actions with a label: a moderator's, a lead's on an escalated item, a later correction.
FINAL_ACTIONS = ("label", "adjudicate", "correct")

#: `undo` reverts a decision; `close` dismisses an item, and `reopen` brings it back.
ACTIONS = (*FINAL_ACTIONS, "skip", "escalate", "undo", "close", "reopen")

#: A trigger rejects UPDATE, DELETE and TRUNCATE; `decision_log` chains the rows.
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
    Column("note", Text),
    Column("seconds", Double),
    Column("idempotency_key", Text, nullable=False),
    #: The decision that this one reverts or replaces.
    Column("refers_to", ForeignKey("decision.id")),
    Column("decided_at", DateTime(timezone=True), nullable=False),
    #: SHA-256 of the item's texts, see `log.hashing.text_digest_sql`.
    Column("text_digest", LargeBinary),
    #: The item's status after the decision.
    Column("outcome", Text),
    Column("position", BigInteger, nullable=False),  # in the moderator's chain, from 1
    #: What the hash covers, and how: see `log.hashing`.
    Column("format", SmallInteger, nullable=False, server_default="1"),
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
    _one_of("action", ACTIONS),
    CheckConstraint(
        "(action IN ('label', 'adjudicate', 'correct')) = (label IS NOT NULL)", name="label"
    ),
    CheckConstraint("seconds >= 0", name="seconds"),
    CheckConstraint(
        "format < 3 OR (text_digest IS NOT NULL AND outcome IS NOT NULL)", name="outcome"
    ),
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
    Column("parent_text", Text),
    Column("language", Text),
    Column("platform", Text),
    Column("label", SmallInteger, nullable=False),
    Column("policy_code", Text),
    #: Where the label comes from: a person, a panel, a published corpus.
    Column("source", Text, nullable=False),
    _moment("added_at"),
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
    _moment("registered_at"),
)

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
    _moment("created_at"),
    UniqueConstraint("topic", "series", "sequence"),
)

#: What people do about incidents of alerts; append-only.
alert_action = Table(
    "alert_action",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    #: Name of the incident: its cause, or rule and subject.
    Column("incident", Text, nullable=False),
    #: acknowledge | assign | comment | silence | accept
    Column("action", Text, nullable=False),
    Column("person", Text, nullable=False),
    Column("note", Text, nullable=False),
    #: Of `assign`.
    Column("assignee", Text),
    #: Of `silence`: the last day without messages.
    Column("until", Date),
    #: Of `accept`: the first day on which the present level is the reference, and the day from
    #: which that level holds.
    Column("day", Date),
    Column("level_since", Date),
    _moment("created_at"),
    #: The last id in the outbox when it was stored: its place among the messages, also after the
    #: clock was set back.
    Column("after_message", BigInteger, nullable=False),
    Index("alert_action_incident_idx", "incident", "id"),
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
