"""Runs the demo: start the services, backfill, review, measure, audit, summarise."""

import datetime
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from modwatch.common import days
from modwatch.common.errors import SourceError, StackError
from modwatch.demo.audit import AUDIT, make_audit
from modwatch.demo.audit import DAG as AUDIT_DAG
from modwatch.demo.datasets import demo_data
from modwatch.demo.moderators import Shift, create_moderators, visitor_token
from modwatch.demo.progress import DayProgress
from modwatch.demo.setup import Demo, start_model_server, started, write_model_data
from modwatch.demo.summary import summarise
from modwatch.installation.resources import open_resources
from modwatch.installation.stack.airflow_client import AirflowClient, DayRun
from modwatch.installation.stack.installation import Narrator
from modwatch.installation.stack.memory import MemoryGauge
from modwatch.installation.stack.progress import Wait, time_left
from modwatch.installation.stack.supervisor import interruptible
from modwatch.monitoring.publishing.view import days_address
from modwatch.review.quality_control.gold import add_gold

#: What the preparation of training and the summary usually take on two cores, in seconds.
_USUAL_PREPARATION, _USUAL_SUMMARY = 15, 10
_DAY_SECONDS = 120
_TRAINING_SECONDS = 600
#: With a pre-trained encoder.
_TUNING_SECONDS = 7_200
_LEFT_FOR_THE_VISITOR = 5
_DAGS = ("score_comments", "monitor_collaboration")
_MODEL_DAG = "train_model"
_OPINIONS_DAG = "monitor_disagreement"
#: Of the last task of the weekly report.
_REPORT_SECONDS = 180
#: What is usually left of it when the audit has ended.
_USUAL_REPORT = 5


def run_demo(
    name: str,
    *,
    once: bool,
    encoder: str | None = None,
    error_rates: tuple[float, float] | None = None,
    scorer: str = "local",
    drift: bool = False,
) -> int:
    """Run the demo `name`; return 0 when every run succeeded, 1 otherwise.

    With `once` all services are stopped at the end; otherwise they run until Ctrl-C. The model is
    the offline one, or `encoder` (a folder or a name on the hub) fine-tuned. `error_rates` are the
    false-positive and false-negative rate of all simulated moderators. Comments are scored in the
    tasks (`scorer` is "local") or by a model server ("serve"). With `drift` the synthetic community
    changes in the second week.

    Raises:
        SourceError: there is no such data, or it allows no error rates or no drift.
    """
    narrator, succeeded = Narrator(), False
    data = demo_data(name, drift=drift)
    if error_rates is not None and data.ratings() is not None:
        raise SourceError(
            f"--error-rates: the moderators of --data {name} give real ratings; omit the option"
        )
    try:
        served = scorer == "serve"
        with interruptible(), started(data, narrator, served=served) as demo:
            with MemoryGauge(demo.stack, pid_file=demo.postgres_pid_file) as gauge:
                train_champion(demo, encoder)
                demo.stack.wait_ready()
                if served:
                    start_model_server(demo)
                left = 0 if once else _LEFT_FOR_THE_VISITOR
                succeeded = _make_days(demo, leave=left, error_rates=error_rates)
                narrator.say(f"writing the summary; {time_left(_USUAL_SUMMARY)}")
                print(f"\n{summarise(data, demo.settings)}\n", flush=True)
            narrator.say(f"done; peak memory of all processes: {gauge.peak_bytes / 2**30:.2f} GiB")
            if not once:
                _stay_up(demo)
    except KeyboardInterrupt:
        narrator.say("interrupted")
        succeeded = succeeded and not once
    narrator.say("all services are stopped")
    return 0 if succeeded else 1


def training_arguments(data: str, encoder: str | None) -> list[str]:
    """Return the arguments of the command that trains the champion.

    >>> training_arguments("wikipedia_talk", "models/small")
    ['train', '--data', 'wikipedia_talk', '--encoder', 'models/small']
    """
    return ["train", "--data", data, *(("--encoder", encoder) if encoder else ())]


