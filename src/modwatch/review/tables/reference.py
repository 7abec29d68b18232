"""Reference data: comments with a known label, and versions of the moderation policy."""

from sqlalchemy import CheckConstraint, Column, DateTime, SmallInteger, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from modwatch.review.tables.base import metadata, moment

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
