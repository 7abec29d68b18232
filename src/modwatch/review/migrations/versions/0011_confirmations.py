"""The first labels of an audit's item that further people confirm."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; items that are queued already have no confirmations."""
    op.add_column("review_item", sa.Column("confirms", ARRAY(sa.SmallInteger)))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("review_item", "confirms")
