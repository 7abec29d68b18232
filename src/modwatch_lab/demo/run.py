"""Runs the demo: start the services, backfill, review, measure, audit, summarise."""

import datetime
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from modwatch.common import days
from modwatch.common.errors import SourceError, StackError
from modwatch.common.installed import MEASURING, SCORING
from modwatch.installation.resources import open_resources
from modwatch.installation.stack.installation import narrator
from modwatch.installation.stack.progress import Wait, time_left
from modwatch.installation.stack.supervisor import interruptible
from modwatch.monitoring.publishing.view import days_address
from modwatch.review.quality_control.gold import add_gold
from modwatch_lab.demo.airflow_runs import AirflowRuns, DayRun
from modwatch_lab.demo.datasets import AUDIT, demo_data
from modwatch_lab.demo.moderators import (
    Shift,
    create_auditors,
    create_moderators,
    label_audit,
    visitor_token,
)
from modwatch_lab.demo.setup import Demo, MemoryGauge, start_model_server, started, write_model_data
from modwatch_lab.demo.summary import summarise

#: What the preparation of training and the summary usually take on two cores, in seconds.
_USUAL_PREPARATION, _USUAL_SUMMARY = 15, 10
_DAY_SECONDS = 120
_TRAINING_SECONDS = 600
#: With a recipe, such as that of a pre-trained encoder.
_TUNING_SECONDS = 7_200
_LEFT_FOR_THE_VISITOR = 5
_AUDIT_DAG = "audit_recall"
_MODEL_DAG = "train_model"
_OPINIONS_DAG = "monitor_disagreement"
#: Of the last task of the weekly report.
_REPORT_SECONDS = 180
#: What is usually left of it when the audit has ended.
_USUAL_REPORT = 5
#: Seconds of a day until it was measured, on two cores.
_USUAL_DAY = {SCORING: 15.0, MEASURING: 10.0}
#: Labels of the audit, without confirmations.
AUDIT_LABELS = 600
#: Timeout of a step of the audit, and what the whole audit usually takes on two cores, in seconds.
_AUDIT_STEP_SECONDS, _USUAL_AUDIT = 180, 40


def run_demo(
    name: str,
    *,
    once: bool,
    recipe: Path | None = None,
    error_rates: tuple[float, float] | None = None,
    scorer: str = "local",
    drift: bool = False,
) -> int:
    """Run the demo `name`; return 0 when every run succeeded, 1 otherwise.

    With `once` all services are stopped at the end; otherwise they run until Ctrl-C. The model is
    the offline one, or that of `recipe`, a TOML file. `error_rates` are the
    false-positive and false-negative rate of all simulated moderators. Comments are scored in the
    tasks (`scorer` is "local") or by a model server ("serve"). With `drift` the synthetic community
    changes in the second week.

    Raises:
        SourceError: there is no such data, or it allows no error rates or no drift.
    """
    say, succeeded = narrator(), False
    data = demo_data(name, drift=drift)
    if error_rates is not None and data.ratings() is not None:
        raise SourceError(
            f"--error-rates: the moderators of --data {name} give real ratings; omit the option"
        )
    try:
        served = scorer == "serve"
        with interruptible(), started(data, say, served=served) as demo:
            with MemoryGauge(demo.stack, home=demo.settings.home) as gauge:
                train_champion(demo, recipe)
                demo.stack.wait_ready()
                if served:
                    start_model_server(demo)
                left = 0 if once else _LEFT_FOR_THE_VISITOR
                succeeded = _make_days(demo, leave=left, error_rates=error_rates)
                say(f"writing the summary; {time_left(_USUAL_SUMMARY)}")
                print(f"\n{summarise(data, demo.settings)}\n", flush=True)
            say(f"done; peak memory of all processes: {gauge.peak_bytes / 2**30:.2f} GiB")
            if not once:
                _stay_up(demo)
    except KeyboardInterrupt:
        say("interrupted")
        succeeded = succeeded and not once
    say("all services are stopped")
    return 0 if succeeded else 1


