from collections.abc import Callable
from datetime import date, timedelta

import pytest
from databases import execute
from sqlalchemy import Engine

from modwatch.common.errors import ItemNotFoundError, LeaseConflictError, QueueError
from modwatch.review.log import labels, verification
from modwatch.review.log.decision_log import Decision
from modwatch.review.people.accounts import Moderator
from modwatch.review.queue import intake, leases
from modwatch.review.queue.deciding import correct, undo
from modwatch.review.queue.items import Lease, NewItem
from review.labelling import escalate, held, held_escalated, label, skip

Fill = Callable[[int], None]
Make = Callable[..., NewItem]


def standing(engine: Engine, day: date, kind: str = "review") -> dict[str, tuple[int, str]]:
    rows = [
        row for part in labels.current_labels(engine, day, kind=kind) for row in part.to_pylist()
    ]
    return {row["comment_id"]: (row["label"], row["moderator"]) for row in rows}


def undone(engine: Engine, person: Moderator, done: Decision, key: str = "u") -> Lease:
    return undo(engine, moderator_id=person.id, decision_id=done.id, idempotency_key=key)


def test_what_is_undone_stands_no_more_and_is_decided_anew(engine, ann, fill, day):
    fill(1)
    first = held(engine, ann)
    done = label(engine, ann, first, 1)
    assert standing(engine, day) == {"c0": (1, "ann")}
    undone(engine, ann, done)
    again = undone(engine, ann, done)  # the same undo again gives the item again
    assert standing(engine, day) == {}
    assert (again.item.id, again.item.text) == (first.item.id, first.item.text)
    assert again.item.version == first.item.version + 2
    label(engine, ann, again, 0)
    assert standing(engine, day) == {"c0": (0, "ann")}
    with pytest.raises(LeaseConflictError, match="has continued"):
        undone(engine, ann, done)
    with pytest.raises(LeaseConflictError, match="new key"):
        undone(engine, ann, done, again.token)
    log = verification.verify_log(engine)
    assert (log.decisions, log.intact) == (3, True)


def test_an_escalation_can_be_undone_and_a_skip_or_an_undo_cannot(engine, ann, ben, lea, fill):
    """While others work, only a reserved item would be left to bring back after a skip."""
    fill(1)
    done = escalate(engine, ann, held(engine, ann))
    assert leases.lease(engine, ann.id) is None
    back = undone(engine, ann, done)
    assert leases.lease_escalated(engine, lea.id) is None
    with pytest.raises(QueueError, match="cannot be undone"):
        undo(engine, moderator_id=ann.id, decision_id=2, idempotency_key="again")
    # Others have it when the lease runs out.
    assert leases.lease(engine, ben.id) is None
    execute(engine, "UPDATE review_item SET leased_until = now()")
    with pytest.raises(LeaseConflictError):
        label(engine, ann, back, 0)
    lease = held(engine, ben)
    assert lease.item.id == back.item.id
    assert leases.release(engine, ben.id, lease.item.id, lease.token)
    done = skip(engine, ann, held(engine, ann))
    with pytest.raises(QueueError, match="cannot be undone"):
        undone(engine, ann, done, "skip")
    assert held(engine, ben).item.id == done.item_id


def test_an_undo_that_comes_too_late_is_refused(engine, ann, lea, fill):
    fill(1)
    done = escalate(engine, ann, held(engine, ann))
    with pytest.raises(LeaseConflictError, match="only be undone within"):
        undo(
            engine, moderator_id=ann.id, decision_id=done.id, idempotency_key="u",
            within=timedelta(0),
        )  # fmt: skip
    other = held_escalated(engine, lea)
    with pytest.raises(LeaseConflictError, match="has continued"):
        undone(engine, ann, done)
    label(engine, lea, other, 1)
    with pytest.raises(LeaseConflictError, match="has continued"):
        undone(engine, ann, done)
    with pytest.raises(ItemNotFoundError, match="you have no decision"):
        undone(engine, lea, done)


def confirmations(engine: Engine, new_item: Make, day: date) -> None:
    items = [new_item("c0"), new_item("c0", kind="confirmation")]
    intake.enqueue(engine, items, day)


