"""The task that waits for labels: it asks, sleeps, wakes and seals, each of them once."""

import datetime
import re
from typing import Any

import pytest
from airflow.sdk.exceptions import (
    AirflowSkipException,
    ParamValidationError,
    TaskDeferred,
)
from audit_path import behind
from small_audits import begin, label_everything

from modwatch.audits import store as audit_store
from modwatch.audits.review_items import AuditProgress
from modwatch.installation.resources import Resources
from modwatch.pipeline import audit as path
from modwatch.pipeline.airflow import labels_trigger
from modwatch.pipeline.airflow.audits import CANCEL, STOP, AuditLabels
from modwatch.review.people.accounts import create_moderator
from pipeline.airflow.answers import TI_ID, answer, context, did, last, wait
from review.labelling import label_next


def deferred(task: AuditLabels, event: dict[str, Any] | None = None, **form: int) -> TaskDeferred:
    """Return how a task goes to sleep, at its beginning or after an event."""
    begun = context(**form)
    with pytest.raises(TaskDeferred) as slept:
        task.execute(begun) if event is None else task.execute_complete(begun, event)
    return slept.value


def test_the_wait_asks_whether_to_stop_and_sleeps(drawn, asked):
    slept = deferred(wait(), remind_days=2)
    [question] = asked
    assert question["options"] == [STOP, CANCEL]
    assert question["subject"] == "Wait for the labels of audit small"
    assert question["body"].startswith("0 of 120 comments are decided; the deadline is ")
    assert question["multiple"] is False
    assert slept.method_name == "execute_complete"
    assert (
        slept.trigger.serialize()
        == labels_trigger.LabelsTrigger(
            audit="small",
            stage=1,
            ti_id=TI_ID,
            remind_at=(drawn_at(drawn) + datetime.timedelta(days=2)).isoformat(),
            poll_seconds=0.01,
        ).serialize()
    )


def drawn_at(resources: Resources) -> datetime.datetime:
    drawn = [event for event in resources.audit_store.chain("small") if event.action == "drawn"]
    return datetime.datetime.fromisoformat(drawn[-1].at)


def test_it_sleeps_on_when_it_was_woken_too_early(drawn, asked):
    one, other = deferred(wait()), deferred(wait(), {"kind": "over"})
    assert other.trigger.serialize() == one.trigger.serialize()
    assert len(asked) == 1


def test_it_seals_what_is_complete_and_does_so_once(drawn, asked):
    label_everything(drawn)
    assert wait().execute_complete(context(), {"kind": "over"}) == 120
    assert did(drawn) == ("labelled", "modwatch", "")
    before = drawn.audit_store.read("small")
    assert wait().execute(context()) == 120  # a task that was cleared
    assert wait().execute_complete(context(), answer(STOP)) == 120
    assert wait(stage=2).execute(context()) == 0
    assert asked == []
    assert drawn.audit_store.read("small") == before


def test_whoever_stops_the_labelling_seals_what_there_is(drawn):
    ann = create_moderator(drawn.database, "ann", "moderator")
    for _ in range(30):
        label_next(drawn.database, ann)
    assert 0 < wait().execute_complete(context(), answer(STOP)) <= 30
    step, who, why = did(drawn)
    assert (step, who) == ("labelled", "eve")
    result = r"stopped before all were labelled: as agreed \(9\d of 120 items are not decided\)"
    assert re.fullmatch(result, why)
    assert drawn.audit("small").progress().left == 0


def test_whoever_gives_up_while_people_label_skips_the_task(drawn):
    with pytest.raises(AirflowSkipException, match="was cancelled; its evidence stays"):
        wait().execute_complete(context(), answer(CANCEL))
    assert did(drawn) == ("cancelled", "eve", "as agreed")
    assert drawn.audit("small").progress() == AuditProgress(withdrawn=120)


def test_an_answer_with_a_field_too_many_stops_nothing(drawn):
    with pytest.raises(ParamValidationError, match="no field 'score'"):
        wait().execute_complete(context(), answer(STOP, params_input={"score": 1}))
    assert last(drawn).action == "drawn"


@pytest.fixture
def late(resources, monkeypatch):
    """An audit that was drawn 14 days ago, which is its deadline."""
    with monkeypatch.context() as earlier:
        earlier.setattr(audit_store, "datetime", behind(14 * 24))
        begin(resources)
    return resources


def test_at_the_deadline_it_goes_on_with_what_there_is(late):
    ann = create_moderator(late.database, "ann", "moderator")
    for _ in range(30):
        label_next(late.database, ann)
    assert 0 < wait().execute_complete(context(), {"kind": "over"}) <= 30
    step, who, why = did(late)
    assert (step, who) == ("labelled", "modwatch")
    result = r"stopped before all were labelled: the deadline \(9\d of 120 items are not decided\)"
    assert re.fullmatch(result, why)


def test_what_is_complete_at_the_deadline_was_not_stopped(late):
    label_everything(late)
    assert wait().execute_complete(context(), {"kind": "over"}) == 120
    assert did(late) == ("labelled", "modwatch", "")


def test_a_reminder_is_counted_by_the_time_and_the_next_one_comes_later(resources, monkeypatch):
    with monkeypatch.context() as earlier:
        earlier.setattr(audit_store, "datetime", behind(7 * 24))
        begin(resources)
    numbers: list[int] = []
    monkeypatch.setattr(path, "remind", lambda opened, audit, stage, number: numbers.append(number))
    slept = deferred(wait(), {"kind": "reminder"}, remind_days=3)
    again = deferred(wait(), {"kind": "reminder"}, remind_days=3)
    assert numbers == [
        2,
        2,
    ]  # the first was slept through; the second is the same if it comes again
    third = drawn_at(resources) + datetime.timedelta(days=9)
    assert [value.trigger.remind_at for value in (slept, again)] == [third.isoformat()] * 2
