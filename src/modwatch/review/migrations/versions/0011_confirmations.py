"""Confirmations in place of second opinions: items of rounds 2 and 3."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_KINDS = (
    "kind IN ('review', 'confirmation', 'retest', 'gold', 'audit', 'imported', 'second_opinion')"
)
_ROUND = (
    "CASE WHEN kind = 'confirmation' THEN round IN (2, 3) AND confirms <@ '{0,1}' "
    "AND confirms IS NOT NULL "
    "AND confirmation_probability_0 BETWEEN 0 AND 1 "
    "AND confirmation_probability_0 IS NOT NULL "
    "AND confirmation_probability_1 BETWEEN 0 AND 1 "
    "AND confirmation_probability_1 IS NOT NULL ELSE round = 1 END"
)


def upgrade() -> None:
    """Add the columns, and withdraw the second opinions that are open.

    Those that were given stay as they are: the log covers their kind.
    """
    for column in (
        sa.Column("round", sa.SmallInteger, nullable=False, server_default="1"),
        sa.Column("confirms", ARRAY(sa.SmallInteger)),
        sa.Column("confirmation_probability_0", sa.Double),
        sa.Column("confirmation_probability_1", sa.Double),
        sa.Column("first_label", sa.SmallInteger),
    ):
        op.add_column("review_item", column)
    op.drop_constraint(op.f("review_item_kind_check"), "review_item")
    op.create_check_constraint(op.f("review_item_kind_check"), "review_item", _KINDS)
    op.create_check_constraint(op.f("review_item_round_check"), "review_item", _ROUND)
    op.create_check_constraint(
        op.f("review_item_first_label_check"), "review_item", "first_label IN (0, 1)"
    )
    op.drop_constraint(op.f("review_item_dt_comment_id_kind_reserved_for_audit_key"), "review_item")
    op.create_unique_constraint(
        op.f("review_item_dt_comment_id_kind_round_reserved_for_audit_key"),
        "review_item",
        ["dt", "comment_id", "kind", "round", "reserved_for", "audit"],
        postgresql_nulls_not_distinct=True,
    )
    op.execute(
        """
        UPDATE review_item SET status = 'withdrawn', version = version + 1,
            lease_digest = NULL, leased_by = NULL, leased_until = NULL
        WHERE kind = 'second_opinion' AND status IN ('waiting', 'blocked', 'escalated')
        """
    )


def downgrade() -> None:
    """Refuse: confirmations in the decision log would lose their items."""
    raise NotImplementedError("revision 0011 may hold confirmations; go back to a backup instead")
