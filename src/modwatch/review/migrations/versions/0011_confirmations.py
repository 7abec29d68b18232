"""Confirmations in rounds, in place of second opinions."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_KINDS = "'review', 'retest', 'gold', 'audit', 'second_opinion', 'imported'"
_UNIQUE = ("dt", "comment_id", "kind", "reserved_for", "audit")
_WITH_ROUND = ("dt", "comment_id", "kind", "round", "reserved_for", "audit")


def upgrade() -> None:
    """Add the columns and the kind; withdraw the second opinions that nobody has given."""
    op.add_column(
        "review_item", sa.Column("round", sa.SmallInteger, nullable=False, server_default="1")
    )
    op.add_column(
        "review_item",
        sa.Column("confirms", ARRAY(sa.SmallInteger), nullable=False, server_default="{}"),
    )
    op.add_column("review_item", sa.Column("confirmation_probability", ARRAY(sa.Double)))
    _constrain(f"{_KINDS}, 'confirmation'", _UNIQUE, _WITH_ROUND)
    op.execute(
        "UPDATE review_item SET status = 'withdrawn', version = version + 1, lease_digest = NULL, "
        "leased_by = NULL, leased_until = NULL "
        "WHERE kind = 'second_opinion' AND status IN ('waiting', 'blocked', 'escalated')"
    )


def downgrade() -> None:
    """Drop the columns; confirmations that were decided stay in the log, so refuse if there are."""
    op.execute(
        """
        DO $$ BEGIN
            IF EXISTS (SELECT FROM decision WHERE kind = 'confirmation') THEN
                RAISE EXCEPTION 'confirmations were decided; they cannot be taken out of the log';
            END IF;
        END $$
        """
    )
    op.execute("DELETE FROM review_item WHERE kind = 'confirmation'")
    _constrain(_KINDS, _WITH_ROUND, _UNIQUE)
    for name in ("confirmation_probability", "confirms", "round"):
        op.drop_column("review_item", name)


def _constrain(kinds: str, before: tuple[str, ...], after: tuple[str, ...]) -> None:
    """Replace the kinds that are allowed, and the columns that name an item."""
    op.drop_constraint("review_item_kind_check", "review_item")
    op.create_check_constraint(op.f("review_item_kind_check"), "review_item", f"kind IN ({kinds})")
    op.drop_constraint(f"review_item_{'_'.join(before)}_key", "review_item")
    op.create_unique_constraint(
        f"review_item_{'_'.join(after)}_key",
        "review_item",
        [*after],
        postgresql_nulls_not_distinct=True,
    )
