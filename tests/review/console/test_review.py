from collections.abc import Callable
from datetime import date

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine

from modwatch.review.console.app import create_app
from modwatch.review.database import connect
from modwatch.review.embedded import EmbeddedServer
from modwatch.review.log import verification
from modwatch.review.people import access_tokens, accounts, changes
from modwatch.review.people.accounts import Moderator
from modwatch.review.queue import intake, leases, metrics
from modwatch.review.queue.items import NewItem

Fill = Callable[[int], None]
Headers = dict[str, str]


def lease(client: TestClient, bearer: Headers) -> dict[str, dict[str, object]]:
    answer = client.post("/api/v1/leases", headers=bearer)
    assert answer.status_code == 201
    content: dict[str, dict[str, object]] = answer.json()
    return content


def decide(
    client: TestClient, bearer: Headers, item: object, key: str = "k", **body: object
) -> tuple[int, dict[str, object]]:
    answer = client.post(
        f"/api/v1/items/{item}/decisions", json=body, headers={**bearer, "Idempotency-Key": key}
    )
    return answer.status_code, answer.json()


def code(answer: tuple[int, dict[str, object]]) -> tuple[int, object]:
    status, content = answer
    assert set(content) == {"error"}
    error = content["error"]
    assert isinstance(error, dict)
    assert set(error) == {"code", "message"}
    return status, error["code"]


def test_lease_and_decide(client: TestClient, bearer: Headers, fill: Fill, engine: Engine) -> None:
    fill(1)
    got = lease(client, bearer)
    item = got["item"]
    assert item["text"] == "invented text of c0"
    assert not {"prob", "review_score", "reason", "uncertainty"} & set(item)  # blind
    body = {"lease_token": got["token"], "label": 1, "seconds": 3.5}
    first = decide(client, bearer, item["id"], **body)
    assert first[0] == 201
    assert first[1]["label"] == 1
    assert decide(client, bearer, item["id"], **body) == first
    assert code(decide(client, bearer, item["id"], key="new", **body)) == (409, "lease_conflict")
    assert client.post("/api/v1/leases", headers=bearer).status_code == 204
    assert verification.verify_log(engine).decisions == 1


def test_skip(client: TestClient, bearer: Headers, fill: Fill, engine: Engine) -> None:
    fill(1)
    got = lease(client, bearer)
    status, done = decide(
        client, bearer, got["item"]["id"], lease_token=got["token"], action="skip"
    )
    assert (status, done["action"], done["label"]) == (201, "skip", None)
    assert metrics.counts(engine).waiting == 1


def test_unknown_items_are_not_found(client: TestClient, bearer: Headers) -> None:
    answer = decide(client, bearer, 99, lease_token="t", label=0)
    assert code(answer) == (404, "item_not_found")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"label": 1},
        {"lease_token": "t"},
        {"lease_token": "t", "label": 2},
        {"lease_token": "t", "label": "private"},
        {"lease_token": "t", "label": 1, "action": "skip"},
        {"lease_token": "t", "label": 1, "action": "undo"},
        {"lease_token": "t", "label": 1, "seconds": -1},
        {"lease_token": "t", "label": 1, "note": "private\0"},
        {"lease_token": "t", "label": 1, "note": "private" * 1_000},
        {"lease_token": "t", "label": 1, "unknown": "private"},
        {"lease_token": "t", "action": "skip", "policy_code": "threat"},
        {"lease_token": "t", "label": 1, "policy_code": "nonsense"},
        {"lease_token": "t", "label": 0, "policy_code": "threat"},
        {"lease_token": "t", "action": "skip", "reason": "nonsense"},
    ],
)
def test_impossible_requests_are_explained_without_their_content(
    client: TestClient, bearer: Headers, body: dict[str, object]
) -> None:
    status, content = decide(client, bearer, 1, **body)
    assert code((status, content)) == (422, "invalid_request")
    assert "private" not in str(content)


@pytest.mark.parametrize("item", ["0", "-1", "one", str(2**63)])
def test_impossible_items_are_refused(client: TestClient, bearer: Headers, item: str) -> None:
    assert code(decide(client, bearer, item, lease_token="t", label=0))[0] == 422


def test_an_idempotency_key_is_needed(client: TestClient, bearer: Headers) -> None:
    answer = client.post(
        "/api/v1/items/1/decisions", json={"lease_token": "t", "label": 1}, headers=bearer
    )
    assert code((answer.status_code, answer.json())) == (422, "invalid_request")


