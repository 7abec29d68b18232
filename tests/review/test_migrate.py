import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from databases import scalar
from sqlalchemy import text
from sqlalchemy.dialects.postgresql.base import ischema_names

from modwatch.common.errors import DatabaseError
from modwatch.review import migrate
from modwatch.review.database import connect
from modwatch.review.migrate import VERSION_TABLE, upgrade
from modwatch.review.queue import metrics
from modwatch.review.tables import KINDS, ROLES, STATUSES, TransactionId, metadata


def test_columns_are_those_that_the_migrations_make(engine, monkeypatch):
    monkeypatch.setitem(ischema_names, "xid8", TransactionId)
    options = {
        "version_table": VERSION_TABLE,
        "include_object": lambda _, __, kind, *___: kind not in ("index", "unique_constraint"),
    }
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []


def test_the_database_accepts_the_values_of_the_constants(engine):
    query = text("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = :name")
    for constraint, values in (
        ("moderator_role_check", ROLES),
        ("review_item_kind_check", KINDS),
        ("review_item_status_check", STATUSES),
    ):
        with engine.connect() as connection:
            definition = connection.scalar(query, {"name": constraint})
        assert sorted(re.findall(r"'(\w+)'::text", definition)) == sorted(values)


def test_only_the_logs_have_triggers(engine):
    with engine.connect() as connection:
        triggers = connection.scalars(text("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal"))
        assert set(triggers) == {
            f"{table}_append_only_{rows}"
            for table in ("decision", "event")
            for rows in ("rows", "table")
        }


def test_several_processes_may_migrate_at_once(path_server):
    url = path_server.url("raced")
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(upgrade, [url] * 3))
    upgrade(url)
    engine = connect(url)
    assert metrics.counts(engine).waiting == 0
    engine.dispose()


def test_an_older_server_is_refused(path_server, monkeypatch):
    url = path_server.url("old")
    monkeypatch.setattr(migrate, "OLDEST_SERVER", 99)
    with pytest.raises(DatabaseError, match=r"PostgreSQL \d\d is not supported.* 99 or later"):
        upgrade(url)
    engine = connect(url)
    assert scalar(engine, "SELECT count(*) FROM pg_tables WHERE schemaname='public'") == 0
    engine.dispose()


def test_missing_tables_are_named(path_server):
    engine = connect(path_server.url("bare"))
    with pytest.raises(DatabaseError, match="apply the migrations"):
        metrics.counts(engine)
    engine.dispose()
