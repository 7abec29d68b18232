import re
from collections.abc import Callable

import httpx
import pytest
from fastapi.testclient import TestClient

from modwatch.review.console.app import create_app
from modwatch.review.console.request_context import SESSION_COOKIE, ConsoleOptions
from modwatch.review.console.review_page import LEASE_COOKIE
from modwatch.review.console.sign_in import LOGIN_COOKIE
from modwatch.review.log import verification
from modwatch.review.log.labels import current_labels
from modwatch.review.people import access_tokens, accounts
from modwatch.review.queue import intake

Fill = Callable[[int], None]


def fields(page: httpx.Response) -> dict[str, str]:
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page.text))


def notice(page: httpx.Response) -> str:
    found = re.search(r'id="toast">(.*?)</div>', page.text, re.DOTALL)
    return found[1] if found else ""


def log_in(client: TestClient, token: str) -> httpx.Response:
    form = fields(client.get("/"))
    return client.post("/login", data={"token": token, **form})


def verdict(client: TestClient, page: httpx.Response, value: str) -> httpx.Response:
    return client.post("/decide", data={**fields(page), "verdict": value})


def shown(page: httpx.Response) -> str | None:
    found = re.search(r"invented text of (\w+)", page.text)
    return found[1] if found else None


def test_a_shift(client, token, engine, fill, day):
    fill(3)
    assert "Access token" in client.get("/").text
    page = log_in(client, token)
    assert page.status_code == 200
    inline = r"<style|style=|\son\w+=|<script(?![^>]*src=)|https?://"
    nowhere = client.get("/nowhere", headers={"Accept": "text/html"})
    for each in (page, nowhere):  # no inline script or style, and no foreign address
        assert not re.search(inline, each.text)
        assert re.search(r'<html lang="en"', each.text)
    assert shown(page) == "c0"
    assert shown(client.get("/")) == "c0"  # a reload shows the same
    page = verdict(client, page, "1")
    assert shown(page) == "c1"
    page = verdict(client, page, "skip")
    assert shown(page) == "c2"
    page = verdict(client, page, "0")
    assert "Queue is empty" in page.text
    labels = [row for batch in current_labels(engine, day) for row in batch.to_pylist()]
    assert [(row["comment_id"], row["label"]) for row in labels] == [("c0", 1), ("c2", 0)]
    page = client.post("/logout", data=fields(page))
    assert "Access token" in page.text


def test_cookies_are_for_this_site_alone(client, token, fill):
    fill(1)
    form = fields(client.get("/"))
    answer = client.post("/login", data={"token": token, **form}, follow_redirects=False)
    cookies = [
        *answer.headers.get_list("set-cookie"),
        *client.get("/").headers.get_list("set-cookie"),
    ]
    assert {cookie.split("=")[0] for cookie in cookies} == {
        SESSION_COOKIE,
        LOGIN_COOKIE,
        LEASE_COOKIE,
    }
    for cookie in cookies:
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert token not in cookie


def test_double_clicks_and_conflicts_are_reported_kindly(client, token, engine, fill, day):
    fill(2)
    page = log_in(client, token)
    assert shown(verdict(client, page, "1")) == "c1"
    again = verdict(client, page, "1")  # a double click decides once
    assert shown(again) == "c1"
    assert "Nothing was lost" not in notice(again)
    assert verification.verify_log(engine).decisions == 1
    changed_mind = verdict(client, page, "0")
    assert changed_mind.status_code == 200
    assert "Nothing was lost" in notice(changed_mind)
    assert shown(changed_mind) == "c1"
    intake.enqueue(engine, [], day)  # withdrawn under the moderator's eyes
    assert "Nothing was lost" in notice(verdict(client, changed_mind, "1"))


def test_lookers_on_are_served_nothing(client, engine, fill):
    fill(1)
    assert "Ask an admin" in (wrong := log_in(client, "wrong")).text
    assert wrong.status_code == 401
    person = accounts.create_moderator(engine, "odo", "auditor")
    page = log_in(client, access_tokens.issue_token(engine, person.id))
    assert "Read-only access" in page.text
    assert shown(page) is None
    form = {**fields(page), "item_id": "1", "lease_token": "t", "verdict": "1"}
    assert client.post("/decide", data=form).status_code == 403


@pytest.mark.parametrize(
    ("item", "shows", "told"),
    [
        ({}, True, True),
        ({}, False, False),  # by default
        ({"kind": "gold"}, True, False),
        ({"kind": "audit", "reason": "audit"}, True, False),
        ({"labels_wanted": 2}, True, False),
    ],
    ids=str,
)
def test_why_it_was_sent_is_reported_where_nothing_is_compared(
    engine, token, new_item, day,
    item, shows, told
):  # fmt: skip
    sent = new_item("c0", prob=0.4, uncertainty=0.24, **item)
    intake.enqueue(engine, [sent], day, kinds=[sent.kind])
    options = ConsoleOptions(show_reasons=True) if shows else ConsoleOptions()
    with TestClient(create_app(engine, options)) as client:
        page = log_in(client, token).text
    assert "invented text of c0" in page
    assert ('class="why"' in page) == told
    assert ("leans towards not toxic and is unsure" in page) == told
    assert ("40%" in page) == told


def test_any_lease_cookie_is_survived(client, token, fill):
    fill(9)
    log_in(client, token)
    session = client.cookies[SESSION_COOKIE]
    client.cookies.clear()
    for held in ("", "1", "1.", "x.y", ".", f"{2**70}.t", "²..", "1.\x7f"):
        cookie = f"{SESSION_COOKIE}={session}; {LEASE_COOKIE}={held}".encode()
        answer = client.get("/", headers={b"cookie": cookie})  # type: ignore[arg-type]
        assert answer.status_code == 200
        assert shown(answer) is not None
        client.cookies.clear()
