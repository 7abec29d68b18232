"""Retests and gold items: who gets which, when, and that nothing tells them from the rest."""

from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from databases import tamper
from sqlalchemy import Engine, RowMapping, select

from modwatch.review.erasure import erase_reviews
from modwatch.review.log.decision_log import Decision
from modwatch.review.people import accounts, changes
from modwatch.review.people.accounts import Moderator
from modwatch.review.quality_control.gold import GoldComment, add_gold
from modwatch.review.quality_control.queueing import Queued, queue_quality_control, unlike_gold
from modwatch.review.queue import intake, leases
from modwatch.review.queue.deciding import correct, undo
from modwatch.review.queue.intake import withdraw_expired
from modwatch.review.queue.items import NewItem
from modwatch.review.queue.lanes import Lanes
from modwatch.review.tables import review_item
from review.labelling import label, label_all, routed_like_gold, skip

Fill = Callable[[int], None]
Make = Callable[..., NewItem]

TODAY = date(2026, 2, 1)


def fine(_: str) -> int:
    return 0


def queue_some(engine: Engine, day: date = TODAY, **more: Any) -> Queued:
    """Queue checks as many as a person labels a day, unless `more` says otherwise."""
    shares = {"retest_share": 1.0, "gold_share": 1.0, "salt": "s"}
    routed_like_gold(engine, day)
    return queue_quality_control(engine, day, **(shares | more))


def time_passes(engine: Engine, **ago: float) -> None:
    """Let everything in the log be so much older; nothing but a test may."""
    tamper(
        engine,
        "UPDATE decision SET decided_at = decided_at - CAST(:ago AS interval)",
        ago=timedelta(**ago),
    )


def labelled_long_ago(
    engine: Engine, person: Moderator, items: Iterable[NewItem], *, today: int = 5
) -> list[Decision]:
    """Let a person label `items` two weeks ago, and `today` others now."""
    intake.enqueue(engine, items, date(2026, 1, 1))
    done = label_all(engine, person, fine)
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
    intake.enqueue(engine, fresh, date(2026, 1, 20) + timedelta(person.id))
    label_all(engine, person, fine)


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
def old_items(new_item):
    return [
        new_item(f"c{k}", k + 1, stratum=3, inclusion_probability=0.25, language="en", prob=k / 50)
        for k in range(20)
    ]


def test_a_retest_is_the_comment_once_more_for_the_same_person(engine, ann, ben, old_items):
    labelled_long_ago(engine, ann, old_items)
    work_today(engine, ben)
    done = queue_some(engine)
    assert done == Queued(people=2, retests=5, gold=0)
    by_id = {item.comment_id: item for item in old_items}
    for row in checks(engine):
        before = by_id[row["comment_id"]]
        assert (row["kind"], row["reason"], row["reserved_for"]) == ("retest", "retest", ann.id)
        assert (row["inclusion_probability"], row["dt"]) == (1, TODAY)
        copied = ("text", "shown", "stratum", "rank", "review_score", "model_version")
        assert [row[name] for name in copied] == [getattr(before, name) for name in copied]
        assert row["prob"] == pytest.approx(before.prob)
    assert label_all(engine, ben, fine) == []
    again = label_all(engine, ann, fine)
    assert {entry.kind for entry in again} == {"retest"}
    assert len({entry.comment_id for entry in again}) == 5


def test_fourteen_days_and_not_an_hour_less(engine, ann, old_items):
    labelled_long_ago(engine, ann, old_items)
    tamper(
        engine, "UPDATE decision SET decided_at = decided_at + interval '1 hour' WHERE position > 2"
    )
    assert queue_some(engine).retests == 2
    assert len({row["comment_id"] for row in checks(engine)}) == 2


def test_the_same_day_again_adds_nothing_and_undecided_checks_do_not_pile_up(
    engine, ann, old_items
):
    add_gold(engine, gold(30))
    labelled_long_ago(engine, ann, old_items)
    assert queue_some(engine) == Queued(people=1, retests=5, gold=5)
    before = checks(engine)
    assert queue_some(engine) == Queued(people=1, retests=0, gold=0)
    assert checks(engine) == before
    assert queue_some(engine, TODAY + timedelta(1)) == Queued(people=1, retests=0, gold=0)
    label_all(engine, ann, fine)
    assert queue_some(engine) == Queued(people=1, retests=0, gold=0)


def test_no_one_meets_a_check_twice(engine, ann, old_items):
    add_gold(engine, gold(12))
    labelled_long_ago(engine, ann, old_items)
    for after in range(8):
        queue_some(engine, TODAY + timedelta(after))
        label_all(engine, ann, fine)
    met = [(row["kind"], row["comment_id"]) for row in checks(engine, ann)]
    assert len(met) == len(set(met))
    # Everything was drawn in the end: 20 old comments, and the gold.
    assert {kind: [k for k, _ in met].count(kind) for kind in ("retest", "gold")} == {
        "retest": 20,
        "gold": 12,
    }


