"""The path of an audit: everything may come again, and people are asked and told once."""

import datetime
import re
from typing import Any

import pytest
from audit_path import (
    FORM,
    actions,
    adaptive,
    behind,
    chain,
    go_to,
    picture,
    recall_status,
)
from receivers import webhook
from small_audits import label_everything

from installation import MONDAY
from modwatch.audits import files
from modwatch.audits import store as audit_store
from modwatch.audits.review_items import AuditProgress, Labelling
from modwatch.common.errors import AuditError
from modwatch.common.mlflow_client import AUDIT_EXPERIMENT, connect, runs_tagged
from modwatch.installation.resources import open_resources
from modwatch.monitoring.incidents.messages.alert import Alert
from modwatch.pipeline import audit as path
from modwatch.pipeline.audit import approval_alert, reminder_alert

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


def test_every_step_may_come_again_whenever_and_nothing_changes(small):
    answers: dict[str, Any] = {}
    steps = adaptive()
    for name, step in steps.items():
        answers[name] = step(small)
        before = picture(small)
        assert {answer: steps[answer](small) for answer in answers} == answers
        assert picture(small) == before
    assert answers == {
        **{"plan": "small", "approve": None, "draw": 96, "seal": 96, "draw_again": 160},
        **{"seal_again": 160, "estimate": "ok", "sign_off": None, "publish": "report.html"},
    }
    assert small.audit("small").verify() == []
    assert [(event.action, event.actor, event.note) for event in chain(small)] == [
        ("planned", "eva", "run 1"),
        ("approved", "eve", "as agreed"),
        *[("drawn", "modwatch", ""), ("labelled", "modwatch", "")] * 2,
        ("estimated", "modwatch", ""),
        ("signed_off", "fay", ""),
        ("published", "modwatch", ""),
    ]


def test_there_is_no_second_stage_after_a_stop(small):
    steps = adaptive()
    for name in ("plan", "approve", "draw"):
        steps[name](small)
    assert small.audit("small").seal(1, stop=True, actor="eve", note="enough") == 96
    for _ in range(2):
        assert small.audit("small").draw(2) == 0
        assert small.audit("small").labelling(2) is None
        assert small.audit("small").seal(2) == 0
    assert recall_status(small.audit("small")) == "ok"
    assert actions(small) == ["planned", "approved", "drawn", "labelled", "estimated"]
    assert chain(small)[3].note == "stopped before all were labelled: enough"


def test_a_plan_of_one_stage_has_no_second_one(small):
    go_to(small, "seal")
    before = picture(small)
    assert small.audit("small").draw(2) == small.audit("small").seal(2) == 0
    assert picture(small) == before


@pytest.mark.parametrize(("hours", "over"), [(14 * 24 - 1, False), (14 * 24, True)])
def test_labels_are_waited_for_until_the_deadline(small, monkeypatch, hours, over):
    with monkeypatch.context() as earlier:
        earlier.setattr(audit_store, "datetime", behind(hours))
        go_to(small, "draw")
    found = small.audit("small").labelling(1)
    assert found is not None
    assert found.over == over
    assert found.progress == AuditProgress(waiting=120)
    assert found.deadline - found.since == datetime.timedelta(days=14)
    # nobody has labelled any
    assert small.audit("small").seal(1, stop=True, note="no time") == 0
    assert small.audit("small").labelling(1) is None


def test_nothing_is_left_to_wait_for_when_all_is_labelled(small):
    go_to(small, "draw")
    label_everything(small)
    found = small.audit("small").labelling(1)
    assert found is not None
    assert found.over
    assert found.text.startswith("120 of 120 comments are decided; the deadline is ")


def test_what_waits_for_a_lead_is_reported():
    deadline = datetime.datetime(2026, 1, 20, 12, tzinfo=datetime.UTC)
    progress = AuditProgress(waiting=3, escalated=2, decided=1_500, withdrawn=1)
    found = Labelling(progress=progress, deadline=deadline, since=deadline)
    assert found.text == (
        "1,500 of 1,506 comments are decided, 2 are escalated to a lead; the deadline is "
        "2026-01-20 12:00 UTC."
    )


def test_nothing_is_waited_for_before_the_draw(small):
    go_to(small, "approve")
    assert small.audit("small").labelling(1) is None


