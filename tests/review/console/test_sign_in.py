"""Come in and go."""

import re

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import text

from modwatch.review.console.app import create_app
from modwatch.review.console.request_context import SESSION_COOKIE
from modwatch.review.people import passwords

PASSWORD = "a long pass phrase"


def fields(page: httpx.Response) -> dict[str, str]:
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page.text))


@pytest.fixture
def known(engine, ann, fast_hashes):
    passwords.set_password(engine, ann.id, PASSWORD)
    return ann


def log_in(client: TestClient, password: str = PASSWORD, go_on: str = "") -> httpx.Response:
    form = fields(client.get("/login", params={"next": go_on}))
    return client.post("/login", data={**form, "pseudonym": "ann", "password": password})


def test_by_name_and_password_to_our_own_pages_alone(client, known):
    for asked, reached in (
        ("preferences", "/preferences"),
        ("https://elsewhere.invalid", "/"),
        ("//elsewhere.invalid", "/"),
        ("/\\elsewhere.invalid", "/"),
        ("javascript:alert(1)", "/"),
        ("day\r\nSet-Cookie: a=b", "/"),
    ):
        client.cookies.clear()
        page = log_in(client, go_on=asked)
        assert page.url.path == reached
        assert "Sign out" in page.text
    assert client.get("/login", follow_redirects=False).status_code == 303


def test_a_wrong_password_says_nothing_of_the_name_and_how_long_to_wait(client, known):
    for _ in range(5):
        answer = log_in(client, "wrong")
        assert answer.status_code == 401
        assert "Incorrect pseudonym or password" in answer.text
    answer = log_in(client)
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) > 0
    assert re.search(r"Wait \d+ minute", answer.text)


def test_a_page_leads_to_the_log_in_and_back(client, known):
    page = client.get("/preferences")
    assert page.url.path == "/login"
    form = {**fields(page), "pseudonym": "ann", "password": PASSWORD}
    assert client.post("/login", data=form).url.path == "/preferences"
    # A link from elsewhere asks once more; without a provider its pages are not there.
    client.cookies.clear()
    page = client.get("/day", headers={"Sec-Fetch-Site": "cross-site"})
    assert 'http-equiv="refresh"' in page.text
    assert "set-cookie" not in page.headers
    assert client.get("/oidc/start").status_code == client.get("/oidc/callback").status_code == 404


def test_a_session_in_use_is_replaced(engine, known):
    with TestClient(create_app(engine)) as client:
        log_in(client)
        first = client.cookies[SESSION_COOKIE]
        client.get("/day")
        assert client.cookies[SESSION_COOKIE] == first
        with engine.begin() as connection:
            earlier = "UPDATE access_token SET created_at = created_at - interval '2 hours'"
            connection.execute(text(earlier))
        page = client.get("/day")
        assert client.cookies[SESSION_COOKIE] != first
        assert client.get("/preferences").status_code == 200
        form = fields(page)
        answer = client.post("/logout", data={"csrf": form["csrf"]})  # made for the new one
        assert answer.url.path == "/login"
        client.cookies.set(SESSION_COOKIE, first)
        assert client.get("/day").url.path == "/login"


def test_the_password_is_changed_and_every_session_ends(client, known):
    log_in(client)
    csrf = re.findall(r'name="csrf" value="(\w+)"', client.get("/preferences").text)[0]
    form = {"csrf": csrf, "old": "wrong", "new": "another pass phrase"}
    assert "current password is incorrect" in client.post("/preferences/password", data=form).text
    short = {**form, "old": PASSWORD, "new": "x"}
    assert "at least 12 characters" in client.post("/preferences/password", data=short).text
    answer = client.post("/preferences/password", data={**form, "old": PASSWORD})
    assert answer.url.path == "/login"
    assert "Sign out" in log_in(client, "another pass phrase").text


@pytest.fixture
def below(engine):
    outer = FastAPI()
    outer.mount("/modwatch", create_app(engine))
    with TestClient(outer) as client:
        yield client


def test_it_works_below_a_path(below, known, fill):
    fill(2)
    page = below.get("/modwatch/preferences")
    assert page.url.path == "/modwatch/login"
    form = {**fields(page), "pseudonym": "ann", "password": PASSWORD}
    page = below.post(str(page.url.copy_with(query=None)), data=form)
    assert page.url.path == "/modwatch/preferences"
    assert {cookie.path for cookie in below.cookies.jar} == {"/modwatch"}
    page = below.get("/modwatch/")
    assert "invented text of c0" in page.text
    page = below.post("/modwatch/decide", data={**fields(page), "verdict": "1"})
    assert page.url.path == "/modwatch/"
    assert "invented text of c1" in page.text
    for address in re.findall(r'(?:href|src|action)="([^"]*)"', page.text):
        assert address.startswith(("./", "#"))