def test_a_confirmation_waits_for_the_first_label_and_for_someone_else(
    engine, ann, ben, cai, new_item, day
):
    confirmations(engine, new_item, day)
    first = held(engine, ann)
    assert leases.lease(engine, ben.id) is None
    leases.release(engine, ann.id, first.item.id, first.token)
    skip(engine, cai, held(engine, cai))  # and is no stranger to the comment
    first = held(engine, ann)
    back = undone(engine, ann, label(engine, ann, first, 0))
    assert leases.lease(engine, ben.id) is None  # it waits again
    label(engine, ann, back, 1)
    assert leases.lease(engine, ann.id) is leases.lease(engine, cai.id) is None
    label(engine, ben, held(engine, ben), 0)
    assert standing(engine, day) == {"c0": (1, "ann")}
    assert standing(engine, day, "confirmation") == {"c0": (0, "ben")}


def test_who_reads_the_confirmation_is_not_served_the_first_that_came_back(
    engine, ann, ben, new_item, day
):
    confirmations(engine, new_item, day)
    done = label(engine, ann, held(engine, ann), 1)
    reading = held(engine, ben)
    back = undone(engine, ann, done)
    assert leases.release(engine, ann.id, back.item.id, back.token)
    assert leases.lease(engine, ben.id) is None
    label(engine, ben, reading, 0)
    assert leases.lease(engine, ben.id) is None
    assert held(engine, ann).item.id == back.item.id


def test_a_confirmation_that_is_routed_late_or_anew(engine, ann, ben, cai, new_item, day):
    intake.enqueue(engine, [new_item("c0")], day)
    skip(engine, cai, held(engine, cai))
    label(engine, ann, held(engine, ann), 1)
    confirmations(engine, new_item, day)
    assert leases.lease(engine, ann.id) is None  # it knows who labelled the first
    assert leases.lease(engine, cai.id) is None  # and who skipped it
    lease = held(engine, ben)
    assert lease.item.comment_id == "c0"
    leases.release(engine, ben.id, lease.item.id, lease.token)
    items = [new_item("c0", text="edited"), new_item("c0", kind="confirmation", text="edited")]
    intake.enqueue(engine, items, day)
    assert leases.lease(engine, ben.id) is None  # one of another text waits


def several(engine: Engine, new_item: Make, day: date, wanted: int) -> None:
    intake.enqueue(engine, [new_item("c0", labels_wanted=wanted)], day)


def test_an_item_of_two_labels_is_decided_when_both_agree(engine, ann, ben, new_item, day):
    several(engine, new_item, day, 2)
    label(engine, ann, held(engine, ann), 1)
    assert leases.lease(engine, ann.id) is None
    assert standing(engine, day) == {}  # one of two decides nothing
    # Several people label the same text.
    intake.enqueue(engine, [new_item("c0", labels_wanted=1, text="edited")], day)
    second = held(engine, ben)
    assert second.item.text == new_item("c0").text
    label(engine, ben, second, 1)
    assert standing(engine, day) == {"c0": (1, "ben")}


def test_a_lead_settles_what_two_people_see_differently(engine, ann, ben, lea, new_item, day):
    several(engine, new_item, day, 2)
    first = held(engine, ann)
    back = undone(engine, ann, label(engine, ann, first, 0))  # the lead does not see it
    label(engine, ann, back, 1)
    assert first.opinions == ()
    second = held(engine, ben)
    assert second.opinions == ()  # nobody knows of the other
    label(engine, ben, second, 0)
    assert standing(engine, day) == {}
    third = held_escalated(engine, lea)
    assert [(opinion.pseudonym, opinion.label) for opinion in third.opinions] == [
        ("ann", 1),
        ("ben", 0),
    ]
    settled = label(engine, lea, third, 1)
    assert settled.action == "adjudicate"
    assert label(engine, lea, third, 1) == settled
    assert standing(engine, day) == {"c0": (1, "lea")}
    # What is undone is for the leads again.
    back = undone(engine, lea, settled)
    assert leases.lease(engine, ann.id) is None
    assert label(engine, lea, back, 0).action == "adjudicate"
    assert standing(engine, day) == {"c0": (0, "lea")}
    assert verification.verify_log(engine).intact


