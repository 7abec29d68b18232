"""Airflow's LocalExecutor, with the packages of the tasks imported before its workers are forked.

Airflow forks a process for each task. Without this executor each of them imports what its step
uses: two to eight seconds of a core, mostly for PyTorch, Great Expectations and MLflow. With it the
scheduler imports all of that once, and every task shares the pages in memory.

Use it as `AIRFLOW__CORE__EXECUTOR=modwatch.pipeline.airflow.executor.PreloadingExecutor`. Restart
the scheduler after Modwatch or a package was updated: tasks run what the scheduler has imported.
"""

import importlib
import logging
import time
from collections.abc import Callable
from functools import partial

from airflow.executors.local_executor import LocalExecutor

from modwatch.settings import Settings, load_settings

_log = logging.getLogger(__name__)

#: What tasks of all DAGs use.
_ALWAYS = (
    "airflow.dag_processing.dagbag",
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


class PreloadingExecutor(LocalExecutor):  # type: ignore[misc]
    """Runs tasks on this machine, in processes that have their packages already."""

    def start(self) -> None:
        """Import the packages, then fork the workers."""
        preload(load_settings())
        super().start()


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
