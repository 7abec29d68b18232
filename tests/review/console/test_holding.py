"""Hold, give back, take back, correct."""

from collections.abc import Callable
from typing import Any

from fastapi.testclient import TestClient

from modwatch.review.people import sessions
from modwatch.review.queue import metrics
from review.console.visiting import bearer_of

Fill = Callable[[int], None]
Headers = dict[str, str]


def leased(client: TestClient, bearer: Headers, **body: Any) -> Any:
    return client.post("/api/v1/leases", json=body, headers=bearer)


def decided(client: TestClient, bearer: Headers, key: str = "k", **body: Any) -> Any:
    lease = leased(client, bearer).json()
    body = {"lease_token": lease["token"], "version": lease["item"]["version"], **body}
    path = f"/api/v1/items/{lease['item']['id']}/decisions"
    answer = client.post(path, json=body, headers={**bearer, "Idempotency-Key": key})
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_a_lease_is_resumed_extended_and_given_back(client, bearer, fill, engine):
    fill(4)
    lease = leased(client, bearer).json()
    path = f"/api/v1/items/{lease['item']['id']}/lease"
    proof = {**bearer, "X-Lease-Token": lease["token"]}
    assert client.get(path, headers=proof).json()["item"] == lease["item"]
    longer = client.put(path, headers=proof)
    assert longer.json()["expires_at"] >= lease["expires_at"]
    for wrong in ("x", "\x7f"):
        forged = {**bearer, "X-Lease-Token": wrong}
        assert client.get(path, headers=forged).status_code == 409
        assert client.put(path, headers=forged).status_code == 409
    assert client.delete(path, headers=proof).status_code == 204
    assert client.delete(path, headers=proof).status_code == 204  # already
    assert metrics.counts(engine).leased == 0
    assert client.get(path, headers=proof).status_code == 409
    # Several are leased at once.
    got = leased(client, bearer, count=3).json()
    assert len({lease["item"]["id"] for lease in got}) == 3
    assert len(leased(client, bearer, count=3).json()) == 1
    assert leased(client, bearer, count=3).status_code == 204
    assert leased(client, bearer, count=4).status_code == 422


def test_a_correction_names_the_version(client, bearer, fill):
    fill(1)
    done = decided(client, bearer, label=1)
    path = f"/api/v1/items/{done['item_id']}/corrections"
    keyed = {**bearer, "Idempotency-Key": "correct"}
    version = client.get("/api/v1/me/day", headers=bearer).json()["decisions"][0]["item_version"]
    body = {"label": 0, "version": version, "reason": "slip"}
    for wrong, status in (({"version": version - 1}, 409), ({"reason": "nonsense"}, 422)):
        assert client.post(path, json=body | wrong, headers=keyed).status_code == status
    right = client.post(path, json=body, headers=keyed).json()
    assert (right["action"], right["refers_to"]) == ("correct", done["id"])


def test_escalated_items_are_for_leads(client, bearer, fill, engine, lea):
    fill(1)
    decided(client, bearer, action="escalate", reason="legal", note="look")
    assert leased(client, bearer, escalated=True).status_code == 403
    [opinion] = leased(client, bearer_of(engine, lea), escalated=True).json()["opinions"]
    told = (opinion["pseudonym"], opinion["reason"], opinion["note"])
    assert told == ("ann", "legal", "look")


def test_my_day_says_nothing_of_what_it_was_for(client, bearer, fill, ben, engine):
    fill(4)
    decided(client, bearer, "1", label=1, seconds=4)
    decided(client, bearer, "2", label=0, seconds=2)
    undone = decided(client, bearer, "3", action="escalate")
    client.post(
        f"/api/v1/decisions/{undone['id']}/undo", headers={**bearer, "Idempotency-Key": "u"}
    )
    decided(client, bearer, "4", action="skip")
    day = client.get("/api/v1/me/day", headers=bearer).json()
    assert [day[name] for name in ("decided", "toxic", "skipped", "escalated")] == [2, 1, 1, 0]
    assert day["per_hour"] is None  # not after seconds
    assert [one["undoable"] for one in day["decisions"]] == [False, False, True, True]
    assert day["decisions"][0]["item_version"] is None
    assert not {"kind", "prob", "review_score", "text", "excerpt"} & set(day["decisions"][0])
    theirs = client.get("/api/v1/me/day", headers=bearer_of(engine, ben)).json()
    assert theirs["decided"] == 0


def test_policy_and_preferences(client, bearer, fill):
    fill(1)
    policy = client.get("/api/v1/policy", headers=bearer).json()
    assert {"version", "node", "reasons", "digest"} <= set(policy)
    path = "/api/v1/me/preferences"
    assert client.get(path, headers=bearer).json()["theme"] == "auto"
    same_key = client.put(path, json={"keys": {"fine": "t"}}, headers=bearer)
    assert same_key.status_code == 422
    assert "same key" in same_key.json()["error"]["message"]
    chosen = {"theme": "dark", "opt_outs": ["uncertainty"]}
    assert client.put(path, json=chosen, headers=bearer).status_code == 200
    assert client.get(path, headers=bearer).json()["theme"] == "dark"
    assert leased(client, bearer).status_code == 204  # opted out of the only reason


def test_a_cookie_alone_changes_nothing(client, token, fill, engine):
    fill(1)
    client.cookies.set("modwatch_session", sessions.open_session(engine, token))
    me = client.get("/api/v1/me").json()
    assert me["pseudonym"] == "ann"
    extra = {"X-Lease-Token": "x"}
    for method, path in (
        ("POST", "/api/v1/leases"),
        ("PUT", "/api/v1/me/preferences"),
        ("DELETE", "/api/v1/items/1/lease"),
    ):
        body = {} if method == "DELETE" else {"json": {}}
        for headers in (extra, {**extra, "X-Modwatch-CSRF": "0" * 64}):
            assert client.request(method, path, headers=headers, **body).status_code == 403
        proof = {**extra, "X-Modwatch-CSRF": me["csrf"]}
        assert client.request(method, path, headers=proof, **body).status_code < 300
    assert metrics.counts(engine).leased == 1
