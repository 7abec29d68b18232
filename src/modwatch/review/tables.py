"""The columns of the review tables, as SQLAlchemy Core, for statements.

`migrations/` creates the tables; defaults, constraints and indexes stand there alone. A test
compares columns and foreign keys.
"""

from typing import Any

from sqlalchemy import (
    REAL,
    BigInteger,
    Column,
    Date,
    DateTime,
    Double,
    FetchedValue,
    ForeignKey,
    Identity,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    func,
    literal_column,
    or_,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.types import UserDefinedType

metadata = MetaData()


class TransactionId(UserDefinedType[str]):
    """PostgreSQL's `xid8`: which transaction wrote a row, never reused."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """Return the type's name in SQL."""
        return "xid8"


def moment(name: str) -> Column[Any]:
    """Return a column with the time at which the row was written, which the database fills."""
    return Column(name, DateTime(timezone=True), nullable=False)


def _table(name: str, *columns: Column[Any]) -> Table:
    return Table(name, metadata, *columns)


# People: accounts, tokens, failed log-ins, second factors, and the events of all.

ROLES = ("moderator", "lead", "auditor", "ops", "admin")

moderator = _table(
    "moderator",
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("pseudonym", Text, nullable=False),
    Column("role", Text, nullable=False),
    moment("created_at"),
    #: Argon2id hash, encoded; null: this person logs in by token or OIDC.
    Column("password_hash", Text),
    #: Issuer and subject of the person at the OIDC provider.
    Column("oidc_subject", Text),
    Column("disabled_at", DateTime(timezone=True)),
    #: Settings of the console, see `console.preferences.Preferences`.
    Column("preferences", JSONB, nullable=False),
)

#: The group that moderators assign themselves to, voluntarily. Separate from their accounts, so
#: that access to one is not access to the other.
moderator_group = _table(
    "moderator_group",
    Column("moderator_id", ForeignKey("moderator.id"), primary_key=True),
    Column("group_name", Text, nullable=False),
    #: The group that the person counts in, see `people.groups`; null: not drawn yet.
    Column("counted_as", Text),
)

#: The queues that a person works; a person without rows works all queues.
moderator_queue = _table(
    "moderator_queue",
    Column("moderator_id", ForeignKey("moderator.id"), primary_key=True),
    Column("queue", Text, primary_key=True),
)

#: Only the SHA-256 of a token is stored; `people.access_tokens` explains why that is enough.
access_token = _table(
    "access_token",
    Column("digest", LargeBinary, primary_key=True),
    #: Number by which people refer to it.
    Column("id", BigInteger, Identity(always=True), nullable=False),
    Column("name", Text),
    Column("moderator_id", ForeignKey("moderator.id"), nullable=False),
    #: `api`: pasted, or sent as a bearer token; `session`: a cookie.
    Column("purpose", Text, nullable=False),
    #: Scopes; null: all of the person's role.
    Column("scopes", ARRAY(Text)),
    #: The token that opened this session; revoking it ends the session.
    Column("opened_with", ForeignKey("access_token.digest", ondelete="SET NULL")),
    moment("created_at"),
    Column("expires_at", DateTime(timezone=True)),
    Column("revoked_at", DateTime(timezone=True)),
)

#: Recent failed log-ins, for the throttle. Digests, because a mistyped name may be a password.
login_attempt = _table(
    "login_attempt",
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    #: SHA-256 of the name that was typed, or of the network address.
    Column("origin", LargeBinary, nullable=False),
    moment("failed_at"),
)

#: One-time codes that log-ins by password ask for; see `people.second_factor`.
second_factor = _table(
    "second_factor",
    Column("moderator_id", ForeignKey("moderator.id"), primary_key=True),
    #: Of the authenticator app, in base 32.
    Column("secret", Text, nullable=False),
    #: Null: the enrolment is in progress, and log-ins ask for no code.
    Column("confirmed_at", DateTime(timezone=True)),
    #: Half minutes since 1970 of the last code that was accepted.
    Column("last_step", BigInteger, nullable=False),
    #: SHA-256 of the recovery codes that were not used.
    Column("recovery", ARRAY(LargeBinary), nullable=False),
    #: SHA-256 of the secret of a browser whose password was right, and until when it counts.
    Column("pending_digest", LargeBinary),
    Column("pending_until", DateTime(timezone=True)),
)

#: Browsers and networks from which an account had a successful log-in, for the throttle.
known_origin = _table(
    "known_origin",
    #: SHA-256 of the name with the browser's secret, or with the network.
    Column("origin", LargeBinary, primary_key=True),
    moment("seen_at"),
)

#: Changes of accounts, gold comments and policies, exports and log-ins, as one hash chain, which
#: `review.events` writes. A trigger makes the table append-only.
event = _table(
    "event",
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    #: Null: the command line.
    Column("actor_id", ForeignKey("moderator.id")),
    Column("subject_id", ForeignKey("moderator.id")),
    Column("action", Text, nullable=False),
    Column("details", JSONB, nullable=False),
    moment("happened_at"),
    Column("position", BigInteger, nullable=False),  # in the chain, from 1
    Column("previous_hash", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
)

#: The end of the chain of events, in one row: locked while an event is appended.
event_chain = _table(
    "event_chain",
    Column("id", SmallInteger, primary_key=True, autoincrement=False),
    Column("length", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
)

# The queue and the decision log: items, decisions, gold comments and policies. An item is *leased*
# while its `leased_until` lies in the future: an expired lease ends by itself, so no cleanup job is
# needed.

#: What an item is for. A `confirmation` is the comment of a `review` item once more, for another
#: person; `imported` came from another tool.
KINDS = ("review", "confirmation", "retest", "gold", "audit", "imported")

#: The kinds that `route` queues.
ROUTED_KINDS = ("review", "confirmation")

#: The kinds whose labels the platform acts on: leads may correct and dismiss them.
ACTIONABLE_KINDS = ("review", "imported")

#: Without a decision: waiting for any moderator, for another item (`blocked`), or for a lead.
OPEN_STATUSES = ("waiting", "blocked", "escalated")

#: `closed` items were dismissed by a lead, `withdrawn` ones by what queued them. `leased` is not a
#: status: see above.
STATUSES = (*OPEN_STATUSES, "decided", "withdrawn", "closed")

#: Parts of what is shown of a comment, besides the values in which a gold item is like the one that
#: it replaces: those in which comments differ, and those that only leads see.
OTHERS, HIDDEN = "others", "hidden"

#: `queue.items.NewItem` says what an item is queued with.
review_item = _table(
    "review_item",
    #: Random, in no order; the server assigns it.
    Column("id", BigInteger, server_default=FetchedValue(), primary_key=True),
    Column("dt", Date, nullable=False),
    Column("comment_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("parent_text", Text),
    #: With which decisions commit to both texts, see `log.decision_log.text_commitment_sql`.
    Column("text_salt", LargeBinary),
    #: What else moderators may see, see `queue.items.content_of`.
    Column("shown", JSONB, nullable=False),
    #: `moderator_queue` has who works which queue.
    Column("queue", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("stratum", Integer, nullable=False),
    Column("inclusion_probability", Double, nullable=False),
    Column("rank", BigInteger, nullable=False),
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
    Column("round", SmallInteger, nullable=False),
    Column("confirms", ARRAY(SmallInteger)),
    Column("confirmation_probability_0", Double),
    Column("confirmation_probability_1", Double),
    #: Confirmations: the first label, uncorrected, that this item was opened for; null: none.
    Column("first_label", SmallInteger),
    Column("labels_wanted", SmallInteger, nullable=False),
    #: People who are not served it: they decided or skipped it or another item of the comment.
    Column("excluded", ARRAY(BigInteger), nullable=False),
    #: The only person who is served it, as with a retest.
    Column("reserved_for", ForeignKey("moderator.id")),
    #: How many decisions that person has made before; null: as many as they like.
    Column("serve_after", BigInteger),
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
lane = _table(
    "lane",
    Column("queue", Text, primary_key=True),
    Column("reason", Text, primary_key=True),
)

#: Bulk dismissals; cancelling one reopens its items.
bulk_close = _table(
    "bulk_close",
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

#: A trigger rejects UPDATE, DELETE and TRUNCATE; `log.decision_log` chains the rows, and its
#: `Decision` says what the columns are.
decision = _table(
    "decision",
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
    Column("reason", Text),
    #: The hash covers the commitment to the note, which `note_salt` and `note` open.
    Column("note", Text),
    Column("note_salt", LargeBinary),
    Column("note_commitment", LargeBinary),
    Column("seconds", Double),
    Column("idempotency_key", Text, nullable=False),
    Column("refers_to", ForeignKey("decision.id")),
    Column("decided_at", DateTime(timezone=True), nullable=False),
    Column("text_commitment", LargeBinary, nullable=False),
    Column("item_digest", LargeBinary, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("previous_hash", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    #: Readers that follow the log read rows in the order of these.
    Column("transaction_id", TransactionId, nullable=False),
)

#: The end of each moderator's chain: locked while a decision is appended, and compared during
#: verification to find a truncated chain.
decision_chain = _table(
    "decision_chain",
    Column("moderator_id", ForeignKey("moderator.id"), primary_key=True),
    Column("length", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
)

#: Comments whose label is known; moderators are served them unmarked.
gold_comment = _table(
    "gold_comment",
    Column("comment_id", Text, primary_key=True),
    Column("text", Text, nullable=False),
    #: With which events commit to the row, see `log.recorded_state.GOLD_COMMITMENT`.
    Column("salt", LargeBinary),
    Column("parent_text", Text),
    Column("shown", JSONB, nullable=False),
    Column("label", SmallInteger, nullable=False),
    Column("policy_code", Text),
    #: Where the label comes from: a person, a panel, a published corpus.
    Column("source", Text, nullable=False),
    moment("added_at"),
    Column("retired_at", DateTime(timezone=True)),
)

#: Every policy that decisions were made under, complete.
policy_version = _table(
    "policy_version",
    Column("version", Text, primary_key=True),
    #: SHA-256 of the content, in hex.
    Column("digest", Text, nullable=False),
    Column("content", JSONB, nullable=False),
    moment("registered_at"),
)

# Messages to receivers outside, and incidents: their state and events.

#: One row per message.
outbox_message = _table(
    "outbox_message",
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
outbox_delivery = _table(
    "outbox_delivery",
    Column("message_id", ForeignKey("outbox_message.id", ondelete="CASCADE"), primary_key=True),
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
outbox_cursor = _table(
    "outbox_cursor",
    Column("topic", Text, primary_key=True),
    Column("transaction_id", TransactionId, nullable=False),
    Column("decision_id", BigInteger, nullable=False),
)

#: One row per incident: what receivers know of it, and what the newest evaluation found.
incident = _table(
    "incident",
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
    #: The rules that have an incident, by rule and subject: since and opened.
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
incident_event = _table(
    "incident_event",
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("incident_id", ForeignKey("incident.id"), nullable=False),
    #: Of a message: opened, failed, escalated, recovered, withdrawn, accepted. Of a person:
    #: acknowledge, silence, accept, repair.
    Column("event", Text, nullable=False),
    #: The title of a message.
    Column("title", Text),
    #: Who acted, and why.
    Column("person", Text),
    Column("note", Text),
    #: Of `silence`: the last day without messages.
    Column("until", Date),
    #: Of `accept`: the first day on which the present level is the reference, and the day from
    #: which that level holds.
    Column("day", Date),
    Column("level_since", Date),
    moment("created_at"),
)
