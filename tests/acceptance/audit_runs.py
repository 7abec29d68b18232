"""Airflow with a lake of two scored days, in which audits run, and the people around them."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
from daily_job import MARK, environment, restore_environment
from lake_days import put_comments, put_scores

from installation import MONDAY, TUESDAY
from modwatch.audits.evidence import Event
from modwatch.data.sources.labelled import LabelledTexts
from modwatch.installation.resources import open_resources
from modwatch.installation.stack.installation import narrator
from modwatch_lab.demo.airflow_runs import AirflowRuns
from modwatch_lab.demo.datasets import DemoData
from modwatch_lab.demo.setup import Demo, started
from traps import sitecustomize as traps

DAG = "audit_recall"
SIZE = 400
FORM = {
    "first": MONDAY.isoformat(),
    "last": TUESDAY.isoformat(),
    "labels": 120,
    "confirmed_share": 0.1,
    "four_eyes": False,  # there is one user of Airflow
    "service": "Example Forum",
}
PATIENCE = 600


@dataclass(frozen=True, kw_only=True)
class Audits:
    """Airflow, and what someone who audits does with it."""

    demo: Demo
    client: AirflowRuns
    runs: dict[str, str] = field(default_factory=dict)

    def trigger(self, audit: str, **changes: Any) -> None:
        """Fill in the form."""
        self.runs[audit] = self.client.trigger(DAG, {**FORM, "audit": audit, **changes})

    def until(self, audit: str, task: str, *states: str) -> str:
        """Wait until a task of an audit is in one of these states."""
        return self.client.wait_for_task(DAG, self.runs[audit], task, set(states), timeout=PATIENCE)

    def answer(self, audit: str, task: str, option: str, note: str = "") -> None:
        """Answer once the question is asked, and until it is heard.

        The wait for labels asks one, too.
        """
        self.client.answer(DAG, self.runs[audit], task, option, note, timeout=PATIENCE)

    def settle(self, audit: str, task: str) -> None:
        """Wait until the process that asked is gone, and Airflow has seen it."""
        self.client.settle(DAG, self.runs[audit], task, timeout=PATIENCE)

    def to_the_labels(self, audit: str, **changes: Any) -> None:
        """Go on until labels are waited for."""
        self.trigger(audit, **changes)
        self.answer(audit, "approve", "Approve", "go on")
        self.until(audit, "label", "deferred")

    def states(self, audit: str) -> dict[str, str]:
        """Return the states of all tasks."""
        response = self.client.task_states(DAG, self.runs[audit])
        return {name.removesuffix("[-1]"): state for name, state in response.items()}

    def ended(self, audit: str) -> dict[str, str]:
        """Wait for the end of a run; return the states of all tasks."""
        path = f"/dags/{DAG}/dagRuns/{self.runs[audit]}"
        eventually(lambda: self.client.get(path)["state"] in ("success", "failed"))
        return self.states(audit)

    def instance(self, audit: str, task: str) -> dict[str, Any]:
        """Return what Airflow says of a task."""
        path = f"/dags/{DAG}/dagRuns/{self.runs[audit]}/taskInstances/{task}"
        return self.client.get(path)

    def trap(self, audit: str, file: str) -> Path:
        """Let the process of a task die where it would have written a file; return the trap.

        The trap is gone once someone died in it.
        """
        made = traps.trap(self.evidence(audit) / file)
        made.touch()
        return made

    def clear(self, audit: str, task: str) -> None:
        """Let a task run again, and all after it, as the button of Airflow's page does."""
        url, user = self.demo.airflow.url, {"username": "admin"}
        with httpx.Client(base_url=url, trust_env=False, timeout=30) as http:
            known = http.post("/auth/token", json={**user, "password": self.demo.airflow.password})
            wanted = {"dry_run": False, "only_failed": False, "include_downstream": True}
            http.post(
                f"/api/v2/dags/{DAG}/clearTaskInstances",
                json={**wanted, "dag_run_id": self.runs[audit], "task_ids": [task]},
                headers={"Authorization": f"Bearer {known.json()['access_token']}"},
            ).raise_for_status()

    def log(self, audit: str, task: str) -> list[dict[str, Any]]:
        """Return the log of a task's first attempt."""
        path = f"/dags/{DAG}/dagRuns/{self.runs[audit]}/taskInstances/{task}/logs/1"
        return list(self.client.get(path)["content"])

    def error(self, audit: str, task: str) -> str:
        """Return the last error in the log of a task's first attempt: its name and its words."""
        message = [
            f"{error['exc_type']}: {error['exc_value']}"
            for line in self.log(audit, task)
            for error in line.get("error_detail") or []
        ]
        return message[-1] if message else ""

    def evidence(self, audit: str) -> Path:
        """Return the folder of an audit's evidence."""
        return self.demo.settings.home / "lake" / "_audits" / audit

    def kill_triggerer(self) -> None:
        """Kill the process that waits for all audits; the stack starts another."""
        victims = [item for item in self.demo.stack.processes() if "triggerer" in item.cmdline()]
        assert victims
        for process in victims:
            process.send_signal(signal.SIGKILL)
        psutil.wait_procs(victims, timeout=PATIENCE)


