"""Retests and gold items: who gets which, when, and that nothing tells them from the rest."""

from collections.abc import Callable, Iterable
from datetime import date, timedelta
from typing import Any

import pytest
from databases import unguarded
from sqlalchemy import Engine, RowMapping, select, text

from modwatch.review import people, queue
from modwatch.review.log.decision_log import Decision
from modwatch.review.people import Moderator
from modwatch.review.quality_control.gold import GoldComment, add_gold
from modwatch.review.quality_control.queueing import Queued, queue_quality_control
from modwatch.review.queue.deciding import correct, undo
from modwatch.review.queue.intake import withdraw_expired
from modwatch.review.queue.items import NewItem
from modwatch.review.queue.lanes import Lanes
from modwatch.review.tables import review_item

Fill = Callable[[int], None]
Make = Callable[..., NewItem]

TODAY = date(2026, 2, 1)


def queue_some(engine: Engine, day: date = TODAY, **more: Any) -> Queued:
    """Queue checks as many as a person labels a day, unless `more` says otherwise."""
    shares = {"retest_share": 1.0, "gold_share": 1.0, "salt": "s"}
    return queue_quality_control(engine, day, **(shares | more))


def label_all(engine: Engine, person: Moderator, *, label: int = 0) -> list[Decision]:
    done = []
    while (lease := queue.lease(engine, person.id)) is not None:
        done.append(
            queue.decide(
                engine, moderator_id=person.id, item_id=lease.item.id, lease_token=lease.token,
                label=label, idempotency_key=lease.token,
            )
        )  # fmt: skip
    return done


def time_passes(engine: Engine, **ago: float) -> None:
    """Let everything in the log be so much older; nothing but a test may."""
    with unguarded(engine) as connection:
        connection.execute(
            text("UPDATE decision SET decided_at = decided_at - CAST(:ago AS interval)"),
            {"ago": timedelta(**ago)},
        )


def labelled_long_ago(
    engine: Engine, person: Moderator, items: Iterable[NewItem], *, today: int = 5
) -> list[Decision]:
    """Let a person label `items` two weeks ago, and `today` others now."""
    queue.enqueue(engine, items, date(2026, 1, 1))
    done = label_all(engine, person)
    time_passes(engine, days=14)
    work_today(engine, person, today)
    return done


def work_today(engine: Engine, person: Moderator, n: int = 5) -> None:
    base = {"reason": "random_slice", "stratum": 2, "inclusion_probability": 0.5, "rank": 1}
    rest = {"review_score": 0.1, "prob": 0.1, "uncertainty": 0.09, "model_version": "1"}
    fresh = [
        NewItem(comment_id=f"today-{person.id}-{k}", text="invented", **base, **rest)
        for k in range(n)
    ]
    queue.enqueue(engine, fresh, date(2026, 1, 20) + timedelta(person.id))
    label_all(engine, person)


def checks(engine: Engine, person: Moderator | None = None) -> list[RowMapping]:
    found = select(review_item).where(review_item.c.kind.in_(["retest", "gold"]))
    if person is not None:
        found = found.where(review_item.c.reserved_for == person.id)
    with engine.connect() as connection:
        return list(connection.execute(found.order_by(review_item.c.id)).mappings())


def gold(n: int, **more: Any) -> list[GoldComment]:
    return [
        GoldComment(
            comment_id=f"g{k}", text=f"invented gold {k}", label=k % 2, source="panel", **more
        )
        for k in range(n)
    ]


@pytest.fixture
def old_items(new_item: Make) -> list[NewItem]:
    return [
        new_item(f"c{k}", k + 1, stratum=3, inclusion_probability=0.25, language="en", prob=k / 50)
        for k in range(20)
    ]


def test_a_retest_is_the_comment_once_more_for_the_same_person(
    engine: Engine, ann: Moderator, ben: Moderator, old_items: list[NewItem]
) -> None:
    labelled_long_ago(engine, ann, old_items)
    work_today(engine, ben)
    done = queue_some(engine)
    assert done == Queued(people=2, retests=5, gold=0)
    by_id = {item.comment_id: item for item in old_items}
    for row in checks(engine):
        before = by_id[row["comment_id"]]
        assert (row["kind"], row["reason"], row["reserved_for"]) == ("retest", "retest", ann.id)
        assert (row["inclusion_probability"], row["dt"]) == (1, TODAY)
        copied = ("text", "language", "stratum", "rank", "review_score", "model_version")
        assert [row[name] for name in copied] == [getattr(before, name) for name in copied]
        assert row["prob"] == pytest.approx(before.prob)
    assert queue.lease(engine, ben.id) is None
    again = label_all(engine, ann)
    assert {entry.kind for entry in again} == {"retest"}
    assert len({entry.comment_id for entry in again}) == 5


