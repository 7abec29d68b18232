"""People and items in the review database of the session, which is empty before every test."""

import pytest
from desk import Desk
from review_fixtures import (
    ann,
    ben,
    day,
    engine,
    fast_hashes,
    fill,
    new_item,
    random_numbers,
    session_engine,
)
from sqlalchemy import Engine

from modwatch.review.people import accounts
from modwatch.review.people.accounts import Moderator

__all__ = [
    "ann",
    "ben",
    "day",
    "engine",
    "fast_hashes",
    "fill",
    "new_item",
    "random_numbers",
    "session_engine",
]


@pytest.fixture
def cai(engine: Engine) -> Moderator:
    return accounts.create_moderator(engine, "cai", "moderator")


@pytest.fixture
def lea(engine: Engine) -> Moderator:
    return accounts.create_moderator(engine, "lea", "lead")


@pytest.fixture
def cora(engine: Engine) -> Moderator:
    return accounts.create_moderator(engine, "cora", "lead")


@pytest.fixture
def team(ann: Moderator, ben: Moderator, cai: Moderator) -> list[Moderator]:
    return [ann, ben, cai]


@pytest.fixture
def desk(engine: Engine) -> Desk:
    return Desk(engine=engine)
