"""Browsers and networks that log-ins came from, and second factors of passwords."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0010"
down_revision = "0009"
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
    op.create_table(
        "second_factor",
        sa.Column("moderator_id", sa.BigInteger, nullable=False),
        sa.Column("secret", sa.Text, nullable=False),
        sa.Column("confirmed_at", sa.DateTime(timezone=True)),
        sa.Column("last_step", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("recovery", ARRAY(sa.LargeBinary), nullable=False, server_default="{}"),
        sa.Column("pending_digest", sa.LargeBinary),
        sa.Column("pending_until", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("moderator_id", name="second_factor_pkey"),
        sa.UniqueConstraint("pending_digest", name="second_factor_pending_digest_key"),
        sa.ForeignKeyConstraint(
            ["moderator_id"], ["moderator.id"], name="second_factor_moderator_id_fkey"
        ),
    )


def downgrade() -> None:
    """Drop the tables."""
    op.drop_table("second_factor")
    op.drop_table("known_origin")


def _moment(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now())
