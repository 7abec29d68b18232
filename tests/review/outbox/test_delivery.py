"""Deliveries to a real server that is down, slow, full, gone, or talks nonsense."""

import datetime as dt
import logging
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from desk import Desk, shift_deliveries
from posting import post
from receivers import closed_port, webhook
from sqlalchemy import Engine, select, text

from modwatch.common.webhooks import Answer
from modwatch.review.outbox.decision_events import relay_decisions
from modwatch.review.outbox.delivery import (
    CLAIM,
    LONGEST_PAUSE,
    DecisionWebhook,
    Round,
    dead_letters,
    deliver,
    delivery_state,
    resend,
)
from modwatch.review.outbox.messages import OutboxMessage
from modwatch.review.tables import outbox_delivery

SECRET = "s3cret"
SENT = Answer(status=200)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def decide(engine, fill, desk, ann):
    """Label so many comments, and make them messages."""

    def label(n: int) -> None:
        fill(n)
        for number in range(n):
            desk.label(ann.id, f"c{number}")
        assert relay_decisions(engine, ["platform"]) == n

    return label


def hook(url: str, **changes: Any) -> DecisionWebhook:
    return DecisionWebhook(url=url, secret=SECRET, timeout=0.3, **changes)


def give(engine: Engine, url: str, **options: Any) -> Round:
    return deliver(engine, "platform", hook(url), **options)


def row(engine: Engine, number: int = 1) -> Any:
    """Return a delivery, and the seconds until it is due."""
    with engine.connect() as connection:
        return connection.execute(
            select(
                outbox_delivery, text("extract(epoch FROM next_attempt_at - now()) AS due_in")
            ).where(outbox_delivery.c.message_id == number)
        ).one()


def answer(status: int, headers: str = "") -> bytes:
    return f"HTTP/1.1 {status} Said\r\n{headers}Content-Length: 0\r\n\r\n".encode()


def test_what_is_due_is_posted_in_order_and_once(engine, decide):
    decide(3)
    assert deliver(engine, "archive", lambda _: SENT).claimed == 0
    with webhook() as server:
        assert give(engine, server.url) == Round(claimed=3, sent=3, failed=0, dead=0, pause=None)
        assert give(engine, server.url).claimed == 0
    assert [request.json["comment_id"] for request in server.requests] == ["c0", "c1", "c2"]
    assert server.keys == [f"decision-{request.json['decision_id']}" for request in server.requests]
    assert row(engine).delivered_at is not None


TROUBLES = [500, 503, 408, 425, 429, None, b"", b"garbage\r\n\r\n"]


def test_what_passes_is_tried_again_later_under_the_same_key(engine, decide, caplog):
    decide(1)
    caplog.set_level(logging.DEBUG)
    with webhook(*TROUBLES) as server:
        for number in range(len(TROUBLES)):
            done = give(engine, server.url)
            assert done == Round(claimed=1, sent=0, failed=1, dead=0, pause=None)
            waiting = row(engine)
            assert waiting.attempts == number + 1
            assert 0 < waiting.due_in <= 2**number
            assert waiting.last_problem.replace("answer ", "").isalnum()
            assert give(engine, server.url).claimed == 0  # not yet
            shift_deliveries(engine, 0.1)
        told = f"{hook(server.url)!r} {waiting!r}"
        assert give(engine, server.url).sent == 1
    assert len(server.requests) == len(TROUBLES) + 1
    assert len(set(server.keys)) == 1
    assert len({request.body for request in server.requests}) == 1
    assert row(engine).last_problem is None
    told += " ".join(str(vars(record)) for record in caplog.records)
    assert "platform" in told
    assert SECRET not in told


def test_a_definite_refusal_is_a_dead_letter_at_once(engine, decide):
    refusals = (301, 308, 400, 401, 404, 410, 422)
    decide(len(refusals) + 1)
    with webhook() as elsewhere:
        redirect = answer(307, f"Location: {elsewhere.url}\r\n")
        with webhook(*refusals, redirect) as server:
            assert give(engine, server.url).dead == len(refusals) + 1
            shift_deliveries(engine, 100)
            assert give(engine, server.url).claimed == 0
        assert elsewhere.requests == []  # a redirect is not followed
    letters = dead_letters(engine, "platform")
    assert [(letter.attempts, letter.last_problem) for letter in letters] == [
        (1, f"answer {refusal}") for refusal in (*refusals, 307)
    ]


def test_the_pauses_double_up_to_ten_minutes(engine, decide):
    decide(1)
    pauses = []
    for _ in range(14):
        assert deliver(
            engine, "platform", lambda _: Answer(status=500, problem="answer 500")
        ).failed
        pauses.append(float(row(engine).due_in))
        shift_deliveries(engine, 0.5)
    for number, pause in enumerate(pauses):
        whole = min(600, 2**number)
        assert whole / 2 - 1 <= pause <= whole
    assert len({round(pause / min(600, 2**n), 3) for n, pause in enumerate(pauses)}) > 5  # jitter


