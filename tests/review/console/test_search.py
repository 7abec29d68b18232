import html
import re
from collections.abc import Callable

import pytest
from databases import tamper
from fastapi.testclient import TestClient
from sqlalchemy import Engine

from modwatch.review.console.request_context import SESSION_COOKIE, csrf_of
from modwatch.review.events import recent_events
from modwatch.review.log import verification
from modwatch.review.people import access_tokens, accounts, changes, sessions
from modwatch.review.queue import deciding, intake
from modwatch.review.queue.items import NewItem
from review.console.visiting import hidden, plain
from review.labelling import label_next, open_queues

New = Callable[..., NewItem]


def come_in(engine: Engine, visitor: TestClient, name: str, role: str) -> dict[str, str]:
    """Let a person in, and return the headers of their API token."""
    person = accounts.create_moderator(engine, name, role)
    token = access_tokens.issue_token(engine, person.id)
    visitor.cookies.set(SESSION_COOKIE, sessions.open_session(engine, token))
    return {"Authorization": f"Bearer {token}"}


def test_a_comment_is_found_and_its_history_reported(engine, visitor, ann, new_item, day):
    intake.enqueue(engine, [new_item("a"), new_item("b", 2)], day)
    label_next(engine, ann, 1, policy_code="threat", note="an open threat")
    come_in(engine, visitor, "cora", "lead")
    form = hidden(visitor.get("/search"), "search")
    typed = {"text": "TEXT of a", "first_day": str(day), "last_day": str(day)}
    page = visitor.post("/search", data=form | typed)
    assert re.findall(r'href="[./]*items/(\d+)"', page.text) == ["1"]
    assert 'value="TEXT of a"' in page.text  # the form keeps what was typed
    history = plain(visitor.get("/items/1"))
    for expected in ("queued", "uncertain", "ann", "Threat", "an open threat", "30%"):
        assert expected in history
    refused = visitor.post("/search", data=form | {"text": "x"})
    assert refused.status_code == 422
    assert "31 days" in plain(refused)
    assert visitor.post("/search", data=form | {"first_day": "x"}).status_code == 422
    assert visitor.get("/items/77").status_code == 404


def test_older_ones_come_on_the_next_page(engine, visitor, new_item, day):
    intake.enqueue(engine, [new_item(f"c{i}", i + 1) for i in range(60)], day)
    come_in(engine, visitor, "cora", "admin")
    page = visitor.get("/search")
    assert 'method="get"' not in page.text  # what is searched for stands in no address
    first = re.findall(r'href="[./]*items/(\d+)"', page.text)
    cursor = re.search(r'name="cursor" value="([\d-]+)"', page.text)
    assert cursor is not None
    forms = page.text.rpartition("<form")[2]
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', forms))
    page = visitor.post("/search", data=fields | {"cursor": cursor[1]})
    second = re.findall(r'href="[./]*items/(\d+)"', page.text)
    assert len(first) == 50
    assert sorted(map(int, first + second)) == list(range(1, 61))
    # Masked texts are shown on demand.
    assert "Show text" not in visitor.get("/items/1").text
    cora = accounts.find_moderator(engine, "cora")
    changes.save_preferences(engine, cora.id, {"masking": "blur"})
    for page in (visitor.get("/search"), visitor.get("/items/1")):
        assert re.search(r"<details[^>]*>\s*<summary>Show text", page.text)


def test_a_lead_corrects_once(engine, visitor, ann, new_item, day):
    intake.enqueue(engine, [new_item("a")], day)
    item = label_next(engine, ann, 1).item_id
    come_in(engine, visitor, "cora", "lead")
    form = hidden(visitor.get(f"/items/{item}"), "correct")
    form |= {"label": "0", "reason": "appeal", "policy_code": "", "note": ""}
    for _ in range(2):  # a double click
        page = visitor.post(f"/items/{item}/correct", data=form)
        assert "Corrected." in plain(page)
        assert "An appeal was upheld" in plain(page)
    assert verification.verify_log(engine).decisions == 2
    wrong = visitor.post(f"/items/{item}/correct", data=form | {"reason": "x", "key": "other"})
    assert wrong.status_code == 422


