"""A lead who wants to know what the model or others say of a comment before labelling it.

Leads search, read histories and label. What they label must be their own opinion, and nothing may
tell an ordinary item from a confirmation, whose figures rest on nobody's knowing.
"""

import datetime as dt
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine

from modwatch.review import people, queue
from modwatch.review.people import Moderator
from modwatch.review.queue.items import NewItem
from review.labelling import label_next

#: What tells the kind of an item apart from its number and its comment.
OWN = {"id", "comment_id", "text", "queued_at", "due_at"}


@pytest.fixture
def lead(engine: Engine) -> Moderator:
    return people.create_moderator(engine, "lea", "lead")


@pytest.fixture
def ask(client: TestClient, engine: Engine, lead: Moderator) -> Callable[..., Any]:
    bearer = {"Authorization": f"Bearer {people.issue_token(engine, lead.id)}"}

    def send(method: str, path: str, **body: object) -> Any:
        json = {"json": body} if method == "POST" else {}
        answer = client.request(method, f"/api/v1{path}", headers=bearer, **json)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return send


def everything(ask: Callable[..., Any], item_id: int, comment_id: str) -> dict[str, Any]:
    """Return all that a lead can read of a comment, but for what is any item's own."""
    history = ask("GET", f"/items/{item_id}/history")
    items = [*history["items"], *ask("POST", "/items/search", comment_id=comment_id)["items"]]
    return {
        "items": [{name: item[name] for name in item if name not in OWN} for item in items],
        "events": [event["action"] for event in history["events"]],
        "labels": {event["label"] for event in history["events"]},
    }


def test_an_ordinary_item_and_a_confirmation_look_alike(
    engine: Engine, ask: Callable[..., Any], lead: Moderator, ann: Moderator,
    new_item: Callable[..., NewItem], day: date,
) -> None:  # fmt: skip
    twins = [new_item("both", kind=kind, prob=0.345) for kind in ("review", "confirmation")]
    queue.enqueue(engine, twins, day)
    label_next(engine, ann, 1, note="toxic, clearly")
    queue.enqueue(engine, [new_item("plain", prob=0.345)], day + dt.timedelta(days=1))
    held = {}
    for _ in range(2):
        lease = queue.lease(engine, lead.id)
        assert lease is not None
        held[lease.item.comment_id] = lease.item.id
    second, ordinary = (everything(ask, held[name], name) for name in ("both", "plain"))
    for seen in (second, ordinary):
        for item in seen["items"]:
            item.pop("dt")
    assert second == ordinary
    assert ordinary["events"] == ["queued"]
    assert ordinary["labels"] == {None}
    assert {item["prob"] for item in second["items"]} == {None}


def test_what_is_decided_is_read_as_before(
    engine: Engine, ask: Callable[..., Any], ann: Moderator,
    new_item: Callable[..., NewItem], day: date,
) -> None:  # fmt: skip
    queue.enqueue(engine, [new_item("a", prob=0.345)], day)
    decided = label_next(engine, ann, 1)
    seen = everything(ask, decided.item_id, "a")
    assert [item["prob"] for item in seen["items"]] == pytest.approx([0.345] * 2)
    assert seen["labels"] == {None, 1}


def test_a_token_of_fewer_scopes_does_not_show_more(
    engine: Engine, client: TestClient, lead: Moderator, new_item: Callable[..., NewItem], day: date
) -> None:
    """A lead who holds an item in the browser, and asks with a token that may not review."""
    queue.enqueue(engine, [new_item("held", prob=0.345), new_item("open", 2, prob=0.345)], day)
    assert queue.lease(engine, lead.id) is not None
    token = people.issue_token(engine, lead.id, scopes=["lead", "decisions:read"])
    bearer = {"Authorization": f"Bearer {token}"}
    for comment_id in ("held", "open"):
        found = client.post(
            "/api/v1/items/search", json={"comment_id": comment_id}, headers=bearer
        ).json()["items"]
        item_id = found[0]["id"]
        history = client.get(f"/api/v1/items/{item_id}/history", headers=bearer).json()
        for item in (*found, *history["items"]):
            assert item["prob"] is None
            assert item["reason"] is None
            assert item["review_score"] is None
