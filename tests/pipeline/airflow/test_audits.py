"""The tasks of an audit: what people answer goes to the evidence, and nobody is asked twice."""

import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import (
    AirflowSkipException,
    ParamValidationError,
    TaskAwaitingInput,
)
from small_audits import REQUEST, plan_audit, seal

from modwatch.audits.workflow import Audit
from modwatch.common.errors import AuditError
from modwatch.installation.resources import Resources, open_resources
from modwatch.pipeline import audit as path
from modwatch.pipeline.airflow import audits
from modwatch.pipeline.airflow.audits import CANCEL, STOP, Approval, SignOff
from pipeline.airflow.answers import TI_ID, answer, context, did, last, wait


def ask(task: Approval | SignOff) -> None:
    """Begin a task that asks people something."""
    with pytest.raises(TaskAwaitingInput) as parked:
        task.execute(context(task))
    assert parked.value.method_name == "execute_complete"


def approval() -> Approval:
    return Approval(task_id="approve", audit="small")


def signature() -> SignOff:
    return SignOff(task_id="sign_off", audit="small")


@pytest.fixture
def planned(resources):
    plan_audit(resources, REQUEST, actor="eva")
    return resources


def test_someone_is_asked_with_the_plan_before_their_eyes(planned, asked):
    ask(approval())
    [question] = asked
    assert question["ti_id"] == TI_ID
    assert question["options"] == ["Approve", CANCEL]
    assert question["subject"] == "Approve the plan of audit small"
    assert planned.audit("small").plan.digest in question["body"]
    assert list(question["params"]) == ["note"]
    assert question["defaults"] is None
    assert last(planned).action == "planned"


def test_people_see_where_they_can_answer(planned, asked, monkeypatch):
    pages: list[str] = []
    real = path.ask

    def noted(resources: Resources, audit: str, action: str, *, page: str) -> str:
        pages.append(page)
        return real(resources, audit, action, page=page)

    monkeypatch.setattr(path, "ask", noted)
    ask(approval())
    ask(approval())  # it was killed before anybody answered
    assert set(pages) == {
        "http://airflow.test/dags/audit_recall/runs/run-1/tasks/approve/required_actions?map_index=-1"
    }


def test_whoever_approves_stands_in_the_evidence(planned):
    assert approval().execute_complete(context(), answer("Approve")) == "approved"
    assert did(planned) == ("approved", "eve", "as agreed")


@pytest.mark.parametrize(
    ("changes", "actor", "note"),
    [
        ({"params_input": None}, "eve", ""),
        ({"params_input": {"note": None}}, "eve", ""),
        ({"params_input": {}}, "eve", ""),
        ({"responded_by_user": None}, "unknown", "as agreed"),
        ({"responded_by_user": {"id": "7", "name": None}}, "7", "as agreed"),
        ({"responded_by_user": {"id": 7, "name": ""}}, "7", "as agreed"),
    ],
)
def test_an_answer_may_lack_a_note_or_a_name(planned, changes, actor, note):
    approval().execute_complete(context(), answer("Approve", **changes))
    assert did(planned) == ("approved", actor, note)


def test_whoever_gives_up_skips_the_task(planned):
    with pytest.raises(AirflowSkipException, match="audit 'small' was cancelled"):
        approval().execute_complete(context(), answer(CANCEL))
    assert did(planned) == ("cancelled", "eve", "as agreed")


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"params_input": {"score": 1}}, ParamValidationError, "no field 'score'"),
        ({"params_input": {"note": "x", "z": 1}}, ParamValidationError, "no field 'z'"),
        ({"params_input": {"note": "x" * 501}}, ParamValidationError, "too long"),
        ({"params_input": {"note": 1}}, ParamValidationError, "is not of type"),
        ({"chosen_options": ["Sign"]}, ValueError, "Sign"),
    ],
)
def test_an_answer_that_the_question_does_not_have_is_refused(planned, changes, error, words):
    with pytest.raises(error, match=words):
        approval().execute_complete(context(), answer("Approve", **changes))
    assert last(planned).action == "planned"


def test_a_note_does_not_stay_for_the_next_answer(planned):
    approval().execute_complete(context(), answer("Approve"))
    assert wait().serialized_params["note"]["value"] is None


