from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from modwatch.review.console.app import BODY_LIMIT, create_app
from modwatch.review.console.request_context import ConsoleOptions
from modwatch.review.people import access_tokens
from review.console.visiting import hidden


@pytest.mark.parametrize("path", ["/", "/livez", "/api/v1/me", "/nowhere", "/static/console.css"])
def test_every_answer_is_shielded(client, path):
    headers = client.get(path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert ("Cache-Control" not in headers) == path.startswith("/static/")


def chunks() -> Iterator[bytes]:
    for _ in range(11):
        yield b"x" * (BODY_LIMIT // 10)


@pytest.mark.parametrize("content", [b"x" * (BODY_LIMIT + 1), chunks], ids=["announced", "chunked"])
def test_large_bodies_are_refused(client, bearer, content):
    answer = client.post(
        "/api/v1/items/1/decisions",
        content=content() if callable(content) else content,  # type: ignore[arg-type]
        headers={**bearer, "Idempotency-Key": "k", "Content-Type": "application/json"},
    )
    assert answer.status_code == 413
    assert set(answer.json()["error"]) == {"code", "message"}


def test_errors_are_pages_for_people_and_json_for_programs(client):
    page = client.get("/nowhere", headers={"Accept": "text/html"})
    assert page.status_code == 404
    assert page.headers["Content-Type"].startswith("text/html")
    assert client.get("/nowhere").json()["error"]["code"] == "not_found"
    api = client.get("/api/v1/nowhere", headers={"Accept": "text/html"})
    assert api.json()["error"]["code"] == "not_found"
    assert client.put("/api/v1/leases").json()["error"]["code"] == "method_not_allowed"


@pytest.mark.parametrize(("root", "prefix"), [("", "__Host-"), ("/modwatch", "__Secure-")])
def test_cookies_over_https_are_of_this_host(engine, ann, root, prefix):
    """Another site of the domain, or a page without TLS, sets no cookie that is believed."""
    app = create_app(engine, ConsoleOptions(secure_cookies=True))
    client = TestClient(app, base_url="https://mods.example.org", root_path=root)
    form = hidden(client.get(f"{root}/login"))
    token = access_tokens.issue_token(engine, ann.id)
    answer = client.post(f"{root}/login", data={**form, "token": token}, follow_redirects=False)
    assert answer.status_code == 303
    set_ = [cookie for name, cookie in answer.headers.multi_items() if name == "set-cookie"]
    assert all(cookie.startswith(f"{prefix}modwatch_") for cookie in set_)
    assert all(f"Path={root or '/'};" in cookie and "Secure" in cookie for cookie in set_)
    session = client.cookies[f"{prefix}modwatch_session"]
    client.cookies.clear()
    for name, status in ((f"{prefix}modwatch_session", 200), ("modwatch_session", 401)):
        headers = {"Cookie": f"other=1; {name}={session}"}
        assert client.get(f"{root}/api/v1/me", headers=headers).status_code == status


def test_cookies_on_loopback_have_plain_names(client):
    assert set(client.get("/login").cookies) == {"modwatch_login"}
