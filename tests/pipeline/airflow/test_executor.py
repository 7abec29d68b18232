"""What the scheduler loads for its tasks, and that a process forked afterwards can use it."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass

import pytest

from modwatch.settings import load_settings

#: Loads what tasks need without a local model, then with one. A forked child then works
#: with all that was loaded before: PyTorch and BLAS with threads, Great
#: Expectations, Delta tables. A lock that some thread held while it was forked would block it.
FORKED = """
import os, sys, threading
import logging
logging.disable(logging.INFO)
from modwatch.pipeline.airflow.executor import preload
from modwatch.settings import load_settings

os.environ["MODWATCH_SCORER"] = "http://127.0.0.1:8095"
preload(load_settings())
assert "modwatch.models.scoring.remote" in sys.modules
assert "torch" not in sys.modules
del os.environ["MODWATCH_SCORER"]

preload(load_settings())
for name in ("great_expectations", "matplotlib", "mlflow", "torch", "transformers"):
    assert name in sys.modules, name
import torch
assert not torch.cuda.is_initialized()
assert threading.enumerate() == [threading.main_thread()]

pid = os.fork()
if pid == 0:
    import datetime
    import numpy as np
    import pandas as pd
    import pyarrow as pa
    from modwatch.data.lake.delta import Lake
    from modwatch.data.validation.expectations import failing_rows
    from modwatch.data.validation.rules import Rule

    torch.set_num_threads(2)
    square = torch.ones(600, 600)
    assert float((square @ square)[0, 0]) == 600
    assert np.linalg.inv(np.eye(600)).trace() == 600
    lake, day = Lake(root=sys.argv[1]), datetime.date(2026, 1, 5)
    lake.replace("profiles", day, [])
    words = {"allowed": "false", "expectation": "no flag", "remedy": "none"}
    kwargs = {"column": "flag", "value_set": [False]}
    kind = "expect_column_values_to_be_in_set"
    rule = Rule(
        name="flag", type=kind, kwargs=kwargs, severity="critical", batch="rows", **words
    )
    (failing,) = failing_rows(pd.DataFrame({"flag": [False, True]}), [rule], {})
    assert failing.tolist() == [1]
    os._exit(0)
_, status = os.waitpid(pid, 0)
assert os.waitstatus_to_exitcode(status) == 0
print("forked")
"""


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program, as the scheduler does: with two threads for BLAS, whatever the tests set."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        timeout=180,
        env={**os.environ, "OMP_NUM_THREADS": "2"},
    )


@pytest.fixture
def executor(services):
    """Return the module, which imports Airflow."""
    from modwatch.pipeline.airflow import executor

    return executor


@pytest.mark.soak  # tests/acceptance forks its tasks from a scheduler that preloads
def test_only_a_local_model_loads_pytorch_and_a_fork_uses_what_was_loaded(tmp_path, services):
    done = run(FORKED, str(tmp_path))
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.endswith("forked\n")


def test_a_package_that_is_missing_is_named_and_the_others_are_loaded(
    monkeypatch, caplog, executor
):
    loaded: list[str] = []
    monkeypatch.setattr(executor, "_ALWAYS", ("no_such_package.part",))
    monkeypatch.setattr(executor, "_great_expectations", lambda: loaded.append("expectations"))
    monkeypatch.setattr(executor, "_mlflow", lambda: loaded.append("mlflow"))
    monkeypatch.setattr(executor, "_scoring", lambda settings: "json")
    with caplog.at_level("WARNING"):
        executor.preload(load_settings())
    assert [record.getMessage() for record in caplog.records] == [
        "no_such_package is missing; tasks that use it fail."
    ]
    assert loaded == ["expectations", "mlflow"]


@pytest.mark.parametrize(
    ("module", "variables"),
    [
        ("remote", {"MODWATCH_SCORER": "http://127.0.0.1:8095"}),
        (
            "shards",
            {
                "MODWATCH_SOURCE__KIND": "files",
                "MODWATCH_SOURCE__PATH": "{dt}.jsonl",
                "MODWATCH_SOURCE__OWN_SCORES": "true",
            },
        ),
    ],
)
def test_tasks_that_need_no_pytorch_load_another_module(module, variables, monkeypatch, executor):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert executor._scoring(load_settings()) == f"modwatch.models.scoring.{module}"


@dataclass
class Task:
    """What the executor uses of a workload."""

    key: str
    display_name: str = "task"
    running_state: str | None = None
    success_state: str = "success"
    failure_state: str = "failed"


@pytest.fixture
def running(monkeypatch, executor, tmp_path):
    """Return a function that runs tasks by their keys, and the executor."""

    def run_task(task, **_):
        mine = tmp_path / task.key
        mine.touch()
        if task.key == "bad":
            raise RuntimeError("no")
        time.sleep(0.2)
        (tmp_path / f"{task.key}.beside").write_text(str(len([*tmp_path.glob("?")])))
        mine.unlink()

    monkeypatch.setattr(executor, "preload", lambda _: None)
    monkeypatch.setattr(executor.BaseExecutor, "run_workload", staticmethod(run_task))
    made = executor.PreloadingExecutor(parallelism=2)
    made.start()

    def run_all(*keys):
        tasks = [Task(key) for key in keys]
        made.queued_tasks.update((task.key, task) for task in tasks)
        made._process_workloads(tasks)
        wait_until(lambda: made.sync() or made.event_buffer.keys() >= {*keys})
        return {key: made.event_buffer[key][0] for key in keys}

    yield run_all, made
    made.end()


def wait_until(condition, *, rounds=2_000):
    for _ in range(rounds):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen")


def test_the_first_task_starts_the_one_process_that_runs_all_few_at_a_time(running, tmp_path):
    run_all, made = running
    assert made.workers == {}
    assert run_all("a") == {"a": "success"}
    (pid,) = made.workers
    keys = "b", "c", "d", "e", "f"
    assert run_all(*keys, "bad") == dict.fromkeys(keys, "success") | {"bad": "failed"}
    assert list(made.workers) == [pid]
    beside = {int((tmp_path / f"{key}.beside").read_text()) for key in keys}
    assert max(beside) == 2, "as many as the executor's parallelism"


def test_the_process_ends_without_tasks_and_another_runs_the_next(running, monkeypatch, executor):
    run_all, made = running
    monkeypatch.setattr(executor, "IDLE_SECONDS", 0.01)
    assert run_all("a") == {"a": "success"}, "a task that takes longer is waited for"
    (pid,) = made.workers
    wait_until(lambda: made.sync() or not made.workers)
    assert run_all("b") == {"b": "success"}
    assert pid not in made.workers


def test_a_process_that_was_killed_is_replaced(running):
    run_all, made = running
    run_all("a")
    (pid,) = made.workers
    os.kill(pid, signal.SIGKILL)
    assert run_all("b") == {"b": "success"}
    assert list(made.workers) != [pid]