def test_what_was_taken_back_corrected_or_met_again_is_no_retest(engine, ann, new_item):
    day = date(2026, 1, 1)
    intake.enqueue(engine, [new_item(f"c{k}", k + 1) for k in range(4)], day)
    done = {entry.comment_id: entry for entry in label_all(engine, ann, fine)}
    lease = undo(engine, moderator_id=ann.id, decision_id=done["c0"].id, idempotency_key="undo")
    label(engine, ann, lease)
    correct(
        engine, moderator_id=ann.id, item_id=done["c1"].item_id, label=1, version=2,
        idempotency_key="corrected", reason="slip",
    )  # fmt: skip
    time_passes(engine, days=14)
    intake.enqueue(engine, [new_item("c2")], day + timedelta(1))
    label_all(engine, ann, fine)
    work_today(engine, ann)
    assert queue_some(engine).retests == 1
    assert [row["comment_id"] for row in checks(engine)] == ["c3"]


def test_what_was_erased_is_no_retest(engine, ann, new_item):
    day, parents = date(2026, 1, 1), ("above", "gone", None)
    items = [new_item(f"c{k}", k + 1, parent_text=above) for k, above in enumerate(parents)]
    labelled_long_ago(engine, ann, items)
    erase_reviews(engine, {(day, "c0"): "comment", (day, "c1"): "parent"}, ["gone"])
    assert queue_some(engine).retests == 1
    assert [row["comment_id"] for row in checks(engine)] == ["c2"]


def test_gold_that_a_person_knows_or_will_meet_is_left_out(engine, ann, ben, new_item):
    add_gold(engine, gold(4))
    intake.enqueue(engine, [new_item("g0")], date(2026, 1, 1))
    label_all(engine, ann, fine)
    intake.enqueue(engine, [new_item("g1")], date(2026, 1, 2))
    held = leases.lease(engine, ben.id)
    assert held is not None
    skip(engine, ben, held, reason="unsure")
    work_today(engine, ann)  # labels g1 too
    work_today(engine, ben)
    intake.enqueue(engine, [new_item("g2")], date(2026, 1, 3))
    queue_some(engine)
    assert {row["comment_id"] for row in checks(engine, ann)} == {"g3"}
    assert {row["comment_id"] for row in checks(engine, ben)} == {"g0", "g3"}


def test_only_who_may_review_and_does_gets_checks(engine, ann, ben):
    add_gold(engine, gold(30))
    cleo = accounts.create_moderator(engine, "cleo", "moderator")
    dora = accounts.create_moderator(engine, "dora", "lead")
    eve = accounts.create_moderator(engine, "eve", "moderator")
    work_today(engine, eve)
    time_passes(engine, days=8)
    for person in (ann, ben, cleo, dora):
        work_today(engine, person)
    changes.disable(engine, ben.id)
    changes.change_role(engine, cleo.id, "auditor")
    assert queue_some(engine).people == 2
    assert {row["reserved_for"] for row in checks(engine)} == {ann.id, dora.id}


def test_no_one_is_served_what_they_do_not_work(engine, ann, new_item):
    lanes = Lanes(queue_by="language")
    items = [
        new_item(f"{language}{k}", 2 * k + 1, language=language, reason=reason)
        for language in ("de", "en")
        for k, reason in enumerate(("uncertainty", "toxicity"))
    ]
    intake.enqueue(engine, items, date(2026, 1, 1), lanes=lanes)
    label_all(engine, ann, fine)
    time_passes(engine, days=14)
    work_today(engine, ann)
    known = gold(4, shown={"language": "de"})
    add_gold(engine, known)
    english = {"language": "en"}
    add_gold(engine, [GoldComment(comment_id="en", text="i", label=1, source="p", shown=english)])
    changes.set_queues(engine, ann.id, {"en"})
    changes.save_preferences(engine, ann.id, {"opt_outs": ["toxicity"]})
    queue_some(engine, lanes=lanes)
    met = {(row["kind"], row["comment_id"], row["queue"]) for row in checks(engine)}
    assert met == {("retest", "en0", "en"), ("gold", "en", "en")}


def test_shares_are_of_a_persons_pace_rounded_by_chance(engine, ann):
    add_gold(engine, gold(400))
    work_today(engine, ann, 30)
    drawn = []
    for after in range(20):
        before = len(checks(engine))
        done = queue_some(engine, TODAY + timedelta(after), gold_share=0.05, salt="t")
        drawn.append(done.gold)
        assert len(checks(engine)) == before + done.gold
        withdraw_expired(engine, TODAY + timedelta(after + 1))
    assert set(drawn) == {1, 2}
    # 5 % of 30; three standard deviations of the mean of twenty draws of 1 or 2 are 0.34.
    assert 1.16 < sum(drawn) / 20 < 1.84


