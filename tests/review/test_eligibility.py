"""Second opinions, on a real PostgreSQL: never the same person, never in anybody's way."""

import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from datetime import date

import pyarrow as pa
import pytest
from sqlalchemy import Engine, select, text

from modwatch.errors import ItemNotFoundError
from modwatch.records import LABELS
from modwatch.review import people, queue
from modwatch.review.eligibility import may_be_served
from modwatch.review.items import Item, Lease, NewItem
from modwatch.review.people import Moderator
from modwatch.review.tables import review_item, waiting

Make = Callable[..., NewItem]


@pytest.fixture
def fill_twice(engine: Engine, new_item: Make, day: date) -> Callable[..., None]:
    """Return a function that queues n comments, of all of which a second opinion is wanted."""

    def put(n: int, *, twice: bool = True) -> None:
        items = [new_item(f"c{i}", i + 1) for i in range(n)]
        # At the place of the first: the worst for those who must not meet both.
        again = [new_item(f"c{i}", i + 1, kind="second_opinion") for i in range(n) if twice]
        queue.enqueue(engine, [*items, *again], day)

    return put


def label(engine: Engine, person: Moderator, lease: Lease, value: int = 1) -> None:
    queue.decide(
        engine,
        moderator_id=person.id,
        item_id=lease.item.id,
        lease_token=lease.token,
        label=value,
        idempotency_key=lease.token,
    )


def work(engine: Engine, person: Moderator, value: int = 1) -> list[str]:
    """Label all that this person is served; return the comments."""
    served = []
    while (lease := queue.lease(engine, person.id)) is not None:
        label(engine, person, lease, value)
        served.append(lease.item.comment_id)
    return served


def copied(engine: Engine, day: date, kind: str) -> dict[str, tuple[str, int]]:
    rows = pa.Table.from_batches(queue.decisions(engine, day, kind=kind), schema=LABELS).to_pylist()
    return {row["comment_id"]: (row["moderator"], row["label"]) for row in rows}


def test_one_person_does_all_firsts_and_no_second(
    engine: Engine, ann: Moderator, day: date, fill_twice: Callable[..., None]
) -> None:
    fill_twice(3)
    assert work(engine, ann) == ["c0", "c1", "c2"]
    assert len(copied(engine, day, "review")) == 3
    assert copied(engine, day, "second_opinion") == {}
    assert queue.counts(engine).waiting == 3  # for whoever joins


def test_a_second_person_does_the_seconds_and_they_are_kept_apart(
    engine: Engine, ann: Moderator, ben: Moderator, day: date, fill_twice: Callable[..., None]
) -> None:
    fill_twice(3)
    work(engine, ann, 1)
    assert work(engine, ben, 0) == ["c0", "c1", "c2"]
    assert set(copied(engine, day, "review").values()) == {("ann", 1)}
    assert set(copied(engine, day, "second_opinion").values()) == {("ben", 0)}
    assert queue.verify_log(engine).intact


def test_a_second_opinion_waits_for_the_first_label(
    engine: Engine, ann: Moderator, ben: Moderator, fill_twice: Callable[..., None]
) -> None:
    fill_twice(1)
    first = queue.lease(engine, ann.id)
    assert first is not None
    assert queue.lease(engine, ben.id) is None  # ann holds it, and may skip it
    assert queue.lease(engine, ann.id) is None
    label(engine, ann, first)
    assert queue.lease(engine, ann.id) is None
    assert queue.lease(engine, ben.id) is not None


def test_who_skipped_the_first_is_not_asked_again(
    engine: Engine, ann: Moderator, ben: Moderator, fill_twice: Callable[..., None]
) -> None:
    fill_twice(1)
    first = queue.lease(engine, ann.id)
    assert first is not None
    queue.skip(
        engine,
        moderator_id=ann.id,
        item_id=first.item.id,
        lease_token=first.token,
        idempotency_key="s",
    )
    assert work(engine, ben) == ["c0"]
    assert queue.lease(engine, ann.id) is None
    carl = people.create_moderator(engine, "carl", "moderator")
    assert work(engine, carl) == ["c0"]


def test_racing_people_never_meet_a_comment_twice(
    engine: Engine, day: date, fill_twice: Callable[..., None]
) -> None:
    fill_twice(120)
    team = [people.create_moderator(engine, f"worker {i}", "moderator") for i in range(4)]
    start = threading.Barrier(len(team))

    def race(person: Moderator) -> list[str]:
        start.wait(30)
        return work(engine, person)

    with ThreadPoolExecutor(len(team)) as pool:
        served = list(pool.map(race, team))
    # What was still leased when somebody looked last.
    served.extend([work(engine, person) for person in team])
    by_person = defaultdict(list)
    for person, comments in zip([*team, *team], served, strict=True):
        by_person[person.id].extend(comments)
    assert all(len(comments) == len(set(comments)) for comments in by_person.values())
    first, second = (copied(engine, day, kind) for kind in ("review", "second_opinion"))
    assert len(first) == len(second) == 120
    assert all(first[comment][0] != second[comment][0] for comment in first)


