from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from modwatch.review.console.app import BODY_LIMIT


@pytest.mark.parametrize(
    "path", ["/", "/livez", "/api/v1/queue", "/nowhere", "/static/console.css"]
)
def test_every_answer_is_shielded(client: TestClient, path: str) -> None:
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
def test_large_bodies_are_refused(
    client: TestClient, bearer: dict[str, str], content: object
) -> None:
    answer = client.post(
        "/api/v1/items/1/decisions",
        content=content() if callable(content) else content,  # type: ignore[arg-type]
        headers={**bearer, "Idempotency-Key": "k", "Content-Type": "application/json"},
    )
    assert answer.status_code == 413
    assert set(answer.json()["error"]) == {"code", "message"}


def test_errors_are_pages_for_people_and_json_for_programs(client: TestClient) -> None:
    page = client.get("/nowhere", headers={"Accept": "text/html"})
    assert page.status_code == 404
    assert page.headers["Content-Type"].startswith("text/html")
    assert client.get("/nowhere").json()["error"]["code"] == "not_found"
    api = client.get("/api/v1/nowhere", headers={"Accept": "text/html"})
    assert api.json()["error"]["code"] == "not_found"
    assert client.put("/api/v1/leases").json()["error"]["code"] == "method_not_allowed"
