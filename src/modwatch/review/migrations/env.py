"""Runs the migrations on the connection that `migrate.upgrade` hands over."""

from alembic import context

from modwatch.review.migrate import VERSION_TABLE
from modwatch.review.tables import metadata


def run() -> None:
    """Apply what Alembic was asked to apply, in the transaction of the caller."""
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        version_table=VERSION_TABLE,
    )
    with context.begin_transaction():
        context.run_migrations()


if __name__ == "env_py":  # the name under which Alembic runs this file; an import does nothing
    run()
