"""Rounds 2 and 3: when they open, for whom, and what of them counts."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from typing import Any

import numpy as np
import pytest
from databases import execute, tamper
from sqlalchemy import Engine, text

from modwatch.common.errors import DatabaseError, ItemNotFoundError, LeaseConflictError
from modwatch.review.log import verification
from modwatch.review.log.decision_log import Decision
from modwatch.review.log.labels import confirming_labels, current_labels
from modwatch.review.people import accounts
from modwatch.review.people.accounts import Moderator
from modwatch.review.queue import dismissal, intake, leases, metrics
from modwatch.review.queue.deciding import correct, undo
from modwatch.review.queue.intake import withdraw_expired
from modwatch.review.queue.items import NewItem
from modwatch.review.queue.statements import settle_days
from review.labelling import cancel, escalate, held, label, label_all, label_next, skip

Make = Callable[..., NewItem]
Route = Callable[..., None]


@pytest.fixture
def route(engine, new_item, day):
    """Queue `c0` with confirmations of these first labels."""

    def put(*confirms: int, **fields: Any) -> None:
        items = [new_item("c0", **fields)]
        for number in (2, 3) if confirms else ():
            more = {"kind": "confirmation", "round": number, "confirms": list(confirms)}
            items.append(new_item("c0", number, **more, **fields))
        intake.enqueue(engine, items, day)

    return put


def confirmed(engine: Engine, day: date) -> list[tuple[int, int, int, str]]:
    """Return round, label, first label and person of what counts."""
    return [
        (row["round"], row["label"], row["first_label"], row["moderator"])
        for part in confirming_labels(engine, day)
        for row in part.to_pylist()
    ]


def statuses(engine: Engine) -> list[str]:
    """Return the statuses of the rounds."""
    with engine.connect() as connection:
        rows = connection.scalars(text("SELECT status FROM review_item ORDER BY dt, round"))
        return list(rows)


def undone(engine: Engine, done: Decision) -> Any:
    return undo(
        engine, moderator_id=done.moderator_id, decision_id=done.id,
        idempotency_key=f"undo {done.id}",
    )  # fmt: skip


def escalated(engine: Engine, person: Moderator, lead: Moderator) -> Any:
    """Escalate the next item, and let the lead lease it."""
    lease = held(engine, person)
    escalate(engine, person, lease)
    return leases.lease_escalated(engine, lead.id)


def corrected(engine: Engine, person: Moderator, item_id: int, value: int) -> Decision:
    with engine.connect() as connection:
        query = text("SELECT version FROM review_item WHERE id = :id")
        version = connection.scalar(query, {"id": item_id}) or 0
    return correct(
        engine, moderator_id=person.id, item_id=item_id, label=value, version=version,
        reason="slip", idempotency_key=f"correct {item_id} {version}", others_too=True,
    )  # fmt: skip


@pytest.mark.parametrize(("confirms", "value"), [((0,), 0), ((0,), 1), ((1,), 0), ((0, 1), 1)])
def test_a_label_is_confirmed_if_it_is_one_of_those(
    engine, route, ann, ben, confirms,
    value
):  # fmt: skip
    route(*confirms)
    label_next(engine, ann, value)
    opened = value in confirms
    assert statuses(engine) == ["decided", "waiting" if opened else "blocked", "blocked"]
    assert (leases.lease(engine, ben.id) is not None) == opened
    assert leases.lease(engine, ann.id) is None


def test_a_third_person_labels_where_two_differ(engine, route, ann, ben, cai, day):
    route(0, 1)
    label_next(engine, ann, 1)
    second = label_next(engine, ben, 1)
    assert confirmed(engine, day) == [(2, 1, 1, "ben")]
    assert leases.lease(engine, cai.id) is None
    label(engine, ben, undone(engine, second), 0)
    assert leases.lease(engine, ann.id) is leases.lease(engine, ben.id) is None
    assert confirmed(engine, day) == [(2, 0, 1, "ben")]
    label_next(engine, cai, 1)
    assert confirmed(engine, day) == [(2, 0, 1, "ben"), (3, 1, 1, "cai")]
    assert verification.verify_log(engine).intact


def test_an_undone_first_label_closes_both_rounds_until_it_is_given_again(
    engine, route, ann, ben, cai, day
):
    route(1)
    first = label_next(engine, ann, 1)
    label_next(engine, ben, 0)
    assert statuses(engine) == ["decided", "decided", "waiting"]
    back = undone(engine, first)
    assert statuses(engine) == ["waiting", "decided", "blocked"]
    assert confirmed(engine, day) == []  # of no label
    label(engine, ann, back, 0)
    assert statuses(engine) == ["decided", "decided", "blocked"]  # both say 0
    assert confirmed(engine, day) == [(2, 0, 1, "ben")]  # it was opened for label 1
    assert leases.lease(engine, cai.id) is None
    assert verification.verify_log(engine).intact


def test_an_undone_second_label_closes_round_3(engine, route, ann, ben, cai, day):
    route(1)
    label_next(engine, ann, 1)
    back = undone(engine, label_next(engine, ben, 0))
    assert statuses(engine) == ["decided", "waiting", "blocked"]
    assert leases.lease(engine, cai.id) is None
    second = label(engine, ben, back, 1)
    assert statuses(engine) == ["decided", "decided", "blocked"]
    assert confirmed(engine, day) == [(2, 1, 1, "ben")]
    # A third label counts while there is a second.
    second = label(engine, ben, undone(engine, second), 0)
    label_next(engine, cai, 0)
    assert len(confirmed(engine, day)) == 2
    undone(engine, second)
    assert confirmed(engine, day) == []


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_corrected_first_label_keeps_its_confirmations(
    engine, route, ann, ben, cai, lea,
    day, rounds
):  # fmt: skip
    """Its probability is that of the label that was given first, whenever it is corrected."""
    route(1)
    first = label_next(engine, ann, 1)
    people_of = {2: (ben, 0), 3: (cai, 1)}
    for number in range(2, 4):
        if number == rounds + 1:
            corrected(engine, lea, first.item_id, 0)
        person, result = people_of[number]
        label_next(engine, person, result)
    if rounds == 3:
        corrected(engine, lea, first.item_id, 0)
    assert confirmed(engine, day) == [(2, 0, 1, "ben"), (3, 1, 1, "cai")]
    (labels,) = current_labels(engine, day)
    assert labels.select(["label", "moderator", "first_label", "first_moderator"]).to_pylist() == [
        {"label": 0, "moderator": "lea", "first_label": 1, "first_moderator": "ann"}
    ]


def test_a_correction_opens_nothing(engine, route, ann, ben, lea, day):
    """Who corrects a label may know that it is not confirmed; the draw was for the first one."""
    route(1)
    corrected(engine, lea, label_next(engine, ann, 0).item_id, 1)
    settle_days(engine, [day])
    assert statuses(engine) == ["decided", "blocked", "blocked"]
    assert leases.lease(engine, ben.id) is None


def test_who_corrected_the_first_label_confirms_nothing(engine, route, ann, ben, lea, day):
    route(1)
    first = label_next(engine, ann, 1)
    reading = held(engine, lea)
    corrected(engine, lea, first.item_id, 0)
    with pytest.raises(LeaseConflictError):
        label(engine, lea, reading, 0)
    leases.release(engine, lea.id, reading.item.id, reading.token)
    assert leases.lease(engine, lea.id) is None
    label_next(engine, ben, 1)
    assert confirmed(engine, day) == [(2, 1, 1, "ben")]


def test_what_the_same_person_stated_twice_never_counts(engine, route, ann, ben, cai, day):
    """Someone who takes the queue's protection away, as a faulty merge of accounts would."""
    route(1)
    label_next(engine, ann, 1)
    for person, expected in ((ann, 0), (cai, 1)):
        execute(engine, "UPDATE review_item SET excluded = '{}'")
        label_next(engine, person, expected)
    assert statuses(engine) == ["decided"] * 3
    assert confirmed(engine, day) == [(3, 1, 1, "cai")]
    tamper(
        engine, "UPDATE decision SET moderator_id = :id, position = position + 10 * id", id=ben.id
    )
    assert confirmed(engine, day) == []


