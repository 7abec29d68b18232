"""One real daily job for the whole module: Airflow, MLflow, console, PostgreSQL, two days.

The first day loses a scoring task to SIGKILL; the second is so broken that it is rejected.
"""

import datetime
import json
import os
import signal
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from installation import TRAINING_SEED
from modwatch.installation.resources import open_resources
from modwatch.installation.stack.installation import narrator
from modwatch.models.recipe import offline_recipe
from modwatch.pipeline import model
from modwatch_lab.community import Community
from modwatch_lab.demo.airflow_runs import AirflowRuns, DayRun
from modwatch_lab.demo.datasets import DemoData
from modwatch_lab.demo.moderators import Shift, create_moderators
from modwatch_lab.demo.setup import Demo, started, write_model_data

#: Stands in every comment, so that one search tells whether a comment got where it must not.
MARK = "quillfeather"

COMMUNITY = Community(seed=11, comments_per_day=240, dirt_rate=0.02)
MONDAY, TUESDAY = (datetime.date(2026, 1, day) for day in (5, 6))
_TIMEOUT = 900


@dataclass(frozen=True, kw_only=True)
class DailyJob:
    """What the module's tests look at once the days have been made."""

    demo: Demo
    client: AirflowRuns
    scored: Sequence[DayRun]
    measured: Sequence[DayRun]
    decisions: int
    victim: "Victim"
    closing: ExitStack

    def tasks(self, dag_id: str, run: DayRun) -> list[dict[str, Any]]:
        """Return the task instances of a run, as the API tells them."""
        path = f"/dags/{dag_id}/dagRuns/{run.run_id}/taskInstances"
        return list(self.client.get(path, limit=1000)["task_instances"])


@dataclass(kw_only=True)
class Victim:
    """The mapped scoring task that is killed once, on Monday, while it runs."""

    #: Of its first try.
    pid: int | None = None
    map_index: int | None = None
    #: States of the other shards when it was killed.
    others: list[str] = field(default_factory=list)

    def strike(self, client: AirflowRuns, runs: Sequence[DayRun]) -> None:
        """Kill the last shard of Monday once it runs; a shard takes less than a second."""
        monday = [run for run in runs if run.day == MONDAY and run.state == "running"]
        if self.pid is not None or not monday:
            return
        path = f"/dags/score_comments/dagRuns/{monday[0].run_id}/taskInstances"
        deadline = time.monotonic() + _TIMEOUT
        while time.monotonic() < deadline:
            tasks = client.get(path, limit=1000)["task_instances"]
            shards = [t for t in tasks if t["task_id"] == "score_shard" and t["map_index"] >= 0]
            last = max(shards, key=lambda task: task["map_index"], default=None)
            if last and last["state"] == "running" and last["pid"]:
                os.kill(last["pid"], signal.SIGKILL)
                self.pid, self.map_index = last["pid"], last["map_index"]
                self.others = [task["state"] for task in shards if task is not last]
                return
            if last and last["state"] == "success":
                return  # too late
            time.sleep(0.02)


@contextmanager
def daily_job() -> Iterator[DailyJob]:
    """Yield the daily job, made; everything of it is stopped at the end."""
    # Not pytest's folder: each start of pytest closes it to other users, and PostgreSQL, started
    # by a root, runs as one.
    with ExitStack() as exits:
        folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        exits.callback(restore_environment, dict(os.environ))
        environment(folder)
        demo = exits.enter_context(started(_data(folder), narrator()))
        demo.stack.wait_ready()
        yield _made(demo, exits)


