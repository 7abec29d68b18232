"""Messages to people outside, and who got them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the outbox."""
    op.create_table(
        "outbox_message",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("topic", sa.Text, nullable=False),
        sa.Column("series", sa.Text, nullable=False),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("dt", sa.Date, nullable=False),
        sa.Column("payload", JSONB, nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()
        ),
        sa.PrimaryKeyConstraint("id", name="outbox_message_pkey"),
        sa.UniqueConstraint("key", name="outbox_message_key_key"),
        sa.UniqueConstraint(
            "topic", "series", "sequence", name="outbox_message_topic_series_sequence_key"
        ),
    )
    op.create_table(
        "outbox_delivery",
        sa.Column("message_id", sa.BigInteger, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("delivered_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("message_id", "channel", name="outbox_delivery_pkey"),
        sa.ForeignKeyConstraint(
            ["message_id"], ["outbox_message.id"], name="outbox_delivery_message_id_fkey"
        ),
    )
    op.create_index(
        "outbox_delivery_pending_idx",
        "outbox_delivery",
        ["channel", "message_id"],
        postgresql_where=sa.text("delivered_at IS NULL"),
    )


def downgrade() -> None:
    """Drop the outbox; what it holds is not told again."""
    op.drop_table("outbox_delivery")
    op.drop_table("outbox_message")
