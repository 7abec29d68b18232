from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from databases import execute, tamper
from sqlalchemy import Engine, text

from modwatch.review import workload
from modwatch.review.log import verification
from modwatch.review.people import accounts
from modwatch.review.people.accounts import Moderator
from modwatch.review.queue import deciding, dismissal, intake, leases
from modwatch.review.queue.dismissal import Criteria
from modwatch.review.queue.items import NewItem
from modwatch.review.queue.metrics import ShownCounts, shown_counts
from modwatch.review.workload import LaneWork
from review.labelling import cancel, escalate, held, label_next, settle, skip

Fill = Callable[[int], None]
New = Callable[..., NewItem]


def hand_on(engine: Engine, person: Moderator, note: str = "what is this?") -> int:
    return escalate(engine, person, held(engine, person), reason="unclear", note=note).id


def undo(engine: Engine, person: Moderator, decision_id: int) -> None:
    lease = deciding.undo(
        engine, moderator_id=person.id, decision_id=decision_id, idempotency_key=f"u{decision_id}"
    )
    leases.release(engine, person.id, lease.item.id, lease.token)


def age_items(engine: Engine) -> None:
    """Let item n be n hours old, and promised within two and a half hours."""
    execute(
        engine,
        "UPDATE review_item SET queued_at = now() - rank * interval '1 hour', "
        "due_at = now() - rank * interval '1 hour' + interval '2.5 hours'",
    )


def only(engine: Engine) -> LaneWork:
    (state,) = workload.work_left(engine)
    return state


def near(found: float | None, hours: float) -> bool:
    return found is not None and abs(found - 3_600 * hours) < 60


def test_each_item_counts_once_and_ages_are_of_what_can_be_decided(engine, ann, fill):
    fill(6)
    age_items(engine)
    label_next(engine, ann)  # one hour old
    hand_on(engine, ann)  # two
    held(engine, ann)  # three
    execute(engine, "UPDATE review_item SET status = 'blocked' WHERE rank = 6")
    assert only(engine).waiting == 5, "both decisions can be undone"
    settle(engine)
    state = only(engine)
    assert (state.waiting, state.escalated) == (3, 1)  # one is in review
    assert state.overdue == 3  # three, four and five hours old; the blocked one does not count
    assert near(state.oldest_seconds, 5)
    assert near(state.median_seconds, 3.5)  # of 2, 3, 4 and 5
    assert near(state.oldest_escalated_seconds, 2)


def test_an_item_taken_back_brought_back_or_queued_anew_keeps_its_age(
    engine, ann, cora, fill, new_item, day
):
    assert workload.work_left(engine) == workload.throughput(engine, day, day) == []
    fill(1)
    age_items(engine)
    undo(engine, ann, label_next(engine, ann).id)
    state = only(engine)
    assert (state.waiting, state.decided_today) == (1, 0)
    assert near(state.oldest_seconds, 1)
    all_of_it = Criteria(queue="general")
    settle(engine)
    done = dismissal.resume(engine, dismissal.start(engine, cora.id, all_of_it, "spam", 1).id)
    assert workload.work_left(engine) == []
    cancel(engine, cora.id, done.id)
    assert near(only(engine).oldest_seconds, 1)
    intake.enqueue(engine, [new_item("c0", prob=0.9)], day)
    assert near(only(engine).oldest_seconds, 1)
    leases.lease(engine, ann.id, timedelta(0))  # an expired lease waits again
    assert (only(engine).waiting, workload.holders(engine)) == (1, [])
    label_next(engine, ann)
    assert (only(engine).waiting, only(engine).decided_today) == (1, 0), "it can be undone"
    # yesterday's decisions are not today's
    tamper(engine, "UPDATE decision SET decided_at = decided_at - interval '1 day'")
    assert workload.work_left(engine) == []


