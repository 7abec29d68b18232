"""Somebody who can run any SQL as the application, as by an injection, against the log."""

import pytest
from databases import owner_url
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError

from modwatch.common.errors import DatabaseError
from modwatch.review.database import connect
from modwatch.review.log import verification
from modwatch.review.migrate import PRIVILEGES, may_alter_log, upgrade
from modwatch.review.tables import metadata
from review.labelling import decide_all

ATTACKS = [
    "ALTER TABLE decision DISABLE TRIGGER ALL",
    "ALTER TABLE decision DROP COLUMN hash",
    "DROP TRIGGER decision_append_only_rows ON decision",
    "DROP TABLE decision",
    "SET session_replication_role = replica",
    "SET ROLE postgres",
    "UPDATE decision SET label = 1 - label",
    "DELETE FROM decision",
    "TRUNCATE decision",
    "SELECT * FROM decision FOR UPDATE",
    "UPDATE event SET action = 'x'",
    "DELETE FROM event",
    "INSERT INTO event_chain (id, length, hash) VALUES (2, 0, '')",
    "DELETE FROM event_chain",
    "DELETE FROM decision_chain",
    "UPDATE policy_version SET content = '{}'",
    "DELETE FROM policy_version",
    "DELETE FROM gold_comment",
    "DELETE FROM review_item",
    "UPDATE review_item SET comment_id = 'another'",
    "UPDATE moderator SET pseudonym = 'another'",
    "DELETE FROM moderator",
    "CREATE TABLE public.mine (a int)",
    "CREATE OR REPLACE FUNCTION event_is_append_only() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RETURN NEW; END $$",
    "COPY decision TO PROGRAM 'true'",
    "CREATE ROLE me SUPERUSER LOGIN",
    "UPDATE modwatch_alembic_version SET version_num = '0001'",
]


def test_the_application_may_not(engine, ann, fill):
    fill(2)
    decide_all(engine, [ann])
    denied = "permission denied|must be owner"
    for statement in ATTACKS:
        with pytest.raises(ProgrammingError, match=denied), engine.begin() as connection:
            connection.execute(text(statement))
    assert verification.verify_log(engine).intact


def test_every_table_has_its_privileges():
    assert set(PRIVILEGES) == set(metadata.tables)


def test_privileges_that_were_given_by_hand_are_taken_back(engine):
    assert not may_alter_log(engine)
    url = owner_url(str(engine.url))
    owner = connect(url, pool_size=1)
    assert may_alter_log(owner)
    with owner.begin() as connection:
        connection.execute(text("GRANT ALL ON decision TO modwatch"))
    owner.dispose()
    assert may_alter_log(engine)
    upgrade(url, application="modwatch")
    assert not may_alter_log(engine)


def test_a_role_that_does_not_exist_is_named(path_server):
    with pytest.raises(DatabaseError, match="'nobody' of MODWATCH_DATABASE_URL does not exist"):
        upgrade(path_server.url("without_role"), application="nobody")
