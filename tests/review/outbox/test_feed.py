"""The feed: complete, in order, and the same whenever it is asked again."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from desk import Desk
from sqlalchemy import Engine, select

from modwatch.common.errors import QueueError
from modwatch.review.outbox import messages as outbox
from modwatch.review.outbox.decision_events import relay_decisions
from modwatch.review.outbox.feed import feed
from modwatch.review.outbox.messages import OutboxMessage
from modwatch.review.people import Moderator
from modwatch.review.tables import outbox_message

ALERT = OutboxMessage(
    key="a", topic="incident", series="a", sequence=1, dt=dt.date(2026, 1, 1), payload={"a": 1}
)


@pytest.fixture
def decide(engine: Engine, fill: Callable[[int], None], ann: Moderator) -> Callable[..., None]:
    """Label the next comments, and relay."""
    fill(9)
    desk, names = Desk(engine=engine), iter(range(9))

    def label(n: int) -> None:
        for _ in range(n):
            desk.label(ann.id, f"c{next(names)}")
        relay_decisions(engine, [])

    return label


def read(engine: Engine, limit: int, after: str | None = None) -> list[str]:
    """Return the comments of all pages."""
    found: list[Any] = []
    while (page := feed(engine, after, limit)).events:
        found += page.events
        after = page.next_cursor
    return [each["comment_id"] for each in found]


def test_an_empty_feed_has_a_cursor_to_come_back_with(
    engine: Engine, decide: Callable[..., None]
) -> None:
    first = feed(engine)
    assert first.events == ()
    assert feed(engine, first.next_cursor) == first
    decide(1)
    assert [each["comment_id"] for each in feed(engine, first.next_cursor).events] == ["c0"]


@pytest.mark.parametrize("limit", [1, 2, 5, 6, 1000])
def test_pages_of_any_length_hold_everything_once(
    engine: Engine, decide: Callable[..., None], limit: int
) -> None:
    decide(3)
    outbox.post(engine, ALERT, ["webhook"])  # what is in between is none of the feed's
    decide(3)
    assert read(engine, limit) == [f"c{n}" for n in range(6)]


def test_what_follows_a_cursor_stays_the_same(engine: Engine, decide: Callable[..., None]) -> None:
    decide(2)
    first = feed(engine, None, 1)
    second = feed(engine, first.next_cursor, 1)
    decide(2)
    assert feed(engine, None, 1) == first
    assert feed(engine, first.next_cursor, 1) == second
    assert read(engine, 10, second.next_cursor) == ["c2", "c3"]


def test_the_events_are_what_the_webhook_posts(engine: Engine, decide: Callable[..., None]) -> None:
    decide(1)
    with engine.connect() as connection:
        posted = list(connection.scalars(select(outbox_message.c.payload)))
    assert list(feed(engine).events) == posted


@pytest.mark.parametrize(
    "cursor",
    ["", "1", "after:1", "YWZ0ZXI6LTE", "YWZ0ZXI6MDE", "YWZ0ZXI6MQ==", "é", "\x00", "a" * 5000,
     "YWZ0ZXI6MTAwMDAwMDAwMDAwMDAwMDAwMDA", "YWZ0ZXI6MQ\n", "' OR 1=1 --"],
)  # fmt: skip
def test_a_cursor_of_somebody_else_is_refused(engine: Engine, cursor: str) -> None:
    with pytest.raises(QueueError, match="not one of the decision feed"):
        feed(engine, cursor)


@pytest.mark.parametrize("limit", [-1, 0, 1001])
def test_a_page_has_its_limits(engine: Engine, limit: int) -> None:
    with pytest.raises(QueueError, match="1 to 1000"):
        feed(engine, None, limit)