def test_fourteen_days_and_not_an_hour_less(
    engine: Engine, ann: Moderator, old_items: list[NewItem]
) -> None:
    labelled_long_ago(engine, ann, old_items)
    with unguarded(engine) as connection:
        connection.execute(
            text(
                "UPDATE decision SET decided_at = decided_at + interval '1 hour' WHERE position > 2"
            )
        )
    assert queue_some(engine).retests == 2
    assert len({row["comment_id"] for row in checks(engine)}) == 2


def test_the_same_day_again_adds_nothing(
    engine: Engine, ann: Moderator, old_items: list[NewItem]
) -> None:
    add_gold(engine, gold(30))
    labelled_long_ago(engine, ann, old_items)
    assert queue_some(engine) == Queued(people=1, retests=5, gold=5)
    before = checks(engine)
    assert queue_some(engine) == Queued(people=1, retests=0, gold=0)
    assert checks(engine) == before
    label_all(engine, ann)
    assert queue_some(engine) == Queued(people=1, retests=0, gold=0)


def test_undecided_checks_do_not_pile_up(
    engine: Engine, ann: Moderator, old_items: list[NewItem]
) -> None:
    add_gold(engine, gold(30))
    labelled_long_ago(engine, ann, old_items)
    queue_some(engine)
    assert queue_some(engine, TODAY + timedelta(1)) == Queued(people=1, retests=0, gold=0)


def test_no_one_meets_a_check_twice(
    engine: Engine, ann: Moderator, old_items: list[NewItem]
) -> None:
    add_gold(engine, gold(12))
    labelled_long_ago(engine, ann, old_items)
    for after in range(8):
        queue_some(engine, TODAY + timedelta(after))
        label_all(engine, ann)
    met = [(row["kind"], row["comment_id"]) for row in checks(engine, ann)]
    assert len(met) == len(set(met))
    # Everything was drawn in the end: 20 old comments, and the gold.
    assert {kind: [k for k, _ in met].count(kind) for kind in ("retest", "gold")} == {
        "retest": 20,
        "gold": 12,
    }


def test_what_was_taken_back_corrected_or_met_again_is_no_retest(
    engine: Engine, ann: Moderator, new_item: Make
) -> None:
    day = date(2026, 1, 1)
    queue.enqueue(engine, [new_item(f"c{k}", k + 1) for k in range(4)], day)
    done = {entry.comment_id: entry for entry in label_all(engine, ann)}
    lease = undo(engine, moderator_id=ann.id, decision_id=done["c0"].id, idempotency_key="undo")
    queue.decide(
        engine, moderator_id=ann.id, item_id=lease.item.id, lease_token=lease.token, label=1,
        idempotency_key="anew",
    )  # fmt: skip
    correct(
        engine, moderator_id=ann.id, item_id=done["c1"].item_id, label=1, version=2,
        idempotency_key="corrected", reason="slip",
    )  # fmt: skip
    time_passes(engine, days=14)
    queue.enqueue(engine, [new_item("c2")], day + timedelta(1))
    label_all(engine, ann)
    work_today(engine, ann)
    assert queue_some(engine).retests == 1
    assert [row["comment_id"] for row in checks(engine)] == ["c3"]


def test_gold_that_a_person_knows_or_will_meet_is_left_out(
    engine: Engine, ann: Moderator, ben: Moderator, new_item: Make
) -> None:
    add_gold(engine, gold(4))
    queue.enqueue(engine, [new_item("g0")], date(2026, 1, 1))
    label_all(engine, ann)
    queue.enqueue(engine, [new_item("g1")], date(2026, 1, 2))
    held = queue.lease(engine, ben.id)
    assert held is not None
    queue.skip(
        engine, moderator_id=ben.id, item_id=held.item.id, lease_token=held.token,
        idempotency_key="skip", reason="unsure",
    )  # fmt: skip
    work_today(engine, ann)  # labels g1 too
    work_today(engine, ben)
    queue.enqueue(engine, [new_item("g2")], date(2026, 1, 3))
    queue_some(engine)
    assert {row["comment_id"] for row in checks(engine, ann)} == {"g3"}
    assert {row["comment_id"] for row in checks(engine, ben)} == {"g0", "g3"}


