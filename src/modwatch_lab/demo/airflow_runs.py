"""The runs of the demo's DAGs, by Airflow's REST API: triggered, answered and waited for."""

import datetime
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import psutil

from modwatch.common.errors import StackError
from modwatch.installation.stack.airflow import AirflowClient

#: Seconds that the scheduler needs to notice the end of a process.
_SETTLE = 3
#: Seconds between two polls, at least and at most: ten times what the server takes for one, so
#: that polls do not add to the load of a busy server.
_SHORTEST_PAUSE, _LONGEST_PAUSE, _PAUSE_FACTOR = 1.0, 5.0, 10
#: Most responses to one question.
_RESPONSES = 5

Tick = Callable[[Mapping[str, str]], None]


@dataclass(frozen=True, kw_only=True)
class DayRun:
    """One run of a DAG."""

    day: datetime.date
    run_id: str
    state: str


class AirflowRuns(AirflowClient):
    """A client that makes runs, answers their questions, and waits for them."""

    def backfill(self, dag_id: str, first: datetime.date, last: datetime.date) -> None:
        """Create a backfill with one run per day, `first` … `last`, one after the other."""
        answer = self.http.post(
            "/api/v2/backfills",
            json={
                "dag_id": dag_id,
                "from_date": f"{first}T00:00:00Z",
                "to_date": f"{last}T23:59:59Z",
                "max_active_runs": 1,
                "run_backwards": False,
                "reprocess_behavior": "completed",
                "dag_run_conf": {},
            },
        )
        answer.raise_for_status()

    def trigger(
        self, dag_id: str, form: Mapping[str, Any], *, day: datetime.date | None = None
    ) -> str:
        """Trigger a run of `dag_id` with the parameters `form`; return its id.

        `day` is the partition of a DAG that is partitioned by day.
        """
        path = f"/api/v2/dags/{dag_id}/dagRuns"
        run: dict[str, Any] = {"logical_date": None, "conf": dict(form)}
        if day is not None:
            run["partition_key"] = day.isoformat()
            run["dag_run_id"] = f"manual__{day}_{datetime.datetime.now(datetime.UTC):%H%M%S%f}"
        answer = self.http.post(path, json=run)
        answer.raise_for_status()
        return str(answer.json()["dag_run_id"])

    def answer(
        self,
        dag_id: str,
        run_id: str,
        task: str,
        option: str,
        note: str = "",
        *,
        timeout: float,
        tick: Tick = lambda _: None,
    ) -> None:
        """Respond to the required action of a task once it is asked, until the task has ended.

        Airflow considers a task lost, and asks again, when the response arrives before it has
        noticed the end of the process that asked.

        Raises:
            StackError: the task was not asked or did not end in time, or asks again and again.
        """
        asked, ended = {"awaiting_input", "deferred"}, {"success", "skipped", "failed"}
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task}/-1/hitlDetails"
        response = {"chosen_options": [option], "params_input": {"note": note}}
        for _ in range(_RESPONSES):
            states = {*asked, *ended}
            found = self.wait_for_task(dag_id, run_id, task, states, timeout=timeout, tick=tick)
            if found in ended:
                return
            self.settle(dag_id, run_id, task, timeout=timeout)
            answer = self.http.patch(path, json=response)
            if answer.status_code != httpx.codes.CONFLICT:  # it has the response already
                answer.raise_for_status()
        raise StackError(f"{dag_id}.{task} asked again after {_RESPONSES} responses")

    def settle(self, dag_id: str, run_id: str, task: str, *, timeout: float) -> None:
        """Wait until the process of a task is gone, and Airflow has noticed it."""
        deadline = time.monotonic() + timeout
        pid = self.get(f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task}")["pid"]
        while pid and psutil.pid_exists(pid) and time.monotonic() < deadline:
            time.sleep(0.2)
        time.sleep(_SETTLE)

    def wait_for_task(
        self,
        dag_id: str,
        run_id: str,
        task: str,
        states: Collection[str],
        *,
        timeout: float,
        tick: Tick = lambda _: None,
    ) -> str:
        """Return the state of a task once it is one of `states`.

        `tick` is called at each poll, with the state of each task instance of the run.

        Raises:
            StackError: a task failed, or the state was not reached in time.
        """
        deadline = time.monotonic() + timeout
        while True:
            asked = time.monotonic()
            by_task = self.task_states(dag_id, run_id)
            took = time.monotonic() - asked
            state = by_task.get(f"{task}[-1]", "none")
            if state in states:
                return state
            tick(by_task)
            failed = sorted(name for name, state in by_task.items() if state == "failed")
            if failed or time.monotonic() > deadline:
                raise StackError(
                    f"{dag_id}.{task} is {state}, not {' or '.join(sorted(states))}; "
                    f"failed: {', '.join(failed) or 'none'}"
                )
            _pause(took)

    def runs(self, dag_id: str) -> list[DayRun]:
        """Return the runs of `dag_id`, oldest day first."""
        answer = self.get(f"/dags/{dag_id}/dagRuns", limit=100)
        runs = [
            DayRun(
                day=datetime.date.fromisoformat(
                    run["partition_key"] or run["data_interval_start"][:10]
                ),
                run_id=run["dag_run_id"],
                state=run["state"],
            )
            for run in answer["dag_runs"]
        ]
        return sorted(runs, key=lambda run: run.day)

    def task_states(self, dag_id: str, run_id: str) -> Mapping[str, str]:
        """Return the state of each task instance of a run, by task id and map index."""
        return {
            f"{task['task_id']}[{task['map_index']}]": task["state"] or "none"
            for task in self.tasks(dag_id, run_id)
        }

    def running_tasks(self, dag_id: str, runs: Sequence[DayRun]) -> list[str]:
        """Return the tasks that run now in those of `runs` that have not ended, by name."""
        return sorted(
            {
                task["task_id"]
                for run in runs
                if run.state == "running"
                for task in self.tasks(dag_id, run.run_id)
                if task["state"] == "running"
            }
        )

    def tasks(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """Return the task instances of a run, as in the API."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances"
        return list(self.get(path, limit=1000)["task_instances"])

    def wait(
        self,
        dag_id: str,
        days: int,
        *,
        timeout: float,
        tick: Callable[[list[DayRun]], None] = lambda _: None,
    ) -> list[DayRun]:
        """Return the runs when `days` of them are finished; call `tick` at each poll.

        Raises:
            StackError: they were not finished in time.
        """
        deadline = time.monotonic() + timeout
        while True:
            asked = time.monotonic()
            runs = self.runs(dag_id)
            took = time.monotonic() - asked
            tick(runs)
            ended = Counter(run.state for run in runs if run.state in ("success", "failed"))
            if ended.total() >= days:
                return runs
            if time.monotonic() > deadline:
                raise StackError(f"{dag_id}: {ended.total()} of {days} runs ended in {timeout} s")
            _pause(took)


def _pause(took: float) -> None:
    """Wait until the next poll; the server took these seconds for the last one."""
    time.sleep(min(max(_SHORTEST_PAUSE, _PAUSE_FACTOR * took), _LONGEST_PAUSE))
