"""Browsers and networks that log-ins came from, and second factors of passwords."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "known_origin",
        sa.Column("origin", sa.LargeBinary, nullable=False),
        _moment("seen_at"),
        sa.PrimaryKeyConstraint("origin", name="known_origin_pkey"),
    )
    op.create_index("known_origin_seen_at_idx", "known_origin", ["seen_at"])


def downgrade() -> None:
    """Drop the tables."""
    op.drop_table("known_origin")


def _moment(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now())
