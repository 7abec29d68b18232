"""Audits under real Airflow, several at once: killed, stopped, given up, refused."""

import datetime
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from daily_job import MARK

from acceptance.audit_browser import Auditor
from acceptance.audit_people import (
    HALF,
    assert_same_findings,
    decisions,
    elsewhere,
    found,
    label,
    messages,
    sealed_labels,
    undisturbed,
)
from acceptance.audit_runs import (
    DAG,
    FORM,
    Audits,
    audits,
    chain,
    command,
    steps_of,
    tracked,
)
from installation import files_with, tables_with
from modwatch.audits import files
from modwatch.audits.evidence import stopping
from modwatch.audits.review_items import audit_progress
from modwatch.installation.resources import open_resources
from modwatch.pipeline.airflow.audits import CANCEL, STOP
from modwatch.settings import Settings

#: `test_daily_job.py` has an audit from the form to MLflow.
pytestmark = [pytest.mark.acceptance, pytest.mark.soak]

TWO_STAGES = {"labels": 160, "second_stage_share": 0.4}

States = Mapping[str, str]
Story = Callable[[Audits], States]
Wait = Callable[[Story], States]


def whole(airflow: Audits) -> States:
    """Two stages; `draw` is killed, and so is what waits for the labels."""
    airflow.trigger("whole", **TWO_STAGES)
    killed = airflow.trap("whole", files.population_file(1))
    airflow.answer("whole", "approve", "Approve", "go on")
    airflow.until("whole", "label", "deferred")
    assert not killed.exists()
    airflow.kill_triggerer()
    label("whole")
    airflow.until("whole", "label_again", "deferred")
    label("whole")
    airflow.answer("whole", "sign_off", "Sign", "they agree")
    return airflow.ended("whole")


def stopped(airflow: Audits) -> States:
    """Stopped at half of the labels by someone who labelled; `estimate` is killed."""
    airflow.trigger("stopped")
    airflow.until("stopped", "approve", "awaiting_input")
    command("audit", "approve", "stopped", "--by", "eve")  # the approver is served no label
    airflow.answer("stopped", "approve", "Approve", "go on")
    airflow.until("stopped", "label", "deferred")
    label_half("stopped")
    killed = airflow.trap("stopped", files.RESULT)
    airflow.answer("stopped", "label", STOP, HALF)
    airflow.answer("stopped", "sign_off", "Sign", "well done")
    assert not killed.exists()
    return airflow.ended("stopped")


def signed(airflow: Audits) -> States:
    """The same, once someone else has signed; `publish` is killed."""
    command("audit", "sign-off", "stopped", "--by", "eva", "--note", "seen")
    killed = airflow.trap("stopped", files.REPORT)
    airflow.clear("stopped", "sign_off")
    airflow.until("stopped", "track", "success")
    assert not killed.exists()
    return airflow.ended("stopped")


def refused(airflow: Audits) -> States:
    airflow.trigger("refused")
    airflow.answer("refused", "approve", CANCEL, "nobody has the time")
    return airflow.ended("refused")


def given_up(airflow: Audits) -> States:
    airflow.to_the_labels("given_up")
    airflow.answer("given_up", "label", CANCEL, "nobody labels")
    return airflow.ended("given_up")


def given_up_elsewhere(airflow: Audits) -> States:
    airflow.to_the_labels("elsewhere")
    command("audit", "cancel", "elsewhere", "--by", "eva", "--note", "not here")
    return airflow.ended("elsewhere")


def empty(airflow: Audits) -> States:
    airflow.runs["empty"] = airflow.client.trigger(DAG, {})
    return airflow.ended("empty")


STORIES = (whole, (stopped, signed), given_up, given_up_elsewhere, refused, empty)


def label_half(audit: str, settings: Settings | None = None) -> None:
    """Let people label half of what waits, one of them someone who may also sign."""
    label(audit, settings, people=["admin"], share=0)
    label(audit, settings, share=0.5)


@pytest.fixture(scope="module")
def airflow():
    with audits() as made:
        yield made