def test_only_who_may_review_and_does_gets_checks(
    engine: Engine, ann: Moderator, ben: Moderator
) -> None:
    add_gold(engine, gold(30))
    cleo = people.create_moderator(engine, "cleo", "moderator")
    dora = people.create_moderator(engine, "dora", "lead")
    eve = people.create_moderator(engine, "eve", "moderator")
    work_today(engine, eve)
    time_passes(engine, days=8)
    for person in (ann, ben, cleo, dora):
        work_today(engine, person)
    people.disable(engine, ben.id)
    people.change_role(engine, cleo.id, "auditor")
    assert queue_some(engine).people == 2
    assert {row["reserved_for"] for row in checks(engine)} == {ann.id, dora.id}


def test_no_one_is_served_what_they_do_not_work(
    engine: Engine, ann: Moderator, new_item: Make
) -> None:
    lanes = Lanes(queue_by="language")
    items = [
        new_item(f"{language}{k}", 2 * k + 1, language=language, reason=reason)
        for language in ("de", "en")
        for k, reason in enumerate(("uncertainty", "toxicity"))
    ]
    queue.enqueue(engine, items, date(2026, 1, 1), lanes=lanes)
    label_all(engine, ann)
    time_passes(engine, days=14)
    work_today(engine, ann)
    known = gold(4, language="de")
    add_gold(engine, known)
    add_gold(engine, [GoldComment(comment_id="en", text="i", label=1, source="p", language="en")])
    people.set_queues(engine, ann.id, {"en"})
    people.save_preferences(engine, ann.id, {"opt_outs": ["toxicity"]})
    queue_some(engine, lanes=lanes)
    met = {(row["kind"], row["comment_id"], row["queue"]) for row in checks(engine)}
    assert met == {("retest", "en0", "en"), ("gold", "en", "en")}


def test_shares_are_of_a_persons_pace_rounded_by_chance(engine: Engine, ann: Moderator) -> None:
    add_gold(engine, gold(400))
    work_today(engine, ann, 30)
    drawn = []
    for after in range(60):
        before = len(checks(engine))
        done = queue_some(engine, TODAY + timedelta(after), gold_share=0.05, salt="t")
        drawn.append(done.gold)
        assert len(checks(engine)) == before + done.gold
        withdraw_expired(engine, TODAY + timedelta(after + 1))
    assert set(drawn) == {1, 2}
    assert 1.3 < sum(drawn) / 60 < 1.7  # 5 % of 30


def test_there_is_an_end_to_checks(engine: Engine, ann: Moderator) -> None:
    add_gold(engine, gold(80))
    work_today(engine, ann, 60)
    assert queue_some(engine).gold == 50


def test_checks_come_within_a_day_at_the_times_at_which_the_person_works(
    engine: Engine, ann: Moderator
) -> None:
    add_gold(engine, gold(60))
    work_today(engine, ann, 40)
    time_passes(engine, hours=30)  # six hours ago, by the time of day
    queue_some(engine)
    with engine.connect() as connection:
        waits = connection.execute(
            text(
                "SELECT extract(epoch FROM serve_by - queued_at) / 3600 FROM review_item "
                "WHERE kind = 'gold'"
            )
        ).scalars()
        hours = [float(wait) for wait in waits]
    assert len(hours) == 40
    assert all(17.7 < hour < 18.3 for hour in hours)
    assert len(set(hours)) == 40


def test_checks_mix_into_the_stream_and_nothing_tells_them_from_it(
    engine: Engine, ann: Moderator, fill: Fill, old_items: list[NewItem]
) -> None:
    add_gold(engine, gold(30))
    labelled_long_ago(engine, ann, old_items)
    queue_some(engine)
    due = "UPDATE review_item SET serve_by = now() WHERE kind = 'gold' AND status = 'waiting'"
    with engine.begin() as connection:
        connection.execute(text(due))
    queue.enqueue(
        engine,
        [NewItem(**{**vars(item), "comment_id": f"new{k}"}) for k, item in enumerate(old_items)],
        TODAY,
    )
    done = label_all(engine, ann)
    # What is due comes first, what is not yet last; the day's items in between.
    assert [decision.kind for decision in done] == ["gold"] * 5 + ["review"] * 20 + ["retest"] * 5
    assert {decision.dt for decision in done} == {TODAY}


