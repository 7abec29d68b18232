"""Which audit drew an item: two audits may draw the same comment."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_UNIQUE = ["dt", "comment_id", "kind", "reserved_for"]


def upgrade() -> None:
    """Add the column, to the unique key too."""
    op.add_column("review_item", sa.Column("audit", sa.Text))
    op.drop_constraint("review_item_dt_comment_id_kind_reserved_for_key", "review_item")
    op.create_unique_constraint(
        "review_item_dt_comment_id_kind_reserved_for_audit_key",
        "review_item",
        [*_UNIQUE, "audit"],
        postgresql_nulls_not_distinct=True,
    )
    op.create_index(
        "review_item_audit_idx",
        "review_item",
        ["audit"],
        postgresql_where=sa.text("audit IS NOT NULL"),
    )