def test_no_one_is_asked_for_what_was_answered(drawn, asked):
    before = drawn.audit_store.read("small")
    assert approval().execute(context()) is None
    approval().execute_complete(context(), answer("Approve", responded_by_user=None))
    assert asked == []
    assert drawn.audit_store.read("small") == before


def test_the_result_is_signed_by_someone_who_has_seen_it(resources, asked):
    seal(resources)
    resources.audit("small").estimate()
    ask(signature())
    assert "120 of 120 drawn comments are labelled" in asked[0]["body"]
    with pytest.raises(AuditError, match="'ann' labelled for it and cannot sign it off"):
        signature().execute_complete(
            context(), answer("Sign", responded_by_user={"id": "1", "name": "ann"})
        )
    with pytest.raises(AuditError, match="'eve' approved it and cannot sign it off"):
        signature().execute_complete(context(), answer("Sign"))
    fay = answer("Sign", responded_by_user={"id": "2", "name": "fay"})
    assert signature().execute_complete(context(), fay) == "signed_off"
    assert did(resources) == ("signed_off", "fay", "as agreed")


def test_a_task_of_an_audit_that_was_given_up_is_skipped(drawn, asked):
    drawn.audit("small").cancel(actor="ben")
    for task in (approval(), signature(), wait(), wait(stage=2)):
        with pytest.raises(AirflowSkipException, match="was cancelled by 'ben'"):
            task.execute(context())
    with pytest.raises(AirflowSkipException, match="was cancelled by 'ben'"):
        signature().execute_complete(context(), answer("Sign"))
    for event in ({"kind": "over"}, {"kind": "reminder"}, answer(STOP)):
        with pytest.raises(AirflowSkipException, match="was cancelled by 'ben'"):
            wait().execute_complete(context(), event)
    assert asked == []
    assert did(drawn) == ("cancelled", "ben", "")


def test_a_stop_takes_its_part_of_the_form(resources, monkeypatch):
    called: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(Audit, "draw", lambda it, stage: called.append((it.name, {"stage": stage})))
    monkeypatch.setattr(Audit, "publish", lambda it, **part: called.append((it.name, part)))
    audits.draw.function("small", stage=2)
    audits.publish.function("small", params={"service": "Forum"})
    audits.publish.function("small", params={"service": None})
    assert called == [
        ("small", {"stage": 2}),
        ("small", {"service": "Forum"}),
        ("small", {"service": ""}),
    ]


@pytest.mark.parametrize(
    ("run", "first"), [("scheduled__1", "2025-12-01"), ("manual__1", "2026-02-01")]
)
def test_a_run_by_hand_covers_the_month_before_it_was_asked_for(resources, monkeypatch, run, first):
    forms: list[dict[str, Any]] = []

    def plan(_: Resources, form: dict[str, Any], *, actor: str) -> SimpleNamespace:
        forms.append(form)
        return SimpleNamespace(name="small")

    monkeypatch.setattr(path, "plan", plan)
    audits.plan.function(
        params={},
        dag_run=SimpleNamespace(
            run_id=run, run_after=datetime.datetime(2026, 3, 14, tzinfo=datetime.UTC)
        ),
        data_interval_start=datetime.datetime(2025, 12, 1, 7, tzinfo=datetime.UTC),
    )
    assert forms[0]["first"] == first


def test_the_plan_is_that_of_the_run_and_of_who_pressed_the_button(resources):
    plan = audits.plan.function
    form = {"first": "2026-01-05", "last": "2026-01-06", "labels": 120, "audit": "small"}
    run = SimpleNamespace(
        run_id="manual__1",
        run_after=datetime.datetime(2026, 2, 3, tzinfo=datetime.UTC),
        triggering_user_name="eva",
    )
    for _ in range(2):
        assert plan(params=form, dag_run=run, data_interval_start=None) == "small"
    assert did(resources) == ("planned", "eva", "manual__1")
    run.run_id, run.triggering_user_name = "manual__2", None
    with pytest.raises(AuditError, match="was planned by another request"):
        plan(params=form, dag_run=run, data_interval_start=None)
    with open_resources() as other:
        assert plan(params={**form, "audit": "mine"}, dag_run=run) == "mine"
        assert other.audit_store.chain("mine")[0].actor == "modwatch"
