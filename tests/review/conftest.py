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

from modwatch.review.people import accounts

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
def cai(engine):
    return accounts.create_moderator(engine, "cai", "moderator")


@pytest.fixture
def lea(engine):
    return accounts.create_moderator(engine, "lea", "lead")


@pytest.fixture
def cora(engine):
    return accounts.create_moderator(engine, "cora", "lead")


@pytest.fixture
def team(ann, ben, cai):
    return [ann, ben, cai]


@pytest.fixture
def desk(engine):
    return Desk(engine=engine)
