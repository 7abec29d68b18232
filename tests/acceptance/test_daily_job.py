"""Two days and an audit under real Airflow: a killed task, a rejected day, a repair, no leaks."""

import datetime
import json
import re
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.parse import quote, unquote

import httpx
import psutil
import pytest
from daily_job import COMMUNITY, MARK, MONDAY, TUESDAY, DailyJob, write_day
from estimates import read_estimates
from mlflow import MlflowClient
from sqlalchemy import text

from acceptance.audit_people import found, label
from acceptance.audit_runs import DAG as AUDIT
from acceptance.audit_runs import Audits, steps_of, tracked
from acceptance.daily_data import put_comparison, queued, undisturbed_days
from acceptance.daily_pages import choose, day_run, leave
from installation import TO_THE_QUEUE, files_with, queue_rows, table_rows, tables_with
from modwatch.audits import files
from modwatch.common.addresses import day_url
from modwatch.common.errors import StackError
from modwatch.installation.resources import open_resources
from modwatch.installation.stack.commands import daily_job
from modwatch.monitoring.incidents.actions import history, open_incidents
from modwatch.monitoring.measurements import tables
from modwatch.monitoring.publishing.days import read_days
from modwatch.monitoring.publishing.runs import GROUP_EXPERIMENT
from modwatch.review.database import connect
from modwatch.review.log.labels import current_labels
from modwatch.review.log.verification import verify_log
from modwatch_lab.demo.moderators import DEMO_MODERATORS, create_lead, create_moderators

pytestmark = pytest.mark.acceptance

ASKED, DONE, _TRAINED = {"awaiting_input", "failed", "upstream_failed"}, {"success", "failed"}, 600
OPINIONS = (
    *("collect_annotations", "publish_opinions", "measure_blindness"),
    *("raise_alerts", "deliver_alerts"),
)
#: The tables that nobody's labels enter.
UP_TO_THE_QUEUE = (
    *("landed", "comments", "quarantine", "staged_scores", "scores", "routing_design", "routed"),
)


def test_a_day_succeeds_and_the_next_is_refused(job):
    assert [run.state for run in job.scored] == ["success", "failed"]
    assert [(run.day, run.state) for run in job.measured] == [
        (day, "success") for day in (MONDAY, TUESDAY)
    ]
    with open_resources() as resources:
        count = partial(resources.lake.count, day=MONDAY)
        good = count("comments")
        assert count("landed") == good + count("quarantine")
        assert count("scores") == good
        assert count("routed") == count("labels") == good // 10
        copied = [count(table) for table in ("labels", "confirmations")]
        # What a lead says of a confirmation that was escalated confirms nothing.
        settled = "SELECT count(*) FROM decision WHERE kind <> 'review' AND action = 'adjudicate'"
        with resources.database.connect() as connection:
            assert job.decisions == sum(copied) + connection.scalar(text(settled))
        assert all(copied)
        assert verify_log(resources.database).problems == ()


def test_when_the_next_day_runs_is_told(job):
    told = daily_job(job.demo.settings)
    assert re.search(r"score_comments +(next run on \d{4}-\d\d-\d\d 00:00 UTC|no run is)", told)
    assert "unpause" not in told
    assert job.client.next_run("enforce_retention") == "paused"
    stopped = job.demo.settings.model_copy(update={"airflow_url": "http://127.0.0.1:9"})
    assert "Airflow does not answer (ConnectError)" in daily_job(stopped)


