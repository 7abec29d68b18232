"""The group that a person counts in, and no group of people who cannot delete it."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, and delete the groups of disabled accounts."""
    op.add_column("moderator_group", sa.Column("counted_as", sa.Text))
    op.execute(
        "DELETE FROM moderator_group USING moderator "
        "WHERE moderator.id = moderator_id AND disabled_at IS NOT NULL"
    )


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("moderator_group", "counted_as")
