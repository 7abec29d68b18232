import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from databases import scalars
from pydantic import ValidationError
from sqlalchemy import Engine, event, text

from modwatch.common.errors import ItemNotFoundError, LeaseConflictError, QueueError
from modwatch.review.log import verification
from modwatch.review.people import accounts
from modwatch.review.people.accounts import Moderator
from modwatch.review.queue import dismissal, intake, leases, metrics
from modwatch.review.queue.dismissal import CRITERIA, Criteria, Dismissal
from modwatch.review.queue.items import NewItem
from review.labelling import cancel, held, label

Fill = Callable[[int], None]
New = Callable[..., NewItem]

GENERAL = Criteria(queue="general")


def close(
    engine: Engine, lead: Moderator, criteria: Criteria = GENERAL, batch: int = 2
) -> Dismissal:
    found = dismissal.matching(engine, criteria)
    begun = dismissal.start(engine, lead.id, criteria, "a spam wave", found)
    return dismissal.resume(engine, begun.id, batch=batch)


def statuses(engine: Engine) -> dict[str, str]:
    with engine.connect() as connection:
        rows = connection.execute(
            text("SELECT comment_id || ' ' || kind, status FROM review_item ORDER BY id")
        )
        return {row[0]: row[1] for row in rows}


def actions(engine: Engine) -> list[tuple[str, str]]:
    with engine.connect() as connection:
        rows = connection.execute(
            text(
                "SELECT d.action, comment_id FROM decision d JOIN moderator m "
                "ON m.id = d.moderator_id WHERE pseudonym = 'cora' ORDER BY d.id"
            )
        )
        return [(row[0], row[1]) for row in rows]


def test_all_that_match_are_closed_and_a_cancel_brings_all_back(engine, cora, ann, fill):
    fill(5)
    done = close(engine, cora)
    assert (done.state, done.matched, done.closed) == ("closed", 5, 5)
    assert set(statuses(engine).values()) == {"closed"}
    assert actions(engine) == [("close", f"c{i}") for i in range(5)]
    assert leases.lease(engine, cora.id) is None
    assert dismissal.latest(engine) == [done]
    back = cancel(engine, cora.id, done.id, batch=2)
    assert (back.state, back.closed, back.cancelled_by) == ("brought back", 0, cora.id)
    assert set(statuses(engine).values()) == {"waiting"}
    assert [action for action, _ in actions(engine)] == ["close"] * 5 + ["reopen"] * 5
    pairs = (
        "SELECT o.item_id = c.item_id FROM decision o JOIN decision c "
        "ON c.id = o.refers_to AND c.action = 'close' WHERE o.action = 'reopen'"
    )
    assert scalars(engine, pairs) == [True] * 5
    assert cancel(engine, cora.id, done.id) == back  # twice is once
    assert verification.verify_log(engine).intact
    label(engine, ann, held(engine, ann))


def test_what_is_held_decided_or_measured_stays(engine, cora, ann, ben, new_item, day):
    intake.enqueue(engine, [new_item(f"c{i}", i + 1) for i in range(3)], day)
    intake.enqueue(engine, [new_item("g", 9, kind="gold")], day, kinds=["gold"])
    intake.enqueue(engine, [new_item("a", 9, kind="audit")], day, kinds=["audit"])
    intake.enqueue(engine, [new_item("i", 9, kind="imported")], day, kinds=["imported"])
    label(engine, ann, held(engine, ann))
    taken = held(engine, ben)
    assert close(engine, cora).closed == 2
    assert statuses(engine) == {
        "c0 review": "decided",
        "c1 review": "waiting",
        "c2 review": "closed",
        "g gold": "waiting",
        "a audit": "waiting",
        "i imported": "closed",
    }
    label(engine, ben, taken)


def test_what_is_decided_or_comes_meanwhile_is_left_alone(engine, cora, ann, new_item, day, fill):
    fill(4)
    begun = dismissal.start(engine, cora.id, GENERAL, "spam", 4)
    label(engine, ann, held(engine, ann))
    intake.enqueue(engine, [new_item("later")], day + timedelta(days=1))
    done = dismissal.resume(engine, begun.id, batch=1)
    assert (done.matched, done.closed) == (4, 3)
    assert list(statuses(engine).values()).count("decided") == 1
    assert statuses(engine)["later review"] == "waiting"
    dan = accounts.create_moderator(engine, "dan", "lead")  # a cancel by another lead is theirs
    back = cancel(engine, dan.id, begun.id)
    assert (back.moderator_id, back.cancelled_by) == (cora.id, dan.id)
    assert {action for action, _ in actions(engine)} == {"close"}
    assert verification.verify_log(engine).intact


def test_a_double_click_is_one_closing(engine, cora, fill):
    fill(3)
    with pytest.raises(LeaseConflictError, match="3 items match now instead of 2"):
        dismissal.start(engine, cora.id, GENERAL, "spam", 2)
    for reason in ("", "  ", "x" * 401, "a\0b"):
        with pytest.raises(QueueError):
            dismissal.start(engine, cora.id, GENERAL, reason, 3)
    assert dismissal.latest(engine) == []
    first = dismissal.start(engine, cora.id, GENERAL, "spam", 3)
    assert dismissal.start(engine, cora.id, GENERAL, "spam", 3).id == first.id
    dismissal.resume(engine, first.id)
    with pytest.raises(LeaseConflictError):
        dismissal.start(engine, cora.id, GENERAL, "spam", 3)