def test_withdrawn_confirmations_take_no_answer_and_are_not_counted(engine, route, ann, ben, day):
    route(0, 1)
    assert intake.enqueue(engine, [], day).withdrawn == 3  # those of what is routed no more, too
    route(1)
    assert statuses(engine) == ["waiting", "blocked", "blocked"]
    label_next(engine, ann, 1)
    reading = held(engine, ben)
    withdraw_expired(engine, day + timedelta(days=1))
    assert statuses(engine) == ["decided", "withdrawn", "withdrawn"]
    with pytest.raises(ItemNotFoundError, match="withdrawn"):
        label(engine, ben, reading, 0)
    assert confirmed(engine, day) == []
    route(1)
    label_next(engine, ben, 1)
    route()  # another draw withdraws what it does not confirm, and keeps answers
    assert statuses(engine) == ["decided", "decided", "withdrawn"]
    assert confirmed(engine, day) == [(2, 1, 1, "ben")]


def test_the_same_day_again_changes_nothing(engine, route, ann, ben, cai, day):
    def rows() -> list[Any]:
        with engine.connect() as connection:
            return connection.execute(text("SELECT * FROM review_item ORDER BY id")).all()

    route(1)
    for person, value in ((None, 0), (ann, 1), (ben, 0), (cai, 0)):
        if person is not None:
            label_next(engine, person, value)
        before = rows()
        route(1)
        settle_days(engine, [day])
        assert rows() == before


