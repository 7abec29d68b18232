import re
from collections.abc import Callable

import pytest
from databases import execute
from fastapi.testclient import TestClient
from sqlalchemy import Engine

from modwatch.review import workload
from modwatch.review.console.request_context import SESSION_COOKIE
from modwatch.review.events import recent_events
from modwatch.review.log import verification
from modwatch.review.people import access_tokens, changes, sessions
from modwatch.review.people.accounts import Moderator
from modwatch.review.queue import dismissal, leases, metrics
from modwatch.review.queue.dismissal import Criteria
from review.console.visiting import hidden, plain
from review.labelling import escalate, held, held_escalated, label, open_queues

Fill = Callable[[int], None]


@pytest.fixture
def lead(engine, visitor, cora):
    return come_in(engine, visitor, cora)


def come_in(engine: Engine, visitor: TestClient, person: Moderator) -> TestClient:
    token = access_tokens.issue_token(engine, person.id)
    visitor.cookies.set(SESSION_COOKIE, sessions.open_session(engine, token))
    return visitor


def escalated(engine: Engine, person: Moderator, note: str = "look at this") -> int:
    lease = held(engine, person)
    escalate(engine, person, lease, reason="severe", note=note)
    return lease.item.id


def test_the_queues_tell_ages_and_what_is_overdue_in_words(engine, lead, ann, fill):
    fill(4)
    escalated(engine, ann)
    execute(
        engine,
        "UPDATE review_item SET queued_at = now() - interval '5 days 1 minute', "
        "due_at = now() - interval '4 days' WHERE rank = 3",
    )
    leases.lease(engine, ann.id)
    page = lead.get("/lead")
    assert page.status_code == 200
    assert "1 overdue" in plain(page)
    assert "5 days" in plain(page)
    assert "Someone may be in danger" in plain(page)
    assert "within 24 h" in plain(page)
    assert re.search(r"general uncertain 4 1 overdue within 24 h 5 days", plain(page))


def test_who_did_how_much(engine, lead, ann, fill):
    fill(1)
    lease = held(engine, ann)
    label(engine, ann, lease, seconds=12.34)
    page = lead.get("/lead/team")
    assert re.search(r"ann \S.* 1 0 0 0% 0 12.3 100% of 1", plain(page))
    assert "insufficient data:" in plain(page)  # agreement of one label
    wrong = lead.get("/lead/team?first=2026-01-02&last=2026-01-01")
    assert wrong.status_code == 422
    assert "must be in order" in plain(wrong)


def test_a_lead_settles_what_was_handed_over_or_gives_it_back(engine, lead, ann, fill):
    fill(2)
    item = escalated(engine, ann)
    page = lead.post("/lead/take", data=hidden(lead.get("/lead"), "take"))
    lead.post("/lead/leave", data=hidden(page, "leave"))
    assert metrics.counts(engine).escalated == 1
    page = lead.post("/lead/take", data=hidden(lead.get("/lead"), "take"))
    assert page.url.path == "/lead/settle"
    assert "ann" in plain(page)
    assert "look at this" in plain(page)
    assert "in review by cora" in plain(lead.get("/lead"))
    assert lead.get("/lead/settle").status_code == 200  # a reload shows the same
    form = {**hidden(page, "settle"), "label": "1", "policy_code": "threat", "note": " seen "}
    wrong = lead.post("/lead/settle", data=form | {"label": "0"})
    assert wrong.status_code == 422
    assert "is for the label 1" in plain(wrong)
    for _ in range(2):  # a double click
        assert "Resolved." in plain(lead.post("/lead/settle", data=form))
    assert metrics.counts(engine).decided == 1
    assert verification.verify_log(engine).decisions == 2
    history = plain(lead.get(f"/items/{item}"))
    assert "resolved by a lead" in history
    assert "seen" in history
    assert "No escalations or disagreements" in plain(lead.get("/lead"))
    # What another person holds is released.
    leases.lease(engine, ann.id)
    page = lead.get("/lead")
    (holder,) = workload.holders(engine)
    lead.post("/lead/release", data={**hidden(page, "release"), "item_id": str(holder.item_id)})
    assert workload.holders(engine) == []
    (event,) = [row for row in recent_events(engine) if row.action == "leases_released"]
    assert (event.actor, event.subject) == ("cora", "ann")


