"""What a tab with a script asks of the server."""

from collections.abc import Callable
from datetime import timedelta

from databases import execute
from tabs import Tab

from modwatch.review.console.request_context import csrf_of
from modwatch.review.people import accounts, sessions
from modwatch.review.queue import deciding, leases, metrics

Fill = Callable[[int], None]


def test_what_was_left_is_had_again(tab, fill, engine):
    fill(4)
    held = tab.hold(2)
    assert tab.post("/leave", held=held).status_code == 204
    assert metrics.counts(engine).leased == 0
    again = tab.hold(2, held)
    assert [one["item_id"] for one in again] == [one["item_id"] for one in held]
    tab.post("/leave", held=held)  # late: of the leases before
    assert metrics.counts(engine).leased == 2
    lost = tab.hold(2, held)  # as if the answer before had never come
    assert [one["item_id"] for one in lost] == [one["item_id"] for one in held]


def test_leases_and_a_proof_hold_under_a_new_token_of_their_session(tab, fill, engine):
    fill(2)
    held, proof = tab.hold(2), csrf_of(tab.session)
    new = sessions.rotate_session(engine, tab.session, timedelta(0))
    assert new is not None
    tab.session = new
    assert tab.post("/leave", csrf=proof, held=held).status_code == 204
    assert metrics.counts(engine).leased == 0
    again = tab.post("/next", csrf=proof, held=held[1:], count=0)
    assert (again.status_code, 'data-item="2"' in again.text) == (200, True)
    assert metrics.counts(engine).leased == 1


def test_what_was_handed_to_a_lead_is_not_had_again(tab, client, fill, engine, ann):
    fill(1)
    held = tab.hold()
    deciding.escalate(
        engine, moderator_id=ann.id, item_id=held[0]["item_id"], idempotency_key="e",
        lease_token=held[0]["lease_token"], note="for leads only",
    )  # fmt: skip
    assert tab.hold(1, held) == []
    lea = Tab(client, engine, accounts.create_moderator(engine, "lea", "lead"))
    taken = leases.lease_escalated(engine, 2)
    assert taken is not None
    assert lea.hold(1, [{**held[0], "lease_token": taken.token}]) != []


def test_a_tab_of_an_earlier_version_has_its_items_again(tab, fill):
    fill(1)
    held = tab.hold()
    assert tab.hold(0, [{**held[0], "ticket": "of the version before"}]) != []


def test_a_session_that_ended_is_reported_as_json(tab, engine, fill):
    fill(1)
    execute(engine, "UPDATE moderator SET disabled_at = now()")
    headers = {"Cookie": f"modwatch_session={tab.session}", "X-Modwatch-Fragment": "1"}
    answer = tab.client.post("/next", json={}, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "access_denied")


def test_those_who_do_not_decide_hold_nothing(client, engine, fill):
    fill(1)
    for role in ("auditor", "ops", "admin"):
        person = accounts.create_moderator(engine, role, role)
        assert Tab(client, engine, person).post("/next", count=1).status_code == 403