def test_a_lead_who_labelled_an_item_does_not_settle_it(engine, ann, lea, new_item, day):
    several(engine, new_item, day, 2)
    label(engine, lea, held(engine, lea), 1)
    label(engine, ann, held(engine, ann), 0)
    assert leases.lease_escalated(engine, lea.id) is None
    assert leases.claim(engine, lea.id, 1) is None


def test_a_label_that_was_undone_does_not_count_among_several(engine, ann, ben, new_item, day):
    several(engine, new_item, day, 2)
    back = undone(engine, ann, label(engine, ann, held(engine, ann), 1))
    assert leases.release(engine, ann.id, back.item.id, back.token)
    label(engine, ben, held(engine, ben), 0)
    assert standing(engine, day) == {}
    label(engine, ann, held(engine, ann), 0)
    assert standing(engine, day) == {"c0": (0, "ann")}


def test_an_escalated_item_says_why(engine, ann, ben, lea, fill):
    fill(1)
    lease = held(engine, ann)
    escalate(engine, ann, lease, reason="severe", note="a private remark")
    assert leases.lease(engine, ben.id) is None
    settled = held_escalated(engine, lea)
    result = settled.opinions[0]
    assert (result.pseudonym, result.action, result.reason) == ("ann", "escalate", "severe")
    assert result.note == "a private remark"
    assert "private" not in repr(settled)


def test_a_correction_replaces_the_label_that_stands(engine, ann, ben, lea, fill, day):
    fill(1)
    lease = held(engine, ann)
    undecided = {"item_id": 1, "label": 0, "version": 1, "reason": "slip"}
    with pytest.raises(LeaseConflictError):
        correct(engine, moderator_id=ann.id, idempotency_key="k", **undecided)
    done = label(engine, ann, lease, 1)
    wanted = {"item_id": lease.item.id, "label": 0, "version": 2, "reason": "slip"}
    with pytest.raises(ItemNotFoundError):
        correct(engine, moderator_id=ann.id, idempotency_key="k", **wanted | {"item_id": 9})
    with pytest.raises(ItemNotFoundError):  # in a lead's queues alone
        correct(engine, moderator_id=lea.id, idempotency_key="k", others_too=True, queues=["de"],
                **wanted)  # fmt: skip
    with pytest.raises(QueueError, match="another person's"):
        correct(engine, moderator_id=ben.id, idempotency_key="k", **wanted)
    mended = correct(engine, moderator_id=ann.id, idempotency_key="k", **wanted)
    assert (mended.action, mended.refers_to, mended.label) == ("correct", done.id, 0)
    assert correct(engine, moderator_id=ann.id, idempotency_key="k", **wanted) == mended
    assert standing(engine, day) == {"c0": (0, "ann")}
    with pytest.raises(LeaseConflictError, match="has changed"):
        correct(engine, moderator_id=lea.id, idempotency_key="l", others_too=True, **wanted)
    wanted |= {"version": 3, "label": 1}
    mine = {"others_too": True, "queues": ["general"]}
    theirs = correct(engine, moderator_id=lea.id, idempotency_key="l", **mine, **wanted)
    assert theirs.refers_to == mended.id
    assert standing(engine, day) == {"c0": (1, "lea")}
    assert verification.verify_log(engine).intact


def test_what_is_compared_is_corrected_by_no_one_else(engine, ann, lea, new_item, day):
    intake.enqueue(engine, [new_item("c0", kind="gold")], day, kinds=("gold",))
    label(engine, ann, held(engine, ann), 1)
    wanted = {"item_id": 1, "label": 0, "version": 2, "reason": "slip", "idempotency_key": "k"}
    with pytest.raises(QueueError, match="is a measurement"):
        correct(engine, moderator_id=lea.id, others_too=True, **wanted)
    # A refusal would tell the person that it was no ordinary item.
    assert correct(engine, moderator_id=ann.id, **wanted).label == 0


def test_an_old_escalation_says_nothing_of_what_was_routed_again(engine, ann, ben, new_item, day):
    def hand_on(person: Moderator) -> Decision:
        lease = held(engine, person)
        return escalate(engine, person, lease)

    intake.enqueue(engine, [new_item("c0")], day)
    hand_on(ben)
    intake.enqueue(engine, [], day)
    intake.enqueue(engine, [new_item("c0")], day)
    back = undone(engine, ann, hand_on(ann))
    assert label(engine, ann, back, 1).action == "label"
