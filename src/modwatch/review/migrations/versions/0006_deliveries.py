"""Deliveries that are tried again, and given up."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add attempts, dead letters, and how far the decision log was turned into messages."""
    now = sa.func.now()
    for column in (
        sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
        sa.Column(
            "next_attempt_at", sa.DateTime(timezone=True), nullable=False, server_default=now
        ),
        sa.Column("dead_at", sa.DateTime(timezone=True)),
        sa.Column("last_problem", sa.Text),
    ):
        op.add_column("outbox_delivery", column)
    op.drop_index("outbox_delivery_pending_idx", "outbox_delivery")
    for name, condition in (
        ("pending", "delivered_at IS NULL AND dead_at IS NULL"),
        ("dead", "dead_at IS NOT NULL"),
    ):
        _index(name, condition)
    op.execute(
        """
        CREATE TABLE outbox_cursor (
            topic text NOT NULL CONSTRAINT outbox_cursor_pkey PRIMARY KEY,
            transaction_id xid8 NOT NULL,
            decision_id bigint NOT NULL
        )
        """
    )


def downgrade() -> None:
    """Drop what the deliveries have been through."""
    op.drop_table("outbox_cursor")
    for name in ("pending", "dead"):
        op.drop_index(f"outbox_delivery_{name}_idx", "outbox_delivery")
    _index("pending", "delivered_at IS NULL")
    for name in ("attempts", "next_attempt_at", "dead_at", "last_problem"):
        op.drop_column("outbox_delivery", name)


def _index(name: str, condition: str) -> None:
    op.create_index(
        f"outbox_delivery_{name}_idx",
        "outbox_delivery",
        ["channel", "message_id"],
        postgresql_where=sa.text(condition),
    )