@pytest.mark.parametrize(("expected", "pause"), [(30, 30), (10**6, LONGEST_PAUSE.total_seconds())])
def test_a_receiver_may_ask_for_a_pause_within_limits(engine, decide, expected, pause):
    decide(3)
    with webhook(answer(429, f"Retry-After: {expected}\r\n")) as server:
        done = give(engine, server.url)
        assert (done.claimed, done.failed, done.pause) == (3, 1, pause)
        assert len(server.requests) == 1  # the others were not even tried
    assert pause - 5 < row(engine).due_in <= pause
    assert (row(engine, 2).attempts, row(engine, 2).due_in <= 0) == (0, True)


def test_a_receiver_that_is_down_is_left_alone_after_three(engine, decide):
    decide(5)
    done = give(engine, f"http://127.0.0.1:{closed_port()}/")
    assert (done.claimed, done.failed) == (5, 3)
    assert row(engine).last_problem == "ConnectionRefusedError"
    with webhook() as server:
        assert give(engine, server.url).sent == 2  # what was put back is due at once


def test_after_a_day_of_attempts_it_is_given_up(engine, decide):
    decide(1)

    def fails(_: OutboxMessage) -> Answer:
        return Answer(status=None, problem="TimeoutError")

    shift_deliveries(engine, 1000)
    assert deliver(engine, "platform", fails).dead == 0  # nobody tried before
    shift_deliveries(engine, -1000)
    shift_deliveries(engine, 1)
    for _ in range(11):
        assert deliver(engine, "platform", fails).failed == 1
        shift_deliveries(engine, 1)
    shift_deliveries(engine, 13)
    assert deliver(engine, "platform", fails).dead == 1
    [letter] = dead_letters(engine, "platform")
    assert (letter.attempts, letter.last_problem) == (13, "TimeoutError")


def test_a_later_message_of_a_comment_waits_for_the_earlier(engine, decide, desk, ann):
    decide(2)
    desk.correct(ann.id, "c0", 0)
    relay_decisions(engine, ["platform"])
    with webhook(500) as server:
        assert give(engine, server.url).claimed == 2
        assert give(engine, server.url).claimed == 0
        shift_deliveries(engine, 1)
        assert [give(engine, server.url).sent for _ in range(2)] == [1, 1]
    result = [(request.json["comment_id"], request.json["sequence"]) for request in server.requests]
    assert result == [("c0", 1), ("c1", 1), ("c0", 1), ("c0", 2)]


def test_a_dead_letter_holds_nothing_up(engine, decide, desk, ann):
    decide(1)
    desk.correct(ann.id, "c0", 0)
    relay_decisions(engine, ["platform"])
    with webhook(400) as server:
        assert give(engine, server.url).dead == 1
        assert give(engine, server.url).sent == 1
        assert resend(engine, "platform") == 1
        assert give(engine, server.url).sent == 1
    assert [request.json["sequence"] for request in server.requests] == [1, 2, 1]


def test_several_at_once_send_nothing_twice(engine, decide, desk, ann):
    decide(20)
    for number in range(20):
        desk.correct(ann.id, f"c{number}", 0)
    relay_decisions(engine, ["platform"])

    def until_done(url: str) -> int:
        sent, idle = 0, 0
        while idle < 20:
            done = give(engine, url, most=3)
            sent, idle = sent + done.sent, 0 if done.claimed else idle + 1
        return sent

    with webhook() as server, ThreadPoolExecutor(4) as pool:
        sent = [pool.submit(until_done, server.url) for _ in range(4)]
        shares = [item.result(60) for item in sent]
    assert sum(shares) == len(server.requests) == len(set(server.keys)) == 40
    assert sum(share > 0 for share in shares) > 1
    for number in range(20):
        mine = [
            request.json
            for request in server.requests
            if request.json["comment_id"] == f"c{number}"
        ]
        assert [item["sequence"] for item in mine] == [1, 2]


def test_no_transaction_is_open_while_a_receiver_takes_its_time(engine, decide):
    decide(2)
    locks: list[int] = []

    def slow(_: OutboxMessage) -> Answer:
        with engine.begin() as connection:
            connection.execute(text("SET LOCAL lock_timeout = '1s'"))
            connection.execute(text("SELECT FROM outbox_delivery FOR UPDATE"))
            locks.append(1)
        assert deliver(engine, "platform", pytest.fail).claimed == 0  # both are claimed
        return SENT

    assert deliver(engine, "platform", slow).sent == 2
    assert len(locks) == 2


def test_a_claim_that_ran_out_undoes_nothing(engine, decide):
    """A process stands still for long, and wakes up to a failure after another one succeeded."""
    decide(1)

    def stands_still(_: OutboxMessage) -> Answer:
        shift_deliveries(engine, CLAIM.total_seconds() / 3600)
        assert deliver(engine, "platform", lambda _: SENT).sent == 1
        return Answer(status=410, problem="answer 410")

    assert deliver(engine, "platform", stands_still).dead == 0
    assert row(engine).delivered_at is not None
    assert (row(engine).dead_at, row(engine).last_problem) == (None, None)


