"""Clients of the console, without a network."""

import pytest
from fastapi.testclient import TestClient
from tabs import Tab

from modwatch.review.console.app import create_app
from modwatch.review.people import access_tokens, accounts
from modwatch.review.queue.lanes import load_lanes


@pytest.fixture(autouse=True)
def in_order(monkeypatch):
    """Serve the items of a lane in order: by default chance decides among the next few."""
    monkeypatch.setitem(load_lanes().confirmations.__dict__, "among", 1)


@pytest.fixture
def app(engine):
    return create_app(engine)


@pytest.fixture
def client(app):
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def visitor(client):
    """A client that asks for pages."""
    client.headers["Accept"] = "text/html"
    return client


@pytest.fixture
def stranger(visitor):
    """A client that asks for pages and goes nowhere unasked."""
    visitor.follow_redirects = False
    return visitor


@pytest.fixture
def token(engine, ann):
    return access_tokens.issue_token(engine, ann.id)


@pytest.fixture
def bearer(token):
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def scraper(engine):
    """The header of Prometheus, which may read metrics and nothing else."""
    ops = accounts.create_moderator(engine, "prometheus", "ops")
    token = access_tokens.issue_token(engine, ops.id, scopes=["metrics:read"])
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def tab(client, engine, ann):
    """A tab in which ann reviews."""
    return Tab(client, engine, ann)