def test_a_dismissed_first_item_takes_and_brings_its_confirmations(
    engine, route, ann, ben, cai, lea,
    day
):  # fmt: skip
    route(1)
    first = label_next(engine, ann, 1)
    label_next(engine, ben, 0)
    back = undone(engine, first)
    leases.release(engine, ann.id, back.item.id, back.token)
    criteria = dismissal.Criteria(comment_ids=("c0",))
    begun = dismissal.start(engine, lea.id, criteria, "spam", 1)
    dismissal.resume(engine, begun.id)
    assert statuses(engine) == ["closed", "decided", "withdrawn"]
    assert confirmed(engine, day) == []
    cancel(engine, lea.id, begun.id)
    assert statuses(engine) == ["waiting", "decided", "blocked"]
    label_next(engine, ann, 1)
    label_next(engine, cai, 1)
    assert confirmed(engine, day) == [(2, 0, 1, "ben"), (3, 1, 1, "cai")]
    assert verification.verify_log(engine).intact


def test_an_escalated_confirmation_confirms_nothing(
    engine, route, ann, ben, lea, cai,
    day
):  # fmt: skip
    route(1)
    label_next(engine, ann, 1)
    third = escalated(engine, ben, lea)
    label(engine, lea, third, 0)
    assert statuses(engine) == ["decided", "decided", "blocked"]
    assert confirmed(engine, day) == []


def test_a_resolved_first_item_is_confirmed_too(
    engine, route, ann, ben, lea, cai,
    day
):  # fmt: skip
    route(1, labels_wanted=None)
    third = escalated(engine, ann, lea)
    assert leases.lease(engine, ben.id) is None
    label(engine, lea, third, 1)
    assert leases.lease(engine, lea.id) is None
    assert leases.lease(engine, ann.id) is None
    label_next(engine, ben, 0)
    label_next(engine, cai, 0)
    assert confirmed(engine, day) == [(2, 0, 1, "ben"), (3, 0, 1, "cai")]


