"""URLs of MLflow's pages, for alerts and descriptions."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date
from functools import cache
from urllib.parse import quote

from modwatch.errors import TrackingError
from modwatch.tracking.client import connect, experiment_id, public_url

# Without it, MLflow opens its pages about traces of language models.
_TRAINING = "workflowType=machine_learning"


def alert_links(
    mlflow_url: str, console_url: str, airflow_url: str, *, experiment: str = "modwatch"
) -> Callable[[date], Mapping[str, str]]:
    """Return a function from a day to the pages to link from its alerts, by name.

    MLflow is asked once, at the first call; while it is down, its home page is linked.
    """

    @cache
    def experiment_in_mlflow() -> str:
        with suppress(TrackingError), connect(mlflow_url) as client:
            return experiment_id(client, experiment)
        return ""

    def links(day: date) -> Mapping[str, str]:
        found = experiment_in_mlflow()
        return {
            "MLflow": day_url(mlflow_url, found, day) if found else public_url(mlflow_url),
            "review queue": console_url,
            "Airflow": f"{airflow_url}/dags/monitor_collaboration/runs",
        }

    return links


def day_url(base: str, experiment_id: str, day: date) -> str:
    """Return the URL of the list of runs, filtered to the run of `day`.

    Unlike the URL of the run, it stays valid when the day is published again.

    >>> day_url("http://mlflow", "1", date(2026, 1, 5)).partition("searchFilter=")[2]
    'tags.day%20%3D%20%272026-01-05%27'
    """
    condition = quote(f"tags.day = '{day}'")
    return f"{_runs(base, experiment_id)}?{_TRAINING}&searchFilter={condition}"


def artifact_url(base: str, experiment_id: str, run_id: str, path: str) -> str:
    """Return the URL of the page that shows one artifact of a run, without credentials.

    >>> artifact_url("http://u:pw@mlflow", "1", "ab", "figures/timeline.png").partition("?")[0]
    'http://mlflow/#/experiments/1/runs/ab/artifacts/figures/timeline.png'
    """
    return f"{_runs(base, experiment_id)}/{quote(run_id)}/artifacts/{quote(path)}?{_TRAINING}"


def _runs(base: str, experiment_id: str) -> str:
    return f"{public_url(base).rstrip('/')}/#/experiments/{quote(experiment_id)}/runs"
