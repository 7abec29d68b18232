"""Tables of people: accounts, tokens, failed log-ins, second factors, and the events of all."""

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from modwatch.review.tables.columns import metadata, moment

ROLES = ("moderator", "lead", "auditor", "ops", "admin")

moderator = Table(
    "moderator",
    metadata,
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
    Column("id", BigInteger, Identity(always=True), nullable=False),
    Column("name", Text),
    Column("moderator_id", ForeignKey("moderator.id"), nullable=False),
    #: `api`: pasted, or sent as a bearer token; `session`: a cookie.
    Column("purpose", Text, nullable=False),
    #: Scopes; null: all of the person's role.
    Column("scopes", ARRAY(Text)),
    #: The token that opened this session; revoking it ends the session.
    Column("opened_with", ForeignKey("access_token.digest")),
    moment("created_at"),
    Column("expires_at", DateTime(timezone=True)),
    Column("revoked_at", DateTime(timezone=True)),
)

#: Recent failed log-ins, for the throttle. Digests, because a mistyped name may be a password.
login_attempt = Table(
    "login_attempt",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    #: SHA-256 of the name that was typed, or of the network address.
    Column("origin", LargeBinary, nullable=False),
    moment("failed_at"),
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
    Column("last_step", BigInteger, nullable=False),
    #: SHA-256 of the recovery codes that were not used.
    Column("recovery", ARRAY(LargeBinary), nullable=False),
    #: SHA-256 of the secret of a browser whose password was right, and until when it counts.
    Column("pending_digest", LargeBinary),
    Column("pending_until", DateTime(timezone=True)),
)

#: Browsers and networks from which an account had a successful log-in, for the throttle.
known_origin = Table(
    "known_origin",
    metadata,
    #: SHA-256 of the name with the browser's secret, or with the network.
    Column("origin", LargeBinary, primary_key=True),
    moment("seen_at"),
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
    Column("details", JSONB, nullable=False),
    moment("happened_at"),
    Column("position", BigInteger, nullable=False),  # in the chain, from 1
    Column("previous_hash", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
)

#: The end of the chain of events, in one row: locked while an event is appended.
event_chain = Table(
    "event_chain",
    metadata,
    Column("id", SmallInteger, primary_key=True, autoincrement=False),
    Column("length", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
)