@pytest.fixture(scope="module")
def at_the_end_of(airflow):
    """Let all stories happen at once; return what waits for one and tells its tasks' states."""
    with ThreadPoolExecutor(max_workers=len(STORIES) + 1) as pool:
        happening = {}
        for story in STORIES:
            if isinstance(story, tuple):
                first, then = story
                happening[first] = pool.submit(first, airflow)
                happening[then] = pool.submit(_after, happening[first], then, airflow)
            else:
                happening[story] = pool.submit(story, airflow)
        yield lambda story: happening[story].result()


def _after(earlier: Any, story: Story, airflow: Audits) -> States:
    earlier.result()
    return story(airflow)


def test_an_auditor_with_a_browser(airflow, at_the_end_of, chromium):
    auditor = Auditor(airflow=airflow, browser=chromium)
    with auditor.logged_in() as page:
        auditor.fill_in_the_form(page, "seen")
        auditor.approve(page, "seen", "The hours are there.")
        auditor.watch_the_labels(page, "seen", "0 of 120 comments are decided")
        label("seen")
        airflow.answer("seen", "sign_off", "Sign", "they agree")
        assert set(airflow.ended("seen").values()) == {"success"}
        recall = _recall("seen")
        auditor.read_the_report(page, "seen", recall)
    assert steps_of("seen")[1] == ("approved", "admin", "The hours are there.")


def test_from_the_form_to_mlflow(airflow, at_the_end_of):
    assert set(at_the_end_of(whole).values()) == {"success"}
    assert steps_of("whole") == [
        ("planned", "admin", airflow.runs["whole"]),
        ("approved", "admin", "go on"),
        *(("drawn", "modwatch", ""), ("labelled", "modwatch", "")),
        *(("drawn", "modwatch", ""), ("labelled", "modwatch", "")),
        ("estimated", "modwatch", ""),
        ("signed_off", "admin", "they agree"),
        ("published", "modwatch", ""),
    ]
    with open_resources() as resources:
        assert resources.audit("whole").verify() == []
    run = tracked(airflow, "whole")
    metrics = {metric["key"]: metric["value"] for metric in run["data"]["metrics"]}
    recall = _recall("whole")
    ends = {"recall": "value", "recall_low": "low", "recall_high": "high"}
    assert {name: metrics[name] for name in ends} == {n: recall[end] for n, end in ends.items()}
    assert {files.REPORT, files.AUTOMATED_MEANS_FILE} <= set(run["artifacts"])


def test_two_audits_of_the_same_days_share_no_label(at_the_end_of):
    at_the_end_of(whole)
    at_the_end_of(stopped)
    spans = [(steps[0].at, steps[-1].at) for steps in map(chain, ("whole", "stopped"))]
    assert max(begin for begin, _ in spans) < min(end for _, end in spans)
    one, other = sealed_labels("whole"), sealed_labels("stopped")
    assert {(e.day, e.comment_id) for e in one} & {(e.day, e.comment_id) for e in other}
    assert not {e.decision for e in one} & {e.decision for e in other}
    assert (len(one), len(other)) == (decisions("whole"), decisions("stopped"))


def test_killed_tasks_are_made_good(airflow, at_the_end_of, tmp_path):
    at_the_end_of(whole)
    at_the_end_of(signed)
    for audit, task in (("whole", "draw"), ("stopped", "estimate"), ("stopped", "publish")):
        killed = airflow.instance(audit, task)
        assert (task, killed["state"], killed["try_number"]) == (task, "success", 2)
    other = elsewhere(airflow, tmp_path)
    undisturbed(other, "whole", label, **TWO_STAGES)
    assert_same_findings(found("whole"), found("whole", other))
    undisturbed(other, "stopped", label_half, stop=True)
    assert_same_findings(found("stopped"), found("stopped", other))