def test_impossible_confirmations_are_refused(engine, new_item, day):
    impossible: list[dict[str, Any]] = [
        {"round": 1},
        {"round": 4},
        {"confirms": []},
        {"confirms": None},
        {"confirms": [2]},
        {"confirmation_probability_0": None},
        {"confirmation_probability_1": 1.1},
        {"confirmation_probability_1": float("nan")},
        {"kind": "review", "confirms": None, "round": 2},
    ]
    for fields in impossible:
        bad = new_item("c0", **{"kind": "confirmation", **fields})
        with pytest.raises(DatabaseError, match="review_item_round_check"):
            intake.enqueue(engine, [new_item("c1"), bad], day)
    assert metrics.counts(engine).waiting == 0


def test_a_forged_first_label_shows(engine, route, ann, ben):
    route(1)
    label_next(engine, ann, 1)
    label_next(engine, ben, 1)
    assert verification.verify_log(engine).intact
    execute(engine, "UPDATE review_item SET first_label = 0 WHERE round = 2")
    changed, forged = verification.verify_log(engine).problems
    assert changed.endswith("has other values than when it was decided")
    assert forged.endswith("confirms a label that the comment never got")


def test_what_simultaneous_changes_leave_is_settled_later(engine, route, ann, ben, cai, day):
    """The state after a first label that was recorded while round 2 was, and neither saw it."""
    route(1)
    label_next(engine, ann, 1)
    label_next(engine, ben, 0)
    execute(engine, "UPDATE review_item SET status = 'blocked' WHERE round = 3")
    assert leases.lease(engine, cai.id) is None
    assert settle_days(engine, [day]) == 1
    assert held(engine, cai).item.comment_id == "c0"
    assert settle_days(engine, [day]) == 0


def test_many_people_at_once_never_label_a_comment_twice(engine, new_item, day):
    """Six people with two hands each decide, skip and undo at the same time."""
    n = 10
    items = [new_item(f"c{k}", k + 1) for k in range(n)]
    for number in (2, 3):
        items += [
            new_item(f"c{k}", k + 2, kind="confirmation", round=number, confirms=[k % 2, 1])
            for k in range(n)
        ]
    intake.enqueue(engine, items, day)
    team = [accounts.create_moderator(engine, f"p{k}", "moderator") for k in range(6)]

    def work(seed: int) -> None:
        person, rng, idle = team[seed % 6], np.random.default_rng(seed), 0
        while idle < 3:
            lease = leases.lease(engine, person.id)
            if lease is None:
                idle += 1
            else:
                _act(engine, person, lease, rng)

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(work, range(12)))
    settle_days(engine, [day])
    for person in team:  # what the races left
        label_all(engine, person, lambda _: 1)
    _check_everything(engine, day)


def _act(engine: Engine, person: Moderator, lease: Any, rng: np.random.Generator) -> None:
    try:
        if rng.random() < 0.1:
            skip(engine, person, lease)
            return
        done = label(engine, person, lease, int(rng.random() < 0.5))
        if rng.random() < 0.3:
            label(engine, person, undone(engine, done), int(rng.random() < 0.5))
    except (LeaseConflictError, ItemNotFoundError):
        pass


def _check_everything(engine: Engine, day: date) -> None:
    assert verification.verify_log(engine).intact
    with engine.connect() as connection:
        rows = connection.execute(
            text(
                """
                SELECT d.comment_id, i.round, i.status, d.moderator_id, d.label
                FROM decision d JOIN review_item i ON i.id = d.item_id
                WHERE d.action = 'label' AND NOT EXISTS (
                    SELECT FROM decision u WHERE u.refers_to = d.id AND u.action = 'undo')
                """
            )
        ).all()
    people_of = Counter((row.comment_id, row.moderator_id) for row in rows)
    assert max(people_of.values()) == 1
    rounds = Counter((row.comment_id, row.round) for row in rows)
    assert max(rounds.values()) == 1
    counted = [row for part in confirming_labels(engine, day) for row in part.to_pylist()]
    assert {(row["comment_id"], row["round"]) for row in counted} <= set(rounds)
    assert len({(row["comment_id"], row["round"]) for row in counted}) == len(counted)
    first = {row.comment_id for row in rows if row.round == 1}
    assert {row["comment_id"] for row in counted} <= first
