import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

import pytest
from sqlalchemy import Engine, event, select, update

from modwatch.common.errors import DatabaseError, ItemNotFoundError, LeaseConflictError, QueueError
from modwatch.review.queue import intake, leases, metrics
from modwatch.review.queue.intake import Enqueued
from modwatch.review.queue.items import NewItem
from modwatch.review.tables import review_item
from review.labelling import held, label, label_next, skip

Make = Callable[..., NewItem]


def rows(engine: Engine) -> list[tuple[object, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(select(review_item).order_by("id"))]


def test_the_same_day_again_changes_nothing(engine, new_item, day):
    items = [new_item(f"c{i}", i + 1, prob=0.1 * i) for i in range(5)]
    assert intake.enqueue(engine, iter(items), day) == Enqueued(routed=5, changed=5, withdrawn=0)
    before = rows(engine)
    assert intake.enqueue(engine, items[::-1], day) == Enqueued(routed=5, changed=0, withdrawn=0)
    assert rows(engine) == before


def test_days_and_kinds_do_not_touch_each_other(engine, new_item, day):
    for kind in ("review", "gold"):
        intake.enqueue(engine, [new_item("c1", kind=kind)], day, kinds=[kind])
    intake.enqueue(engine, [new_item("c1")], date(2026, 1, 2))
    assert metrics.counts(engine).waiting == 3
    assert intake.enqueue(engine, [], day).withdrawn == 1
    assert metrics.counts(engine, day).waiting == 1
    with pytest.raises(QueueError, match="choose one of review"):
        intake.enqueue(engine, [], day, kinds=["other"])
    later = date(2026, 1, 3)
    items = [new_item("c1"), new_item("c1", 2, kind="confirmation"), new_item("c2", 2)]
    assert intake.enqueue(engine, items, later) == Enqueued(routed=3, changed=3, withdrawn=0)
    before = rows(engine)
    assert intake.enqueue(engine, items[::-1], later) == Enqueued(routed=3, changed=0, withdrawn=0)
    assert rows(engine) == before
    assert intake.enqueue(engine, [items[0]], later) == Enqueued(routed=1, changed=0, withdrawn=2)


def test_what_is_no_longer_routed_is_withdrawn_and_may_return(engine, new_item, day, ann):
    first, second = new_item("c1", 1), new_item("c2", 2)
    intake.enqueue(engine, [first, second], day)
    lease = held(engine, ann)
    assert intake.enqueue(engine, [second], day).withdrawn == 1
    with pytest.raises(ItemNotFoundError, match="withdrawn"):
        label(engine, ann, lease)
    assert intake.enqueue(engine, [first, second], day) == Enqueued(
        routed=2, changed=1, withdrawn=0
    )
    assert held(engine, ann).item.id == lease.item.id


def test_what_is_decided_or_closed_stays_as_it_is(engine, new_item, day, ann):
    intake.enqueue(engine, [new_item("c1"), new_item("c2", 2)], day)
    label_next(engine, ann, 0)
    with engine.begin() as connection:
        closed = update(review_item).where(review_item.c.comment_id == "c2")
        connection.execute(closed.values(status="closed"))
    before = rows(engine)
    again = [new_item("c1", rank=9, text="another"), new_item("c2", prob=0.9)]
    assert intake.enqueue(engine, again, day).changed == 0
    intake.enqueue(engine, [], day)
    assert rows(engine) == before


def test_a_lease_survives_a_new_rank_but_not_a_new_text(engine, new_item, day, ann):
    intake.enqueue(engine, [new_item("c1")], day)
    lease = held(engine, ann)
    intake.enqueue(engine, [new_item("c1", rank=3)], day)
    assert leases.resume(engine, ann.id, lease.item.id, lease.token) is not None
    intake.enqueue(engine, [new_item("c1", rank=3, text="edited")], day)
    assert leases.resume(engine, ann.id, lease.item.id, lease.token) is None
    with pytest.raises(LeaseConflictError):
        skip(engine, ann, lease)


def test_hostile_text_comes_back_as_it_went_in(engine, new_item, day, ann):
    texts = (
        "👩‍👩‍👧‍👦 emoji", "שלום \u202eoverride\u202c عالم", "<script>alert(1)</script>{{ 7 * 7 }}",
        "'; DROP TABLE review_item; --", "tab\tnew\nline\r\n\\N \\. \x01\x7f", "é" * 500_000, "",
    )  # fmt: skip
    items = [new_item(f"c{n}", n, text=text, parent_text=text) for n, text in enumerate(texts)]
    intake.enqueue(engine, items, day)
    for text in texts:
        item = held(engine, ann).item
        assert item.text == item.parent_text == text


def test_one_bad_item_leaves_the_queue_untouched(engine, new_item, day):
    intake.enqueue(engine, [new_item("good")], day)
    before = rows(engine)
    bad: list[tuple[dict[str, object], str]] = [
        ({"text": "private\0"}, "text of comment 'bad'"),
        ({"parent_text": "private\udc00"}, "parent_text of comment 'bad'"),
        ({"inclusion_probability": 0.0}, "review_item_inclusion_probability_check"),
        ({"inclusion_probability": float("nan")}, "review_item_inclusion_probability_check"),
        ({"comment_id": "x" * 257}, "1 to 256 characters, got 257"),
        ({"comment_id": "good"}, "'good' was routed twice"),
        ({"kind": "gold"}, "comment 'bad' is of kind 'gold', expected review, confirmation"),
        ({"text": "private words", "model_version": None}, "model_version"),
    ]
    for fields, named in bad:
        items = [new_item("good", rank=5), new_item(**{"comment_id": "bad", **fields})]
        with pytest.raises((QueueError, DatabaseError), match=named) as refused:
            intake.enqueue(engine, items, day)
        assert "private" not in "".join(traceback.format_exception(refused.value))
        assert rows(engine) == before

    def broken() -> Iterator[NewItem]:
        yield new_item("c1")
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):  # a source that breaks half way
        intake.enqueue(engine, broken(), day)
    assert rows(engine) == before


def test_two_runs_for_one_day_take_turns(engine, new_item, day):
    items = [new_item(f"c{i}", i + 1) for i in range(60)]
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda part: intake.enqueue(engine, part, day), [items] * 4))
    assert sorted(decision.changed for decision in done) == [0, 0, 0, 60]


def test_no_join_reads_all_incoming_items_for_each_queued_one(engine, new_item, day):
    """PostgreSQL 15 joins in nested loops, since it takes the queued items for a single one."""
    plans = []

    @event.listens_for(engine, "before_cursor_execute")
    def explain(_: object, cursor: Any, statement: str, values: object, *__: object) -> None:
        if statement.startswith("UPDATE") and "FROM incoming" in statement:
            cursor.execute("SET LOCAL enable_hashjoin = off")
            cursor.execute("SET LOCAL enable_mergejoin = off")
            cursor.execute(f"EXPLAIN {statement}", values)
            plans.append("\n".join(line for (line,) in cursor.fetchall()))

    try:
        intake.enqueue(engine, [new_item(f"c{i}", i + 1) for i in range(500)], day)
    finally:
        event.remove(engine, "before_cursor_execute", explain)
    [plan] = plans
    assert "incoming_comment_id_kind_round_idx on incoming" in plan
    assert "Seq Scan on incoming" not in plan