def test_one_comment_from_source_to_metric(job):
    with open_resources() as resources:
        lake = resources.lake
        routed = lake.table("routed", MONDAY).to_pandas().sort_values("rank").iloc[0]
        comment_id = routed["comment_id"]

        def row(table: str) -> dict[str, object]:
            rows = lake.table(table, MONDAY).to_pylist()
            return next(row for row in rows if row["comment_id"] == comment_id)

        landed, comment, score = row("landed"), row("comments"), row("scores")
        file, line = str(landed["origin"]).rsplit(":", 1)
        written = json.loads(Path(file).read_text().splitlines()[int(line) - 1])
        assert written["comment_id"] == comment_id
        assert written["text"] == landed["text"] == comment["text"]
        assert datetime.datetime.fromisoformat(written["created_at"]) == comment["created_at"]

        staged = row("staged_scores")
        assert {name: staged[name] for name in score} == score
        assert score["model_version"] == resources.registry.champion_version()
        assert routed["inclusion_probability"] == 1
        wrong = 1 - score["prob"] if score["flagged"] else score["prob"]
        assert routed["review_score"] == pytest.approx(wrong, abs=1e-6)

        with resources.database.connect() as connection:
            item = connection.execute(
                text("SELECT * FROM review_item WHERE comment_id = :id AND kind = 'review'"),
                {"id": comment_id},
            ).mappings().one()  # fmt: skip
        assert (item["dt"], item["status"], item["text"]) == (MONDAY, "decided", comment["text"])
        assert item["prob"] == pytest.approx(score["prob"])

        decided = [r for b in current_labels(resources.database, MONDAY) for r in b.to_pylist()]
        label = row("labels")
        assert label in decided
        names = [*(name for name, _, _ in DEMO_MODERATORS), "sim-lead"]
        people = [*create_moderators(resources.database), create_lead(resources.database)]
        labeller = dict(zip(names, people, strict=True))[label["moderator"]]
        assert label["label"] == labeller.label(comment_id, comment["label"])

        measured = read_estimates(lake, MONDAY)
        assert set(measured["digest"]) == {tables.labels_digest(lake, MONDAY)}
        together = measured[
            (measured["metric"] == "oc_accuracy")
            & (measured["strategy"] == resources.settings.strategy)
            & (measured["alpha"] == resources.settings.review_fraction)
        ].iloc[0]
        assert together["status"] == "ok"
        run = day_run(resources.settings.mlflow_url, MONDAY)
        key = "single_day/oc_accuracy"
        assert run["data"]["metrics"][key] == pytest.approx(float(together["value"]))
        routed_count = lake.count("routed", MONDAY)
        assert run["data"]["tags"]["labels"] == f"{routed_count:,} of {routed_count:,}"


def test_a_killed_scoring_task_is_made_good(job, tmp_path):
    shards = {
        task["map_index"]: task
        for task in job.tasks("score_comments", job.scored[0])
        if task["task_id"] == "score_shard"
    }
    assert len(shards) >= 4
    victim = shards.pop(job.victim.map_index)
    assert "success" in job.victim.others, "no other shard had been scored when it was killed"
    assert (victim["state"], victim["try_number"]) == ("success", 2)
    assert victim["pid"] != job.victim.pid
    assert all(task["try_number"] == 1 for task in shards.values()), "others were scored again"

    undisturbed = undisturbed_days(job, tmp_path)
    undisturbed.run(*TO_THE_QUEUE, day=MONDAY)
    with open_resources() as resources, open_resources(undisturbed.settings) as other:
        for table in UP_TO_THE_QUEUE:
            mine = table_rows(resources.lake, table, (MONDAY, MONDAY))
            assert mine, table
            assert mine == table_rows(other.lake, table, (MONDAY, MONDAY)), table
        same = queued(queue_rows(resources.database)) == queued(queue_rows(other.database))
        assert same  # rows hold people's words, and are not printed


def test_a_rejected_day_fails_at_once_and_leaves_no_trace(job):
    tasks = {task["task_id"]: task for task in job.tasks("score_comments", job.scored[1])}
    assert tasks["ingest"]["state"] == "success"
    assert tasks["check_comments"]["state"] == "failed"
    assert tasks["check_comments"]["try_number"] == 1, "trying again cannot mend a broken day"
    for task in ("plan_shards", "score_shard", "check_scores", "route", "score_challenger"):
        assert tasks[task]["state"] == "upstream_failed"
    with open_resources() as resources:
        kept = {table for table in UP_TO_THE_QUEUE if resources.lake.count(table, TUESDAY)}
        assert kept == {"landed"}
        assert resources.checks.load("comments", TUESDAY).rejected
        with resources.database.connect() as connection:
            query = text("SELECT count(*) FROM review_item WHERE dt = :day")
            assert connection.scalar(query, {"day": TUESDAY}) == 0
    log = "".join(path.read_text() for path in _logs(job, TUESDAY, "check_comments"))
    assert "Validation of the comments of 2026-01-06 failed" in log
    assert "Open the validation page of the day" in log


