"""Where an action on an incident stands among the messages, whatever the clock said."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; of the actions that there are, the clock is all that is known."""
    op.add_column("alert_action", sa.Column("after_message", sa.BigInteger))
    op.execute(
        "UPDATE alert_action SET after_message = COALESCE((SELECT max(id) FROM outbox_message "
        "WHERE outbox_message.created_at <= alert_action.created_at), 0)"
    )
    op.alter_column("alert_action", "after_message", nullable=False)


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("alert_action", "after_message")
