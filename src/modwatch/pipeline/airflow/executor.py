"""Airflow's LocalExecutor, with the packages of the tasks imported before its workers are forked.

Airflow forks a process for each task. Without this executor each of them imports what its step
uses: two to eight seconds of a core, mostly for PyTorch, Great Expectations and MLflow. With it the
first task starts one process that imports all of that once, and every task is forked from it and
shares the pages in memory. When there was no task for a minute it ends, and frees them.

Use it as `AIRFLOW__CORE__EXECUTOR=modwatch.pipeline.airflow.executor.PreloadingExecutor`. Tasks run
what that process has imported: after an update of Modwatch or of a package, restart the scheduler.
"""

import gc
import importlib
import logging
import multiprocessing
import signal
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any

from airflow.executors.base_executor import BaseExecutor, get_execution_api_server_url
from airflow.executors.local_executor import LocalExecutor

from modwatch.settings import Settings, load_settings

_log = logging.getLogger(__name__)

#: What tasks of all DAGs use.
_ALWAYS = (
    "airflow.dag_processing.dagbag",
    "airflow.sdk.execution_time.supervisor",
    "airflow.sdk.execution_time.task_runner",
    "modwatch.installation.resources",
    "modwatch.pipeline.daily",
    "modwatch.monitoring.measurements.comment_groups",
    "modwatch.monitoring.measurements.measurement",
    "modwatch.monitoring.publishing.publication",
    "modwatch.monitoring.measurements.segments",
    "modwatch.review.quality_control.queueing",
    "modwatch.review.queue.intake",
    "modwatch.monitoring.publishing.figures",
)


#: Seconds without a task after which the process with the packages ends.
IDLE_SECONDS = 60.0

#: Only a fork shares the packages; it is the default of Python up to 3.13.
_FORK = multiprocessing.get_context("fork")

#: More tasks than an executor sends at a time.
_MOST_UNREAD = 1_000


class PreloadingExecutor(LocalExecutor):  # type: ignore[misc]
    """Runs tasks on this machine, in processes that have their packages already."""

    def start(self) -> None:
        """Start without a process: the first task starts it."""
        super().start()
        self.activity_queue = _Tasks()

    def _check_workers(self) -> None:
        if any(not process.is_alive() for process in self.workers.values()):
            self.activity_queue = self.activity_queue.renewed(self._unread_messages.value)
        super()._check_workers()

    def _spawn_workers_with_gc_freeze(self, spawn_number: int) -> None:  # noqa: ARG002 - always one
        self._spawn_worker()

    def _spawn_worker(self) -> None:
        if self.workers or not self._unread_messages.value:
            return
        given = (self.activity_queue, self.result_queue, self._unread_messages, self.conf)
        process = _FORK.Process(target=_fork_tasks, args=(*given, self.parallelism))
        process.start()
        self.workers[process.pid] = process


class _Tasks:
    """A queue with one reader, and so without a lock, which a reader that is killed would keep."""

    def __init__(self) -> None:
        self._reader, self._writer = multiprocessing.Pipe(duplex=False)
        self._sent = deque[Any](maxlen=_MOST_UNREAD)

    def put(self, task: Any) -> None:
        self._sent.append(task)
        self._writer.send(task)

    def get(self) -> Any:
        return self._reader.recv()

    def empty(self, seconds: float = 0.0) -> bool:
        return not self._reader.poll(seconds)

    def close(self) -> None:
        self._reader.close()
        self._writer.close()

    def renewed(self, unread: int) -> "_Tasks":
        """Return a queue with the last tasks alone, in place of one whose reader was killed.

        It may have been in the middle of one.
        """
        self.close()
        fresh = _Tasks()
        for task in list(self._sent)[len(self._sent) - unread :]:
            fresh.put(task)
        return fresh


def _fork_tasks(tasks: _Tasks, results: Any, unread: Any, conf: Any, parallelism: int) -> None:
    """Import the packages, then fork a process for each task, until None or an idle minute."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    preload(load_settings())
    gc.freeze()  # collections in a child would copy the pages
    forked: list[BaseProcess] = []
    while True:
        forked = [process for process in forked if process.is_alive()]
        if len(forked) >= parallelism:
            wait([process.sentinel for process in forked])
        elif tasks.empty(IDLE_SECONDS):
            if not forked:
                return
        elif (task := tasks.get()) is None:
            break
        else:
            with unread:
                unread.value -= 1
            forked.append(_FORK.Process(target=_run, args=(task, results, conf)))
            forked[-1].start()
    for process in forked:
        process.join()


def _run(task: Any, results: Any, conf: Any) -> None:
    """Run one task, in a process of its own, and report how it ended."""
    if task.running_state is not None:
        results.put((task.key, task.running_state, None))
    try:
        BaseExecutor.run_workload(
            task, server=get_execution_api_server_url(conf), subprocess_logs_to_stdout=True
        )
        results.put((task.key, task.success_state, None))
    except Exception as exc:  # noqa: BLE001 - as Airflow's: the task has failed
        _log.exception("A task could not be run.")
        results.put((task.key, task.failure_state, exc))


def preload(settings: Settings) -> None:
    """Import what the steps of the daily path use; a package that is missing is logged.

    Imports start no work: no thread of Python's, no connection, no CUDA context, which a forked
    process could not use.
    """
    begun = time.monotonic()
    modules = (*_ALWAYS, _scoring(settings))
    loads: list[Callable[[], object]] = [partial(importlib.import_module, name) for name in modules]
    for load in (*loads, _great_expectations, _mlflow):
        try:
            load()
        except ImportError as exc:
            package = str(exc.name).partition(".")[0]
            _log.warning("%s is missing; tasks that use it fail.", package)
    _log.info("The packages of the tasks were loaded in %.1f s.", time.monotonic() - begun)


def _scoring(settings: Settings) -> str:
    """Return the module that scores; only the one of a local model has PyTorch."""
    if settings.own_scores:
        return "modwatch.models.scoring.shards"
    return f"modwatch.models.scoring.{'opening' if settings.scorer == 'local' else 'remote'}"


def _great_expectations() -> None:
    from modwatch.data.validation.expectations import great_expectations

    great_expectations()


def _mlflow() -> None:
    from modwatch.common.mlflow_client import load_mlflow

    load_mlflow()