def test_a_conflict_tells_what_has_changed(engine, visitor, ann, new_item, day):
    intake.enqueue(engine, [new_item("a")], day)
    item = label_next(engine, ann, 1).item_id
    come_in(engine, visitor, "cora", "lead")
    form = hidden(visitor.get(f"/items/{item}"), "correct")
    deciding.correct(
        engine, moderator_id=ann.id, item_id=item, label=0, version=2, idempotency_key="c",
        reason="slip",
    )  # fmt: skip
    page = visitor.post(f"/items/{item}/correct", data=form | {"label": "0", "reason": "appeal"})
    assert page.status_code == 409
    assert "marked as new" in plain(page)
    assert page.text.count('class="new"') == 1
    assert re.search(r'class="new".*?new.*?ann.*?corrected', page.text, re.S)
    assert verification.verify_log(engine).decisions == 2
    again = hidden(page, "correct") | {"label": "0", "reason": "appeal"}
    assert visitor.post(f"/items/{item}/correct", data=again).status_code == 200


@pytest.mark.parametrize("role", ["auditor", "admin"])
def test_the_log_is_pulled_and_exported(engine, visitor, ann, new_item, day, role):
    intake.enqueue(engine, [new_item("a")], day)
    label_next(engine, ann, note="=private()")
    headers = come_in(engine, visitor, "them", role)
    feed = visitor.get("/api/v1/decisions", headers=headers)
    assert feed.status_code == 200
    cursor = feed.json()["next_cursor"]
    again = visitor.get("/api/v1/decisions", headers=headers, params={"after": cursor})
    assert again.json()["events"] == []
    assert visitor.get("/api/v1/decisions?after=x", headers=headers).status_code == 422
    form = hidden(visitor.get("/records"), "export")
    for kind in ("csv", "jsonl", "parquet"):
        file = visitor.post("/records/export", data=form | {"format": kind, "first": str(day)})
        assert file.status_code == 200
        assert f'"decisions-{day}.{kind}"' in file.headers["content-disposition"]
        assert b"private" not in file.content
    with_notes = visitor.post("/records/export", data=form | {"format": "csv", "with_notes": "1"})
    allowed = role == "admin"
    assert with_notes.status_code == (200 if allowed else 403)
    assert (b"'=private()" in with_notes.content) == allowed
    taken = [event for event in recent_events(engine) if event.action == "export"]
    assert len(taken) == 3 + allowed
    assert {item.actor for item in taken} == {"them"}


def test_who_works_some_queues_or_is_served_items_exports_nothing(engine, visitor):
    for name, role in (("cora", "lead"), ("odo", "auditor")):
        headers = come_in(engine, visitor, name, role)
        if role == "auditor":
            open_queues(engine, "de")
            changes.set_queues(engine, accounts.find_moderator(engine, name).id, ["de"])
        assert visitor.get("/api/v1/decisions", headers=headers).status_code == 403
        form = {"csrf": csrf_of(visitor.cookies[SESSION_COOKIE]), "format": "csv"}
        assert visitor.post("/records/export", data=form).status_code == 403
        assert "records/export" not in visitor.get("/records").text


def test_the_log_is_checked_on_demand(engine, visitor, ann, new_item, day):
    intake.enqueue(engine, [new_item("a"), new_item("b", 2)], day)
    label_next(engine, ann)
    come_in(engine, visitor, "odo", "auditor")
    form = hidden(visitor.get("/records"), "check")
    page = visitor.post("/records/check", data=form)
    assert "The log is intact Decisions verified: 1 " in plain(page)
    witness = re.search(r'<textarea id="kept"[^>]*>([^<]+)<', page.text)
    assert witness is not None
    label_next(engine, ann)
    page = visitor.post("/records/check", data=form | {"witness": html.unescape(witness[1])})
    assert "The log is intact Decisions verified: 2 " in plain(page)
    assert "Compared with the witness that you entered." in plain(page)
    tamper(engine, "UPDATE decision SET label = 0 WHERE id = 1")
    page = visitor.post("/records/check", data=hidden(visitor.get("/records"), "check"))
    assert "tampered with" in plain(page)
    assert "decision 1" in plain(page)
    form = hidden(page, "check") | {"witness": "nonsense"}
    assert visitor.post("/records/check", data=form).status_code == 422
