"""Items that ask a second person about a comment."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Allow the kind `second_opinion`."""
    name = op.f("review_item_kind_check")
    op.drop_constraint(name, "review_item")
    kinds = "kind IN ('review', 'retest', 'gold', 'audit', 'second_opinion')"
    op.create_check_constraint(name, "review_item", kinds)


def downgrade() -> None:
    """Refuse: second opinions in the decision log would lose their items."""
    raise NotImplementedError("revision 0002 may hold second opinions; go back to a backup instead")
