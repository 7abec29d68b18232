"""Fixtures of tests that use the review database, which is empty before every test."""

from datetime import date

import pytest
from argon2 import PasswordHasher
from databases import AS_INSTALLED, NUMBERED, as_owner
from sqlalchemy import text

from modwatch.data.lake.schemas import CONFIRMATION_PROBABILITIES
from modwatch.review.database import connect
from modwatch.review.people import accounts, passwords
from modwatch.review.queue import intake
from modwatch.review.queue.items import NewItem


@pytest.fixture(scope="session")
def session_engine(migrated_queue_url):
    """One engine for all tests: each new one would connect, and compile every statement, again."""
    engine = connect(migrated_queue_url)
    yield engine
    engine.dispose()


@pytest.fixture
def engine(queue_url, session_engine):
    """An engine on a review database in which nothing has happened."""
    return session_engine


@pytest.fixture
def random_numbers(engine):
    """Give items the numbers and versions that they have in an installation."""
    with as_owner(engine) as connection:
        connection.execute(text(AS_INSTALLED))
    yield
    with as_owner(engine) as connection:
        connection.execute(text(NUMBERED))


@pytest.fixture
def fast_hashes(monkeypatch):
    """Hash passwords in no time: `tests/review/people/test_passwords.py` tests their cost."""
    weak = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(passwords, "_hasher", weak)


@pytest.fixture
def day():
    return date(2026, 1, 1)


@pytest.fixture
def new_item():
    def make(comment_id: str, rank: int = 1, **fields: object) -> NewItem:
        content: dict[str, object] = {
            "comment_id": comment_id,
            "rank": rank,
            "text": f"invented text of {comment_id}",
            "reason": "uncertainty",
            "stratum": 0,
            "inclusion_probability": 1.0,
            "review_score": 0.2,
            "prob": 0.3,
            "uncertainty": 0.21,
            "model_version": "1",
        }
        if fields.get("kind") == "confirmation":  # of any first label, for sure
            probabilities = dict.fromkeys(CONFIRMATION_PROBABILITIES, 1.0)
            content |= {"round": 2, "confirms": [0, 1], **probabilities}
        named = {"language", "platform"} & fields.keys()
        values = {name: fields.pop(name) for name in sorted(named)}
        content["shown"] = {name: value for name, value in values.items() if value is not None}
        return NewItem(**(content | fields))  # type: ignore[arg-type]

    return make


@pytest.fixture
def fill(engine, new_item, day):
    def put(n: int) -> None:
        intake.enqueue(engine, [new_item(f"c{i}", i + 1) for i in range(n)], day)

    return put


@pytest.fixture
def ann(engine):
    return accounts.create_moderator(engine, "ann", "moderator")


@pytest.fixture
def ben(engine):
    return accounts.create_moderator(engine, "ben", "moderator")
