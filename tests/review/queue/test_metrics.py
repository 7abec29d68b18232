from dataclasses import asdict
from datetime import date, timedelta

from sqlalchemy import text

from modwatch.review.people import accounts
from modwatch.review.queue import intake, leases, metrics
from modwatch.review.queue.metrics import QueueCounts, day_queue, days_since_routed
from modwatch.statistics.drift.day_comparison import Queue
from review.labelling import label_next


def test_an_empty_queue(engine, day):
    assert set(asdict(metrics.counts(engine)).values()) == {0}
    assert day_queue(engine, day) == Queue(
        waiting=0, decided=0, age_median=None, age_oldest=None, decision_median=None
    )


def test_each_item_is_counted_once(engine, ann, fill, day):
    fill(4)
    label_next(engine, ann)
    leases.lease(engine, ann.id)
    leases.lease(engine, ann.id, timedelta(0))  # one that has expired counts as waiting
    expected = QueueCounts(
        waiting=2, leased=1, decided=1, withdrawn=0, blocked=0, escalated=0, closed=0
    )
    assert metrics.counts(engine) == metrics.counts(engine, day) == expected
    assert metrics.counts(engine, day + timedelta(days=1)).waiting == 0


def test_every_status_has_its_place(engine, ann, fill):
    fill(8)
    places = ("blocked", "escalated", "decided", "withdrawn", "closed")
    with engine.begin() as connection:
        for rank, status in enumerate(places, 1):
            connection.execute(
                text("UPDATE review_item SET status = :status WHERE rank = :rank"),
                {"status": status, "rank": rank},
            )
    found = asdict(metrics.counts(engine))
    assert found == dict.fromkeys(places, 1) | {"waiting": 3, "leased": 0}
    lead = accounts.create_moderator(engine, "cora", "lead")
    assert leases.lease_escalated(engine, lead.id) is not None
    leases.lease(engine, ann.id)
    found = asdict(metrics.counts(engine))
    assert (found["waiting"], found["leased"], found["escalated"]) == (2, 2, 0)
    assert sum(found.values()) == 8


def test_a_day_is_routed_when_its_first_item_is_queued(engine, fill, new_item, day):
    """A backfilled day is routed today, however old its comments are."""
    fill(3)
    intake.enqueue(engine, [new_item("late")], day - timedelta(days=300))
    with engine.begin() as connection:
        for rank, status, age in ((1, "waiting", 0.6), (2, "decided", 1.6), (3, "withdrawn", 9)):
            connection.execute(
                text(
                    "UPDATE review_item SET status = :status, queued_at = now() - :age "
                    "WHERE rank = :rank AND comment_id <> 'late'"
                ),
                {"rank": rank, "status": status, "age": timedelta(days=age)},
            )
    found = days_since_routed(engine, day - timedelta(days=300), day)
    assert found == {day: 2, day - timedelta(days=300): 0}
    assert days_since_routed(engine, day + timedelta(days=1), date.max) == {}


def test_a_day_is_timed_by_what_waits_and_what_is_decided(engine, ann, fill, new_item, day):
    fill(5)
    intake.enqueue(engine, [new_item("elsewhere")], day + timedelta(days=1))
    intake.enqueue(engine, [new_item("known", kind="gold")], day, kinds=["gold"])
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE review_item SET queued_at = now() - rank * interval '1 hour'")
        )
        connection.execute(text("UPDATE review_item SET status = 'withdrawn' WHERE rank = 5"))
        connection.execute(
            text(
                "UPDATE review_item SET rank = 9, serve_by = now() + interval '9 days' "
                "WHERE kind = 'gold' OR comment_id = 'elsewhere'"
            )
        )
    for _ in range(2):  # the first two, one and two hours old
        label_next(engine, ann)
    leases.lease(engine, ann.id)
    found = day_queue(engine, day)
    assert (found.waiting, found.decided) == (2, 2)
    times = (found.age_median, found.age_oldest, found.decision_median)
    for seconds, hours in zip(times, (3.5, 4, 1.5), strict=True):
        assert isinstance(seconds, float)
        assert abs(seconds - 3_600 * hours) < 60
