import datetime as dt
from collections.abc import Callable

import pytest
from desk import Desk, shift_deliveries
from sqlalchemy import Engine

from modwatch.common.webhooks import Answer
from modwatch.review.outbox import messages as outbox
from modwatch.review.outbox.decision_events import relay_decisions
from modwatch.review.outbox.delivery import deliver
from modwatch.review.outbox.delivery_status import dead_letters, delivery_state, resend
from modwatch.review.outbox.messages import OutboxMessage
from modwatch.review.people import Moderator

GONE = Answer(status=410, problem="answer 410")
SENT = Answer(status=200)
ALERT = OutboxMessage(
    key="a", topic="incident", series="a", sequence=1, dt=dt.date(2026, 1, 1), payload={"a": 1}
)


@pytest.fixture
def four(engine: Engine, fill: Callable[[int], None], ann: Moderator) -> None:
    """Four messages that nobody got."""
    fill(4)
    for number in range(4):
        Desk(engine=engine).label(ann.id, f"c{number}")
    relay_decisions(engine, ["platform", "archive"])


def test_nothing_to_tell_is_no_state(engine: Engine) -> None:
    assert delivery_state(engine) == {}
    assert dead_letters(engine, "platform") == []
    assert resend(engine, "platform") == 0


def test_the_state_counts_what_has_not_arrived(engine: Engine, four: None) -> None:
    outbox.post(engine, ALERT, ["webhook", "platform"])  # alerts have pages of their own
    deliver(engine, "platform", lambda _: GONE, most=1)
    deliver(engine, "platform", lambda _: SENT, most=1)
    shift_deliveries(engine, 3)
    states = delivery_state(engine)
    assert sorted(states) == ["archive", "platform"]
    platform, archive = states["platform"], states["archive"]
    assert (platform.pending, platform.dead, archive.pending, archive.dead) == (2, 1, 4, 0)
    assert platform.oldest_pending
    assert dt.timedelta(hours=3) <= platform.oldest_pending < dt.timedelta(hours=3.1)


def test_a_channel_with_dead_letters_only_has_no_age(engine: Engine, four: None) -> None:
    deliver(engine, "platform", lambda _: GONE)
    state = delivery_state(engine)["platform"]
    assert (state.pending, state.dead, state.oldest_pending) == (0, 4, None)


def test_dead_letters_say_what_was_in_the_way(engine: Engine, four: None) -> None:
    deliver(engine, "platform", lambda _: GONE, most=1)
    [letter] = dead_letters(engine, "platform")
    assert (letter.series, letter.sequence, letter.event) == ("2026-01-01/c0", 1, "decided")
    assert (letter.attempts, letter.last_problem) == (1, "answer 410")
    assert letter.key.startswith("decision-")
    assert letter.created_at <= letter.dead_at
    assert dead_letters(engine, "archive") == []


def test_dead_letters_come_in_pages(engine: Engine, four: None) -> None:
    deliver(engine, "platform", lambda _: GONE)
    first = dead_letters(engine, "platform", limit=3)
    rest = dead_letters(engine, "platform", after=first[-1].message_id, limit=3)
    assert [letter.series[-2:] for letter in first + rest] == ["c0", "c1", "c2", "c3"]


def test_chosen_letters_are_sent_again_and_only_they(engine: Engine, four: None) -> None:
    deliver(engine, "platform", lambda _: GONE)
    letters = dead_letters(engine, "platform")
    assert resend(engine, "platform", []) == 0
    assert resend(engine, "archive", [letters[0].message_id]) == 0
    chosen = [letters[1].message_id, letters[3].message_id, 999]
    assert resend(engine, "platform", chosen) == 2
    sent: list[str] = []

    def take(message: OutboxMessage) -> Answer:
        sent.append(message.key)
        return SENT

    assert deliver(engine, "platform", take).sent == 2
    assert sent == [letters[1].key, letters[3].key]
    assert resend(engine, "platform", chosen) == 0  # they arrived


def test_all_letters_are_sent_again_in_their_order(engine: Engine, four: None) -> None:
    deliver(engine, "platform", lambda _: GONE)
    assert resend(engine, "platform") == 4
    assert delivery_state(engine)["platform"].dead == 0
    assert deliver(engine, "platform", lambda _: SENT).sent == 4
    assert "platform" not in delivery_state(engine)
