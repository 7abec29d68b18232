"""Someone who leases all that there is, so that nobody else gets anything."""

import datetime as dt
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from fastapi.testclient import TestClient
from tabs import Tab

from modwatch.common.errors import TooManyLeasesError
from modwatch.review.console.app import create_app
from modwatch.review.console.request_context import ConsoleOptions
from modwatch.review.people import access_tokens
from modwatch.review.queue import leases, metrics
from modwatch.review.queue.items import Lease
from modwatch.review.queue.leases import LeaseLimit
from review.console.visiting import serving

Fill = Callable[[int], None]
MOST = ConsoleOptions().most_leases


def test_twenty_clients_with_one_token_hold_no_more_than_one(engine, ann, ben, fill):
    fill(200)
    headers = {"Authorization": f"Bearer {access_tokens.issue_token(engine, ann.id)}"}

    def hoard(_: int) -> list[int]:
        with httpx.Client(base_url=url, headers=headers, timeout=60) as client:
            return [client.post("/api/v1/leases").status_code for _ in range(10)]

    with serving(engine) as url, ThreadPoolExecutor(20) as pool:
        answers = [status for item in pool.map(hoard, range(20)) for status in item]
    assert set(answers) == {201, 429}
    assert metrics.counts(engine).leased == MOST
    assert leases.lease(engine, ben.id) is not None  # there is something left for others


def test_released_and_expired_ones_make_room(engine, ann, fill, monkeypatch):
    monkeypatch.setattr(leases, "_PAUSE", 0.0)
    fill(10)
    limit = LeaseLimit(engine, 3)

    def take(length: dt.timedelta = leases.LEASE_LENGTH) -> Lease:
        lease = limit.within(ann.id, lambda: leases.lease(engine, ann.id, length))
        assert lease is not None
        return lease

    first, *_ = (take(), take(), take(dt.timedelta(0)))
    take()  # one has expired
    with pytest.raises(TooManyLeasesError, match="decide or release"):
        take()
    leases.release(engine, ann.id, first.item.id, first.token)
    take()
    with pytest.raises(TooManyLeasesError):
        take()


def test_a_process_that_starts_anew_knows_what_is_held(engine, ann, fill):
    fill(10)
    for _ in range(3):
        leases.lease(engine, ann.id)
    with pytest.raises(TooManyLeasesError):
        LeaseLimit(engine, 3).within(ann.id, lambda: leases.lease(engine, ann.id))


def test_an_error_gives_the_place_back(engine, ann):
    limit = LeaseLimit(engine, 1)

    def take() -> Lease:
        raise RuntimeError

    for _ in range(5):
        with pytest.raises(RuntimeError):
            limit.within(ann.id, take)


def test_neither_undoing_nor_leasing_again_goes_beyond_it(engine, ann, fill):
    """Decided items are undone, and old leases renewed, by someone who kept all tokens."""
    fill(20)
    with TestClient(create_app(engine, ConsoleOptions(most_leases=4))) as client:
        tab = Tab(client, engine, ann)
        bearer = {"Authorization": f"Bearer {access_tokens.issue_token(engine, ann.id)}"}
        kept, decisions = [], []
        for number in range(8):
            lease = client.post("/api/v1/leases", headers=bearer).json()
            item_id = lease["item"]["id"]
            if number % 2:
                kept.append((item_id, lease["token"]))
                leases.release(engine, ann.id, *kept[-1])
                continue
            decided = client.post(
                f"/api/v1/items/{item_id}/decisions",
                json={"lease_token": lease["token"], "label": 0},
                headers={**bearer, "Idempotency-Key": f"d{number}"},
            )
            decisions.append(decided.json()["id"])
        for decision_id in decisions:
            tab.undo(decision_id)
        for item_id, token in kept:
            held = [{"item_id": item_id, "lease_token": token}]
            assert tab.post("/next", held=held, count=0).status_code in (200, 429)
        for _ in range(5):
            client.post("/api/v1/leases", headers=bearer)
    assert metrics.counts(engine).leased == 4