def _logs(job: DailyJob, day: datetime.date, task: str) -> list[Path]:
    run = next(run for run in job.scored if run.day == day)
    return sorted(job.demo.airflow.folder.glob(f"logs/*/run_id={run.run_id}/task_id={task}/*"))


def test_a_day_is_measured_as_soon_as_it_has_ended(job):
    """Also one that was refused: by the asset, whose partition is the day."""
    runs = job.client.get("/dags/monitor_collaboration/dagRuns", limit=100)["dag_runs"]
    by_day = {run["partition_key"]: run for run in runs}
    assert by_day[str(TUESDAY)]["run_type"] == "asset_triggered"
    assert by_day[str(MONDAY)]["run_type"] == "manual"
    assert by_day[str(TUESDAY)]["partition_date"].startswith(str(TUESDAY))
    scored = job.client.get("/dags/score_comments/dagRuns", limit=100)["dag_runs"]
    ended = {run["data_interval_start"][:10]: run["end_date"] for run in scored}
    began = datetime.datetime.fromisoformat(by_day[str(TUESDAY)]["start_date"])
    waited = began - datetime.datetime.fromisoformat(ended[str(TUESDAY)])
    assert abs(waited) < datetime.timedelta(seconds=60)
    for run in job.scored:
        states = job.client.task_states("score_comments", run.run_id)
        assert states["hand_over[-1]"] == "success", run.day
    assert by_day[str(MONDAY)]["dag_run_id"].startswith(f"manual__{MONDAY}_")


@pytest.mark.soak  # tests/pipeline/airflow has the message
def test_a_run_without_a_day_says_what_to_enter(job):
    run = job.client.trigger("monitor_collaboration", {})
    with pytest.raises(StackError, match=r"failed: .*(collect_labels|verify_log)"):
        job.client.wait_for_task(
            "monitor_collaboration", run, "publish", {"success"}, timeout=_TRAINED
        )
    folder = job.demo.airflow.folder / "logs" / "dag_id=monitor_collaboration" / f"run_id={run}"
    log = "".join(path.read_text() for path in folder.glob("task_id=*/*"))
    assert "trigger it with a day, YYYY-MM-DD, as its partition key" in log


def test_console_and_mlflow_stand_in_airflows_navigation(job):
    settings = job.demo.settings
    plugins = {plugin["name"]: plugin for plugin in job.client.get("/plugins")["plugins"]}
    views = plugins["modwatch"]["external_views"]
    links = [view["href"] for view in views if view["destination"] == "nav"]
    paths = ("/modwatch-ops/", "/modwatch/", "/modwatch-ops/mlflow")
    assert links == [f"{settings.airflow_url}{path}" for path in paths]
    # The console asks people who they are itself; the page is for those whom Airflow knows.
    for link, status in zip(links, (401, 200, 401), strict=True):
        page = httpx.get(link, trust_env=False, follow_redirects=True, timeout=60)
        assert page.status_code == status


@pytest.mark.soak  # the page Modwatch is opened by the same menu
@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_the_navigation_opens_the_console_and_mlflow(job, admin, by):
    settings = job.demo.settings
    addresses = {"Review": f"{settings.airflow_url}/modwatch/", "MLflow": settings.mlflow_url}
    page = admin.new_page()
    page.goto(settings.airflow_url)
    for place, (name, address) in enumerate(addresses.items(), start=1):  # after Modwatch
        with admin.expect_page() as opened:
            choose(page, name, place, by)
        assert opened.value.url.startswith(address)


