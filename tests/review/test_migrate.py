import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Connection, Engine, select, text

from modwatch.common.errors import DatabaseError
from modwatch.review import migrations, queue
from modwatch.review.database import connect
from modwatch.review.embedded import EmbeddedServer
from modwatch.review.log.hashing import GENESIS
from modwatch.review.log.labels import confirming_labels
from modwatch.review.migrate import VERSION_TABLE, upgrade
from modwatch.review.quality_control.agreement import agreement_report
from modwatch.review.tables import alert_action, decision, metadata


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


def test_several_processes_may_migrate_at_once(path_server: EmbeddedServer) -> None:
    url = path_server.url("raced")
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(upgrade, [url] * 3))
    upgrade(url)
    engine = connect(url)
    assert queue.counts(engine).waiting == 0
    engine.dispose()


#: What the software of revision 3 left: one of three decided, its second opinion waiting, and one
#: whose second opinion was given, of a fifth of the top.
OLD_ROWS = """
INSERT INTO moderator (pseudonym, role) VALUES ('ann', 'moderator'), ('ben', 'moderator');
INSERT INTO review_item (dt, comment_id, kind, text, reason, stratum, inclusion_probability, rank,
    review_score, prob, uncertainty, model_version, status, version)
SELECT '2026-01-01', id, kind, 'invented ' || id, 'uncertainty', 0,
    CASE kind WHEN 'review' THEN 1 ELSE 0.2 END, rank, 0.2, 0.3, 0.21, '1', status,
    CASE status WHEN 'decided' THEN 2 ELSE 1 END
FROM (VALUES ('c1', 'review', 1, 'decided'), ('c1', 'second_opinion', 1, 'waiting'),
    ('c2', 'review', 2, 'waiting'), ('c2', 'second_opinion', 2, 'waiting'),
    ('c3', 'review', 3, 'waiting'), ('c4', 'review', 4, 'decided'),
    ('c4', 'second_opinion', 4, 'decided')) AS old (id, kind, rank, status);
"""


def test_a_log_that_older_tables_hold_survives_the_upgrade(path_server: EmbeddedServer) -> None:
    engine = connect(path_server.url("of_revision_3"))
    _upgrade_to(engine, "0003")
    with engine.begin() as connection:
        connection.execute(text(OLD_ROWS))
        _log_as_before(connection, item_id=1, action="label", label=1)
        _log_as_before(connection, item_id=5, action="skip", label=None)
        _log_as_before(connection, item_id=6, action="label", label=1)
        _log_as_before(connection, item_id=7, action="label", label=0, moderator_id=2)
        log = [tuple(row) for row in connection.execute(text("SELECT * FROM decision"))]
    upgrade(engine)
    with engine.connect() as connection:
        columns = ", ".join(column.name for column in decision.columns if column.name not in NEW)
        kept = [tuple(row) for row in connection.execute(text(f"SELECT {columns} FROM decision"))]
    assert sorted(map(str, kept[0])) == sorted(map(str, log[0]))
    report = queue.verify_log(engine)
    assert (report.decisions, report.problems) == (4, ())
    # Open second opinions are withdrawn; ann skipped c3.
    assert _served(engine, 1) == ["c2"]
    assert _served(engine, 2) == ["c2", "c3"]
    compared = agreement_report(engine, date(2026, 1, 2), date(2026, 1, 2), minimum=1)
    assert (compared.confirmations.value, compared.confirmations.n) == (0, 1)
    assert list(confirming_labels(engine, date(2026, 1, 1))) == []  # of no known probability
    engine.dispose()


def test_the_groups_of_disabled_accounts_are_deleted(path_server: EmbeddedServer) -> None:
    engine = connect(path_server.url("of_revision_11"))
    _upgrade_to(engine, "0011")
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO moderator (pseudonym, role, disabled_at) VALUES "
                "('ann', 'moderator', NULL), ('ben', 'moderator', now())"
            )
        )
        connection.execute(text("INSERT INTO moderator_group VALUES (1, 'north'), (2, 'south')"))
    upgrade(engine)
    with engine.connect() as connection:
        groups = connection.execute(text("SELECT * FROM moderator_group")).all()
    assert groups == [(1, "north", None)]
    engine.dispose()


