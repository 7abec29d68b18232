"""Someone may be in danger: no later or older escalation may come before it."""

import pytest
from databases import execute
from sqlalchemy import Engine, text

from modwatch.monitoring.incidents.channels import Channel
from modwatch.monitoring.incidents.messages.alert import Alert
from modwatch.monitoring.incidents.operations import alert_severe_escalations
from modwatch.monitoring.incidents.rules import EVERYTHING
from modwatch.review import workload
from modwatch.review.console.decision_choices import choices_of
from modwatch.review.log.decision_log import Decision
from modwatch.review.people.accounts import Moderator
from modwatch.review.policy.tree import load_policy
from modwatch.review.queue import deciding, intake
from modwatch.review.queue.lanes import load_lanes
from review.labelling import escalate, held, held_escalated


class Recorder:
    """A channel that remembers what it sent."""

    name = "recorder"
    route = EVERYTHING

    def __init__(self) -> None:
        self.sent: list[Alert] = []

    def send(self, alert: Alert) -> None:
        self.sent.append(alert)


def hand_on(engine: Engine, person: Moderator, reason: str = "context") -> Decision:
    """Escalate the next item for a reason."""
    severe = load_lanes().severe.seconds(reason)
    return escalate(engine, person, held(engine, person), reason=reason, severe_seconds=severe)


@pytest.fixture
def crowd(engine, ann, new_item, day):
    """Five escalations in two queues, of which the last, and newest, is severe; returns it."""
    items = [new_item(f"c{i}", i + 1, platform="ab"[i % 2]) for i in range(5)]
    intake.enqueue(
        engine, items, day, lanes=load_lanes().model_copy(update={"queue_by": "platform"})
    )
    for _ in range(4):
        hand_on(engine, ann)
    return hand_on(engine, ann, "severe").item_id


def test_the_severe_one_is_listed_and_served_first(engine, crowd, lea):
    first, *others = workload.escalations(engine)
    assert first.item_id == crowd
    assert first.severe_due_at is not None
    assert not first.overdue
    assert {other.severe_due_at for other in others} == {None}
    lease = held_escalated(engine, lea)
    assert lease.item.id == crowd
    following = held_escalated(engine, lea)
    assert following.item.id != crowd
    # A second escalation for a lesser reason postpones nothing.
    request = {"item_id": lease.item.id, "lease_token": lease.token, "idempotency_key": "k"}
    deciding.escalate(engine, moderator_id=lea.id, reason="context", **request)
    assert workload.escalations(engine)[0].severe_due_at == first.severe_due_at


def test_what_was_taken_back_is_severe_no_more(engine, ann, lea, fill):
    fill(2)
    done = hand_on(engine, ann, "severe")
    deciding.undo(engine, moderator_id=ann.id, decision_id=done.id, idempotency_key="undo")
    with engine.connect() as connection:
        of_item = text("SELECT severe_due_at FROM review_item WHERE id = :id")
        assert connection.scalar(of_item, {"id": done.item_id}) is None
    assert workload.escalations(engine) == []


def test_an_alert_when_it_waits_and_another_when_it_is_overdue(engine, crowd):
    channel = Recorder()
    channels: list[Channel] = [channel]
    for _ in range(3):
        alert_severe_escalations(engine, channels, "http://console/lead")
    execute(engine, "UPDATE review_item SET severe_due_at = severe_due_at - interval '2h'")
    for _ in range(2):
        alert_severe_escalations(engine, channels, "http://console/lead")
    states = [(alert.facts["item"], alert.facts["state"]) for alert in channel.sent]
    assert states == [(crowd, "waiting"), (crowd, "overdue")]
    assert all("invented text" not in str(alert.payload) for alert in channel.sent)


def test_enter_alone_does_not_send_the_gravest_reason():
    severe = load_lanes().severe.reasons
    verdicts = [item.verdict for item in choices_of(load_policy(), "en", severe=severe).escalate]
    assert (verdicts[0], verdicts[-1]) == ("escalate:policy_gap", "escalate:severe")
