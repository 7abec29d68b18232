from collections.abc import Callable

from fastapi.testclient import TestClient

from modwatch.review.console.app import create_app
from modwatch.review.database import connect
from modwatch.review.log import verification
from modwatch.review.people import accounts, changes
from modwatch.review.queue import intake
from review.console.visiting import bearer_of

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


def test_lease_and_decide(client, bearer, fill, engine):
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


#: Bodies of decisions that nobody can make.
IMPOSSIBLE: list[dict[str, object]] = [
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
]


def test_impossible_requests_are_explained_without_their_content(client, bearer):
    for body in IMPOSSIBLE:
        status, content = decide(client, bearer, 1, **body)
        assert code((status, content)) == (422, "invalid_request"), body
        assert "private" not in str(content)
    assert code(decide(client, bearer, 99, lease_token="t", label=0)) == (404, "item_not_found")
    for item in ("0", "-1", "one", str(2**63)):
        assert code(decide(client, bearer, item, lease_token="t", label=0))[0] == 422
    path, body = "/api/v1/items/1/decisions", {"lease_token": "t", "label": 1}
    answer = client.post(path, json=body, headers=bearer)  # without an idempotency key
    assert code((answer.status_code, answer.json())) == (422, "invalid_request")
    headers = {**bearer, "Idempotency-Key": "k", "Content-Type": "application/json"}
    answer = client.post(path, content=b'{"private', headers=headers)
    assert code((answer.status_code, answer.json())) == (422, "invalid_request")
    assert "private" not in answer.text


def test_nothing_without_a_token(client):
    for headers in ({}, {"Authorization": "Bearer no"}, {"Authorization": "no"}):
        for path in ("/api/v1/leases", "/api/v1/items/1/decisions"):
            body = {"lease_token": "t", "label": 1} if "decisions" in path else None
            answer = client.post(path, json=body, headers={**headers, "Idempotency-Key": "k"})
            assert code((answer.status_code, answer.json())) == (401, "access_denied")
            assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_lookers_on_lease_nothing(client, engine, fill):
    fill(2)
    for role in ("auditor", "ops", "admin"):
        headers = bearer_of(engine, accounts.create_moderator(engine, role, role))
        answer = client.post("/api/v1/leases", headers=headers)
        assert code((answer.status_code, answer.json())) == (403, "forbidden")


def test_without_tables_it_lives_and_is_not_ready(client, path_server, caplog):
    assert client.get("/livez").json() == client.get("/readyz").json() == {"status": "ok"}
    bare = connect(path_server.url("without_tables"))
    with TestClient(create_app(bare)) as client:
        answer = client.get("/readyz")
        assert client.get("/livez").status_code == 200
    bare.dispose()
    assert code((answer.status_code, answer.json())) == (503, "database_unavailable")
    said = answer.json()["error"]["message"]
    assert said == "the review database does not answer; try again in a moment"
    events = [getattr(record, "event", None) for record in caplog.records]
    assert "database_unavailable" in events  # the log has the cause


def test_a_sample_and_an_audit_cannot_be_left_out(client, engine, ann, bearer, new_item, day):
    intake.enqueue(engine, [new_item("a", reason="random_slice")], day)
    everything = ["uncertainty", "toxicity", "hybrid", "random_slice", "audit"]
    changes.save_preferences(engine, ann.id, {"opt_outs": everything})
    assert client.post("/api/v1/leases", headers=bearer).status_code == 201
    intake.enqueue(engine, [new_item("b")], day)
    assert client.post("/api/v1/leases", headers=bearer).status_code == 204