def chain(audit: str) -> list[Event]:
    """Return the steps of an audit's evidence."""
    with open_resources() as resources:
        return resources.audit_store.chain(audit)


def steps_of(audit: str) -> list[tuple[str, str, str]]:
    """Return what was done, who did it, and their notes."""
    return [(event.action, event.actor, event.note) for event in chain(audit)]


def tracked(airflow: Audits, audit: str) -> dict[str, Any]:
    """Return an audit's only run in MLflow, and the names of its artifacts."""
    url = f"{airflow.demo.settings.mlflow_url}/api/2.0/mlflow"
    with httpx.Client(base_url=url, trust_env=False) as client:
        name = {"experiment_name": "modwatch-audits"}
        experiment = client.get("/experiments/get-by-name", params=name).json()["experiment"]
        wanted = {
            "experiment_ids": [experiment["experiment_id"]],
            "filter": f"tags.audit = '{audit}'",
        }
        [run] = client.post("/runs/search", json=wanted).json()["runs"]
        listed = client.get("/artifacts/list", params={"run_id": run["info"]["run_id"]}).json()
    return {**run, "artifacts": [Path(file["path"]).name for file in listed["files"]]}


def command(*arguments: str) -> None:
    """Run a command of Modwatch as someone at a terminal does."""
    line = [sys.executable, "-m", "modwatch", *arguments]
    subprocess.run(line, check=True, capture_output=True, timeout=PATIENCE)


def eventually(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(2)


@contextmanager
def audits() -> Iterator[Audits]:
    """Yield an Airflow in which nothing has run; everything of it is stopped at the end."""
    with ExitStack() as exits:
        folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        exits.callback(restore_environment, dict(os.environ))
        environment(folder)
        os.environ["TRAPS"] = exits.enter_context(tempfile.TemporaryDirectory())
        os.environ["PYTHONPATH"] = str(Path(traps.__file__).parent)
        # A triggerer that died is missed sooner.
        os.environ["AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD"] = "10"
        demo = exits.enter_context(started(_data(), narrator()))
        demo.stack.wait_ready()
        with open_resources() as resources:
            for day in (MONDAY, TUESDAY):
                words = {"text": f"an invented text {MARK}", "language": ["de", "en"] * (SIZE // 2)}
                put_comments(resources.lake, day, SIZE, **words)
                put_scores(resources.lake, day, np.arange(SIZE, dtype=np.float32) / SIZE + 0.001)
        client = AirflowRuns(demo.airflow)
        exits.callback(client.close)
        client.wait_for_dags({DAG})
        client.unpause(DAG)
        yield Audits(demo=demo, client=client)


def _data() -> DemoData:
    return DemoData(
        name="audits",
        title="two scored days",
        days=2,
        settings={},
        training=_nothing,
        expected_prevalence=0.1,
    )


def _nothing() -> LabelledTexts:
    raise AssertionError("nothing is trained")
