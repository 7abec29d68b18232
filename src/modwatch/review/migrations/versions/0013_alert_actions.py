"""What people do about incidents: acknowledge, assign, comment, silence, accept."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "alert_action",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("incident", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("person", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("assignee", sa.Text),
        sa.Column("until", sa.Date),
        sa.Column("day", sa.Date),
        sa.Column("level_since", sa.Date),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            nullable=False,
            server_default=sa.func.now(),
        ),
    )
    op.create_index("alert_action_incident_idx", "alert_action", ["incident", "id"])


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("alert_action")
