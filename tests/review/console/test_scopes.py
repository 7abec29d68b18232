"""Who may open which endpoint; a new one without a declared scope fails here."""

from collections.abc import Callable
from datetime import date

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import Engine

from modwatch.review.console.request_context import SESSION_COOKIE
from modwatch.review.people import access_tokens, accounts, sessions
from modwatch.review.people.accounts import ROLE_SCOPES
from modwatch.review.queue import intake
from modwatch.review.queue.items import NewItem
from review.console.visiting import endpoints

SECRET_TEXT = "a comment that nobody else may read"

LEAD, ADMIN, READ = {"lead"}, {"admin"}, {"decisions:read"}
SEARCH, CHECK, SHIP = {"decisions:read", "review"}, {"audit", "admin"}, {"deliveries"}

#: Scopes of which one is required, by endpoint of leads, auditors, ops engineers and admins.
ENDPOINTS: dict[tuple[str, str], set[str]] = {
    ("GET", "/api/v1/queue"): {"queue:read"},
    ("GET", "/api/v1/lead/lanes"): LEAD,
    ("GET", "/api/v1/lead/holdings"): LEAD,
    ("POST", "/api/v1/lead/releases"): LEAD,
    ("GET", "/api/v1/lead/escalations"): LEAD,
    ("GET", "/api/v1/lead/throughput"): LEAD,
    ("GET", "/api/v1/lead/agreement"): LEAD,
    ("GET", "/api/v1/lead/error-rates"): LEAD,
    ("GET", "/api/v1/lead/overturned"): LEAD,
    ("POST", "/api/v1/lead/closings/count"): LEAD,
    ("GET", "/api/v1/lead/closings"): LEAD,
    ("POST", "/api/v1/lead/closings"): LEAD,
    ("GET", "/api/v1/lead/closings/{closing_id}"): LEAD,
    ("POST", "/api/v1/lead/closings/{closing_id}/resume"): LEAD,
    ("POST", "/api/v1/lead/closings/{closing_id}/cancel"): LEAD,
    ("POST", "/api/v1/items/search"): SEARCH,
    ("GET", "/api/v1/items/{item_id}/history"): SEARCH,
    ("GET", "/api/v1/decisions"): {"feed:read"},
    ("GET", "/api/v1/decisions/export"): READ,
    ("POST", "/api/v1/log/checks"): CHECK,
    ("GET", "/api/v1/people"): ADMIN,
    ("POST", "/api/v1/people"): ADMIN,
    ("GET", "/api/v1/people/events"): ADMIN,
    ("GET", "/api/v1/people/{person_id}"): ADMIN,
    ("PATCH", "/api/v1/people/{person_id}"): ADMIN,
    ("GET", "/api/v1/people/{person_id}/tokens"): ADMIN,
    ("POST", "/api/v1/people/{person_id}/tokens"): ADMIN,
    ("DELETE", "/api/v1/people/{person_id}/tokens/{token_id}"): ADMIN,
    ("GET", "/api/v1/deliveries"): SHIP,
    ("GET", "/api/v1/deliveries/dead"): SHIP,
    ("POST", "/api/v1/deliveries/resend"): SHIP,
    ("GET", "/lead"): LEAD,
    ("POST", "/lead/release"): LEAD,
    ("GET", "/lead/team"): LEAD,
    ("GET", "/lead/errors"): LEAD,
    ("POST", "/lead/take"): LEAD,
    ("GET", "/lead/settle"): LEAD,
    ("POST", "/lead/settle"): LEAD,
    ("POST", "/lead/leave"): LEAD,
    ("GET", "/lead/close"): LEAD,
    ("POST", "/lead/close/count"): LEAD,
    ("POST", "/lead/close"): LEAD,
    ("GET", "/lead/close/{closing_id}"): LEAD,
    ("POST", "/lead/close/{closing_id}/resume"): LEAD,
    ("POST", "/lead/close/{closing_id}/cancel"): LEAD,
    ("GET", "/search"): SEARCH,
    ("POST", "/search"): SEARCH,
    ("GET", "/items/{item_id}"): SEARCH,
    ("POST", "/items/{item_id}/correct"): LEAD,
    ("GET", "/admin"): ADMIN,
    ("POST", "/admin/people"): ADMIN,
    ("GET", "/admin/people/{person_id}"): ADMIN,
    ("POST", "/admin/people/{person_id}"): ADMIN,
    ("POST", "/admin/people/{person_id}/tokens"): ADMIN,
    ("POST", "/admin/people/{person_id}/revoke"): ADMIN,
    ("GET", "/admin/events"): ADMIN,
    ("GET", "/records"): READ,
    ("POST", "/records/check"): CHECK,
    ("POST", "/records/export"): READ,
    ("GET", "/deliveries"): SHIP,
    ("POST", "/deliveries/resend"): SHIP,
}

