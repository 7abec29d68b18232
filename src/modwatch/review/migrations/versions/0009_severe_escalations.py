"""Escalations for a severe reason have a deadline of their own, and are served first."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, to the index of escalated items too."""
    op.add_column("review_item", sa.Column("severe_due_at", sa.DateTime(timezone=True)))
    op.drop_index("review_item_escalated_idx", "review_item")
    op.create_index(
        "review_item_escalated_idx",
        "review_item",
        ["queue", "severe_due_at", "serve_by", "id"],
        postgresql_where=sa.text("status = 'escalated'"),
    )
