"""Somebody who wants a certain comment: to label it, to keep it from others, to spoil a figure.

Which comment a person is served is random within the rules, and every figure rests on it. The
attacker has a session and all that their browser knows: its cookies, the tokens of their own leases
and the numbers of all items.
"""

import hashlib
import hmac
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from typing import Any

import pytest
from databases import execute
from fastapi.testclient import TestClient
from sqlalchemy import Engine, text
from tabs import Tab

from modwatch.common.errors import LeaseConflictError
from modwatch.review import workload
from modwatch.review.console.app import create_app
from modwatch.review.console.request_context import ConsoleOptions
from modwatch.review.people import access_tokens
from modwatch.review.queue import deciding, intake, leases
from modwatch.review.queue.deciding import undo
from modwatch.review.queue.items import NewItem
from modwatch.review.queue.lanes import Lanes, Limits, load_lanes
from review.labelling import held, label

Make = Callable[..., NewItem]

#: An ordinary item, one reserved for ben, one of another reason, and a confirmation.
SOME = {2, 9, 10, 11}


@pytest.fixture
def queued(engine, new_item, day, tab, ben):
    """Fourteen items, which ann may be served in turn, later or never."""
    ordinary = [new_item(f"c{n}", n) for n in range(1, 10)]
    intake.enqueue(engine, [*ordinary, new_item("toxic", 10, reason="toxicity")], day)
    twins = [
        new_item(f"c{n}", n, kind="confirmation", round=number) for number in (2, 3) for n in (1, 2)
    ]
    intake.enqueue(engine, twins, day, kinds=["confirmation"])
    with engine.begin() as connection:
        reserve = text("UPDATE review_item SET reserved_for = :id WHERE comment_id = 'c9'")
        connection.execute(reserve, {"id": ben.id})


