from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, text

from modwatch.errors import DatabaseError
from modwatch.review import queue
from modwatch.review.database import connect
from modwatch.review.embedded import EmbeddedServer
from modwatch.review.migrate import VERSION_TABLE, upgrade
from modwatch.review.tables import metadata


def test_tables_are_those_that_the_migrations_make(engine: Engine) -> None:
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, metadata) == []


def test_checks_are_those_that_the_migrations_make(
    engine: Engine, postgres: EmbeddedServer
) -> None:
    def checks(connected: Engine) -> set[tuple[str, str]]:
        with connected.connect() as connection:
            rows = connection.execute(
                text(
                    "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint "
                    "WHERE connamespace = 'public'::regnamespace AND contype <> 'n'"
                )
            )
            return {(row[0], row[1]) for row in rows if "alembic" not in row[0]}

    made = connect(postgres.url("made_by_metadata"))
    metadata.create_all(made)
    expected = checks(made)
    made.dispose()
    assert checks(engine) == expected


def test_several_processes_may_migrate_at_once(postgres: EmbeddedServer) -> None:
    url = postgres.url("raced")
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(upgrade, [url] * 3))
    upgrade(url)
    engine = connect(url)
    assert queue.counts(engine).waiting == 0
    engine.dispose()


def test_missing_tables_are_named(postgres: EmbeddedServer) -> None:
    engine = connect(postgres.url("bare"))
    with pytest.raises(DatabaseError, match="apply the migrations"):
        queue.counts(engine)
    engine.dispose()
