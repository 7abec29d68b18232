"""Whatever people do in whatever order, the queue does what a few Python sets say."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import Engine, func, select

from modwatch.common.errors import LeaseConflictError, QueueError
from modwatch.review.log import verification
from modwatch.review.log.decision_log import Decision
from modwatch.review.log.labels import confirming_labels, current_labels
from modwatch.review.people import accounts
from modwatch.review.queue import deciding, intake, leases
from modwatch.review.queue.deciding import correct, undo
from modwatch.review.queue.intake import Enqueued
from modwatch.review.queue.items import Lease, NewItem
from modwatch.review.tables import decision

OVER = timedelta(0)
LEAD = 3


@dataclass
class ModelItem:
    name: str
    kind: str = "review"
    wanted: int = 1
    round: int = 1
    #: Of a confirmation: the first labels that it confirms.
    confirms: tuple[int, ...] | None = None
    status: str = "waiting"
    #: People, by their number, who are not served it.
    excluded: set[int] = field(default_factory=set)
    holder: int | None = None
    labels: dict[int, int] = field(default_factory=dict)
    final: tuple[int, int] | None = None  # label, who gave it
    changes: int = 0
    #: The label as it was given, until it is undone.
    given: int | None = None
    #: Of round 2: the first label that it was opened for.
    first_label: int | None = None


def model_items(run: int) -> list[ModelItem]:
    """Return the items in the order of service."""
    return [
        ModelItem(f"{run}-plain"),
        ModelItem(f"{run}-sibling"),
        *confirmations(f"{run}-sibling", (1,)),
        ModelItem(f"{run}-two", wanted=2),
        *confirmations(f"{run}-two", (0, 1)),
        ModelItem(f"{run}-three", wanted=3),
    ]


def confirmations(name: str, confirms: tuple[int, ...]) -> list[ModelItem]:
    return [
        ModelItem(name, kind="confirmation", status="blocked", round=n, confirms=confirms)
        for n in (2, 3)
    ]


@dataclass
class Held:
    item: ModelItem
    lease: Lease
    who: int


@dataclass
class Done:
    item: ModelItem
    decision: Decision
    who: int
    #: The item's changes right after it.
    at: int
    #: Where the item stood before.
    before: str


class QueueModel(RuleBasedStateMachine):
    engine: Engine
    new_item: Callable[..., NewItem]
    runs = 0
    #: What is queued.
    plan = staticmethod(model_items)

    def __init__(self) -> None:
        super().__init__()
        run = type(self).runs = type(self).runs + 1
        self.day = date(2026, 1, 1) + timedelta(days=run)
        intake.enqueue(self.engine, [], self.day - timedelta(days=1))  # what the last run left
        self.items = self.plan(run)
        self._route()
        self.people = [
            accounts.create_moderator(self.engine, f"{run}-{i}", role).id
            for i, role in enumerate(("moderator", "moderator", "moderator", "lead"))
        ]
        self.held: list[Held] = []
        self.done: list[Done] = []
        self.logged = self.compared = self._logged()

    def _route(self) -> Enqueued:
        items = [
            self.new_item(
                item.name, rank + 1, kind=item.kind, labels_wanted=item.wanted,
                **({"round": item.round, "confirms": list(item.confirms)} if item.confirms else {}),
            )
            for rank, item in enumerate(self.items)
        ]  # fmt: skip
        return intake.enqueue(self.engine, items, self.day)

    @rule()
    def route_again(self) -> None:
        assert self._route() == Enqueued(routed=len(self.items), changed=0, withdrawn=0)
        for item in self.items:
            self._settle(item)

    def _of(self, item: ModelItem, number: int) -> ModelItem:
        """Return the item of a round of the same comment."""
        return next(element for element in [item, *self._siblings(item)] if element.round == number)

    def _opens(self, item: ModelItem) -> bool | None:
        """Return whether a confirmation should be open; None: labels before it are missing."""
        first = self._of(item, 1).given
        if first is None:
            return None
        if item.round == 2:
            return first in (item.confirms or ())
        second = self._of(item, 2).given
        return None if second is None else first != second

    def _settle(self, item: ModelItem) -> None:
        if item.kind != "confirmation" or item.status not in ("waiting", "blocked"):
            return
        if self._opens(item):
            item.status = "waiting"
            item.first_label = self._of(item, 1).given
            item.excluded.update(*(entry.excluded for entry in self._siblings(item)))
        elif item.status == "waiting" and item.holder is None:
            item.status, item.first_label = "blocked", None

    def _logged(self) -> int:
        with self.engine.connect() as connection:
            return connection.scalar(select(func.count()).select_from(decision)) or 0

    def _siblings(self, item: ModelItem) -> list[ModelItem]:
        return [wanted for wanted in self.items if wanted.name == item.name and wanted is not item]

    @rule(who=st.integers(0, LEAD), expires=st.booleans())
    def lease(self, who: int, expires: bool) -> None:
        self._take(who, "waiting", leases.lease, expires)

    @rule(expires=st.booleans())
    def lease_escalated(self, expires: bool) -> None:
        self._take(LEAD, "escalated", leases.lease_escalated, expires)

    def _take(self, who: int, status: str, take: Callable[..., Any], expires: bool) -> None:
        free = [
            wanted
            for wanted in sorted(self.items, key=lambda item: item.round)  # served a day later
            if wanted.status == status and wanted.holder is None and who not in wanted.excluded
        ]
        lease = take(self.engine, self.people[who], OVER if expires else leases.LEASE_LENGTH)
        assert (lease.item.comment_id if lease else None) == (free[0].name if free else None)
        if lease and not expires:
            free[0].holder = who
            self.held.append(Held(free[0], lease, who))

    @precondition(lambda self: self.held)
    @rule(which=st.integers(0, 5))
    def release(self, which: int) -> None:
        held = self.held.pop(which % len(self.held))
        held.item.holder = None
        assert leases.release(
            self.engine, self.people[held.who], held.lease.item.id, held.lease.token
        )

    @precondition(lambda self: self.held)
    @rule(
        which=st.integers(0, 5),
        action=st.sampled_from(["label", "label", "label", "skip", "escalate"]),
        value=st.integers(0, 1),
        sent=st.integers(1, 2),
    )
    def settle(self, which: int, action: str, value: int, sent: int) -> None:
        held = self.held[which % len(self.held)]
        act = {"label": deciding.decide, "skip": deciding.skip, "escalate": deciding.escalate}[
            action
        ]
        request = {
            "moderator_id": self.people[held.who],
            "item_id": held.lease.item.id,
            "lease_token": held.lease.token,
            "idempotency_key": held.lease.token,
            **({"label": value} if action == "label" else {}),
        }
        if held.who in held.item.excluded:  # the lead has corrected the first label since
            with pytest.raises(LeaseConflictError):
                act(self.engine, **request)
            return
        self.held.remove(held)
        answers = [act(self.engine, **request) for _ in range(sent)]
        assert len({answer.id for answer in answers}) == 1
        before = held.item.status
        self._settled(held.item, held.who, action, value)
        self.logged += 1
        self.done.append(Done(held.item, answers[0], held.who, held.item.changes, before))

    def _settled(self, item: ModelItem, who: int, action: str, value: int) -> None:
        item.holder, item.changes = None, item.changes + 1
        for sibling in self._siblings(item):
            sibling.excluded.add(who)
        if action == "escalate":
            item.status = "escalated"
            return
        item.excluded.add(who)
        if action == "skip":
            return
        if item.status == "escalated":
            item.status, item.final = "decided", (value, who)
            # What a lead says of an escalated confirmation confirms nothing.
            item.given = value if item.kind == "review" else None
        else:
            item.labels[who] = value
            if len(item.labels) >= item.wanted:
                agree = len(set(item.labels.values())) == 1
                item.status = "decided" if agree else "escalated"
                item.final = (value, who) if agree else None
                item.given = value if agree else None
        if item.status == "decided" and item.given is not None:
            for sibling in self._siblings(item):
                if sibling.round > item.round:
                    self._follow(sibling)

    def _follow(self, item: ModelItem) -> None:
        """Do what the label of an earlier round does to a confirmation."""
        opens = self._opens(item)
        if opens and item.status in ("blocked", "waiting"):
            item.status, item.first_label = "waiting", self._of(item, 1).given
        elif opens is False and item.status == "waiting" and item.holder is None:
            item.status = "blocked"

    @precondition(lambda self: self.done)
    @rule(which=st.integers(0, 8))
    def undo(self, which: int) -> None:
        done = self.done[which % len(self.done)]
        item = done.item
        request = {
            "moderator_id": self.people[done.who],
            "decision_id": done.decision.id,
            "idempotency_key": f"undo {done.decision.id}",
        }
        if done.decision.action == "skip":
            with pytest.raises(QueueError):
                undo(self.engine, **request)
            return
        gone_on = item.changes != done.at or item.holder is not None
        if gone_on or item.status == "blocked":  # the label that it confirms was undone
            with pytest.raises(LeaseConflictError):
                undo(self.engine, **request)
            return
        back = undo(self.engine, **request)
        self.done.remove(done)
        self.logged += 1
        item.changes += 1
        item.status = done.before
        item.final = item.given = None
        if done.decision.action == "label":
            del item.labels[done.who]
        item.excluded.discard(done.who)
        for sibling in self._siblings(item):
            if sibling.holder is not None:
                item.excluded.add(sibling.holder)
        for sibling in self._siblings(item):
            self._settle(sibling)
        item.holder = done.who
        self.held.append(Held(item, back, done.who))

    @rule(which=st.integers(0, 7), value=st.integers(0, 1), stale=st.booleans())
    def correct(self, which: int, value: int, stale: bool) -> None:
        item = self.items[which % len(self.items)]
        if item.status != "decided" or item.kind != "review":
            return
        last = max(
            (one_decision for one_decision in self.done if one_decision.item is item),
            key=lambda entry: entry.decision.id,
        )
        request = {
            "moderator_id": self.people[LEAD],
            "item_id": last.decision.item_id,
            "label": value,
            "version": item.changes + 1 - stale,
            "reason": "slip",
            "idempotency_key": f"{item.name} {item.changes}",
            "others_too": True,
        }
        if stale:
            with pytest.raises(LeaseConflictError):
                correct(self.engine, **request)
            return
        correct(self.engine, **request)
        self.logged += 1
        item.changes += 1
        item.final = (value, LEAD)
        for element in self._siblings(item):
            element.excluded.add(LEAD)

    @invariant()
    def the_database_says_the_same(self) -> None:
        assert self._logged() == self.logged
        if self.logged > self.compared:
            self.compared = self.logged
            self._labels_are_the_same()

    def teardown(self) -> None:
        """Compare once more: steps that log nothing may have changed labels, too."""
        self._labels_are_the_same()

    def _labels_are_the_same(self) -> None:
        found = sorted(
            (row["comment_id"], kind, row["label"], row["moderator"].rpartition("-")[2])
            for kind in ("review", "confirmation")
            for part in current_labels(self.engine, self.day, kind=kind)
            for row in part.to_pylist()
        )
        expected = sorted(
            (element.name, element.kind, element.final[0], str(element.final[1]))
            for element in self.items
            if element.final
        )
        assert found == expected
        confirmed = sorted(
            (
                *(row[name] for name in ("comment_id", "round", "label", "first_label")),
                row["moderator"].rpartition("-")[2],
            )
            for part in confirming_labels(self.engine, self.day)
            for row in part.to_pylist()
        )
        assert confirmed == sorted(self._confirmed())
        for name in {item.name for item in self.items}:
            people = [row[4] for row in confirmed if row[0] == name]
            assert len(set(people)) == len(people)
            assert not any(self._labelled_first(name, who) for who in people)

    def _confirmed(self) -> Iterator[tuple[str, int, int, int, str]]:
        """Yield comment, round, label, first label and person of what counts."""
        for item in self.items:
            if item.kind != "confirmation" or item.given is None:
                continue
            first, second = self._of(item, 1), self._of(item, 2)
            if first.given is not None and second.given is not None:
                assert second.first_label is not None
                (who,) = item.labels
                yield item.name, item.round, item.given, second.first_label, str(who)

    def _labelled_first(self, name: str, who: str) -> bool:
        firsts = (item for item in self.items if item.name == name and item.round == 1)
        return any(int(who) in item.labels for item in firsts)


def one_comment(run: int) -> list[ModelItem]:
    return [ModelItem(f"{run}-one"), *confirmations(f"{run}-one", (0, 1))]


@pytest.mark.parametrize("plan", [model_items, one_comment])
def test_the_queue_agrees_with_a_simple_model(engine, new_item, plan):
    given = {
        "engine": engine, "new_item": staticmethod(new_item), "plan": staticmethod(plan), "runs": 0
    }  # fmt: skip
    machine = type("Queue", (QueueModel,), given)
    run_state_machine_as_test(machine, settings=settings(max_examples=10, stateful_step_count=25))
    assert verification.verify_log(engine).intact
