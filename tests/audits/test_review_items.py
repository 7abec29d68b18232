"""The items of audits: blind, apart from each other, and for strangers to the comment."""

from dataclasses import replace
from datetime import date

import pytest
from sqlalchemy import Engine, select

from modwatch.audits.review_items import (
    AuditProgress,
    audit_labels,
    audit_progress,
    enqueue_audit,
    moderated_before,
    withdraw_audit,
)
from modwatch.common.errors import QueueError
from modwatch.review.people.accounts import create_moderator
from modwatch.review.queue import intake, leases
from modwatch.review.queue.deciding import correct, undo
from modwatch.review.queue.items import NewItem
from modwatch.review.tables import review_item
from review.labelling import held, label, label_all, label_next

MONDAY = date(2026, 1, 5)
TUESDAY = date(2026, 1, 6)
WEDNESDAY = date(2026, 1, 7)


def audit_items(
    number: int,
    *,
    labels: int = 1,
    confirms: tuple[int, ...] | None = None,
    days: tuple[date, ...] = (MONDAY, TUESDAY),
) -> list[tuple[date, NewItem]]:
    return [
        (
            days[n % len(days)],
            NewItem(
                comment_id=f"c{n}", text=f"text {n}", reason="audit", stratum=0, rank=n + 1,
                inclusion_probability=0.1, review_score=0.0, prob=0.5, uncertainty=0.25,
                model_version="3", kind="audit", labels_wanted=labels,
                confirms=confirms,
            ),
        )
        for n in range(number)
    ]  # fmt: skip


@pytest.fixture
def lea(engine):
    return create_moderator(engine, "lea", "lead")


def test_they_are_labelled_in_the_order_of_the_draw_over_all_days(engine, ann):
    assert enqueue_audit(engine, "one", audit_items(6)) == 6
    served = []
    while lease := leases.lease(engine, ann.id):
        served.append(lease.item.comment_id)
        label(engine, ann, lease, 1)
    assert served == [f"c{n}" for n in range(6)]
    assert audit_progress(engine, "one") == AuditProgress(decided=6)


def test_queued_again_nothing_changes(engine, ann):
    enqueue_audit(engine, "one", audit_items(4))
    label_next(engine, ann)
    assert enqueue_audit(engine, "one", audit_items(4)) == 4
    assert audit_progress(engine, "one") == AuditProgress(waiting=3, decided=1)


def test_two_audits_may_draw_the_same_comment_and_are_labelled_apart(engine, ann, ben):
    for name in ("one", "two"):
        enqueue_audit(engine, name, audit_items(3))
    assert len(label_all(engine, ann, lambda _: 1)) == 3  # who saw one does not see its twin
    assert len(label_all(engine, ben, lambda _: 0)) == 3
    result = {
        (name, row.labeller): row.label
        for name in ("one", "two")
        for row in audit_labels(engine, name)
    }
    assert set(result.values()) == {0, 1}
    assert len(audit_labels(engine, "one")) == len(audit_labels(engine, "two")) == 3


def test_who_decided_a_comment_as_a_moderator_does_not_audit_it(engine, ann, ben):
    (_, item), *_ = audit_items(1)
    intake.enqueue(engine, [replace(item, kind="review", reason="uncertainty")], MONDAY)
    label_next(engine, ann)
    enqueue_audit(engine, "one", [(MONDAY, item)])
    assert leases.lease(engine, ann.id) is None
    label_next(engine, ben)
    assert moderated_before(engine, "one") == {(MONDAY, "c0"): {"ann"}}


def test_a_day_that_is_routed_again_leaves_audits_alone(engine):
    assert enqueue_audit(engine, "none", []) == 0
    enqueue_audit(engine, "one", audit_items(4))
    intake.enqueue(engine, [], MONDAY)
    intake.enqueue(engine, [], MONDAY, kinds=("audit",))
    assert audit_progress(engine, "one").waiting == 4


def test_several_people_label_and_a_lead_settles(engine, ann, ben, lea):
    enqueue_audit(engine, "one", audit_items(2, labels=2))
    label_all(engine, ann, lambda _: 1)
    label_all(engine, ben, lambda comment: int(comment == "c0"))
    assert audit_progress(engine, "one") == AuditProgress(decided=1, escalated=1)
    lease = leases.lease_escalated(engine, lea.id)
    assert lease is not None
    label(engine, lea, lease, 0)
    assert audit_progress(engine, "one") == AuditProgress(decided=2)
    message = {(row.comment_id, row.labeller): row for row in audit_labels(engine, "one")}
    assert {key: row.action for key, row in message.items()} == {
        ("c0", "ann"): "label",
        ("c0", "ben"): "label",
        ("c1", "ann"): "label",
        ("c1", "ben"): "label",
        ("c1", "lea"): "adjudicate",
    }
    assert all(len(row.decision) == 64 for row in message.values())