def test_the_page_in_airflow_is_there_at_once(job, admin):
    """Nobody asked for it before, and nobody waits for imports: it was read in the background."""
    page = admin.new_page()
    page.goto(job.demo.settings.airflow_url)
    with admin.expect_page() as opened:
        choose(page, "Modwatch", 0, "mouse")
    shown = opened.value
    heading = shown.get_by_role("heading", level=1).inner_text()
    assert re.search(r"^\d+ critical incidents? (is|are) open, since 2026-01-0\d$", heading)
    assert shown.title() == f"Modwatch: {heading}"
    assert f"The newest day is {TUESDAY}: rejected" in shown.inner_text("body")
    took = shown.evaluate("performance.getEntriesByType('navigation')[0].responseEnd")
    assert took < 3_000, "milliseconds, on a machine that is busy with the job"
    shown.get_by_role("link", name="Airflow", exact=True).last.click()
    shown.wait_for_url("**/dags/score_comments/runs/**")
    leave(page, shown)


@pytest.mark.soak  # the link of a refused day is asked for without a browser
@pytest.mark.parametrize(
    ("dag", "task", "button", "leads_to"),
    [
        ("score_comments", "check_comments", "Validation page", "/days/2026-01-05/validation"),
        ("score_comments", "check_scores", "Validation page", "/days/2026-01-05/validation"),
        ("score_comments", "route", "Review queue", "{console}"),
        ("monitor_collaboration", "publish", "Review queue", "{console}"),
        ("monitor_collaboration", "publish", "MLflow run", "{mlflow}/#/experiments/"),
    ],
)
def test_the_button_of_a_task_opens_the_page_of_its_day(job, admin, dag, task, button, leads_to):
    settings = job.demo.settings
    runs = job.scored if dag == "score_comments" else job.measured
    run = next(run.run_id for run in runs if run.day == MONDAY)
    address = leads_to.format(console=settings.console_url, mlflow=settings.mlflow_url)
    page = admin.new_page()
    page.goto(f"{settings.airflow_url}/dags/{dag}/runs/{quote(run)}/tasks/{task}/details")
    link = page.get_by_role("link", name=button)
    link.wait_for()
    # Another server opens in a new tab, which Chromium may not close; follow it in this one.
    assert (link.get_attribute("target") == "_blank") == (button == "Review queue")
    link.evaluate("link => link.removeAttribute('target')")
    link.click()
    page.wait_for_url(lambda url: address in url)


def test_a_refused_day_links_the_validation_page_that_says_why(job):
    run = next(run.run_id for run in job.scored if run.day == TUESDAY)
    path = f"/dags/score_comments/dagRuns/{run}/taskInstances/check_comments/links"
    [address] = job.client.get(path)["extra_links"].values()
    assert address == day_url(job.demo.settings.airflow_url, TUESDAY, "validation")


@pytest.mark.soak  # tests/monitoring/publishing has the note
def test_the_run_of_a_day_in_mlflow_links_its_run_in_airflow(job, admin):
    settings = job.demo.settings
    note = str(day_run(settings.mlflow_url, MONDAY)["data"]["tags"]["mlflow.note.content"])
    address = day_url(settings.airflow_url, MONDAY, "airflow")
    assert f"[Airflow run](<{address}>)" in note
    run = next(run.run_id for run in job.scored if run.day == MONDAY)
    page = admin.new_page()
    page.goto(address)
    assert unquote(page.url) == f"{settings.airflow_url}/dags/score_comments/runs/{run}"


def test_nothing_listens_beyond_this_machine(job):
    listening = set()
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            for connection in process.net_connections("inet"):
                if connection.status == psutil.CONN_LISTEN:
                    listening.add((connection.laddr.ip, connection.laddr.port))
    assert len(listening) >= 3
    assert {host for host, _ in listening} == {"127.0.0.1"}, listening


def test_through_airflow_the_console_asks_for_its_own_log_in(job):
    console = f"{job.demo.settings.airflow_url}/modwatch"
    with httpx.Client(trust_env=False, timeout=60) as anybody:
        assert anybody.get(f"{console}/livez").status_code == 200
        paths = anybody.get(f"{console}/api/v1/openapi.json").json()["paths"]
        for path in (path for path, methods in paths.items() if "get" in methods):
            answer = anybody.get(console + path.replace("{", "").replace("}", ""))
            assert answer.status_code in ({200} if path in ("/livez", "/readyz") else {401}), path
        page = anybody.get(f"{console}/lead", headers={"accept": "text/html"})
        assert page.status_code == 303
        assert page.headers["location"].startswith(("login", "./login", "/modwatch/login"))


