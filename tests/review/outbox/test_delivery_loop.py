"""The loop as it runs in a thread, against a real server."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from databases import tamper
from desk import Desk
from receivers import closed_port, webhook
from sqlalchemy import Engine

from modwatch.common.webhooks import Answer
from modwatch.review.database import connect
from modwatch.review.outbox.decision_events import feed
from modwatch.review.outbox.delivery import DecisionWebhook, Deliverer, delivery_state
from modwatch.review.outbox.messages import OutboxMessage


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@contextmanager
def running(deliverer: Deliverer) -> Iterator[threading.Thread]:
    stop = threading.Event()
    thread = threading.Thread(target=deliverer.run, args=[stop])
    thread.start()
    try:
        yield thread
    finally:
        stop.set()
        thread.join(20)
        assert not thread.is_alive()


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def make(engine: Engine, url: str) -> Deliverer:
    send = DecisionWebhook(url=url, secret="s3cret", timeout=0.3)
    return Deliverer(engine=engine, channels={"platform": send}, interval=0.05)


def test_what_is_decided_while_it_runs_arrives(engine, fill, ann):
    fill(3)
    desk = Desk(engine=engine)
    desk.label(ann.id, "c0", policy_code="spam")
    with webhook(500) as server:
        deliverer = make(engine, server.url)
        deliverer.category_of = {"spam": "OTHER_VIOLATION_TC"}.get
        with running(deliverer):
            wait_for(lambda: len(server.requests) == 2)  # a failure first
            desk.label(ann.id, "c1")
            wait_for(lambda: len(server.requests) == 3)
    assert [request.json["comment_id"] for request in server.requests] == ["c0", "c0", "c1"]
    assert server.requests[0].json["dsa_category"] == "OTHER_VIOLATION_TC"


def test_without_channels_it_makes_the_feed(engine, fill, ann):
    fill(1)
    Desk(engine=engine).label(ann.id, "c0")
    assert not Deliverer(engine=engine, channels={}).once()
    assert len(feed(engine).events) == 1
    assert delivery_state(engine) == {}


def test_a_receiver_that_is_down_is_asked_less_and_less(engine, fill, ann):
    fill(30)
    for number in range(30):
        Desk(engine=engine).label(ann.id, f"c{number}")
    asked: list[float] = []

    def down(_: OutboxMessage) -> Answer:
        asked.append(time.monotonic())
        return Answer(status=None, problem="ConnectionRefusedError")

    with running(Deliverer(engine=engine, channels={"platform": down}, interval=0.05)):
        wait_for(lambda: len(asked) >= 9)
    # Three a round, and the pauses double: 0.05, 0.1, 0.2, … seconds.
    assert asked[3] - asked[2] >= 0.05
    assert asked[6] - asked[5] >= 0.1


def test_one_channel_that_is_down_keeps_no_other_waiting(engine, fill, ann):
    fill(6)
    for number in range(6):
        Desk(engine=engine).label(ann.id, f"c{number}")
    with webhook() as server:
        channels = {
            "down": DecisionWebhook(url=f"http://127.0.0.1:{closed_port()}/", secret="s"),
            "platform": DecisionWebhook(url=server.url, secret="s"),
        }
        Deliverer(engine=engine, channels=channels).once()
        assert len(server.requests) == 6


def test_it_waits_for_a_database_that_is_down(
    engine, queue_url, fill, ann,
    caplog
):  # fmt: skip
    fill(1)
    away = connect(queue_url)
    tamper(engine, "ALTER TABLE outbox_cursor RENAME TO away")
    try:
        with webhook() as server, running(make(away, server.url)) as thread:
            with caplog.at_level(logging.WARNING):
                wait_for(lambda: "apply the migrations" in caplog.text)
            assert thread.is_alive()
            tamper(engine, "ALTER TABLE away RENAME TO outbox_cursor")
            Desk(engine=engine).label(ann.id, "c0")
            wait_for(lambda: len(server.requests) == 1)
    finally:
        away.dispose()
        tamper(engine, "ALTER TABLE IF EXISTS away RENAME TO outbox_cursor")