def test_moderators_leads_and_ops_read_the_same_counts(engine, ann, cora, new_item, day):
    """Whoever looks, and whatever happens to an item; what only measures is counted apart."""
    intake.enqueue(engine, [new_item(f"c{n}", n + 1) for n in range(4)], day)
    gold = new_item("g", 9, kind="gold", reason="gold")
    intake.enqueue(engine, [gold], day, kinds=["gold"])

    def counts() -> tuple[int, int, int]:
        of_lead = sum(lane.waiting for lane in workload.work_left(engine, viewer=cora.id))
        of_ops = sum(lane.waiting for lane in workload.work_left(engine))
        assert of_lead == of_ops == shown_counts(engine).waiting
        apart = sum(lane.waiting for lane in workload.measurements_left(engine))
        leased = shown_counts(engine).leased
        assert leased == len(workload.holders(engine))
        assert shown_counts(engine, queues=["de"]) == ShownCounts(waiting=0, leased=0)
        return of_lead, apart, leased

    assert counts() == (4, 1, 0)
    lease = held(engine, ann)
    assert counts() == (4, 1, 1), "items in review count as waiting"
    leases.release(engine, ann.id, lease.item.id, lease.token)
    label_next(engine, ann)
    assert counts() == (4, 1, 0), "so do decided ones that can be undone"
    settle(engine)
    assert counts() == (3, 1, 0)
    for _ in range(4):
        label_next(engine, ann)
    assert counts() == (3, 1, 0)
    settle(engine)
    assert counts() == (0, 0, 0)


def test_queues_and_reasons_are_distinguished(engine, ann, new_item, day):
    items = [new_item("a"), new_item("b", 2, reason="toxicity"), new_item("c", 3)]
    intake.enqueue(engine, items, day)
    execute(engine, "UPDATE review_item SET queue = 'de' WHERE comment_id = 'c'")
    execute(engine, "INSERT INTO lane VALUES ('de', 'uncertainty')")
    found = [(state.queue, state.reason, state.waiting) for state in workload.work_left(engine)]
    assert found == [
        ("de", "uncertainty", 1),
        ("general", "toxicity", 1),
        ("general", "uncertainty", 1),
    ]
    assert [lane.queue for lane in workload.work_left(engine, queues=["de"])] == ["de"]
    assert workload.work_left(engine, queues=[]) == []
    held(engine, ann, queues=["de"])
    assert [holder.queue for holder in workload.holders(engine, queues=["de"])] == ["de"]
    assert workload.holders(engine, queues=["general"]) == []


def test_who_holds_what_and_taking_it_back(engine, ann, ben, cora, fill):
    fill(4)
    first, second = held(engine, ann), held(engine, ann)
    other = held(engine, ben)
    found = workload.holders(engine)
    assert [(match.pseudonym, match.item_id) for match in found] == [
        ("ann", first.item.id), ("ann", second.item.id), ("ben", other.item.id),
    ]  # fmt: skip
    assert (found[0].claimed_at, found[0].leased_until) == (first.claimed_at, first.expires_at)
    one = workload.release_all(engine, ann.id, actor_id=cora.id, item_id=second.item.id)
    assert (one, workload.release_all(engine, ann.id, actor_id=cora.id)) == (1, 1)
    assert workload.release_all(engine, ann.id, actor_id=cora.id) == 0
    assert [holder.pseudonym for holder in workload.holders(engine)] == ["ben"]
    with engine.connect() as connection:
        events = connection.execute(
            text(
                "SELECT actor_id, subject_id, details FROM event "
                "WHERE action = 'leases_released' ORDER BY id"
            )
        ).all()
    assert events == [
        (cora.id, ann.id, {"items": [second.item.id]}),
        (cora.id, ann.id, {"items": [first.item.id]}),
    ]
    assert held(engine, ben).item.id == first.item.id
    assert verification.verify_log(engine).decisions == 0


def test_an_escalation_says_why_by_whom_and_how_old(engine, ann, cora, fill, new_item, day):
    fill(3)
    age_items(engine)
    undo(engine, ann, hand_on(engine, ann, "a mistake"))
    hand_on(engine, ann, "not a mistake")
    (found,) = workload.escalations(engine)
    assert (found.comment_id, found.reason, found.note) == ("c0", "unclear", "not a mistake")
    assert (found.pseudonym, found.held_by, found.overdue) == ("ann", None, False)
    assert near(found.age_seconds, 1)
    assert "not a mistake" not in repr(found)
    leases.lease_escalated(engine, cora.id)
    assert workload.escalations(engine)[0].held_by == "cora"
    # Labels that disagree are escalated by nobody.
    intake.enqueue(engine, [new_item("d", labels_wanted=2)], day + timedelta(1))
    for value in (1, 0):
        person = accounts.create_moderator(engine, f"person {value}", "moderator")
        while label_next(engine, person, value).comment_id != "d":
            pass
    (found,) = [one for one in workload.escalations(engine) if one.comment_id == "d"]
    assert (found.reason, found.note, found.pseudonym, found.escalated_at) == (None,) * 4


