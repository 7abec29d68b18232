"""Follow-ups in the queue: who has no label and why, and that they come first."""

from collections.abc import Callable
from datetime import date

from databases import tamper
from sqlalchemy import Engine

from modwatch.review.queue import dismissal, intake, leases
from modwatch.review.queue.dismissal import Criteria
from modwatch.review.queue.intake import serve_first
from modwatch.review.queue.items import NewItem
from modwatch.review.queue.metrics import unlabelled
from review.labelling import escalate, held, held_escalated, label_next, skip

Make = Callable[..., NewItem]
LATER = date(2026, 1, 2)


def end_review(engine: Engine) -> None:
    """Let the deadline of all items pass."""
    tamper(
        engine,
        "UPDATE review_item SET due_at = due_at - interval '3 days', "
        "queued_at = queued_at - interval '3 days', "
        "serve_by = serve_by - interval '3 days'",
    )


def test_each_missing_label_has_its_reason_once_the_last_item_is_due(
    engine, day, ann, lea, new_item
):
    assert unlabelled(engine, day) is None
    items = [new_item(f"c{n}", n + 1) for n in range(5)]
    # Confirmations are not followed up.
    intake.enqueue(engine, [*items, new_item("c0", 2, kind="confirmation")], day)
    label_next(engine, ann)
    assert skip(engine, ann, held(engine, ann)).comment_id == "c1"
    assert escalate(engine, ann, held(engine, ann)).comment_id == "c2"
    criteria = Criteria(comment_ids=("c3",))
    begun = dismissal.start(engine, lea.id, criteria, "spam", expected=1)
    dismissal.resume(engine, begun.id)
    assert unlabelled(engine, day) is None
    end_review(engine)
    found = {"c1": "skipped", "c2": "escalated", "c3": "dismissed", "c4": "waiting"}
    assert unlabelled(engine, day) == found


def test_a_follow_up_comes_first_to_who_did_not_skip_it(engine, day, ann, ben, fill):
    fill(4)
    assert [skip(engine, ann, held(engine, ann)).comment_id for _ in range(4)] == [
        "c0",
        "c1",
        "c2",
        "c3",
    ]
    assert serve_first(engine, day, ["c2"]) == 1
    assert leases.lease(engine, ann.id) is None
    first = held(engine, ben)
    assert first.item.comment_id == "c2"
    assert set(vars(first.item)) == {
        *("id", "dt", "comment_id", "text", "parent_text", "shown", "version")
    }


def test_a_follow_up_that_is_skipped_again_stays_open_and_first(engine, day, ann, ben, fill):
    fill(2)
    serve_first(engine, day, ["c1"])
    assert skip(engine, ann, held(engine, ann)).comment_id == "c1"
    assert serve_first(engine, day, ["c1"]) == 1
    end_review(engine)
    assert unlabelled(engine, day) == {"c0": "waiting", "c1": "skipped"}
    assert label_next(engine, ben).comment_id == "c1"
    assert serve_first(engine, day, ["c1"]) == 0


def test_follow_ups_come_before_older_items_and_again_is_the_same(engine, day, ann, new_item):
    intake.enqueue(engine, [new_item("old")], day)
    end_review(engine)
    intake.enqueue(engine, [new_item("a"), new_item("b", 2)], LATER)
    for _ in range(2):
        assert serve_first(engine, LATER, ["b"]) == 1
    assert [label_next(engine, ann).comment_id for _ in range(3)] == ["b", "old", "a"]


def test_an_escalated_follow_up_is_the_first_that_leads_resolve(engine, day, ann, lea, fill):
    fill(2)
    for _ in range(2):
        escalate(engine, ann, held(engine, ann))
    serve_first(engine, day, ["c1"])
    lease = held_escalated(engine, lea)
    assert lease.item.comment_id == "c1"


def test_a_leased_item_stays_leased(engine, day, ann, ben, fill):
    fill(1)
    lease = held(engine, ann)
    assert serve_first(engine, day, ["c0"]) == 1
    assert leases.lease(engine, ben.id) is None
    assert leases.resume(engine, ann.id, lease.item.id, lease.token) is not None
