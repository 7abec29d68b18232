"""Who may open which endpoint; a new one without a declared scope fails here."""

import httpx
import pytest
from fastapi.testclient import TestClient

from modwatch.review.console.request_context import SESSION_COOKIE
from modwatch.review.people import access_tokens, accounts, sessions
from modwatch.review.people.accounts import ROLE_SCOPES
from modwatch.review.queue import intake
from review.console.visiting import endpoints

SECRET_TEXT = "a comment that nobody else may read"

#: Endpoints of leads, auditors, ops engineers and admins, by the scopes of which one is required.
BY_SCOPES = {
    "feed:read": "GET /api/v1/decisions",
    "lead": """
        GET /lead    POST /lead/release    GET /lead/team    GET /lead/errors    POST /lead/take
        GET /lead/settle    POST /lead/settle    POST /lead/leave    GET /lead/close
        POST /lead/close/count    POST /lead/close    GET /lead/close/{closing_id}
        POST /lead/close/{closing_id}/resume    POST /lead/close/{closing_id}/cancel
        POST /items/{item_id}/correct
    """,
    "decisions:read review": "GET /search    POST /search    GET /items/{item_id}",
    "decisions:read": "GET /records  POST /records/export",
    "audit admin": "POST /records/check",
    "admin": """
        GET /admin    POST /admin/people    GET /admin/people/{person_id}
        POST /admin/people/{person_id}            POST /admin/people/{person_id}/tokens
        POST /admin/people/{person_id}/revoke     GET /admin/events
    """,
    "deliveries": "GET /deliveries    POST /deliveries/resend",
}

#: Endpoints of everybody, and of reviewers; other tests cover them.
OF_OTHERS = """
    GET /    GET /day    GET /preferences    GET /second-factor    GET /login    GET /oidc/start
    GET /oidc/callback    GET /livez    GET /readyz    GET /metrics    GET /api/v1/me
    POST /login    POST /logout    POST /decide    POST /undo    POST /next    POST /leave
    POST /correct    POST /preferences    POST /preferences/password    POST /preferences/group
    POST /preferences/revoke    POST /second-factor    POST /second-factor/confirm
    POST /api/v1/leases    POST /api/v1/items/{item_id}/decisions
    PUT /api/v1/items/{item_id}/lease
"""


def listed(text: str) -> set[tuple[str, str]]:
    """Return method and path of each."""
    words = text.split()
    return set(zip(words[::2], words[1::2], strict=True))


ENDPOINTS = {
    endpoint: set(scopes.split()) for scopes, text in BY_SCOPES.items() for endpoint in listed(text)
}

#: Enough for every endpoint to get as far as asking who it is.
BODY = {
    "queue": "general", "criteria": "{}", "expected": 1, "reason": "slip", "why": "other",
    "csrf": "x", "item_id": 1, "moderator_id": 1, "lease_token": "t", "key": "k", "label": "1",
    "version": 1, "seen": 0, "pseudonym": "zed", "role": "moderator", "channel": "c",
    "format": "csv",
}  # fmt: skip


def test_every_endpoint_has_a_declared_scope(app):
    assert set(endpoints(app.routes)) - listed(OF_OTHERS) == set(ENDPOINTS)


@pytest.mark.parametrize("role", ROLE_SCOPES)
def test_roles_and_endpoints(engine, stranger, new_item, day, role):
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


def test_no_one_gets_in(engine, stranger):
    for method, path in ENDPOINTS:
        answer = ask(stranger, method, path, "wrong", "wrong")
        if path.startswith("/api/"):
            assert answer.status_code == 401, path
            assert answer.json()["error"]["code"] == "access_denied"
        else:
            assert answer.status_code in (200, 303), path
            assert "login" in answer.headers.get("location", "") or "login" in answer.text, path


def ask(stranger: TestClient, method: str, path: str, token: str, session: str) -> httpx.Response:
    where = path
    for name in ("closing_id", "item_id", "person_id"):
        where = where.replace("{" + name + "}", "1")
    if path.startswith("/api/"):
        headers = {"Authorization": f"Bearer {token}"}
        return stranger.request(method, where, headers=headers)
    stranger.cookies.clear()
    headers = {"Cookie": f"{SESSION_COOKIE}={session}", "Accept": "text/html"}
    data = BODY if method == "POST" else None
    return stranger.request(method, where, headers=headers, data=data)