def test_an_item_that_someone_took_is_reported_kindly(engine, lead, ann, lea, fill):
    fill(1)
    escalated(engine, ann)
    form = hidden(lead.get("/lead"), "take")
    held_escalated(engine, lea)
    page = lead.post("/lead/take", data=form)
    assert "That comment is not available" in plain(page)
    for cookie in (None, "", "1", "1.", "x.y", "1.t", f"{2**70}.t"):  # any is survived
        if cookie is not None:
            lead.cookies.set("modwatch_settle", cookie)
        assert lead.get("/lead/settle").url.path == "/lead"


def test_many_are_counted_confirmed_watched_and_brought_back(engine, lead, fill):
    fill(5)
    form = hidden(lead.get("/lead/close"), "count")
    page = lead.post("/lead/close/count", data=form | {"queue": "general"})
    assert "Matching items: 5" in plain(page)
    wrong = lead.post("/lead/close", data=hidden(page, "lead/close") | {"why": "x"})
    assert wrong.status_code == 422
    assert metrics.counts(engine).waiting == 5
    page = lead.post("/lead/close", data=hidden(page, "lead/close") | {"why": "spam_wave"})
    assert page.url.path == "/lead/close/1"
    assert "A wave of spam" in plain(page)
    assert metrics.counts(engine).closed == 5
    page = lead.get("/lead/close/1")
    assert "5 of 5" in plain(page)
    page = lead.post("/lead/close/1/cancel", data=hidden(page, "cancel"))
    assert metrics.counts(engine).waiting == 5
    assert "0 of 5" in plain(lead.get("/lead/close/1"))
    assert lead.get("/lead/close/77").status_code == 404
    assert verification.verify_log(engine).decisions == 10


def test_another_number_is_reported_and_asked_again(engine, lead, ann, fill):
    fill(5)
    form = hidden(lead.get("/lead/close"), "count")
    page = lead.post("/lead/close/count", data=form | {"queue": "general"})
    leases.lease(engine, ann.id)  # counts: a lead must not see by the number what they hold
    execute(engine, "UPDATE review_item SET status = 'withdrawn' WHERE rank = 5")
    page = lead.post("/lead/close", data=hidden(page, "lead/close") | {"why": "spam_wave"})
    assert page.status_code == 409
    assert "4 items match now instead of 5" in plain(page)
    page = lead.post("/lead/close", data=hidden(page, "lead/close") | {"why": "spam_wave"})
    assert metrics.counts(engine).closed == 3  # what is leased stays


def test_criteria_that_cannot_be(lead, fill):
    fill(1)
    form = hidden(lead.get("/lead/close"), "count")
    for typed in ({}, {"first_day": "yesterday"}, {"queue": "a\0b"}, {"queued_before": "x"}):
        page = lead.post("/lead/close/count", data=form | typed)
        assert page.status_code == 422
        assert 'role="alert"' in page.text


def test_a_closing_that_a_process_left_goes_on(engine, lead, cora, fill):
    fill(3)
    begun = dismissal.start(engine, cora.id, Criteria(queue="general"), "spam_wave", 3)
    page = lead.get(f"/lead/close/{begun.id}")
    assert "in progress" in plain(page)
    lead.post(f"/lead/close/{begun.id}/resume", data=hidden(page, "resume"))
    assert metrics.counts(engine).closed == 3


def test_a_lead_of_some_queues_leaves_the_others_alone(engine, visitor, cora, ann, fill):
    fill(3)
    leases.lease(engine, ann.id)
    begun = dismissal.start(engine, cora.id, Criteria(queue="general"), "spam_wave", 3)
    open_queues(engine, "de")
    changes.set_queues(engine, cora.id, ["de"])
    lead = come_in(engine, visitor, cora)
    page = lead.get("/lead")
    assert "The queue is empty, and nothing was reviewed today" in plain(page)
    assert "No one is reviewing an item" in plain(page)
    form = hidden(lead.get("/lead/close"), "count")
    for typed in ({"queue": "general"}, {"platform": "forum"}):
        assert lead.post("/lead/close/count", data=form | typed).status_code == 403
    body = form | {"criteria": '{"queue": "general"}', "expected": "2", "why": "spam_wave"}
    assert lead.post("/lead/close", data=body).status_code == 403
    for what in ("resume", "cancel"):
        assert lead.post(f"/lead/close/{begun.id}/{what}", data=form).status_code == 403
    lead.post("/lead/release", data=form | {"moderator_id": str(ann.id)})
    assert len(workload.holders(engine)) == 1
    assert lead.get("/items/1").status_code == 404
    assert lead.get(f"/lead/close/{begun.id}").status_code == 403
    assert "spam" not in lead.get("/lead/close").text.partition("<table")[2]
    assert metrics.counts(engine).closed == 0