def test_a_killed_process_leaves_whole_batches(engine, cora, fill):
    fill(5)
    begun = dismissal.start(engine, cora.id, GENERAL, "spam", 5)
    commits = 0

    def die_in_the_third(*_: object) -> None:
        nonlocal commits
        commits += 1
        if commits == 3:
            raise KeyboardInterrupt

    event.listen(engine, "commit", die_in_the_third)
    with pytest.raises(KeyboardInterrupt):
        dismissal.resume(engine, begun.id, batch=1)
    event.remove(engine, "commit", die_in_the_third)
    left = dismissal.progress(engine, begun.id)
    assert (left.state, left.closed) == ("closing", 2)
    assert verification.verify_log(engine).intact
    assert dismissal.resume(engine, begun.id).closed == 5
    assert len(actions(engine)) == 5


def test_two_at_once_close_each_item_once_while_people_decide(engine, cora, ann, fill):
    fill(40)
    dan = accounts.create_moderator(engine, "dan", "lead")

    def work() -> None:
        while lease := leases.lease(engine, ann.id):
            label(engine, ann, lease)

    ids = [dismissal.start(engine, lead.id, GENERAL, "spam", 40).id for lead in (cora, dan)]
    threads = [
        threading.Thread(target=dismissal.resume, args=(engine, id_), kwargs={"batch": 3})
        for id_ in (*ids, *ids)
    ]
    for thread in (*threads, people := threading.Thread(target=work)):
        thread.start()
    for thread in (*threads, people):
        thread.join()
    closed = sum(dismissal.progress(engine, id_).closed for id_ in ids)
    counts, log = metrics.counts(engine), verification.verify_log(engine)
    assert counts.closed == closed
    assert counts.closed + counts.decided == log.decisions == 40
    assert log.intact


def test_confirmations_go_and_come_with_their_items(engine, cora, new_item, day):
    items = [new_item("c1", kind=kind) for kind in ("review", "confirmation")]
    intake.enqueue(engine, [*items, new_item("c2", 2)], day)
    done = close(engine, cora, Criteria(comment_ids=("c1",)))
    assert statuses(engine) == {
        "c1 review": "closed",
        "c1 confirmation": "withdrawn",
        "c2 review": "waiting",
    }
    cancel(engine, cora.id, done.id)
    assert statuses(engine)["c1 confirmation"] == "blocked"


@pytest.mark.parametrize(
    ("criteria", "expected"),
    [
        (Criteria(queue="general"), "abc"),
        (Criteria(reason="toxicity"), "b"),
        (Criteria(language="de"), "c"),
        (Criteria(platform="forum"), "a"),
        (Criteria(first_day=date(2026, 1, 2)), "bc"),
        (Criteria(last_day=date(2026, 1, 1)), "a"),
        (Criteria(first_day=date(2026, 1, 2), reason="toxicity"), "b"),
        (Criteria(comment_ids=("a", "c", "nowhere")), "ac"),
        (Criteria(queued_before=datetime(2020, 1, 1, tzinfo=UTC)), ""),
        (Criteria(queued_before=datetime(2999, 1, 1, tzinfo=UTC)), "abc"),
        (Criteria(queue="' OR 1=1 --"), ""),
        (Criteria(comment_ids=("'); DROP TABLE decision; --",)), ""),
    ],
)
def test_criteria(engine, cora, new_item, criteria, expected):
    intake.enqueue(engine, [new_item("a", platform="forum")], date(2026, 1, 1))
    more = [new_item("b", reason="toxicity"), new_item("c", 2, language="de")]
    intake.enqueue(engine, more, date(2026, 1, 2))
    assert dismissal.matching(engine, criteria) == len(expected)
    close(engine, cora, criteria)
    closed = {key.split()[0] for key, status in statuses(engine).items() if status == "closed"}
    assert closed == set(expected)


def test_impossible_criteria_and_unknown_closings(engine, cora):
    for criteria, problem in (
        (Criteria(), "without criteria"),
        (Criteria(queue="a\0b"), "NUL"),
        (Criteria(comment_ids=("\ud800",)), "surrogate"),
    ):
        with pytest.raises(QueueError, match=problem):
            dismissal.matching(engine, criteria)
    sent: dict[str, Any]
    for sent in (
        {"comment_ids": ["c"] * 10_001}, {"queued_before": "2026-01-01T00:00:00"}, {"queue": ""},
        {"qeue": "de"},
    ):  # fmt: skip
        with pytest.raises(ValidationError):
            CRITERIA.validate_python(sent)
    for refused in (dismissal.progress, dismissal.resume):
        with pytest.raises(ItemNotFoundError, match="dismissal 7 does not exist"):
            refused(engine, 7)
    with pytest.raises(ItemNotFoundError):
        cancel(engine, cora.id, 7)