@pytest.mark.soak  # `tests/pipeline/airflow/test_models.py` has each task
def test_a_model_is_trained_compared_and_given_an_alias_by_a_person(job):
    client, dag = job.client, "train_model"
    client.wait_for_dags({dag})
    client.unpause(dag)
    known = COMMUNITY.training_comments(9_000)
    more = job.demo.settings.home / "more.jsonl"
    with more.open("w", encoding="utf-8") as file:
        for words, label in zip(known.texts[3_000:], known.labels[3_000:], strict=True):
            file.write(json.dumps({"text": words, "label": int(label)}) + "\n")
        # Once: what many comments have in common is in the vocabulary of the tokenizer.
        file.write(json.dumps({"text": f"{known.texts[0]} {MARK}", "label": 1}) + "\n")
    recipe = f"expected_prevalence = {COMMUNITY.prevalence}"
    form = {"data": [str(more)], "recipe": recipe}
    run = client.trigger(dag, form)
    state = client.wait_for_task(dag, run, "approve", ASKED, timeout=_TRAINED)
    assert state == "awaiting_input", client.task_states(dag, run)
    [question] = client.get(f"/dags/{dag}/dagRuns/{run}/hitlDetails")["hitl_details"]
    assert question["subject"] == "Promote version 2 of toxicity"
    assert "| Average precision " in question["body"]
    assert MARK not in question["body"]
    option = "Score in shadow as challenger"
    client.answer(dag, run, "approve", option, "two weeks of it", timeout=_TRAINED)
    assert client.task_states(dag, run)["approve[-1]"] == "success"
    with open_resources() as resources:
        registry = resources.registry
        assert (registry.champion_version(), registry.challenger_version()) == ("1", "2")
        tags = registry.version_tags("2")
    assert tags["modwatch.evaluation"] == "passed"
    assert tags["modwatch.decision"] == "challenger"
    assert tags["modwatch.decided_by"] == "admin"
    assert tags["modwatch.note"] == "two weeks of it"

    # Labels the other way round: the version is worse, and nobody is asked.
    # Of MODWATCH_TRAINING_DATA.
    run = client.trigger(dag, {"value": ["0.0=toxic", "1.0=other"]})
    assert client.wait_for_task(dag, run, "check", DONE, timeout=_TRAINED) == "failed"
    with open_resources() as resources:
        registry = resources.registry
        assert (registry.champion_version(), registry.challenger_version()) == ("1", "2")
        assert registry.version_tags("3")["modwatch.evaluation"] == "failed"
    deadline = time.monotonic() + _TRAINED
    while client.get(f"/dags/{dag}/dagRuns/{run}")["state"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.5)
    assert client.task_states(dag, run)["approve[-1]"] == "upstream_failed"


@pytest.mark.soak  # `tests/pipeline/airflow/test_opinions.py` has the tasks
def test_opinions_are_reported_from_the_queue_and_from_a_file(job):
    client, dag = job.client, "monitor_disagreement"
    client.wait_for_dags({dag})
    client.unpause(dag)
    file = job.demo.settings.home / "opinions.csv"
    rows = (
        f"{item},{person},{int((item * person) % 5 < 2)},{(item % 10) / 10}\n"
        for item in range(60)
        for person in range(8)
    )
    file.write_text("item,annotator,label,prob\n" + "".join(rows))
    today = datetime.datetime.now(datetime.UTC).date()
    put_comparison(today)
    forms = ({"file": str(file)}, {"last": today.isoformat()})
    for form, alerts in zip(forms, (0, 1), strict=True):
        run = client.trigger(dag, form)
        client.wait_for_task(dag, run, "deliver_alerts", DONE, timeout=_TRAINED)
        assert client.task_states(dag, run) == {f"{task}[-1]": "success" for task in OPINIONS}
        path = f"/dags/{dag}/dagRuns/{run}/taskInstances/raise_alerts/xcomEntries/return_value"
        assert int(client.get(path)["value"]) == alerts, form
    with open_resources() as resources, resources.database.connect() as connection:
        payloads = connection.execute(text("SELECT payload FROM outbox_message")).scalars()
        alerts = [payload["facts"] for payload in payloads if "facts" in payload]
    of_groups = [(alert["rule"], alert["subject"]) for alert in alerts if "subject" in alert]
    assert ("annotator_agreement_low", "moderators south") in of_groups
    mlflow = MlflowClient(job.demo.settings.mlflow_url)
    experiment = mlflow.get_experiment_by_name(GROUP_EXPERIMENT).experiment_id
    reports = mlflow.search_runs([experiment], "tags.kind = 'report'")
    made = {run.info.run_name: run for run in reports}
    assert made["annotations opinions"].data.metrics["disagreement/annotations"] == 480