def test_actions_on_incidents_are_placed_among_the_messages_by_time(
    path_server: EmbeddedServer,
) -> None:
    engine = connect(path_server.url("of_revision_13"))
    _upgrade_to(engine, "0013")
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO outbox_message "
                "(key, topic, series, sequence, dt, payload, created_at) VALUES "
                "('a', 'incident', 'quality', 1, '2026-01-01', '{}', '2026-01-01'), "
                "('b', 'incident', 'quality', 2, '2026-01-03', '{}', '2026-01-03')"
            )
        )
        connection.execute(
            text(
                "INSERT INTO alert_action (incident, action, person, note, created_at) "
                "VALUES ('quality', 'comment', 'lea', '', '2025-12-31'), "
                "('quality', 'comment', 'lea', '', '2026-01-02'), "
                "('quality', 'comment', 'lea', '', '2026-01-04')"
            )
        )
    upgrade(engine)
    with engine.connect() as connection:
        places = connection.execute(select(alert_action.c.after_message).order_by("id")).scalars()
        assert list(places) == [0, 1, 2]
    engine.dispose()


NEW = {
    "policy_version", "reason", "refers_to", "format", "transaction_id", "text_digest", "outcome",
}  # fmt: skip


def _log_as_before(connection: Connection, *, moderator_id: int = 1, **said: object) -> None:
    """Append to the chain of a moderator as the software of revision 3 did."""
    item = connection.execute(
        text("SELECT dt, comment_id, kind, version FROM review_item WHERE id = :item_id"), said
    ).one()
    chain = text("SELECT length, hash FROM decision_chain WHERE moderator_id = :moderator_id")
    before = connection.execute(chain, {"moderator_id": moderator_id}).one_or_none()
    row = {
        "position": before.length + 1 if before else 1,
        "item_id": said["item_id"],
        "dt": item.dt,
        "comment_id": item.comment_id,
        "kind": item.kind,
        "item_version": item.version,
        "moderator_id": moderator_id,
        "action": said["action"],
        "label": said["label"],
        "policy_code": None,
        "note": "an é",
        "seconds": 12.0,
        "idempotency_key": f"k{said['item_id']}",
        "decided_at": datetime(2026, 1, 2, 3, 4, 5, 600, UTC),
    }
    content = json.dumps(
        list(row.values()), default=lambda at: at.isoformat(), separators=(",", ":")
    )
    row["previous_hash"] = before.hash if before else GENESIS
    row["hash"] = hashlib.sha256(row["previous_hash"] + content.encode()).digest()
    names = ", ".join(row)
    places = ", ".join(f":{name}" for name in row)
    connection.execute(text(f"INSERT INTO decision ({names}) VALUES ({places})"), row)
    connection.execute(
        text(
            "INSERT INTO decision_chain VALUES (:moderator_id, :position, :hash) "
            "ON CONFLICT (moderator_id) DO UPDATE SET length = :position, hash = :hash"
        ),
        row,
    )


def _served(engine: Engine, moderator_id: int) -> list[str]:
    """Return what this person is served; everything is given back."""
    taken = []
    while lease := queue.lease(engine, moderator_id):
        taken.append(lease)
    for lease in taken:
        queue.release(engine, moderator_id, lease.item.id, lease.token)
    return sorted(lease.item.comment_id for lease in taken)


def _upgrade_to(engine: Engine, revision: str) -> None:
    with engine.begin() as connection:
        configuration = Config()
        configuration.set_main_option("script_location", str(Path(migrations.__file__).parent))
        configuration.attributes["connection"] = connection
        command.upgrade(configuration, revision)


def test_missing_tables_are_named(path_server: EmbeddedServer) -> None:
    engine = connect(path_server.url("bare"))
    with pytest.raises(DatabaseError, match="apply the migrations"):
        queue.counts(engine)
    engine.dispose()
