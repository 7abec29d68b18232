from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, text

from modwatch.common.errors import DatabaseError
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
    engine: Engine, path_server: EmbeddedServer
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

    made = connect(path_server.url("made_by_metadata"))
    metadata.create_all(made)
    expected = checks(made)
    made.dispose()
    assert checks(engine) == expected


def test_indexes_and_triggers_are_those_of_the_schema(
    engine: Engine, path_server: EmbeddedServer
) -> None:
    def indexes(connected: Engine) -> set[str]:
        with connected.connect() as connection:
            rows = connection.scalars(
                text("SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'")
            )
            return {row for row in rows if "alembic" not in row}

    made = connect(path_server.url("indexed_by_metadata"))
    metadata.create_all(made)
    expected = indexes(made)
    made.dispose()
    assert indexes(engine) == expected
    with engine.connect() as connection:
        triggers = connection.scalars(text("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal"))
        assert set(triggers) == {
            f"{table}_append_only_{rows}"
            for table in ("decision", "event")
            for rows in ("rows", "table")
        }


def test_several_processes_may_migrate_at_once(path_server: EmbeddedServer) -> None:
    url = path_server.url("raced")
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(upgrade, [url] * 3))
    upgrade(url)
    engine = connect(url)
    assert queue.counts(engine).waiting == 0
    engine.dispose()


def test_missing_tables_are_named(path_server: EmbeddedServer) -> None:
    engine = connect(path_server.url("bare"))
    with pytest.raises(DatabaseError, match="apply the migrations"):
        queue.counts(engine)
    engine.dispose()