def test_it_stops_between_two_messages(engine, decide):
    decide(3)
    stop, sent = threading.Event(), []

    def once(message: OutboxMessage) -> Answer:
        sent.append(message.key)
        stop.set()
        return SENT

    done = deliver(engine, "platform", once, go_on=lambda: not stop.is_set())
    assert (done.sent, len(sent)) == (1, 1)
    shift_deliveries(engine, -24 * 365)  # a clock that ran ahead delays nothing
    assert deliver(engine, "platform", lambda _: SENT).sent == 2


_CHILD = """
import sys, time
from modwatch.review.database import connect
from modwatch.review.outbox.delivery import DecisionWebhook
from modwatch.review.outbox.delivery import deliver

send = DecisionWebhook(url=sys.argv[2], secret="s3cret")

def post(message):
    answer = send(message)
    print(answer.status, flush=True)
    time.sleep(60)

deliver(connect(sys.argv[1]), "platform", post)
"""


@pytest.fixture
def killed_after_post(queue_url):
    def run(url: str) -> None:
        arguments = [sys.executable, "-c", _CHILD, queue_url, url]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout
            assert child.stdout.readline().strip() == "200"
            os.kill(child.pid, signal.SIGKILL)

    return run


def test_killed_between_post_and_mark_it_is_sent_again_under_the_same_key(
    engine, decide, killed_after_post
):
    decide(3)
    with webhook() as server:
        killed_after_post(server.url)
        assert len(server.requests) == 1
        assert row(engine).delivered_at is None
        assert give(engine, server.url).claimed == 0  # the claim still runs
        shift_deliveries(engine, CLAIM.total_seconds() / 3600)
        assert give(engine, server.url).sent == 3
    assert Counter(Counter(server.keys).values()) == {1: 2, 2: 1}
    assert server.keys[0] == server.keys[1]
    assert server.requests[0].body == server.requests[1].body


def test_no_secret_of_an_answer_is_reported(engine, decide, caplog):
    decide(2)
    caplog.set_level(logging.DEBUG)
    with webhook(b"token=hunter2\r\n\r\n", 410) as server:
        told = f"{give(engine, server.url)!r} {hook(server.url)!r}"
    told += " ".join(str(vars(record)) for record in caplog.records)
    told += f" {row(engine)!r} {dead_letters(engine, 'platform')!r}"
    assert "answer 410" in told
    assert "hunter2" not in told
    assert SECRET not in told


GONE = Answer(status=410, problem="answer 410")
ALERT = OutboxMessage(
    key="a", topic="incident", series="a", sequence=1, dt=dt.date(2026, 1, 1), payload={"a": 1}
)


@pytest.fixture
def four(engine, fill, ann):
    """Four messages that nobody got."""
    fill(4)
    for number in range(4):
        Desk(engine=engine).label(ann.id, f"c{number}")
    relay_decisions(engine, ["platform", "archive"])


def test_the_state_counts_what_has_not_arrived(engine, four):
    assert dead_letters(engine, "platform") == []
    assert resend(engine, "platform") == 0
    post(engine, ALERT, ["webhook", "platform"])  # alerts have pages of their own
    deliver(engine, "platform", lambda _: GONE, most=1)
    deliver(engine, "platform", lambda _: SENT, most=1)
    shift_deliveries(engine, 3)
    states = delivery_state(engine)
    assert sorted(states) == ["archive", "platform"]
    platform, archive = states["platform"], states["archive"]
    assert (platform.pending, platform.dead, archive.pending, archive.dead) == (2, 1, 4, 0)
    assert platform.oldest_pending
    assert dt.timedelta(hours=3) <= platform.oldest_pending < dt.timedelta(hours=3.1)
    [letter] = dead_letters(engine, "platform")
    assert (letter.series, letter.event) == ("2026-01-01/c0", "decided")
    assert (letter.attempts, letter.last_problem) == (1, "answer 410")
    assert letter.key.startswith("decision-")
    assert letter.created_at <= letter.dead_at
    assert dead_letters(engine, "archive") == []


def test_dead_letters_are_sent_again(engine, four):
    deliver(engine, "platform", lambda _: GONE)
    state = delivery_state(engine)["platform"]
    assert (state.pending, state.dead, state.oldest_pending) == (0, 4, None)
    assert len(dead_letters(engine, "platform", limit=3)) == 3
    letters = dead_letters(engine, "platform")
    assert [letter.series[-2:] for letter in letters] == ["c0", "c1", "c2", "c3"]
    # Chosen ones, and only they.
    assert resend(engine, "platform", []) == 0
    assert resend(engine, "archive", [letters[0].message_id]) == 0
    chosen = [letters[1].message_id, letters[3].message_id, 999]
    assert resend(engine, "platform", chosen) == 2
    sent: list[str] = []

    def take(message: OutboxMessage) -> Answer:
        sent.append(message.key)
        return SENT

    assert deliver(engine, "platform", take).sent == 2
    assert resend(engine, "platform", chosen) == 0  # they arrived
    # All of them, in their order.
    assert resend(engine, "platform") == 2
    assert delivery_state(engine)["platform"].dead == 0
    assert deliver(engine, "platform", take).sent == 2
    assert sent == [letters[place].key for place in (1, 3, 0, 2)]
    assert "platform" not in delivery_state(engine)
