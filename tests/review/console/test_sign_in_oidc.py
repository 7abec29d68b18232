"""Come in through an identity provider."""

import threading

import httpx
import pytest
from fastapi.testclient import TestClient

from modwatch.review.console.app import create_app
from modwatch.review.console.request_context import SESSION_COOKIE, ConsoleOptions
from modwatch.review.console.sign_in import OIDC_COOKIE
from modwatch.review.people.oidc import OidcOptions
from review.people.conftest import CLIENT_ID, CLIENT_SECRET, FakeProvider


@pytest.fixture
def fake():
    with FakeProvider() as provider:
        thread = threading.Thread(target=provider.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield provider
        provider.shutdown()
        thread.join()


@pytest.fixture
def client(engine, fake):
    oidc = OidcOptions(
        issuer=fake.issuer,
        client_id=CLIENT_ID,
        client_secret=CLIENT_SECRET,
        redirect_url="http://testserver/oidc/callback",
        role_claim="role",
        roles={"mods": "moderator"},
    )
    with TestClient(create_app(engine, ConsoleOptions(oidc=oidc))) as client:
        yield client


def start(client: TestClient) -> httpx.Response:
    return client.get("/oidc/start", follow_redirects=False)


def test_in_and_on(client, fake):
    assert "Sign in with your organisation" in client.get("/login").text
    began = start(client)
    assert "SameSite=lax" in began.headers["set-cookie"]  # it comes back from another site
    code, state = fake.visit(began.headers["location"], role="mods")
    page = client.get("/oidc/callback", params={"code": code, "state": state})
    assert 'content="0;url=../"' in page.text
    cookie = next(c for c in page.headers.get_list("set-cookie") if c.startswith(SESSION_COOKIE))
    assert "SameSite=strict" in cookie
    assert "HttpOnly" in cookie
    assert OIDC_COOKIE not in client.cookies
    assert "person-" in client.get("/").text


def test_an_answer_that_was_not_asked_for_opens_nothing(client, fake):
    code, state = fake.visit(start(client).headers["location"], role="mods")
    client.cookies.clear()  # another browser
    page = client.get("/oidc/callback", params={"code": code, "state": state})
    assert "Sign-in with your organisation failed" in page.text
    assert SESSION_COOKIE not in client.cookies


@pytest.mark.parametrize("query", [{}, {"error": "access_denied"}, {"code": "x", "state": "y"}])
def test_whatever_comes_back_is_survived(client, query):
    start(client)
    assert (
        "Sign-in with your organisation failed" in client.get("/oidc/callback", params=query).text
    )


def test_a_provider_that_is_down_is_reported_kindly(client, fake):
    fake.configuration = {"issuer": "https://elsewhere.invalid"}
    assert "Sign-in with your organisation failed" in client.get("/oidc/start").text
