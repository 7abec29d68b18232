"""Clients of the console, without a network."""

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import Engine
from tabs import Tab

from modwatch.review.console.app import create_app
from modwatch.review.people import access_tokens, accounts
from modwatch.review.people.accounts import Moderator
from modwatch.review.queue.lanes import load_lanes


@pytest.fixture(autouse=True)
def in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Serve the items of a lane in order: by default chance decides among the next few."""
    monkeypatch.setitem(load_lanes().confirmations.__dict__, "among", 1)


@pytest.fixture
def app(engine: Engine) -> FastAPI:
    return create_app(engine)


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def visitor(client: TestClient) -> TestClient:
    """A client that asks for pages."""
    client.headers["Accept"] = "text/html"
    return client


@pytest.fixture
def stranger(visitor: TestClient) -> TestClient:
    """A client that asks for pages and goes nowhere unasked."""
    visitor.follow_redirects = False
    return visitor


@pytest.fixture
def token(engine: Engine, ann: Moderator) -> str:
    return access_tokens.issue_token(engine, ann.id)


@pytest.fixture
def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def scraper(engine: Engine) -> dict[str, str]:
    """The header of Prometheus, which may read metrics and nothing else."""
    ops = accounts.create_moderator(engine, "prometheus", "ops")
    token = access_tokens.issue_token(engine, ops.id, scopes=["metrics:read"])
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def tab(client: TestClient, engine: Engine, ann: Moderator) -> Tab:
    """A tab in which ann reviews."""
    return Tab(client, engine, ann)