def test_broken_json_is_refused(client: TestClient, bearer: Headers) -> None:
    headers = {**bearer, "Idempotency-Key": "k", "Content-Type": "application/json"}
    answer = client.post("/api/v1/items/1/decisions", content=b'{"private', headers=headers)
    assert code((answer.status_code, answer.json())) == (422, "invalid_request")
    assert "private" not in answer.text


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer no"}, {"Authorization": "no"}])
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/api/v1/leases"), ("POST", "/api/v1/items/1/decisions"), ("GET", "/api/v1/queue")],
)
def test_nothing_without_a_token(
    client: TestClient, headers: Headers, method: str, path: str
) -> None:
    body = {"lease_token": "t", "label": 1} if "decisions" in path else None
    answer = client.request(method, path, json=body, headers={**headers, "Idempotency-Key": "k"})
    assert code((answer.status_code, answer.json())) == (401, "access_denied")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("role", ["auditor", "ops", "admin"])
def test_lookers_on_see_the_queue_and_lease_nothing(
    client: TestClient, engine: Engine, fill: Fill, role: str
) -> None:
    fill(1)
    person = accounts.create_moderator(engine, role, role)
    headers = {"Authorization": f"Bearer {access_tokens.issue_token(engine, person.id)}"}
    answer = client.post("/api/v1/leases", headers=headers)
    assert code((answer.status_code, answer.json())) == (403, "forbidden")
    assert client.get("/api/v1/queue", headers=headers).json()["counts"]["waiting"] == 1


def test_another_persons_lease_conflicts(
    client: TestClient, bearer: Headers, engine: Engine, ben: Moderator, fill: Fill
) -> None:
    fill(1)
    other = leases.lease(engine, ben.id)
    assert other is not None
    answer = decide(client, bearer, other.item.id, lease_token=other.token, label=0)
    assert code(answer) == (409, "lease_conflict")


def test_a_moderator_does_not_see_whether_a_label_opened_a_confirmation(
    client: TestClient, bearer: Headers
) -> None:
    answer = client.get("/api/v1/queue", headers=bearer)
    assert code((answer.status_code, answer.json())) == (403, "forbidden")


def test_the_queue_by_day(client: TestClient, engine: Engine, fill: Fill) -> None:
    fill(2)
    person = accounts.create_moderator(engine, "olu", "ops")
    bearer = {"Authorization": f"Bearer {access_tokens.issue_token(engine, person.id)}"}
    one = client.get("/api/v1/queue", params={"day": "2026-01-01"}, headers=bearer).json()
    assert one["counts"] == {"waiting": 2, "leased": 0, "decided": 0, "withdrawn": 0}
    assert one["ages"]["items"] == 2
    other = client.get("/api/v1/queue", params={"day": "2026-01-02"}, headers=bearer).json()
    assert other["counts"]["waiting"] == 0
    wrong = client.get("/api/v1/queue", params={"day": "someday"}, headers=bearer)
    assert wrong.status_code == 422


def test_probes(client: TestClient) -> None:
    assert client.get("/livez").json() == client.get("/readyz").json() == {"status": "ok"}


def test_without_tables_it_lives_and_is_not_ready(path_server: EmbeddedServer) -> None:
    bare = connect(path_server.url("without_tables"))
    with TestClient(create_app(bare)) as client:
        answer = client.get("/readyz")
        assert client.get("/livez").status_code == 200
    bare.dispose()
    assert code((answer.status_code, answer.json())) == (503, "database_unavailable")


def test_the_schema_names_every_endpoint(client: TestClient) -> None:
    schema = client.get("/api/v1/openapi.json").json()
    ours = {path for path in schema["paths"] if not path.startswith("/api/v1/lead")}
    assert ours >= {
        "/api/v1/leases",
        "/api/v1/items/{item_id}/lease",
        "/api/v1/items/{item_id}/decisions",
        "/api/v1/items/{item_id}/corrections",
        "/api/v1/decisions/{decision_id}/undo",
        "/api/v1/queue",
        "/api/v1/policy",
        "/api/v1/me",
        "/api/v1/me/day",
        "/api/v1/me/preferences",
        "/livez",
        "/readyz",
        "/metrics",
    }
    assert client.get("/docs").status_code == 404  # it would load scripts from elsewhere


def test_a_sample_and_an_audit_cannot_be_left_out(
    client: TestClient,
    engine: Engine,
    ann: Moderator,
    bearer: dict[str, str],
    new_item: Callable[..., NewItem],
    day: date,
) -> None:
    intake.enqueue(engine, [new_item("a", reason="random_slice")], day)
    everything = ["uncertainty", "toxicity", "hybrid", "random_slice", "audit"]
    changes.save_preferences(engine, ann.id, {"opt_outs": everything})
    assert client.post("/api/v1/leases", headers=bearer).status_code == 201
    intake.enqueue(engine, [new_item("b")], day)
    assert client.post("/api/v1/leases", headers=bearer).status_code == 204
