import datetime as dt
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from databases import tamper
from posting import post
from sqlalchemy import Engine, select

from modwatch.common.errors import AlertError
from modwatch.review.outbox import messages as outbox
from modwatch.review.outbox.messages import OutboxMessage
from modwatch.review.tables import outbox_message

FOREVER = dt.timedelta(days=9999)
FIRST = OutboxMessage(
    key="queue_old/1",
    topic="incident",
    series="queue_old",
    sequence=1,
    dt=dt.date(2026, 1, 5),
    payload={"title": "opened", "facts": {"value": 0.25, "low": None}},
)
SECOND = replace(FIRST, key="queue_old/2", sequence=2, payload={"title": "recovered"})
OTHER = replace(FIRST, key="psi/1", series="psi", topic="failure")


def pending(engine: Engine, channel: str) -> list[str]:
    return [item.key for item in outbox.pending(engine, channel, younger_than=FOREVER)]


def stored(engine: Engine) -> list[str]:
    with engine.connect() as connection:
        return sorted(connection.scalars(select(outbox_message.c.key)))


def store(engine: Engine, messages: Sequence[OutboxMessage], channels: Sequence[str]) -> set[str]:
    with engine.begin() as connection:
        return outbox.store(connection, messages, lambda _: channels)


def keep(_: OutboxMessage) -> None:
    """A receiver to whom everything is welcome."""


def fail(_: OutboxMessage) -> None:
    raise AlertError("down")


def test_what_is_posted_comes_back_whole_and_in_order(engine):
    for message in (FIRST, OTHER, SECOND):
        assert post(engine, message, ["webhook"])
    assert outbox.pending(engine, "webhook", younger_than=FOREVER) == [FIRST, OTHER, SECOND]
    assert pending(engine, "mail") == []


def test_a_message_is_posted_once(engine):
    assert post(engine, FIRST, ["webhook"])
    assert not post(engine, FIRST, ["webhook", "mail"])
    assert not post(engine, replace(FIRST, key="another"), ["mail"])  # the same number
    assert pending(engine, "webhook") == [FIRST.key]
    assert pending(engine, "mail") == []
    assert post(engine, OTHER, [])  # without a channel it is kept, and not pending
    assert stored(engine) == sorted([FIRST.key, OTHER.key])
    assert pending(engine, "webhook") == [FIRST.key]


def test_many_are_posted_together_in_order_and_each_once(engine):
    post(engine, OTHER, ["webhook"])
    many = [
        replace(FIRST, key=f"queue_old/{number}", sequence=number) for number in range(1, 1_101)
    ]
    found = store(engine, [OTHER, *many, many[0]], ["webhook", "mail"])
    assert found == {message.key for message in many}
    assert pending(engine, "webhook") == [OTHER.key, *(message.key for message in many)]
    assert pending(engine, "mail") == [message.key for message in many]
    assert store(engine, many, ["webhook"]) == store(engine, [], []) == set()


def test_each_channel_fails_by_itself(engine):
    post(engine, FIRST, ["webhook", "mail"])
    with pytest.raises(AlertError):
        outbox.send(engine, FIRST, "webhook", fail)
    assert outbox.send(engine, FIRST, "mail", keep)
    assert pending(engine, "webhook") == [FIRST.key]
    assert pending(engine, "mail") == []
    assert not outbox.send(engine, FIRST, "mail", fail)  # it has it, and is not asked


def test_what_is_old_expires_after_enough_failed_rounds(engine):
    """A message that is only old was posted by a slow clock, or nothing ran since."""
    post(engine, FIRST, ["webhook", "mail"])
    for _ in range(outbox.FEWEST_ATTEMPTS - 1):  # failed rounds alone expire nothing
        outbox.count_attempt(engine, "webhook")
    tamper(engine, "UPDATE outbox_message SET created_at = now() - interval '15 days'")

    def young(channel: str) -> list[OutboxMessage]:
        return outbox.pending(engine, channel, younger_than=dt.timedelta(days=14))

    assert young("webhook") == [FIRST]
    outbox.count_attempt(engine, "webhook")
    assert young("webhook") == []
    assert young("mail") == [FIRST], "channels count by themselves"
    assert pending(engine, "webhook") == [FIRST.key], "it is not old"


def test_two_who_send_at_once_send_once(engine):
    post(engine, FIRST, ["webhook"])
    together, sent = threading.Barrier(2, timeout=20), []

    def slow(message: OutboxMessage) -> None:
        sent.append(message.key)
        together.wait()  # the other one is on its way
        threading.Event().wait(0.2)

    def second() -> bool:
        together.wait()
        return outbox.send(engine, FIRST, "webhook", slow)

    with ThreadPoolExecutor(2) as pool:
        first, other = pool.submit(outbox.send, engine, FIRST, "webhook", slow), pool.submit(second)
        assert (first.result(20), other.result(20)) == (True, False)
    assert sent == [FIRST.key]
