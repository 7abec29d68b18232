"""A client of the console, without a network."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine

from modwatch.review import people
from modwatch.review.console.app import create_app
from modwatch.review.people import Moderator


@pytest.fixture
def client(engine: Engine) -> Iterator[TestClient]:
    with TestClient(create_app(engine), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def token(engine: Engine, ann: Moderator) -> str:
    return people.issue_token(engine, ann.id)


@pytest.fixture
def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