def test_there_is_an_end_to_checks_and_they_come_after_a_number_of_decisions(engine, ann):
    add_gold(engine, gold(80))
    work_today(engine, ann, 60)
    assert queue_some(engine).gold == 50
    after = [row["serve_after"] for row in checks(engine)]
    assert len(after) == 50
    assert 60 <= min(after) < 70
    assert 110 <= max(after) < 120


def test_checks_take_places_in_the_stream_and_none_at_its_end(engine, ann, old_items):
    """Whoever is served something has ordinary items left: an empty queue tells nothing."""
    add_gold(engine, gold(30, shown={"language": "en"}))
    labelled_long_ago(engine, ann, old_items)
    fresh = [
        NewItem(**{**vars(item), "comment_id": f"new{k}", "rank": k + 1})
        for k, item in enumerate(3 * old_items)
    ]
    intake.enqueue(engine, fresh, TODAY)
    assert queue_some(engine) == Queued(people=1, retests=5, gold=5)
    kinds = []
    while lease := leases.lease(engine, ann.id):
        kinds.append(label(engine, ann, lease).kind)
    assert Counter(kinds) == {"review": 60, "retest": 5, "gold": 5}
    assert kinds[-1] == "review"
    assert len(set(kinds[:15])) > 1


def test_gold_looks_as_the_day_does(engine, ann, new_item):
    """Nine of ten comments of the day are replies of a forum: so is gold, though few of it are."""
    looks = [{"platform": "forum", "parent_text": "p"}, {"platform": "blog"}]
    for name, more, n in (("r", looks[0], 40), ("b", looks[1], 40), ("x", {"language": "xx"}, 40)):
        known = {"shown": {one: more[one] for one in more if one != "parent_text"}}
        known |= {one: more[one] for one in more if one == "parent_text"}
        comments = [replace(one, comment_id=f"{name}{one.comment_id}") for one in gold(n, **known)]
        add_gold(engine, comments)
    work_today(engine, ann, 40)
    day = [
        new_item(f"c{k}", k + 1, text=f"invented gold {10 + k % 90}", **looks[k % 10 == 0])
        for k in range(400)
    ]
    intake.enqueue(engine, day, TODAY)
    queue_quality_control(engine, TODAY, retest_share=0, gold_share=1, salt="s")
    of = Counter(row["comment_id"][0] for row in checks(engine))
    assert of.total() > 25
    assert 1 <= of["b"] <= 9
    assert of["x"] == 0
    assert unlike_gold(engine) == 40 + 2 * 10  # of another language, and shorter ones


def test_the_draw_is_of_the_salt_and_reproducible(engine, ann, old_items):
    add_gold(engine, gold(30))
    labelled_long_ago(engine, ann, old_items)

    def drawn(salt: str) -> set[str]:
        tamper(engine, "DELETE FROM review_item WHERE kind IN ('retest', 'gold')")
        queue_some(engine, salt=salt)
        return {row["comment_id"] for row in checks(engine)}

    assert drawn("one") == drawn("one") != drawn("two")


def test_checks_that_no_one_decided_are_withdrawn_and_come_again_unless_seen(engine, ann, fill):
    add_gold(engine, gold(5))
    work_today(engine, ann)
    assert queue_some(engine).gold == 5
    assert withdraw_expired(engine, TODAY) == 0
    lease = leases.claim(engine, ann.id, checks(engine)[0]["id"])
    assert lease is not None
    fill(1)
    assert withdraw_expired(engine, TODAY + timedelta(1)) == 5
    assert {row["status"] for row in checks(engine)} == {"withdrawn"}
    assert len(label_all(engine, ann, fine)) == 1  # the day's item is untouched
    assert queue_some(engine, TODAY + timedelta(1)).gold == 4
    assert lease.item.comment_id not in {row.comment_id for row in label_all(engine, ann, fine)}


def test_two_runs_at_once_add_one_set(engine, ann, old_items):
    add_gold(engine, gold(30))
    labelled_long_ago(engine, ann, old_items)
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: queue_some(engine), range(4)))
    assert sorted(decision.gold for decision in done) == [0, 0, 0, 5]
    assert len(checks(engine)) == 10


def test_of_many_labels_any_may_be_drawn(engine, ann, new_item):
    items = [new_item(f"c{k}", k + 1) for k in range(100)]
    labelled_long_ago(engine, ann, items, today=20)
    for k in range(3):
        queue_some(engine, TODAY + timedelta(k), gold_share=0.0, salt=str(k))
        label_all(engine, ann, fine)
    places = [int(row["comment_id"][1:]) for row in checks(engine)]
    assert len(places) == 3 * 20
    assert min(places) < 10  # none of ten is not among sixty of a hundred: once in 20,000
    assert max(places) >= 90
