"""Overturned labels: whose comments are listed, for whom, and that nobody can be told from it."""

from collections.abc import Callable
from datetime import date, timedelta

import pytest
from sqlalchemy import Engine

from modwatch.audits.review_items import enqueue_audit
from modwatch.review.people import accounts
from modwatch.review.people.accounts import Moderator
from modwatch.review.quality_control.error_rates import (
    Overturned,
    OverturnedLabels,
    overturned_labels,
)
from modwatch.review.quality_control.gold import GoldComment, add_gold, retire_gold
from modwatch.review.quality_control.queueing import queue_quality_control
from modwatch.review.queue import dismissal, intake
from modwatch.review.queue.deciding import undo
from modwatch.review.queue.dismissal import Criteria
from modwatch.review.queue.items import NewItem
from review.labelling import held, label, label_all, label_next

Make = Callable[..., NewItem]
Route = Callable[..., None]


@pytest.fixture
def route(engine, new_item, day):
    """Queue comments with these ids, and confirmations of all of their labels."""

    def put(*ids: str, on: date = day, **more: object) -> None:
        confirmations = [{}, *({"kind": "confirmation", "round": number} for number in (2, 3))]
        items = [
            new_item(name, 3 * k + n, **item, **more)
            for k, name in enumerate(ids)
            for n, item in enumerate(confirmations, start=1)
        ]
        intake.enqueue(engine, items, on)

    return put


def found(engine: Engine, viewer: Moderator, **options: object) -> OverturnedLabels:
    period = (date(2026, 1, 1), date(2026, 1, 31))
    return overturned_labels(engine, viewer.id, *period, **options)  # type: ignore[arg-type]


def texts(engine: Engine, viewer: Moderator, **options: object) -> list[str]:
    prefix = "invented text of "
    return [item.text.removeprefix(prefix) for item in found(engine, viewer, **options).labels]


def overturn(engine: Engine, team: list[Moderator], first: int = 1) -> None:
    """Let one person label all that waits for them, and the others say the opposite."""
    label_all(engine, team[0], lambda _: first)
    for person in team[1:]:
        label_all(engine, person, lambda _: 1 - first)


def test_what_is_listed_of_a_comment(engine, team, lea, route, day):
    route("c1", parent_text="above", language="de")
    label_next(engine, team[0], 0)
    for person in team[1:]:
        label_next(engine, person, 1, policy_code="threat", note="by ben of ann")
    (one,) = found(engine, lea).labels
    assert one == Overturned(
        dt=day, text="invented text of c1", parent_text="above", language="de", queue="general",
        first_label=0, first_code=None, others=2, contradicting=2, other_codes=("threat",),
    )  # fmt: skip


def test_what_most_labels_confirm_or_leave_open_is_not_listed(engine, team, lea, route, day):
    for number, labels in enumerate([(1,), (1, 1), (1, 0), (1, 0, 1)]):
        route(f"c{number}", on=day + timedelta(number))
        for person, value in zip(team, labels, strict=False):
            label_next(engine, person, value)
        assert texts(engine, lea) == []
        intake.enqueue(engine, [], day + timedelta(number))  # what is left is withdrawn


def test_a_label_that_is_being_given_again_is_not_listed(engine, team, lea, route):
    route("c1")
    overturn(engine, team[:2])
    third = label_next(engine, team[2], 0)
    assert texts(engine, lea) == ["c1"]
    lease = undo(engine, moderator_id=team[2].id, decision_id=third.id, idempotency_key="undo")
    assert texts(engine, lea) == []
    label(engine, team[2], lease, 0)
    assert texts(engine, lea) == ["c1"]


def test_no_one_reads_what_they_labelled(engine, team, lea, route):
    """They may be asked for it again in a retest."""
    route("c1")
    overturn(engine, [*team[:2], lea])
    assert texts(engine, lea) == []
    assert texts(engine, accounts.create_moderator(engine, "leo", "lead")) == ["c1"]


@pytest.mark.parametrize("kind", ["review", "audit", "imported"])
def test_what_the_lead_holds_or_may_be_served_is_not_listed(
    engine, team, lea, route, new_item, kind
):
    route("c1", "c2")
    overturn(engine, team)
    again, later = new_item("c1", kind=kind), date(2026, 3, 1)
    if kind == "audit":
        enqueue_audit(engine, "yearly", [(later, again)])
    else:
        intake.enqueue(engine, [again], later, kinds={kind})
    assert texts(engine, lea) == ["c2"]
    lease = held(engine, lea)
    assert lease.item.comment_id == "c1"
    assert texts(engine, lea) == ["c2"]
    label(engine, lea, lease, 1)
    assert texts(engine, lea) == ["c2"]  # now they labelled it
    assert len(texts(engine, accounts.create_moderator(engine, "leo", "lead"))) == 2


def test_an_open_retest_of_someone_hides_the_comment(engine, team, lea, route):
    route("c1")
    overturn(engine, team)
    today = date(2026, 3, 1)
    queue_quality_control(engine, today, retest_share=1, gold_share=0, salt="s", least_days=0)
    assert texts(engine, lea) == []
    for person in team:
        label_all(engine, person, lambda _: 1)
    assert texts(engine, lea) == ["c1"]
    # Gold comments are not listed.
    add_gold(engine, [GoldComment(comment_id="c1", text="invented", label=1, source="panel")])
    assert texts(engine, lea) == []
    retire_gold(engine, ["c1"])
    assert texts(engine, lea) == ["c1"]


def test_a_dismissal_may_be_cancelled(engine, team, lea, route, new_item):
    route("c1")
    overturn(engine, team)
    intake.enqueue(engine, [new_item("c1")], date(2026, 3, 1))
    begun = dismissal.start(engine, lea.id, Criteria(comment_ids=("c1",)), "spam_wave", 2)
    assert dismissal.resume(engine, begun.id).closed == 1  # the other one is decided, just now
    assert texts(engine, lea) == []


def test_the_latest_of_some_queues(engine, team, lea, route, day):
    for number in range(3):
        route(f"c{number}", on=day + timedelta(number))
    overturn(engine, team)
    assert texts(engine, lea) == ["c2", "c1", "c0"]
    assert not found(engine, lea).more
    some = found(engine, lea, limit=2)
    assert ([item.dt.day for item in some.labels], some.more) == ([3, 2], True)
    assert texts(engine, lea, queues=["general"]) == ["c2", "c1", "c0"]
    assert texts(engine, lea, queues=["de"]) == texts(engine, lea, queues=[]) == []