def test_nothing_that_a_moderator_sees_tells_a_second_opinion(
    engine: Engine, ann: Moderator, ben: Moderator, new_item: Make, day: date
) -> None:
    assert {field.name for field in fields(Item)} == {
        "id", "dt", "comment_id", "text", "parent_text", "language", "platform", "version"
    }  # fmt: skip
    items = [new_item(f"c{i}", i + 1) for i in range(4)]
    items.append(new_item("c0", 3, kind="second_opinion"))
    queue.enqueue(engine, items, day)
    lease = queue.lease(engine, ann.id)
    assert lease is not None
    label(engine, ann, lease)
    leases = [queue.lease(engine, ben.id) for _ in range(4)]
    assert [each.item.comment_id for each in leases if each] == ["c1", "c2", "c0", "c3"]
    assert [each.item.id for each in leases if each] == [2, 3, 4, 5]  # ids follow the places


def test_another_route_withdraws_and_renews_second_opinions(
    engine: Engine, ann: Moderator, ben: Moderator, day: date, fill_twice: Callable[..., None]
) -> None:
    fill_twice(2)
    work(engine, ann)
    held = queue.lease(engine, ben.id)
    assert held is not None
    fill_twice(2, twice=False)  # the share was set to 0
    with pytest.raises(ItemNotFoundError, match="withdrawn"):
        label(engine, ben, held)
    assert work(engine, ben) == []
    assert len(copied(engine, day, "review")) == 2
    fill_twice(2)
    assert work(engine, ben) == ["c0", "c1"]
    fill_twice(2)
    assert len(copied(engine, day, "second_opinion")) == 2


def test_a_text_that_changed_after_the_first_label_gets_no_second(
    engine: Engine, ann: Moderator, ben: Moderator, new_item: Make, day: date
) -> None:
    queue.enqueue(engine, [new_item("c0")], day)
    assert work(engine, ann) == ["c0"]
    edited = [new_item("c0", kind=kind, text="edited") for kind in ("review", "second_opinion")]
    queue.enqueue(engine, edited, day)
    assert work(engine, ben) == []


def test_second_opinions_that_nobody_asks_for_any_more_are_retired(
    engine: Engine, ann: Moderator, ben: Moderator, day: date, fill_twice: Callable[..., None]
) -> None:
    fill_twice(3)
    lease = queue.lease(engine, ann.id)
    assert lease is not None
    label(engine, ann, lease)
    assert queue.retire_second_opinions(engine, day) == 0
    assert queue.retire_second_opinions(engine, date(2026, 1, 2)) == 3
    assert queue.retire_second_opinions(engine, date(2026, 1, 2)) == 0
    assert work(engine, ben) == ["c1", "c2"]  # firsts stay
    assert copied(engine, day, "second_opinion") == {}


def test_the_next_item_is_found_through_indexes(
    engine: Engine, ann: Moderator, new_item: Make, day: date
) -> None:
    """However many items wait or are decided, and whatever the planner knows of them."""
    items = [new_item(f"c{i}", i + 1) for i in range(6_000)]
    again = [new_item(f"c{i}", i + 1, kind="second_opinion") for i in range(0, 6_000, 3)]
    queue.enqueue(engine, [*items, *again], day)
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE review_item SET status = 'decided' WHERE kind = 'review' AND rank < 2000")
        )
        connection.execute(text("ANALYZE review_item"))
    statement = (
        select(review_item.c.id)
        .where(waiting, may_be_served(ann.id))
        .order_by(review_item.c.dt, review_item.c.rank, review_item.c.id)
        .limit(1)
        .with_for_update(skip_locked=True, of=review_item)
    )
    sql = str(statement.compile(engine, compile_kwargs={"literal_binds": True}))
    with engine.connect() as connection:
        plan = "\n".join(connection.scalars(text(f"EXPLAIN {sql}".replace(":", r"\:"))))
    assert "review_item_waiting_idx" in plan
    assert "review_item_dt_comment_id_kind_key" in plan
    assert "Seq Scan on review_item" not in plan
    assert "hashed SubPlan" not in plan
    assert "Sort" not in plan