def test_an_audit_that_is_stopped_goes_on_with_what_there_is(airflow, at_the_end_of):
    assert set(at_the_end_of(signed).values()) == {"success"}
    step, who, why = steps_of("stopped")[3]
    assert (step, who) == ("labelled", "admin")
    assert why.startswith(stopping(HALF))
    assert why.endswith(" of 120 items are not decided)")
    with open_resources() as resources:
        assert resources.audit("stopped").verify() == []
        progress = audit_progress(resources.database, "stopped")
    assert (progress.items, progress.decided + progress.withdrawn) == (120, 120)
    assert 50 <= progress.decided <= 61  # one by someone, and half of what then waits
    report = (airflow.evidence("stopped") / files.REPORT).read_text()
    assert f"Note on the labelling: “{why}”." in report


def test_whoever_labelled_signs_nothing(airflow, at_the_end_of):
    states = at_the_end_of(stopped)
    assert (states["sign_off"], states["publish"]) == ("failed", "upstream_failed")
    at_the_end_of(signed)
    error = airflow.error("stopped", "sign_off")
    assert error == "AuditError: audit 'stopped': 'admin' labelled for it and cannot sign it off"
    assert steps_of("stopped")[5] == ("signed_off", "eva", "seen")


@pytest.mark.parametrize(
    ("story", "audit", "task", "last"),
    [
        (refused, "refused", "approve", ("admin", "nobody has the time")),
        (given_up, "given_up", "label", ("admin", "nobody labels")),
        (given_up_elsewhere, "elsewhere", "label", ("eva", "not here")),
    ],
    ids=["approve", "label", "command"],
)
def test_given_up(at_the_end_of, story, audit, task, last):
    states = at_the_end_of(story)
    done = {"plan", "approve", "draw"} if task == "label" else {"plan"}
    assert {name for name, state in states.items() if state == "success"} == done
    assert {state for name, state in states.items() if name not in done} == {"skipped"}
    assert steps_of(audit)[-1] == ("cancelled", *last)
    with open_resources() as resources:
        progress = audit_progress(resources.database, audit)
    assert (progress.items, progress.withdrawn) == ((120, 120) if task == "label" else (0, 0))


@pytest.mark.parametrize("wrong", [{"labels": 5}, {"level": 1.2}, {"audit": "Ü"}], ids=str)
def test_a_form_out_of_limits_is_refused(airflow, wrong):
    with pytest.raises(httpx.HTTPStatusError) as refusal:
        airflow.client.trigger(DAG, {**FORM, "audit": "wrong", **wrong})
    assert 400 <= refusal.value.response.status_code < 500
    runs = airflow.client.get(f"/dags/{DAG}/dagRuns", limit=100)["dag_runs"]
    assert not [run for run in runs if wrong.items() <= run["conf"].items()]


def test_an_empty_form_asks_for_the_month_before(airflow, at_the_end_of):
    states = at_the_end_of(empty)
    assert states.pop("plan") == "failed"
    assert set(states.values()) == {"upstream_failed"}
    assert airflow.instance("empty", "plan")["try_number"] == 1
    error = airflow.error("empty", "plan")
    asked = datetime.date.fromisoformat(airflow.runs["empty"].removeprefix("manual__")[:10])
    last = asked.replace(day=1) - datetime.timedelta(days=1)
    assert error == f"AuditError: there is no comment from {last.replace(day=1)} to {last}"
    assert messages(f"task/{DAG}/plan/{airflow.runs['empty']}") == 1


def test_no_comment_leaves_lake_and_queue(airflow, at_the_end_of):
    for story in (whole, signed, given_up, given_up_elsewhere, refused, empty):
        at_the_end_of(story)
    home = airflow.demo.settings.home
    folders = [
        home / "airflow",
        home / "logs",
        home / "mlflow-artifacts",
        home / "lake" / "_audits",
    ]
    assert all(any(folder.rglob("*")) for folder in folders)
    assert files_with(MARK, folders) == []
    assert files_with(MARK, [home / "lake" / "comments"]), "the search itself does not work"
    assert (tables_with("airflow", MARK), tables_with("mlflow", MARK)) == ([], [])
    assert tables_with("modwatch", MARK) == ["review_item"]


def _recall(audit: str) -> dict[str, Any]:
    return next(figure for figure in found(audit)["figures"] if figure["metric"] == "recall")
