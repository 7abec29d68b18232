from collections.abc import Callable
from datetime import date, timedelta

from sqlalchemy import Engine, text

from modwatch.review import queue
from modwatch.review.people import Moderator
from modwatch.review.queue import QueueAges, QueueCounts


def test_an_empty_queue(engine: Engine) -> None:
    assert queue.counts(engine) == QueueCounts(waiting=0, leased=0, decided=0, withdrawn=0)
    assert queue.queue_ages(engine) == QueueAges(items=0, median_seconds=None, oldest_seconds=None)


def test_each_item_is_counted_once(
    engine: Engine, ann: Moderator, fill: Callable[[int], None], day: date
) -> None:
    fill(4)
    decided = queue.lease(engine, ann.id)
    assert decided is not None
    queue.decide(
        engine,
        moderator_id=ann.id,
        item_id=decided.item.id,
        lease_token=decided.token,
        label=0,
        idempotency_key="k",
    )
    queue.lease(engine, ann.id)
    expected = QueueCounts(waiting=2, leased=1, decided=1, withdrawn=0)
    assert queue.counts(engine) == queue.counts(engine, day) == expected
    assert queue.counts(engine, day + timedelta(days=1)).waiting == 0


def test_an_expired_lease_counts_as_waiting(
    engine: Engine, ann: Moderator, fill: Callable[[int], None]
) -> None:
    fill(1)
    queue.lease(engine, ann.id, timedelta(0))
    assert queue.counts(engine).waiting == 1


def test_ages_are_those_of_undecided_items(engine: Engine, fill: Callable[[int], None]) -> None:
    fill(3)
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE review_item SET queued_at = now() - rank * interval '1 hour'")
        )
        connection.execute(text("UPDATE review_item SET status = 'withdrawn' WHERE rank = 3"))
    ages = queue.queue_ages(engine)
    assert ages.items == 2
    assert ages.median_seconds is not None
    assert ages.oldest_seconds is not None
    assert abs(ages.median_seconds - 5_400) < 60
    assert abs(ages.oldest_seconds - 7_200) < 60