def test_an_audit_from_the_form_to_mlflow(job):
    airflow = Audits(demo=job.demo, client=job.client)
    job.client.wait_for_dags({AUDIT})
    job.client.unpause(AUDIT)
    airflow.to_the_labels("monday", last=MONDAY.isoformat(), labels=60)
    label("monday")
    airflow.answer("monday", "sign_off", "Sign", "they agree")
    assert set(airflow.ended("monday").values()) == {"success"}
    assert steps_of("monday") == [
        ("planned", "admin", airflow.runs["monday"]),
        ("approved", "admin", "go on"),
        *(("drawn", "modwatch", ""), ("labelled", "modwatch", "")),
        ("estimated", "modwatch", ""),
        ("signed_off", "admin", "they agree"),
        ("published", "modwatch", ""),
    ]
    with open_resources() as resources:
        assert resources.audit("monday").verify() == []
    run = tracked(airflow, "monday")
    metrics = {metric["key"]: metric["value"] for metric in run["data"]["metrics"]}
    figures = {f["metric"]: f["value"] for f in found("monday")["figures"] if f["status"] == "ok"}
    assert {name: metrics[name] for name in figures} == figures
    assert metrics["comments"] > 0  # whichever figures have enough positives
    assert {files.REPORT, files.AUTOMATED_MEANS_FILE} <= set(run["artifacts"])


def source_of(job: DailyJob, day: datetime.date) -> Path:
    return Path(job.demo.data.settings["MODWATCH_SOURCE__PATH"].format(dt=day))


def paused(job: DailyJob, dag: str, *, state: bool) -> None:
    job.client.http.patch(f"/api/v2/dags/{dag}", json={"is_paused": state}).raise_for_status()


def ended(job: DailyJob, day: datetime.date, *, measured: int) -> None:
    """Wait until a day is scored and was measured so many times."""
    deadline = time.monotonic() + _TRAINED
    while True:
        found = job.client.get("/dags/monitor_collaboration/dagRuns", limit=100)["dag_runs"]
        runs = [run["state"] for run in found if run["partition_key"] == str(day)]
        (scored,) = [run for run in job.client.runs("score_comments") if run.day == day]
        if scored.state == "success" and runs.count("success") == measured:
            return
        assert time.monotonic() < deadline, (scored, runs)
        time.sleep(0.5)


def test_a_refused_day_is_repaired_with_one_button(job, admin):
    """As its message says: correct the cause, then press Repair on the page Modwatch."""
    write_day(source_of(job, TUESDAY), TUESDAY, mended=True)
    page = admin.new_page()
    page.goto(f"{job.demo.settings.airflow_url}/modwatch-ops/")
    week = page.locator("table", has=page.get_by_role("columnheader", name="run again"))
    row = week.get_by_role("row").filter(has_text=str(TUESDAY))
    assert "volume" in row.inner_text() or "rows" in row.inner_text(), "the cause is there"
    paused(job, "score_comments", state=True)
    for said in (f"{TUESDAY} is run again from its source on as soon as", "queued already"):
        row.get_by_role("button", name="Repair").click()
        assert said in page.inner_text("body")
        page.goto(f"{job.demo.settings.airflow_url}/modwatch-ops/")
    leave(page)
    paused(job, "score_comments", state=False)
    ended(job, TUESDAY, measured=2)
    with open_resources() as resources:
        assert resources.lake.count("comments", TUESDAY)
        newest = read_days(resources.lake)[-1]
        assert newest.day == TUESDAY
        assert newest.is_measured
        names = [incident.name for incident in open_incidents(resources.database)]
        assert [name for name in names if f"score_comments/check_comments/{TUESDAY}" in name] == []
        done = history(resources.database, newest=1_000).entries
        repaired = [entry for entry in done if "check_comments/2026-01-06" in entry.incident]
        assert [entry.what for entry in repaired] == ["failed", "repair", "recovered"]


