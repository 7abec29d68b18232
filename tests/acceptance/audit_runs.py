"""Airflow with a lake of two scored days, in which audits run."""

import datetime
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from daily_job import environment, restore_environment
from installation import MONDAY, TUESDAY
from lake_days import put_comments, put_scores
from modwatch.audit.evidence import Event
from modwatch.demo.airflow import AirflowClient
from modwatch.demo.datasets import DemoData
from modwatch.demo.setup import Demo, Narrator, started
from modwatch.errors import StackError
from modwatch.stops import auditing
from modwatch.wiring import open_wiring
from stops.small_audits import label_everything

DAG = "audit_recall"
SIZE = 400
FORM = {
    "first": MONDAY.isoformat(),
    "last": TUESDAY.isoformat(),
    "labels": 120,
    "several_labels_share": 0.1,
    "seed": "s",
    "service": "Example Forum",
}
PATIENCE = 120


@dataclass(frozen=True, kw_only=True)
class Audits:
    """Airflow, and what somebody who audits does with it."""

    demo: Demo
    client: AirflowClient
    runs: dict[str, str] = field(default_factory=dict)

    def trigger(self, audit: str, **changes: Any) -> None:
        """Fill in the form."""
        self.runs[audit] = self.client.trigger(DAG, {**FORM, "audit": audit, **changes})

    def until(self, audit: str, task: str, *states: str) -> str:
        """Wait until a task of an audit is in one of these states."""
        return self.client.wait_for_task(DAG, self.runs[audit], task, set(states), timeout=PATIENCE)

    def answer(self, audit: str, task: str, option: str, note: str = "") -> None:
        """Answer once the question is asked; the wait for labels asks one, too."""
        self.until(audit, task, "awaiting_input", "deferred")
        self.client.answer(DAG, self.runs[audit], task, option, note)

    def to_the_labels(self, audit: str, **changes: Any) -> None:
        """Go on until labels are waited for."""
        self.trigger(audit, **changes)
        self.answer(audit, "approve", "Approve", "go on")
        self.until(audit, "label", "deferred")

    def states(self, audit: str) -> dict[str, str]:
        """Return the states of all tasks."""
        told = self.client.task_states(DAG, self.runs[audit])
        return {name.removesuffix("[-1]"): state for name, state in told.items()}

    def instance(self, audit: str, task: str) -> dict[str, Any]:
        """Return what Airflow says of a task."""
        path = f"/dags/{DAG}/dagRuns/{self.runs[audit]}/taskInstances/{task}"
        return self.client.get(path)

    def kill(self, audit: str, task: str) -> None:
        """Kill the process of a task as soon as there is one."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            found = self.instance(audit, task)
            if found["state"] == "running" and found["pid"]:
                os.kill(found["pid"], signal.SIGKILL)
                return
            time.sleep(0.05)
        raise StackError(f"{task} of {audit} never ran")

    def log(self, audit: str, task: str, attempt: int = 1) -> str:
        """Return the log of a task, the triggerer's lines included."""
        path = f"/dags/{DAG}/dagRuns/{self.runs[audit]}/taskInstances/{task}/logs/{attempt}"
        return str(self.client.get(path))


def chain(audit: str) -> list[Event]:
    """Return the evidence's steps."""
    with open_wiring() as at:
        return auditing.store(at).chain(audit)


def label() -> None:
    """Let people label all that waits."""
    with open_wiring() as at:
        label_everything(at)


def eventually(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.2)


@contextmanager
def audits() -> Iterator[Audits]:
    """Yield an Airflow in which nothing has run; everything of it is stopped at the end."""
    with ExitStack() as exits:
        folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        exits.callback(restore_environment, dict(os.environ))
        environment(folder)
        demo = exits.enter_context(started(_data(), Narrator()))
        with open_wiring() as at:
            for day in (MONDAY, TUESDAY):
                put_comments(at.lake, day, SIZE, language=["de", "en"] * (SIZE // 2))
                put_scores(at.lake, day, np.arange(SIZE, dtype=np.float32) / SIZE + 0.001)
        client = AirflowClient(demo.airflow)
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


def _nothing() -> Any:
    raise AssertionError(f"nothing is trained on {datetime.date.today()}")  # noqa: DTZ011