@pytest.fixture
def channel(monkeypatch):
    """What the channel gets, of the installation of `heard`."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with webhook() as server:
        yield server


@pytest.fixture
def heard(small_home, channel):
    """The small lake, with a channel for alerts."""
    home = small_home.but(alert_webhook_url=channel.url, alert_webhook_secret="s3cret")
    with open_resources(home.settings) as resources:
        yield resources


def test_people_are_asked_once_and_get_what_they_must_know(heard, channel):
    go_to(heard, "plan")
    for _ in range(2):
        words = path.ask(heard, "small", "approved", page="http://airflow/x")
        assert heard.audit("small").plan.digest in words
    go_to(heard, "estimate")
    for _ in range(2):
        words = path.ask(heard, "small", "signed_off", page="http://airflow/y")
        assert "120 of 120 drawn comments are labelled" in words
        assert heard.audit_store.place("small") in words
    assert channel.keys == ["audit/small/approved", "audit/small/signed_off"]
    assert [request.json["links"]["answer"] for request in channel.requests] == [
        "http://airflow/x",
        "http://airflow/y",
    ]


def test_each_reminder_is_reported_once_and_none_when_no_one_is_waited_for(heard, channel):
    go_to(heard, "draw")
    for number in (1, 1, 2, 2, 1):
        path.remind(heard, "small", 1, number)
    assert channel.keys == ["audit/small/1/1", "audit/small/1/2"]
    [title, _] = [request.json["title"] for request in channel.requests]
    assert re.fullmatch(r"\[info\] Audit small: 120 labels missing, deadline .* UTC", title)
    label_everything(heard)
    heard.audit("small").seal(1)
    path.remind(heard, "small", 1, 3)
    path.remind(heard, "small", 2, 1)
    assert len(channel.keys) == 2


def test_a_channel_that_refuses_holds_nothing_up_and_is_reported_later(heard, channel, caplog):
    channel.answers = [400, 400, 400]
    go_to(heard, "plan")
    assert "to label" in path.ask(heard, "small", "approved", page="http://airflow/x")
    go_to(heard, "draw")
    path.remind(heard, "small", 1, 1)  # the question is tried once more, and refused as well
    assert caplog.text.count("An alert was not delivered") == 2
    assert "hunter2" not in caplog.text
    path.remind(heard, "small", 1, 1)
    assert channel.keys[3:] == ["audit/small/approved", "audit/small/1/1"]


def test_another_run_cannot_take_an_audit_over_and_the_same_run_may_plan_it_again(small):
    assert path.plan(small, FORM, actor="eva").name == "small"
    before = picture(small)
    for other in ("run 2", ""):
        with pytest.raises(AuditError, match="was planned by another request; choose another"):
            path.plan(small, {**FORM, "origin": other})
    assert path.plan(small, FORM, actor="another").name == "small"
    assert picture(small) == before


@pytest.mark.parametrize(
    "changes",
    [
        {"labels": 121},
        {"last": str(MONDAY)},
        {"second_stage_share": 0.5},
        {"level": 0.9},
        {"sides": "lower"},
        {"bins": 4},
        {"deadline_days": 15},
        {"four_eyes": False},
    ],
)
def test_a_plan_is_not_taken_for_one_that_asks_for_something_else(small, changes):
    path.plan(small, FORM)
    with pytest.raises(AuditError, match="was planned by another request"):
        path.plan(small, {**FORM, **changes})


def test_two_audits_go_on_side_by_side(small):
    go_to(small, "draw")
    path.plan(small, {**FORM, "audit": "other", "origin": "run 2"})
    small.audit("other").approve(actor="eve")
    assert small.audit("other").draw(1) == 120
    small.audit("small").cancel(actor="eve")
    label_everything(small)
    assert small.audit("other").seal(1) == 120
    assert small.audit("small").progress() == AuditProgress(withdrawn=120)


def test_a_published_audit_is_one_run_of_mlflow(small_home, unmanned, tmp_path):
    home = small_home.but(mlflow_url=unmanned.copy(tmp_path / "mlflow"))
    with open_resources(home.settings) as resources, connect(home.values["mlflow_url"]) as client:
        artifacts = (tmp_path / "audits").as_uri()
        experiment = client.create_experiment(AUDIT_EXPERIMENT, artifact_location=artifacts)
        go_to(resources, "publish")
        before = picture(resources)
        path.track(resources, "small")
        run_id = path.track(resources, "small")
        assert picture(resources) == before
        [run] = runs_tagged(client, experiment, {"kind": "audit"})
        assert run.info.run_id == run_id
        assert run.data.tags["audit"] == "small"
        names = {artifact.path for artifact in client.list_artifacts(run_id)}
    assert names == {*files.SHOWN}


def test_a_question_names_what_is_needed_and_where_to_answer():
    message = approval_alert("2026-01", "signed_off", "http://airflow/dags/x")
    assert message == Alert(
        key="audit/2026-01/signed_off",
        title="[info] Audit 2026-01 is waiting for sign-off",
        text="The audit is paused until someone gives sign-off or cancels it.",
        facts={
            "event": "question",
            "severity": "info",
            "audit": "2026-01",
            "action": "signed_off",
        },
        links={"answer": "http://airflow/dags/x"},
    )
    assert approval_alert("2026-01", "approved", "").key != message.key


def reminded(**progress: int) -> Alert:
    drawn = datetime.datetime(2026, 2, 1, 7, 30, tzinfo=datetime.UTC)
    labelling = Labelling(
        progress=AuditProgress(**{"waiting": 1_800, "decided": 1_200, **progress}),
        since=drawn,
        deadline=drawn + datetime.timedelta(days=14),
    )
    return reminder_alert("2026-01", 1, 2, labelling, "http://console")


def test_a_reminder_counts_the_missing_labels_and_names_the_deadline():
    message = reminded()
    assert message.key == "audit/2026-01/1/2"
    assert (
        message.title == "[info] Audit 2026-01: 1,800 labels missing, deadline 2026-02-15 07:30 UTC"
    )
    assert message.text == (
        "1,200 of 3,000 comments of audit 2026-01 are labelled. Comments without a label at "
        "2026-02-15 07:30 UTC are excluded, which widens the confidence intervals."
    )
    assert message.facts == {
        "event": "reminder",
        "severity": "info",
        "audit": "2026-01",
        "decided": 1_200,
        "items": 3_000,
        "escalated": 0,
        "deadline": "2026-02-15T07:30:00+00:00",
    }
    assert message.links == {"review queue": "http://console"}


def test_a_reminder_counts_what_waits_for_a_lead():
    text = reminded(waiting=1_793, escalated=7).text
    assert " are labelled. 7 are escalated to a lead. Comments without" in text