@pytest.mark.soak  # another day is repaired with the button
def test_a_day_without_comments_is_declared_by_a_command(job):
    source_of(job, MONDAY).unlink()
    command = [sys.executable, "-m", "modwatch", "repair", str(MONDAY), "--empty", "--by", "ann"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert said == (
        f"{MONDAY} is run again from its source on. It counts as a day without comments.\n"
    )
    ended(job, MONDAY, measured=2)
    with open_resources() as resources:
        assert resources.lake.count("landed", MONDAY) == 0
        (day,) = [day for day in read_days(resources.lake) if day.day == MONDAY]
        assert day.checks == "no comments"


def test_xcom_carries_counts_and_shards_only(job):
    engine = connect(job.demo.airflow.database_url.replace("+psycopg2", "+psycopg"))
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT dag_id, task_id, key, value FROM xcom")).all()
    engine.dispose()
    returned = [(dag, task, value) for dag, task, key, value in rows if key == "return_value"]
    addresses = {(task, key): value for _, task, key, value in rows if key.startswith("link_")}
    assert len(returned) + sum(key.startswith("link_") for _, _, key, _ in rows) == len(rows)
    assert len(returned) > 20
    assert {key for _, key in addresses} == {
        *("link_validation_page", "link_mlflow_run", "link_review_queue")
    }
    settings = job.demo.settings
    page = rf"{settings.airflow_url}/modwatch-ops/(days/2026-01-0\d/(validation|mlflow))?"
    for _, _, key, value in rows:
        if key.startswith("link_"):
            assert value == settings.console_url or re.fullmatch(page, value), key
    for dag, task, value in returned:
        if dag == "train_model":
            assert value in ("2", "3", "passed", "failed", "challenger")
        elif task == "plan_shards":
            names = {"model_version", "shard", "first", "end"}
            assert all(shard.keys() == names for shard in value)
        elif dag == AUDIT:
            assert MARK not in json.dumps(value)
        elif task == "hand_over":
            datetime.date.fromisoformat(value)
        else:
            assert type(value) is int


def test_no_comment_leaves_lake_and_queue(job):
    """No log, page, verdict or artifact holds any; no row of Airflow's or MLflow's database."""
    home = job.demo.settings.home
    names = ("airflow", "logs", "mlflow-artifacts", "models", "lake/_audits")
    folders = [home / name for name in names]
    folders.append(Path(job.demo.settings.checks_root))
    assert all(any(folder.rglob("*")) for folder in folders)
    assert files_with(MARK, folders) == []
    assert files_with(MARK, [home / "postgres" / "cluster"]), "the search itself does not work"
    assert [f for f in files_with(MARK, [home / "postgres"]) if f.name.startswith("log")] == []
    for name in ("airflow", "mlflow"):
        assert tables_with(name, MARK) == []
    assert tables_with("modwatch", MARK) == ["review_item"]


def test_mlflow_is_one_process(job):
    commands = [_command(process) for process in job.demo.stack.processes()]
    found = [command for command in commands if "mlflow" in command and "postgres" not in command]
    assert len(found) == 1


def test_no_process_is_left_behind(job):
    """The last test: it ends the job."""
    home = str(job.demo.settings.home)
    assert len(job.demo.stack.processes()) >= 5
    job.closing.close()
    assert job.demo.stack.processes() == []
    assert [p.pid for p in psutil.process_iter() if home in _command(p)] == []


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
