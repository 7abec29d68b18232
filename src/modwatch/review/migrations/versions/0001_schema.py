"""The first schema: the queue, the people who work it, the decision log and the outbox."""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create tables, indexes, functions and triggers; `review.migrate` grants the privileges."""
    schema = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
    op.get_bind().execution_options(no_parameters=True).exec_driver_sql(schema)