def test_a_stopped_audit_keeps_its_labels(engine, ann):
    enqueue_audit(engine, "one", audit_items(5))
    enqueue_audit(engine, "two", audit_items(2))
    first = label_next(engine, ann)
    labelled = len(audit_labels(engine, "one"))
    assert labelled + len(audit_labels(engine, "two")) == 1, first.comment_id
    assert withdraw_audit(engine, "one") == 5 - labelled
    assert withdraw_audit(engine, "one") == 0
    assert len(audit_labels(engine, "one")) == labelled
    assert audit_progress(engine, "one").left == 0
    assert audit_progress(engine, "two").items == 2


def test_items_of_other_kinds_are_refused(engine):
    (_, item), *_ = audit_items(1)
    with pytest.raises(QueueError, match="expected 'audit'"):
        enqueue_audit(engine, "one", [(MONDAY, replace(item, kind="review"))])
    with engine.connect() as connection:
        assert connection.execute(select(review_item.c.id)).all() == []


@pytest.fixture
def cem(engine):
    return create_moderator(engine, "cem", "moderator")


def said_of(engine: Engine, audit: str = "one") -> list[tuple[str, str, int]]:
    rows = audit_labels(engine, audit)
    return sorted((row.labeller, row.action, row.label) for row in rows)


def test_a_label_that_is_confirmed_waits_for_a_second_person(engine, ann, ben):
    enqueue_audit(engine, "one", audit_items(2, confirms=(1,)))
    label_all(engine, ann, lambda comment: int(comment == "c0"))
    assert audit_progress(engine, "one") == AuditProgress(waiting=1, decided=1)
    assert leases.lease(engine, ann.id) is None  # never the same person
    assert [row.comment_id for row in label_all(engine, ben, lambda _: 1)] == ["c0"]
    assert audit_progress(engine, "one") == AuditProgress(decided=2)


def test_a_third_person_decides_where_two_differ_and_no_lead(engine, ann, ben, cem, lea):
    enqueue_audit(engine, "one", audit_items(1, confirms=(1,)))
    label_next(engine, ann, 1)
    label_next(engine, ben, 0)
    assert audit_progress(engine, "one") == AuditProgress(waiting=1)
    assert leases.lease_escalated(engine, lea.id) is None
    label_next(engine, cem, 0)
    assert audit_progress(engine, "one") == AuditProgress(decided=1)
    both = [("ann", "label", 1), ("ben", "label", 0)]
    assert said_of(engine) == [*both, ("cem", "label", 0)]

    # The labels of the two stay, too, when the audit is stopped before the third.
    enqueue_audit(engine, "two", audit_items(1, confirms=(1,), days=(WEDNESDAY,)))
    label_next(engine, ann, 1)
    label_next(engine, ben, 0)
    assert withdraw_audit(engine, "two") == 1
    assert said_of(engine, "two") == both


def test_a_label_that_is_undone_is_asked_for_again_and_confirmed_as_it_is_then(engine, ann, ben):
    enqueue_audit(engine, "one", audit_items(1, confirms=(1,)))
    result = label_next(engine, ann, 1)
    lease = undo(engine, moderator_id=ann.id, decision_id=result.id, idempotency_key="back")
    assert audit_labels(engine, "one") == []
    label(engine, ann, lease, 0)
    assert audit_progress(engine, "one") == AuditProgress(decided=1)
    assert leases.lease(engine, ben.id) is None

    enqueue_audit(engine, "two", audit_items(1, confirms=(0, 1), days=(WEDNESDAY,)))
    label_next(engine, ann, 1)
    result = label_next(engine, ben, 0)  # waits for a third
    lease = undo(engine, moderator_id=ben.id, decision_id=result.id, idempotency_key="again")
    label(engine, ben, lease, 1)
    assert audit_progress(engine, "two") == AuditProgress(decided=1)


def test_a_correction_is_the_label_of_its_person_and_overrides_no_one(engine, ann, ben):
    enqueue_audit(engine, "one", audit_items(1, confirms=(1,)))
    label_next(engine, ann, 1)
    result = label_next(engine, ben, 1)
    mine = {"item_id": result.item_id, "version": result.item_version + 1, "reason": "a slip"}
    with pytest.raises(QueueError, match="another person's"):
        correct(engine, moderator_id=ann.id, label=0, idempotency_key="one", **mine)
    correct(engine, moderator_id=ben.id, label=0, idempotency_key="two", **mine)
    assert said_of(engine) == [("ann", "label", 1), ("ben", "correct", 0)]


def test_nothing_in_the_item_tells_of_an_audit_or_a_confirmation(engine, ann, ben):
    enqueue_audit(engine, "a-secret-name", audit_items(1, confirms=(1,)))
    label_next(engine, ann, 1)
    lease = held(engine, ben)
    assert "a-secret-name" not in repr(lease)
    assert lease.opinions == ()
    hidden = {"kind", "reason", "prob", "stratum", "audit", "confirms", "labels_wanted"}
    assert not hidden & set(vars(lease.item))