def restore_environment(before: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(before)


def environment(folder: Path) -> None:
    for name in [name for name in os.environ if name.startswith("MODWATCH_")]:
        del os.environ[name]
    os.environ["MODWATCH_HOME"] = str(folder)
    # Held open together, so that all are different.
    with ExitStack() as probes:
        for name in ("AIRFLOW", "MLFLOW", "CONSOLE"):
            probe = probes.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            os.environ[f"MODWATCH_{name}_URL"] = f"http://127.0.0.1:{probe.getsockname()[1]}"


def _data(folder: Path) -> DemoData:
    incoming = folder / "incoming"
    incoming.mkdir()
    for day in (MONDAY, TUESDAY):
        write_day(incoming / f"{day}.jsonl", day, mended=day == MONDAY)
    return DemoData(
        name="acceptance",
        title="two days of a small community in files",
        days=2,
        settings={
            "MODWATCH_SOURCE__KIND": "files",
            "MODWATCH_SOURCE__PATH": str(incoming / "{dt}.jsonl"),
            "MODWATCH_SOURCE__MADE_UP": "true",
            "MODWATCH_SHARD_TOKENS": "2300",
            "MODWATCH_SAMPLING_SALT": "a salt for tests",
        },
        training=lambda: COMMUNITY.training_comments(1_500),
        evaluation=lambda: COMMUNITY.training_comments(3_000).without(
            np.arange(3_000) < 2_000, "for_training"
        ),
        expected_prevalence=COMMUNITY.prevalence,
    )


def write_day(path: Path, day: datetime.date, *, mended: bool) -> None:
    """Write a day of the community; unless it is `mended`, no time can be read."""
    with path.open("w", encoding="utf-8") as file:
        for batch in COMMUNITY.read(day):
            for row in batch.to_pylist():
                row["created_at"] = row["created_at"].isoformat() if mended else "soon"
                row["text"] = row["text"] and f"{row['text']} {MARK}"
                kept = {k: v for k, v in row.items() if k not in ("dt", "row", "origin", "problem")}
                file.write(json.dumps(kept, ensure_ascii=False) + "\n")


def _backfill_next(client: AirflowRuns, day: datetime.date) -> None:
    """Create a second backfill once the scheduler has closed the first, half a minute at most."""
    deadline = time.monotonic() + _TIMEOUT
    while True:
        try:
            client.backfill("score_comments", day, day)
        except httpx.HTTPStatusError as error:
            if error.response.status_code != httpx.codes.CONFLICT or time.monotonic() > deadline:
                raise
            time.sleep(1)
        else:
            return


def _made(demo: Demo, exits: ExitStack) -> DailyJob:
    """Train, score two days, review, and measure.

    Tuesday is measured by schedule, when it has been refused, and then the day before it.
    """
    client, victim = AirflowRuns(demo.airflow), Victim()
    write_model_data(demo.data, demo.settings)
    exits.callback(client.close)
    with open_resources() as resources:
        recipe = offline_recipe(expected_prevalence=demo.data.expected_prevalence)
        trained = model.train(resources, demo.data.training(), recipe=recipe, seed=TRAINING_SEED)
        model.set_alias(resources, trained, "champion")
        shift = Shift(resources, create_moderators(resources.database))
        client.wait_for_dags({"score_comments", "monitor_collaboration"})
        client.unpause("score_comments")

        def tick(runs: Sequence[DayRun]) -> None:
            demo.stack.check()
            victim.strike(client, runs)

        client.backfill("score_comments", MONDAY, MONDAY)
        client.wait("score_comments", 1, timeout=_TIMEOUT, tick=tick)
        # Before Tuesday begins: Airflow forgets what a paused DAG would follow.
        client.unpause("monitor_collaboration")
        _backfill_next(client, TUESDAY)
        scored = client.wait("score_comments", 2, timeout=_TIMEOUT, tick=tick)
        shift.work()
    client.trigger("monitor_collaboration", {}, day=MONDAY)  # after Tuesday, which was refused
    measured = client.wait("monitor_collaboration", 2, timeout=_TIMEOUT)
    return DailyJob(
        demo=demo,
        client=client,
        scored=scored,
        measured=measured,
        decisions=shift.decisions,
        victim=victim,
        closing=exits,
    )