def attempts(tab: Tab, item: int, known: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the attacker can send for `item`, made of what the browser knows."""
    seed = tab.session.partition(".")[0]
    tickets = [
        hmac.new(key.encode(), f"item {item}".encode(), hashlib.sha256).hexdigest()
        for key in (seed, tab.session, known["lease_token"])
    ]
    tokens = ["x", tab.session, seed, known["lease_token"], *tickets]
    tokens += [hashlib.sha256(f"renewed {token}".encode()).hexdigest() for token in tokens]
    return [
        {"item_id": item, "lease_token": token, "ticket": ticket}
        for token in tokens
        for ticket in tickets
    ]


def test_no_one_picks_an_item(tab, engine, queued):
    [known] = tab.hold(1)
    for item in SOME - {known["item_id"]}:
        for forged in attempts(tab, item, known):
            assert tab.hold(0, [forged]) == []
    with engine.connect() as connection:
        leased = connection.scalars(text("SELECT id FROM review_item WHERE leased_by IS NOT NULL"))
        assert leased.all() == [known["item_id"]]


def test_an_item_that_another_had_or_that_was_skipped_is_gone(tab, engine, queued, ann, ben):
    [known, skipped] = tab.hold(2)
    tab.post("/leave", held=[known])
    lease = leases.claim(engine, ben.id, known["item_id"])
    assert lease is not None
    leases.release(engine, ben.id, lease.item.id, lease.token)
    deciding.skip(engine, moderator_id=ann.id, idempotency_key="k", **skipped)
    for old in (known, skipped):
        assert tab.hold(0, [old]) == []


def test_who_lost_the_queue_loses_its_items(tab, engine, queued, ann):
    [known] = tab.hold(1)
    tab.post("/leave", held=[known])
    execute(engine, "INSERT INTO moderator_queue VALUES (:id, 'other')", id=ann.id)
    assert tab.hold(0, [known]) == []


MOST = 4


@pytest.fixture
def browse(engine, ann, fill):
    """Somebody who skips what they are served, or escalates it and undoes that."""
    fill(20)
    limits = Limits(skips_per_hour=MOST, undos_per_hour=MOST)
    lanes = Lanes(limits=limits, severe=load_lanes().severe)
    bearer = {"Authorization": f"Bearer {access_tokens.issue_token(engine, ann.id)}"}
    with TestClient(create_app(engine, ConsoleOptions(lanes=lanes))) as client:
        tab = Tab(client, engine, ann)

        def send_on(
            key: str, lease: Any = None, action: str = "skip", reason: str = "unsure"
        ) -> list[int]:
            lease = lease or client.post("/api/v1/leases", headers=bearer).json()
            done = client.post(
                f"/api/v1/items/{lease['item']['id']}/decisions",
                json={"lease_token": lease["token"], "action": action, "reason": reason},
                headers={**bearer, "Idempotency-Key": key},
            )
            if action == "skip" or done.status_code != 201:
                return [done.status_code]
            return [done.status_code, tab.undo(done.json()["id"]).status_code]

        send_on.lease = lambda: client.post("/api/v1/leases", headers=bearer).json()  # type: ignore[attr-defined]
        yield send_on


def test_no_one_browses_by_skips(browse):
    assert [browse(f"k{n}") for n in range(MOST + 2)] == [[201]] * MOST + [[429]] * 2


def test_escalations_are_limited_with_skips_and_count_when_undone(browse, engine):
    context = {"action": "escalate", "reason": "context"}
    assert browse("skipped") == [201]
    answers = [browse(f"k{n}", **context) for n in range(MOST)]
    assert answers == [[201, 200]] * (MOST - 1) + [[429]]
    (row,) = workload.throughput(engine, *[_today(engine)] * 2)
    assert (row.skips, row.undos, row.escalations) == (1, MOST - 1, 0)
    assert row.share_picked == 1.0


def test_someone_in_danger_is_never_over_the_limit(browse):
    assert [browse(f"k{n}") for n in range(MOST)] == [[201]] * MOST
    assert browse("severe", action="escalate", reason="severe")[0] == 201


def test_many_skips_at_once_are_not_too_many(browse):
    leased = [browse.lease() for _ in range(12)]
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda n: browse(f"k{n}", leased[n])[0], range(12)))
    assert sorted(answers) == [201] * MOST + [429] * (12 - MOST)


def _today(engine: Engine) -> date:
    with engine.connect() as connection:
        moment = connection.execute(text("SELECT now() AT TIME ZONE 'UTC'")).scalar_one()
    return moment.date()  # type: ignore[no-any-return]


def _pass(engine: Engine, **time: float) -> None:
    passed = text("UPDATE review_item SET claimed_at = claimed_at - CAST(:ago AS interval), "
                  "leased_until = leased_until - CAST(:ago AS interval)")  # fmt: skip
    with engine.begin() as connection:
        connection.execute(passed, {"ago": timedelta(**time)})


def test_no_one_holds_an_item_for_ever_by_renewing(engine, ann, fill):
    fill(1)
    lease = held(engine, ann)
    first = lease.claimed_at
    for minutes in (9, 25, 24):
        _pass(engine, minutes=minutes)
        again = leases.renew(engine, ann.id, lease.item.id, lease.token)
        assert again is not None
        lease, first = again, first - timedelta(minutes=minutes)
        assert lease.claimed_at == first
        assert lease.expires_at <= first + timedelta(hours=1)
    _pass(engine, minutes=1)
    assert (
        leases.renew(engine, ann.id, lease.item.id, lease.token, timedelta(minutes=1)) is not None
    )
    _pass(engine, minutes=1)
    token = leases.renew(engine, ann.id, lease.item.id, lease.token)
    assert token is None


def test_no_one_holds_an_item_for_ever_by_undoing(engine, ann, fill):
    fill(1)
    lease = held(engine, ann)
    _pass(engine, minutes=5)
    done = label(engine, ann, lease)
    again = undo(engine, moderator_id=ann.id, decision_id=done.id, idempotency_key="u")
    assert again.claimed_at == lease.claimed_at - timedelta(minutes=5)
    done = label(engine, ann, again)
    _pass(engine, minutes=55)
    with pytest.raises(LeaseConflictError, match="more than an hour ago"):
        undo(engine, moderator_id=ann.id, decision_id=done.id, idempotency_key="v")


def test_no_one_holds_an_item_for_ever_by_giving_it_back(engine, ann, ben, fill):
    fill(1)
    lease = held(engine, ann)
    first = lease.claimed_at
    for minutes in (9, 50):
        _pass(engine, minutes=minutes)
        leases.release(engine, ann.id, lease.item.id, lease.token)
        lease, first = held(engine, ann), first - timedelta(minutes=minutes)
        assert lease.claimed_at == first
        assert lease.expires_at <= first + timedelta(hours=1)
    _pass(engine, minutes=1)
    assert leases.lease(engine, ann.id) is None
    assert leases.claim(engine, ann.id, lease.item.id) is None
    theirs = held(engine, ben)
    leases.release(engine, ben.id, theirs.item.id, theirs.token)
    assert held(engine, ann).claimed_at >= theirs.claimed_at


def test_who_works_alone_is_served_again_what_they_left(engine, ann, fill):
    fill(1)
    first = held(engine, ann)
    _pass(engine, hours=2)
    assert held(engine, ann).claimed_at >= first.claimed_at


def test_what_is_given_back_does_not_tell_a_reserved_item(engine, ann, ben, new_item, day):
    """Others take an ordinary item that ann gives back; nobody else may take a reserved one."""
    intake.enqueue(engine, [new_item(f"c{n}", n) for n in (1, 2, 3)], day)
    intake.enqueue(engine, [new_item("gold", kind="gold")], day, kinds=["gold"])
    with engine.begin() as connection:
        reserve = text("UPDATE review_item SET reserved_for = :id WHERE kind = 'gold'")
        connection.execute(reserve, {"id": ann.id})
    lease = held(engine, ann)
    assert lease.item.comment_id == "gold"
    leases.release(engine, ann.id, lease.item.id, lease.token)
    again = leases.renew(engine, ann.id, lease.item.id, lease.token)  # the page was loaded again
    assert again is not None
    leases.release(engine, ann.id, lease.item.id, again.token)
    label(engine, ben, held(engine, ben))
    assert leases.renew(engine, ann.id, lease.item.id, again.token) is None
    assert {held(engine, ann).item.comment_id for _ in range(2)} == {"c2", "c3"}