#: Endpoints of everybody, and of reviewers; other tests cover them.
OTHERS = {
    ("GET", path)
    for path in (
        "/", "/day", "/preferences", "/second-factor", "/login", "/oidc/start", "/oidc/callback",
        "/livez", "/readyz", "/metrics", "/api/v1/me", "/api/v1/me/day", "/api/v1/me/preferences",
        "/api/v1/policy", "/api/v1/items/{item_id}/lease",
    )
} | {
    ("POST", path)
    for path in (
        "/login", "/logout", "/decide", "/undo", "/next", "/leave", "/correct", "/preferences",
        "/preferences/password", "/preferences/group", "/preferences/revoke",
        "/second-factor", "/second-factor/confirm", "/api/v1/leases",
        "/api/v1/items/{item_id}/decisions", "/api/v1/items/{item_id}/corrections",
        "/api/v1/decisions/{decision_id}/undo",
    )
} | {
    ("PUT", "/api/v1/items/{item_id}/lease"),
    ("DELETE", "/api/v1/items/{item_id}/lease"),
    ("PUT", "/api/v1/me/preferences"),
}  # fmt: skip

#: Enough for every endpoint to get as far as asking who it is.
BODY = {
    "queue": "general", "criteria": "{}", "expected": 1, "reason": "slip", "why": "other",
    "csrf": "x", "item_id": 1, "moderator_id": 1, "lease_token": "t", "key": "k", "label": "1",
    "version": 1, "seen": 0, "pseudonym": "zed", "role": "moderator", "channel": "c",
    "format": "csv",
}  # fmt: skip
QUERY = {"first": "2026-01-01", "last": "2026-01-01", "channel": "c"}


def test_every_endpoint_has_a_declared_scope(app: FastAPI) -> None:
    assert set(endpoints(app.routes)) - OTHERS == set(ENDPOINTS)


@pytest.mark.parametrize("role", ROLE_SCOPES)
def test_roles_and_endpoints(
    engine: Engine,
    stranger: TestClient,
    new_item: Callable[..., NewItem],
    day: date,
    role: str,
) -> None:
    intake.enqueue(engine, [new_item("secret-id", text=SECRET_TEXT)], day)
    person = accounts.create_moderator(engine, f"the-{role}", role)
    token = access_tokens.issue_token(engine, person.id)
    session = sessions.open_session(engine, token)
    for (method, path), scopes in ENDPOINTS.items():
        allowed = bool(scopes & ROLE_SCOPES[role])
        answer = ask(stranger, method, path, token, session)
        where = f"{role} {method} {path}: {answer.status_code}"
        if allowed:
            # A form without its hidden field is refused too, in its own words.
            assert answer.status_code != 401, where
            assert "takes the scope" not in answer.text, where
        else:
            assert answer.status_code == 403, where
            assert SECRET_TEXT not in answer.text, where
            assert "secret-id" not in answer.text, where
            if path.startswith("/api/"):
                assert set(answer.json()) == {"error"}, where
                assert answer.json()["error"]["code"] == "forbidden", where


def test_no_one_gets_in(engine: Engine, stranger: TestClient) -> None:
    for method, path in ENDPOINTS:
        answer = ask(stranger, method, path, "wrong", "wrong")
        if path.startswith("/api/"):
            assert answer.status_code == 401, path
            assert answer.json()["error"]["code"] == "access_denied"
        else:
            assert answer.status_code in (200, 303), path
            assert "login" in answer.headers.get("location", "") or "login" in answer.text, path


def ask(stranger: TestClient, method: str, path: str, token: str, session: str) -> httpx.Response:
    where = path.replace("{token_id}", "999")
    for name in ("closing_id", "item_id", "person_id"):
        where = where.replace("{" + name + "}", "1")
    if path.startswith("/api/"):
        headers = {"Authorization": f"Bearer {token}"}
        body = None if method in ("GET", "DELETE") else {}
        return stranger.request(method, where, headers=headers, json=body, params=QUERY)
    stranger.cookies.clear()
    headers = {"Cookie": f"{SESSION_COOKIE}={session}", "Accept": "text/html"}
    data = BODY if method == "POST" else None
    return stranger.request(method, where, headers=headers, data=data)
