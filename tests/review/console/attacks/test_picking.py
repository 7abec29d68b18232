"""Somebody who wants a certain comment: to label it, to keep it from others, to spoil a figure.

Which comment a person is served is random within the rules, and every figure rests on it. The
attacker has a session and all that their browser knows: its cookies, the tokens of their own leases
and the numbers of all items.
"""

import hashlib
import hmac
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from sqlalchemy import Engine, text
from tabs import Tab

from modwatch.review import queue
from modwatch.review.people import Moderator
from modwatch.review.queue.items import NewItem

Make = Callable[..., NewItem]

#: Ordinary items, one of another reason, one reserved for ben, confirmations.
ITEMS = range(1, 15)


@pytest.fixture
def queued(engine: Engine, new_item: Make, day: date, tab: Tab, ben: Moderator) -> None:
    """Fourteen items, which ann may be served in turn, later or never."""
    ordinary = [new_item(f"c{n}", n) for n in range(1, 10)]
    queue.enqueue(engine, [*ordinary, new_item("toxic", 10, reason="toxicity")], day)
    twins = [
        new_item(f"c{n}", n, kind="confirmation", round=number) for number in (2, 3) for n in (1, 2)
    ]
    queue.enqueue(engine, twins, day, kinds=["confirmation"])
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


def test_no_one_picks_an_item(tab: Tab, engine: Engine, queued: None) -> None:
    [known] = tab.hold(1)
    for item in set(ITEMS) - {known["item_id"]}:
        for forged in attempts(tab, item, known):
            assert tab.hold(0, [forged]) == []
    with engine.connect() as connection:
        leased = connection.scalars(text("SELECT id FROM review_item WHERE leased_by IS NOT NULL"))
        assert leased.all() == [known["item_id"]]


def test_no_one_goes_on_with_the_lease_of_another(
    tab: Tab, engine: Engine, queued: None, ben: Moderator
) -> None:
    theirs = queue.lease(engine, ben.id)
    assert theirs is not None
    stolen = {"item_id": theirs.item.id, "lease_token": theirs.token}
    assert tab.hold(0, [stolen]) == []
    queue.release(engine, ben.id, theirs.item.id, theirs.token)
    assert tab.hold(0, [stolen]) == []


def test_an_item_that_was_given_back_and_had_by_another_is_gone(
    tab: Tab, engine: Engine, queued: None, ben: Moderator
) -> None:
    [known] = tab.hold(1)
    tab.post("/leave", held=[known])
    lease = queue.claim(engine, ben.id, known["item_id"])
    assert lease is not None
    queue.release(engine, ben.id, lease.item.id, lease.token)
    assert tab.hold(0, [known]) == []


def test_a_comment_that_someone_decided_is_not_had_again_by_an_old_lease(
    tab: Tab, engine: Engine, queued: None, ann: Moderator
) -> None:
    [known] = tab.hold(1)
    queue.skip(
        engine,
        moderator_id=ann.id,
        item_id=known["item_id"],
        lease_token=known["lease_token"],
        idempotency_key="k",
    )
    assert tab.hold(0, [known]) == []


def test_who_lost_the_queue_loses_its_items(
    tab: Tab, engine: Engine, queued: None, ann: Moderator
) -> None:
    [known] = tab.hold(1)
    tab.post("/leave", held=[known])
    with engine.begin() as connection:
        connection.execute(
            text("INSERT INTO moderator_queue VALUES (:id, 'other')"), {"id": ann.id}
        )
    assert tab.hold(0, [known]) == []
