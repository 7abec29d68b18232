"""Whatever a row contains: it is a named problem, and hides nothing else."""

import itertools
import random
import re
from datetime import date

import pytest
from databases import execute, owner_url, scalar
from malformed import ACTIONS, SHAPES, spoil, without_rules
from sqlalchemy import text

from modwatch.common.ledger.chain import GENESIS
from modwatch.review.database import connect
from modwatch.review.embedded import APPLICATION
from modwatch.review.events import record_event
from modwatch.review.log.recorded_state import RecordedState
from modwatch.review.log.verification import verify_log
from modwatch.review.migrate import upgrade
from modwatch.review.outbox.decision_events import relay_decisions
from modwatch.review.people import accounts, changes
from modwatch.review.policy.tree import load_policy, register_policy
from modwatch.review.quality_control.gold import GoldComment, add_gold
from modwatch.review.queue import intake
from review.labelling import decide_all

numbers = itertools.count()


@pytest.fixture
def owner(path_server, new_item):
    """The owner's engine of a database of its own, with six decisions and no rules."""
    url = path_server.application_url(f"malformed{next(numbers)}")
    upgrade(owner_url(url), application=APPLICATION)
    engine = connect(url, pool_size=1)
    team = [accounts.create_moderator(engine, name, "moderator") for name in ("ann", "ben")]
    register_policy(engine, load_policy())
    add_gold(engine, [GoldComment(comment_id="g1", text="known", label=1, source="panel")])
    changes.set_queues(engine, team[1].id, ["general"])
    intake.enqueue(engine, [new_item(f"c{i}", i + 1) for i in range(6)], date(2026, 1, 1))
    decide_all(engine, team, policy_version=load_policy().version)
    relay_decisions(engine, ["platform"])
    assert verify_log(engine).problems == ()
    owner = without_rules(engine)
    engine.dispose()
    yield owner
    owner.dispose()


def test_malformed_rows_are_problems_and_hide_nothing(owner):
    chance, stored = random.Random(1), 0
    with owner.begin() as connection:
        connection.execute(text("UPDATE decision SET label = 1 - label"))
    for _ in range(6):
        with owner.begin() as connection:
            stored += len(list(spoil(connection, chance, 25)))
        problems = verify_log(owner).problems
        assert not [problem for problem in problems if "cannot be read" in problem]
        for decision in range(1, 7):
            assert any(re.match(rf"decision {decision} .* changed", p) for p in problems)
    assert stored > 100


def test_an_event_that_lacks_what_it_records_is_named(engine, ann):
    """It is written as the application's own role may: every hash is right."""
    for action in ACTIONS[:-2]:
        for subject in (None, ann.id):
            with engine.begin() as connection:
                record_event(connection, action, actor_id=None, subject_id=subject)
    execute(engine, "UPDATE moderator SET role = 'admin'")
    problems = verify_log(engine).problems
    malformed = [p for p in problems if re.fullmatch(r"event \d+ \(position \d+\) is malformed", p)]
    assert len(malformed) == 2 * len(ACTIONS[:-2]) - 2  # who is disabled or enabled says it all
    assert any("account 1 has the role admin" in problem for problem in problems)


def test_details_of_any_shape_are_read_without_an_error(engine):
    state = RecordedState()
    for shape in SHAPES:
        document = scalar(engine, f"SELECT ({shape})".replace(":", r"\:"))
        for action in ACTIONS[:-2]:
            for details in (document, f'{{"comment_id": {document}, "queues": {document}}}'):
                state.add(action, 1, details, date.max)
                assert not state.add(action, None, details, date.max)
    assert state.gold == {}


def test_a_row_that_cannot_be_read_hides_only_those_of_its_table(engine, owner):
    with owner.begin() as connection:
        connection.execute(text("UPDATE moderator SET role = 'admin'"))
        # As a view, any table can raise any error when it is read.
        connection.execute(text("ALTER TABLE gold_comment RENAME TO hidden"))
        connection.execute(
            text("CREATE VIEW gold_comment AS SELECT comment_id, text, salt, parent_text, shown,"
                 " 1 / 0 AS label, policy_code, source, added_at, retired_at FROM hidden")
        )  # fmt: skip
    problems = verify_log(owner).problems
    assert any("a row of the gold comments cannot be read" in problem for problem in problems)
    assert any("account 1 has the role admin" in problem for problem in problems)


def test_a_log_whose_recorded_end_is_gone_is_named(owner):
    with owner.begin() as connection:
        connection.execute(text("DELETE FROM event_chain"))
        connection.execute(text("DELETE FROM decision_chain"))
    problems = verify_log(owner).problems
    assert len([problem for problem in problems if "its recorded end is none" in problem]) == 3
    assert GENESIS.hex() not in str(problems)