def train_champion(demo: Demo, recipe: Path | None = None) -> None:
    """Train the champion in a separate process, and print its progress.

    The data is written to files, too, for `train_model`.
    """
    demo.say(f"preparing the training data; {time_left(_USUAL_PREPARATION)}")
    write_model_data(demo.data, demo.settings)
    command = [sys.executable, "-m", "modwatch", "train", "--data", demo.data.name]
    if recipe is not None:
        command += ["--recipe", str(recipe)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        for line in process.stdout or ():
            demo.say(line.rstrip())
        if process.wait(timeout=_TUNING_SECONDS if recipe else _TRAINING_SECONDS):
            raise StackError("training failed; see the message above")
    finally:
        process.kill()


def _make_days(demo: Demo, *, leave: int, error_rates: tuple[float, float] | None) -> bool:
    """Score, review, measure and audit all days; return whether all runs succeeded.

    The simulated moderators `leave` some comments of the last day for the visitor.
    """
    with closing(AirflowRuns(demo.airflow)) as client:
        client.wait_for_dags({SCORING, MEASURING, _AUDIT_DAG, _MODEL_DAG, _OPINIONS_DAG})
        for dag in (SCORING, _MODEL_DAG, _OPINIONS_DAG):
            client.unpause(dag)
        with open_resources() as resources:
            gold = demo.data.gold()
            add_gold(resources.database, gold)
            ratings = demo.data.ratings()
            people = create_moderators(resources.database, ratings, error_rates)
            shift = Shift(resources, people, gold, ratings)
            scored = _scored(demo, client, shift)
            shift.work(leave=leave)
        demo.say(
            f"simulated moderators made {shift.decisions:,} decisions in the console's API, "
            f"{shift.adjudicated} of them adjudications by a lead"
        )
        measured = _measured(demo, client)
        # The labels are of today, whatever days the comments are of.
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        reported = client.trigger(_OPINIONS_DAG, {"last": today})
        audited = _audited(demo, client)
        demo.say(f"{_AUDIT_DAG}: {audited}")
        succeeded = _all_succeeded(demo, client, {SCORING: scored, MEASURING: measured})
        report = _reported(demo, client, reported)
        return succeeded and audited == report == "success"


def _reported(demo: Demo, client: AirflowRuns, run: str) -> str:
    """Return the state of the weekly report once it has ended."""
    wait = Wait(demo.say, usual=_USUAL_REPORT)
    state = client.wait_for_task(
        _OPINIONS_DAG,
        run,
        "publish_opinions",
        {"success", "failed", "upstream_failed"},
        timeout=_REPORT_SECONDS,
        tick=lambda _: wait.show(lambda: f"waiting for {_OPINIONS_DAG}"),
    )
    demo.say(f"{_OPINIONS_DAG}: {state}")
    return state


def _scored(demo: Demo, client: AirflowRuns, shift: Shift) -> list[DayRun]:
    """Score every day of the demo; meanwhile `shift` works the queue."""
    data, dag = demo.data, SCORING
    demo.say(f"Airflow backfills {dag}, {data.first_day} to {data.last_day}")
    client.backfill(dag, data.first_day, data.last_day)

    def review(run: DayRun) -> None:
        if run.day != data.last_day:
            shift.work()

    return _wait(demo, client, dag, review)


def _measured(demo: Demo, client: AirflowRuns) -> list[DayRun]:
    """Measure every day of the demo.

    The DAG is paused while days are scored: by schedule it would measure each before its review,
    which here takes seconds, and again with the next one.
    """
    data, dag = demo.data, MEASURING
    demo.say(f"Airflow runs {dag}, {data.first_day} to {data.last_day}")
    client.unpause(dag)
    for day in days.between(data.first_day, data.last_day):
        client.trigger(dag, {}, day=day)
    return _wait(demo, client, dag)


def _wait(
    demo: Demo,
    client: AirflowRuns,
    dag: str,
    ended: Callable[[DayRun], None] = lambda _: None,
) -> list[DayRun]:
    """Return the runs of all days once they have ended; call `ended` with each."""
    reported = set[str]()
    progress = DayProgress(demo.say, dag, demo.data.day_list())

    def tick(runs: Sequence[DayRun]) -> None:
        demo.stack.check()
        for run in runs:
            if run.state in ("success", "failed") and run.run_id not in reported:
                reported.add(run.run_id)
                progress.end_day()
                demo.say(f"{dag} {run.day}: {run.state}")
                ended(run)
        progress.show(lambda: client.running_tasks(dag, runs))

    return client.wait(dag, demo.data.days, timeout=_DAY_SECONDS * demo.data.days, tick=tick)


class DayProgress:
    """Reports every ten seconds which day runs, and the time left for all days, run in order.

    >>> seconds = iter([0.0, 11.0, 18.0, 22.0])
    >>> days = [datetime.date(2026, 1, day) for day in (5, 6, 7)]
    >>> progress = DayProgress(print, "score_comments", days, clock=lambda: next(seconds))
    >>> progress.show(lambda: ["route"])
    score_comments 2026-01-05: route is running, 0 of 3 days are done; about 34 s left
    >>> progress.end_day()
    >>> progress.show(lambda: [])
    score_comments 2026-01-06: no task is running, 1 of 3 days are done; about 32 s left
    """

    def __init__(
        self,
        say: Callable[[str], None],
        dag: str,
        days: Sequence[datetime.date],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._dag, self._days, self._done = dag, days, 0
        self._wait = Wait(say, usual=len(days) * _USUAL_DAY[dag], clock=clock)

    def end_day(self) -> None:
        """Note that a day has ended; the next ones will take as long, on average."""
        self._done += 1
        self._wait.expect(self._wait.elapsed() / self._done * len(self._days))

    def show(self, running: Callable[[], Sequence[str]]) -> None:
        """Say a line if one is due; `running` returns the tasks that run, and is called for it."""
        if self._done < len(self._days):
            self._wait.show(lambda: self._doing(running()))

    def _doing(self, running: Sequence[str]) -> str:
        done = f"{self._done} of {len(self._days)} days are done"
        return f"{self._dag} {self._days[self._done]}: {_are_running(running)}, {done}"


def _audited(demo: Demo, client: AirflowRuns) -> str:
    """Audit all days of the demo; return the state of the run, `success` or `failed`."""
    data = demo.data
    form = {
        "audit": AUDIT,
        "first": data.first_day.isoformat(),
        "last": data.last_day.isoformat(),
        "labels": AUDIT_LABELS,
        "service": f"Modwatch demo ({data.name})",
        "four_eyes": False,  # the demo has one user of Airflow
    }
    demo.say(f"Airflow runs {_AUDIT_DAG} on {data.first_day} to {data.last_day}")
    client.unpause(_AUDIT_DAG)
    run = client.trigger(_AUDIT_DAG, form)
    wait = Wait(demo.say, usual=_USUAL_AUDIT)

    def tick(states: Mapping[str, str]) -> None:
        wait.show(lambda: f"{_AUDIT_DAG}: {_current(states)}")

    limits: dict[str, Any] = {"timeout": _AUDIT_STEP_SECONDS, "tick": tick}
    note = "Enough labelling hours are available."
    client.answer(_AUDIT_DAG, run, "approve", "Approve", note, **limits)
    client.wait_for_task(_AUDIT_DAG, run, "label", {"deferred"}, **limits)
    with open_resources() as resources:
        auditors = create_auditors(resources.database, resources.lanes, data.ratings())
        decisions = label_audit(resources, auditors)
    demo.say(f"simulated auditors labelled {decisions:,} comments")
    client.answer(_AUDIT_DAG, run, "sign_off", "Sign", "The labels agree.", **limits)
    return client.wait_for_task(_AUDIT_DAG, run, "track", {"success", "failed"}, **limits)


def _current(states: Mapping[str, str]) -> str:
    """Return which tasks of a run are running, from the state of each task instance.

    >>> _current({"plan[-1]": "success", "approve[-1]": "running"})
    'approve is running'
    """
    return _are_running(
        name.partition("[")[0] for name, state in states.items() if state == "running"
    )


def _are_running(tasks: Iterable[str]) -> str:
    names = sorted(tasks)
    return f"{', '.join(names) or 'no task'} {'are' if len(names) > 1 else 'is'} running"


def _all_succeeded(demo: Demo, client: AirflowRuns, runs: Mapping[str, Sequence[DayRun]]) -> bool:
    """Return whether all runs succeeded; print the failed tasks."""
    failed = [(dag, run) for dag, all_runs in runs.items() for run in all_runs
              if run.state != "success"]  # fmt: skip
    for dag, run in failed:
        states = client.task_states(dag, run.run_id)
        bad = [task for task, state in states.items() if state == "failed"]
        demo.say(f"{dag} {run.day} failed in {', '.join(bad) or 'no task'}")
    return not failed


def _stay_up(demo: Demo) -> None:
    """Keep all services running until Ctrl-C."""
    with open_resources() as resources:
        token = visitor_token(resources.database)
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