def train_champion(demo: Demo, encoder: str | None = None) -> None:
    """Train the champion in a separate process, and print its progress.

    The data is written to files, too, for `train_model`.
    """
    demo.narrator.say(f"preparing the training data; {time_left(_USUAL_PREPARATION)}")
    write_model_data(demo.data, demo.settings)
    command = [sys.executable, "-m", "modwatch", *training_arguments(demo.data.name, encoder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        for line in process.stdout or ():
            demo.narrator.say(line.rstrip())
        if process.wait(timeout=_TUNING_SECONDS if encoder else _TRAINING_SECONDS):
            raise StackError("training failed; see the message above")
    finally:
        process.kill()


def _make_days(demo: Demo, *, leave: int, error_rates: tuple[float, float] | None) -> bool:
    """Score, review, measure and audit all days; return whether all runs succeeded.

    The simulated moderators `leave` some comments of the last day for the visitor.
    """
    client = AirflowClient(demo.airflow)
    try:
        client.wait_for_dags({*_DAGS, AUDIT_DAG, _MODEL_DAG, _OPINIONS_DAG})
        for dag in ("score_comments", _MODEL_DAG, _OPINIONS_DAG):
            client.unpause(dag)
        with open_resources() as at:
            gold = demo.data.gold()
            add_gold(at.database, gold)
            ratings = demo.data.ratings()
            people = create_moderators(at.database, ratings, error_rates)
            shift = Shift(at, people, gold, ratings)
            scored = _scored(demo, client, shift)
            shift.work(leave=leave)
        demo.narrator.say(
            f"simulated moderators made {shift.decisions:,} decisions in the console's API, "
            f"{shift.adjudicated} of them adjudications by a lead"
        )
        measured = _measured(demo, client)
        # The labels are of today, whatever days the comments are of.
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        reported = client.trigger(_OPINIONS_DAG, {"last": today})
        audited = make_audit(demo, client)
        demo.narrator.say(f"{AUDIT_DAG}: {audited}")
        succeeded = _all_succeeded(
            demo, client, {"score_comments": scored, "monitor_collaboration": measured}
        )
        report = _reported(demo, client, reported)
        return succeeded and audited == report == "success"
    finally:
        client.close()


def _reported(demo: Demo, client: AirflowClient, run: str) -> str:
    """Return the state of the weekly report once it has ended."""
    wait = Wait(demo.narrator.say, usual=_USUAL_REPORT)
    state = client.wait_for_task(
        _OPINIONS_DAG,
        run,
        "publish_opinions",
        {"success", "failed", "upstream_failed"},
        timeout=_REPORT_SECONDS,
        tick=lambda _: wait.show(lambda: f"waiting for {_OPINIONS_DAG}"),
    )
    demo.narrator.say(f"{_OPINIONS_DAG}: {state}")
    return state


def _scored(demo: Demo, client: AirflowClient, shift: Shift) -> list[DayRun]:
    """Score every day of the demo; meanwhile `shift` works the queue."""
    data, dag = demo.data, "score_comments"
    demo.narrator.say(f"Airflow backfills {dag}, {data.first_day} to {data.last_day}")
    client.backfill(dag, data.first_day, data.last_day)

    def review(run: DayRun) -> None:
        if run.day != data.last_day:
            shift.work()

    return _wait(demo, client, dag, review)


def _measured(demo: Demo, client: AirflowClient) -> list[DayRun]:
    """Measure every day of the demo.

    The DAG is paused while days are scored: by schedule it would measure each before its review,
    which here takes seconds, and again with the next one.
    """
    data, dag = demo.data, "monitor_collaboration"
    demo.narrator.say(f"Airflow runs {dag}, {data.first_day} to {data.last_day}")
    client.unpause(dag)
    for day in days.between(data.first_day, data.last_day):
        client.trigger(dag, {}, day=day)
    return _wait(demo, client, dag)


def _wait(
    demo: Demo,
    client: AirflowClient,
    dag: str,
    ended: Callable[[DayRun], None] = lambda _: None,
) -> list[DayRun]:
    """Return the runs of all days once they have ended; call `ended` with each."""
    reported = set[str]()
    progress = DayProgress(demo.narrator.say, dag, demo.data.day_list())

    def tick(runs: Sequence[DayRun]) -> None:
        demo.stack.check()
        for run in runs:
            if run.state in ("success", "failed") and run.run_id not in reported:
                reported.add(run.run_id)
                progress.end_day()
                demo.narrator.say(f"{dag} {run.day}: {run.state}")
                ended(run)
        progress.show(lambda: client.running_tasks(dag, runs))

    return client.wait(dag, demo.data.days, timeout=_DAY_SECONDS * demo.data.days, tick=tick)


def _all_succeeded(demo: Demo, client: AirflowClient, runs: Mapping[str, Sequence[DayRun]]) -> bool:
    """Return whether all runs succeeded; print the failed tasks."""
    failed = [(dag, run) for dag, all_runs in runs.items() for run in all_runs
              if run.state != "success"]  # fmt: skip
    for dag, run in failed:
        states = client.task_states(dag, run.run_id)
        bad = [task for task, state in states.items() if state == "failed"]
        demo.narrator.say(f"{dag} {run.day} failed in {', '.join(bad) or 'no task'}")
    return not failed


def _stay_up(demo: Demo) -> None:
    """Keep all services running until Ctrl-C."""
    with open_resources() as at:
        token = visitor_token(at.database)
    settings = demo.settings
    print(
        f"  Airflow      {settings.airflow_url}   user admin, password {demo.airflow.password}\n"
        f"  MLflow       {days_address(settings.mlflow_url)}\n"
        f"  console      {settings.console_url}   token {token}\n"
        f"  validation   {settings.checks_root}/index.html\n"
        f"  audit        {settings.lake_root}/_audits/{AUDIT}/report.html\n"
        f"  logs         {demo.stack.logs}\n\n"
        "Press Ctrl-C to stop everything.",
        flush=True,
    )
    while True:
        demo.stack.check()
        time.sleep(1)