def test_the_ids_of_checks_are_among_those_of_the_day(
    engine: Engine, ann: Moderator, ben: Moderator, new_item: Make
) -> None:
    add_gold(engine, gold(30))
    work_today(engine, ann, 20)
    items = [new_item(f"new{k}", k + 1) for k in range(100)]
    queue.enqueue(engine, items, TODAY)
    held = queue.lease(engine, ben.id)
    assert held is not None
    given = [queue.lease(engine, ben.id) for _ in range(50)]
    for lease in given:
        assert lease is not None
        assert queue.release(engine, ben.id, lease.item.id, lease.token)
    with engine.connect() as connection:
        day = select(review_item.c.id).where(review_item.c.dt == TODAY)
        before = set(connection.scalars(day))
        queue_some(engine)
        after = list(connection.execute(select(review_item).where(review_item.c.dt == TODAY)))
    ids = {row.id: row.kind for row in after}
    found = {number for number, kind in ids.items() if kind == "gold"}
    assert len(found) == 20
    assert found < before
    assert {ids[number] for number in ids.keys() - before} == {"review"}
    # Who has seen an item finds it where it was, and none was lost or doubled.
    assert {held.item.id, *(value.item.id for value in given if value)}.isdisjoint(found)
    assert sorted(row.comment_id for row in after if row.kind == "review") == sorted(
        item.comment_id for item in items
    )
    assert len(label_all(engine, ben)) == 99
    assert queue.enqueue(engine, items, TODAY).changed == 0


def test_the_draw_is_of_the_salt_and_reproducible(
    engine: Engine, ann: Moderator, old_items: list[NewItem]
) -> None:
    add_gold(engine, gold(30))
    labelled_long_ago(engine, ann, old_items)

    def drawn(salt: str) -> set[str]:
        with unguarded(engine) as connection:
            connection.execute(text("DELETE FROM review_item WHERE kind IN ('retest', 'gold')"))
        queue_some(engine, salt=salt)
        return {row["comment_id"] for row in checks(engine)}

    assert drawn("one") == drawn("one") != drawn("two")


def test_checks_that_no_one_decided_are_withdrawn(
    engine: Engine, ann: Moderator, fill: Fill
) -> None:
    add_gold(engine, gold(3))
    work_today(engine, ann)
    queue_some(engine)
    assert withdraw_expired(engine, TODAY) == 0
    lease = queue.lease(engine, ann.id)
    assert lease is not None
    fill(1)
    assert withdraw_expired(engine, TODAY + timedelta(1)) == 3
    assert {row["status"] for row in checks(engine)} == {"withdrawn"}
    assert len(label_all(engine, ann)) == 1  # the day's item is untouched


def test_a_withdrawn_check_comes_again_unless_it_was_seen(engine: Engine, ann: Moderator) -> None:
    add_gold(engine, gold(5))
    work_today(engine, ann)
    assert queue_some(engine).gold == 5
    lease = queue.lease(engine, ann.id)
    assert lease is not None
    withdraw_expired(engine, TODAY + timedelta(1))
    assert queue_some(engine, TODAY + timedelta(1)).gold == 4
    assert lease.item.comment_id not in {row.comment_id for row in label_all(engine, ann)}


def test_what_still_waits_is_not_drawn_again(engine: Engine, ann: Moderator) -> None:
    add_gold(engine, gold(12))
    work_today(engine, ann, 6)
    assert queue_some(engine, gold_share=0.5).gold == 3
    assert queue_some(engine, TODAY + timedelta(1)).gold == 3
    met = [row["comment_id"] for row in checks(engine)]
    assert len(set(met)) == 6
    assert queue_some(engine, TODAY + timedelta(2), gold_share=1.0).gold == 0


def test_two_runs_at_once_add_one_set(
    engine: Engine, ann: Moderator, old_items: list[NewItem]
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    add_gold(engine, gold(30))
    labelled_long_ago(engine, ann, old_items)
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: queue_some(engine), range(4)))
    assert sorted(decision.gold for decision in done) == [0, 0, 0, 5]
    assert len(checks(engine)) == 10


def test_an_escalated_gold_item_reaches_a_lead(engine: Engine, ann: Moderator) -> None:
    lea = people.create_moderator(engine, "lea", "lead")
    work_today(engine, ann)
    add_gold(engine, gold(1, language="xx"))
    queue_some(engine, lanes=Lanes(queue_by="language"))
    lease = queue.lease(engine, ann.id)
    assert lease is not None
    queue.escalate(
        engine, moderator_id=ann.id, item_id=lease.item.id, lease_token=lease.token,
        idempotency_key="e", reason="unsure",
    )  # fmt: skip
    assert queue.lease_escalated(engine, lea.id) is not None


def test_of_many_labels_any_may_be_drawn(engine: Engine, ann: Moderator, new_item: Make) -> None:
    items = [new_item(f"c{k}", k + 1) for k in range(300)]
    labelled_long_ago(engine, ann, items, today=30)
    places = []
    for k in range(6):
        queue_some(engine, TODAY + timedelta(k), gold_share=0.0, salt=str(k))
        label_all(engine, ann)
    places = [int(row["comment_id"][1:]) for row in checks(engine)]
    assert len(places) == 6 * 30
    assert min(places) < 30
    assert max(places) >= 270
