"""Hold, correct, look back at a day."""

from collections.abc import Callable
from typing import Any

from fastapi.testclient import TestClient

from modwatch.review.console.activity import activity_today
from modwatch.review.console.request_context import csrf_of
from modwatch.review.people import changes, sessions
from modwatch.review.queue import deciding, metrics
from review.console.visiting import bearer_of, by_cookie

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


def test_a_lease_is_extended(client, bearer, fill):
    fill(1)
    lease = leased(client, bearer).json()
    path = f"/api/v1/items/{lease['item']['id']}/lease"
    longer = client.put(path, headers={**bearer, "X-Lease-Token": lease["token"]})
    assert longer.json()["expires_at"] >= lease["expires_at"]
    for wrong in ("x", "\x7f"):
        forged = {**bearer, "X-Lease-Token": wrong}
        assert client.put(path, headers=forged).status_code == 409


def test_a_correction_names_the_version(client, bearer, fill, engine, token, ann):
    fill(1)
    done = decided(client, bearer, label=1)
    session = sessions.open_session(engine, token)
    [listed] = activity_today(engine, ann.id).decisions
    form = {
        "csrf": csrf_of(session),
        "decision_id": done["id"],
        "item_id": done["item_id"],
        "version": listed.item_version,
        "label": 0,
        "reason": "slip",
    }

    def correct(**wrong: Any) -> Any:
        return client.post(
            "/correct", data=form | wrong, headers=by_cookie(session), follow_redirects=False
        )

    assert correct(version=form["version"] - 1).headers["Location"] == "./day?notice=conflict"
    assert correct(reason="nonsense").status_code == 422
    assert correct().headers["Location"] == "./day?notice=corrected"
    [corrected, _] = activity_today(engine, ann.id).decisions
    assert (corrected.action, corrected.label) == ("correct", 0)


def test_escalated_items_are_for_leads(client, bearer, fill, engine, lea):
    fill(1)
    decided(client, bearer, action="escalate", reason="legal", note="look")
    assert leased(client, bearer, escalated=True).status_code == 403
    [opinion] = leased(client, bearer_of(engine, lea), escalated=True).json()["opinions"]
    told = (opinion["pseudonym"], opinion["reason"], opinion["note"])
    assert told == ("ann", "legal", "look")


def test_my_day_says_nothing_of_what_it_was_for(client, bearer, fill, ann, ben, engine):
    fill(4)
    decided(client, bearer, "1", label=1, seconds=4)
    decided(client, bearer, "2", label=0, seconds=2)
    undone = decided(client, bearer, "3", action="escalate")
    deciding.undo(engine, moderator_id=ann.id, decision_id=undone["id"], idempotency_key="u")
    decided(client, bearer, "4", action="skip")
    day = activity_today(engine, ann.id)
    assert (day.decided, day.toxic, day.skipped, day.escalated) == (2, 1, 1, 0)
    assert day.per_hour is None  # not after seconds
    assert [one.undoable for one in day.decisions] == [False, False, True, True]
    assert day.decisions[0].item_version is None
    assert not {"kind", "prob", "review_score", "text"} & set(vars(day.decisions[0]))
    assert activity_today(engine, ben.id).decided == 0


def test_nothing_is_leased_for_a_reason_that_one_opted_out_of(client, bearer, fill, engine, ann):
    fill(1)
    changes.save_preferences(engine, ann.id, {"opt_outs": ["uncertainty"]})
    assert leased(client, bearer).status_code == 204  # it is the only reason


def test_a_cookie_alone_changes_nothing(client, token, fill, engine):
    fill(1)
    client.cookies.set("modwatch_session", sessions.open_session(engine, token))
    me = client.get("/api/v1/me").json()
    assert me["pseudonym"] == "ann"
    for headers in ({}, {"X-Modwatch-CSRF": "0" * 64}):
        assert client.post("/api/v1/leases", headers=headers).status_code == 403
    assert metrics.counts(engine).leased == 0
    proof = {"X-Modwatch-CSRF": me["csrf"]}
    assert client.post("/api/v1/leases", headers=proof).status_code == 201