def test_throughput(engine, ann, ben, fill):
    fill(9)
    for value, seconds in ((1, 2), (0, 4), (0, 12)):
        label_next(engine, ann, value, seconds=seconds)
    undo(engine, ann, label_next(engine, ann, 1, seconds=1_000).id)
    hand_on(engine, ben)
    lease = held(engine, ben)
    skip(engine, ben, lease)
    now = datetime.now(UTC)
    today = now.date()
    days = workload.throughput(engine, today, today)
    assert [(row.pseudonym, row.labels, row.skips, row.escalations) for row in days] == [
        ("ann", 3, 0, 0), ("ben", 0, 1, 1),
    ]  # fmt: skip
    assert [row.share_picked for row in days] == [1 / 5, 1]
    assert days[0].median_seconds == 4
    assert days[0].share_toxic == pytest.approx(1 / 3)
    assert (days[1].median_seconds, days[1].share_toxic) == (None, None)
    assert days[0].at == datetime(today.year, today.month, today.day, tzinfo=UTC)
    hours = workload.throughput(engine, today, today, grain="hour")
    assert sum(hour.labels for hour in hours) == 3
    assert all(hour.at.minute == 0 and now - hour.at < timedelta(hours=2) for hour in hours)
    yesterday = today - timedelta(days=1)
    assert workload.throughput(engine, yesterday, yesterday) == []
    assert workload.throughput(engine, today, today, queues=["elsewhere"]) == []
    assert workload.throughput(engine, today, today, queues=["general"]) == days


@pytest.mark.parametrize(
    ("kind", "action"),
    [
        ("review", "label"), ("confirmation", "skip"), ("gold", "escalate"), ("retest", "release"),
        ("audit", "label"), ("gold", "label"), ("confirmation", "label"),
    ],
)  # fmt: skip
def test_no_count_tells_a_lead_what_they_hold_or_have_just_decided(
    engine, cora, ann, new_item, day, kind,
    action
):  # fmt: skip
    """Of three ordinary items and one of `kind`, which is the only thing that changes."""
    intake.enqueue(engine, [new_item("a")], day)
    label_next(engine, ann)
    tamper(engine, "UPDATE decision SET decided_at = decided_at - interval '1 hour'")
    intake.enqueue(engine, [new_item(f"c{n}", n + 2) for n in range(3)], day + timedelta(1))
    intake.enqueue(
        engine, [new_item("a", kind=kind)], day + 2 * timedelta(kind == "review"), kinds=[kind]
    )
    with engine.begin() as connection:
        first = text("UPDATE review_item SET serve_by = '2020-01-01' WHERE status = 'waiting' "
                     "AND comment_id = 'a'")  # fmt: skip
        connection.execute(first)
    every = Criteria(queue="general")

    def counted() -> object:
        lanes = [(lane.reason, lane.waiting, lane.escalated, lane.overdue, lane.decided_today)
                 for lane in workload.work_left(engine, viewer=cora.id)]  # fmt: skip
        listed = workload.escalations(engine, viewer=cora.id)
        return lanes, listed, dismissal.matching(engine, every), shown_counts(engine).waiting

    before = counted()
    lease = held(engine, cora)
    assert lease.item.comment_id == "a"
    assert counted() == before
    request = {"moderator_id": cora.id, "item_id": lease.item.id, "lease_token": lease.token,
               "idempotency_key": "k"}  # fmt: skip
    if action == "release":
        leases.release(engine, cora.id, lease.item.id, lease.token)
    elif action == "label":
        deciding.decide(engine, label=1, **request)
    elif action in ("skip", "escalate"):
        {"skip": deciding.skip, "escalate": deciding.escalate}[action](engine, **request)
    assert counted() == before


def test_an_escalated_measurement_counts_under_the_reason_of_others(
    engine, cora, ann, new_item, day
):
    for kind in ("gold", "retest"):
        intake.enqueue(engine, [new_item(kind, kind=kind, reason=kind)], day, kinds=[kind])
        hand_on(engine, ann)
    (state,) = workload.work_left(engine, viewer=cora.id)
    assert (state.reason, state.escalated) == ("uncertainty", 2)
    assert len(workload.escalations(engine, viewer=cora.id)) == 2
    assert workload.escalations(engine, viewer=ann.id) == []
    settle(engine)
    assert len(workload.escalations(engine, viewer=ann.id)) == 2
