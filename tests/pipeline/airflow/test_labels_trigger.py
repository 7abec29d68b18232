"""The wait for labels: what wakes the task, and what is waited out."""

import asyncio
import datetime
import importlib
import os
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from receivers import closed_port
from small_audits import begin, label_everything

from modwatch.audits.workflow import Audit
from modwatch.pipeline.airflow.labels_trigger import LabelsTrigger

NEVER = "2126-01-01T00:00:00+00:00"
ANSWERED_AT = datetime.datetime(2026, 1, 7, 12, tzinfo=datetime.UTC)


def trigger(**changes: Any) -> LabelsTrigger:
    plain = {
        "audit": "small",
        "stage": 1,
        "ti_id": "0197",
        "remind_at": NEVER,
        "poll_seconds": 0.005,
    }
    return LabelsTrigger(**{**plain, **changes})


def unanswered() -> SimpleNamespace:
    return SimpleNamespace(response_received=False, chosen_options=None)


def answered(**changes: Any) -> SimpleNamespace:
    """Return what Airflow tells of an answer."""
    plain = {
        "response_received": True,
        "chosen_options": ["Give the audit up"],
        "params_input": {"note": "too dear"},
        "responded_at": ANSWERED_AT,
        "responded_by_user": SimpleNamespace(id="7", name="eve"),
    }
    return SimpleNamespace(**{**plain, **changes})


class Airflow:
    """What Airflow says of the question, look by look."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers: list[SimpleNamespace] = []
        #: What else happens at a look, by its number from 1.
        self.then: dict[int, Callable[[], object]] = {}

    def __call__(self, ti_id: str) -> SimpleNamespace:
        self.asked.append(ti_id)
        self.then.get(len(self.asked), lambda: None)()
        return self.answers.pop(0) if self.answers else unanswered()


@pytest.fixture
def airflow(monkeypatch):
    made = Airflow()
    name = "modwatch.pipeline.airflow.labels_trigger.get_hitl_detail_content_detail"
    monkeypatch.setattr(name, made)
    return made


def fired(waiting: LabelsTrigger) -> dict[str, Any]:
    """Return the only event of a trigger."""

    [payload] = asyncio.run(asyncio.wait_for(events(waiting), timeout=60))
    return dict(payload)


async def events(waiting: LabelsTrigger) -> list[Any]:
    return [event.payload async for event in waiting.run()]


@pytest.fixture
def logged(monkeypatch):
    """What the triggers log."""
    lines: list[str] = []
    log = SimpleNamespace(info=lambda words, *values: lines.append(words % values))
    monkeypatch.setattr(LabelsTrigger, "log", log)
    return lines


def test_it_comes_back_from_what_airflow_keeps():
    kept = trigger(stage=2, remind_at="2026-01-09T00:00:00+00:00")
    name, arguments = kept.serialize()
    module, _, kind = name.rpartition(".")
    again = getattr(importlib.import_module(module), kind)(**arguments)
    assert type(again) is LabelsTrigger
    assert again.serialize() == kept.serialize()
    assert arguments == {
        "audit": "small",
        "stage": 2,
        "ti_id": "0197",
        "remind_at": "2026-01-09T00:00:00+00:00",
        "poll_seconds": 0.005,
    }


def test_it_waits_while_labels_are_missing_and_ends_with_the_last(resources, airflow, logged):
    begin(resources)
    airflow.then = {4: lambda: label_everything(resources)}
    assert fired(trigger()) == {"kind": "over"}
    assert airflow.asked == ["0197"] * 4
    assert len(logged) == 1  # nothing new, and so nothing more to say
    assert logged[0].startswith("0 of 120 comments are decided; the deadline is ")


def test_it_reminds_when_the_time_has_come(resources, airflow):
    begin(resources)
    now = datetime.datetime.now(datetime.UTC)
    assert fired(trigger(remind_at=now.isoformat())) == {"kind": "reminder"}


def test_what_is_complete_needs_no_reminder(resources, airflow):
    begin(resources)
    label_everything(resources)
    assert fired(trigger(remind_at="2026-01-01T00:00:00+00:00")) == {"kind": "over"}


@pytest.mark.parametrize("stage", [1, 2])
def test_there_is_nothing_to_wait_for_in_a_stage_that_is_sealed_or_is_not(
    resources, airflow, stage
):
    begin(resources)
    label_everything(resources)
    resources.audit("small").seal(1)
    assert fired(trigger(stage=stage)) == {"kind": "over"}


def test_an_answer_that_came_meanwhile_is_handed_on_as_airflow_does(resources, airflow):
    begin(resources)
    airflow.answers = [unanswered(), unanswered(), answered()]
    assert fired(trigger()) == {
        "chosen_options": ["Give the audit up"],
        "params_input": {"note": "too dear"},
        "responded_at": ANSWERED_AT,
        "responded_by_user": {"id": "7", "name": "eve"},
    }
    assert len(airflow.asked) == 3


def test_an_answer_of_no_one_without_a_note_is_one_too(resources, airflow):
    begin(resources)
    airflow.answers = [answered(params_input=None, responded_by_user=None)]
    event = fired(trigger())
    assert (event["params_input"], event["responded_by_user"]) == ({}, None)


def test_what_no_one_chose_is_no_answer(resources, airflow):
    begin(resources)
    airflow.answers = [answered(chosen_options=[]), answered(response_received=False)]
    airflow.then = {3: lambda: label_everything(resources)}
    assert fired(trigger()) == {"kind": "over"}


def test_an_audit_that_was_given_up_elsewhere_wakes_the_task(resources, airflow):
    begin(resources)
    airflow.then = {3: lambda: resources.audit("small").cancel(actor="eve")}
    assert fired(trigger()) == {"kind": "over"}
    assert len(airflow.asked) == 3


def test_a_database_that_is_down_is_waited_for(resources, airflow, logged, monkeypatch):
    begin(resources)
    label_everything(resources)
    known = os.environ["MODWATCH_DATABASE_URL"]
    nowhere = f"postgresql+psycopg://nobody@127.0.0.1:{closed_port()}/review"
    monkeypatch.setenv("MODWATCH_DATABASE_URL", nowhere)
    airflow.then = {3: lambda: monkeypatch.setenv("MODWATCH_DATABASE_URL", known)}
    assert fired(trigger()) == {"kind": "over"}
    assert logged == ["The progress could not be read (DatabaseError)."]


def test_others_go_on_while_it_looks(resources, airflow, monkeypatch):
    looking = threading.Event()
    go_on = threading.Event()

    def slow(*_: object) -> None:
        looking.set()
        assert go_on.wait(60)

    monkeypatch.setattr(Audit, "labelling", slow)

    async def alongside() -> list[Any]:
        waiting = asyncio.create_task(events(trigger()))
        while not looking.is_set():
            await asyncio.sleep(0.001)
        go_on.set()  # nobody could say so, were the loop held up by the look
        return await asyncio.wait_for(waiting, timeout=60)

    assert asyncio.run(alongside()) == [{"kind": "over"}]
