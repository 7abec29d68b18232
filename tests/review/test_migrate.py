import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Engine, select, text

from modwatch.errors import DatabaseError
from modwatch.review import migrations, people, queue
from modwatch.review.database import connect
from modwatch.review.embedded import EmbeddedServer
from modwatch.review.items import NewItem
from modwatch.review.migrate import VERSION_TABLE, upgrade
from modwatch.review.tables import decision, decision_chain, metadata, moderator, review_item


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


def test_a_log_that_older_tables_hold_survives_the_upgrade(
    postgres: EmbeddedServer, new_item: Callable[..., NewItem], day: date
) -> None:
    engine = connect(postgres.url("of_revision_1"))
    _upgrade_to(engine, "0001")
    person = people.create_moderator(engine, "ann", "moderator")
    queue.enqueue(engine, [new_item("c1"), new_item("c2", 2)], day)
    held = queue.lease(engine, person.id)
    assert held is not None
    queue.decide(
        engine,
        moderator_id=person.id,
        item_id=held.item.id,
        lease_token=held.token,
        label=1,
        idempotency_key="k",
    )
    again = [new_item("c1"), new_item("c2", 2), new_item("c1", 2, kind="second_opinion")]
    with pytest.raises(DatabaseError, match="apply the migrations") as caught:
        queue.enqueue(engine, again, day)
    assert new_item("c1").text not in "".join(traceback.format_exception(caught.value))
    before = _queue_and_log(engine), queue.verify_log(engine)
    upgrade(engine)
    assert (_queue_and_log(engine), queue.verify_log(engine)) == before
    assert before[1].intact
    assert queue.enqueue(engine, again, day).changed == 1
    engine.dispose()


def _upgrade_to(engine: Engine, revision: str) -> None:
    with engine.begin() as connection:
        configuration = Config()
        configuration.set_main_option("script_location", str(Path(migrations.__file__).parent))
        configuration.attributes["connection"] = connection
        command.upgrade(configuration, revision)


def _queue_and_log(engine: Engine) -> list[list[tuple[object, ...]]]:
    tables = (moderator, review_item, decision, decision_chain)
    with engine.connect() as connection:
        return [[tuple(row) for row in connection.execute(select(table))] for table in tables]


def test_missing_tables_are_named(postgres: EmbeddedServer) -> None:
    engine = connect(postgres.url("bare"))
    with pytest.raises(DatabaseError, match="apply the migrations"):
        queue.counts(engine)
    engine.dispose()
