"""Addresses of MLflow's pages, to be put beside an Airflow task or in an alert."""

from datetime import date
from urllib.parse import quote, urlsplit

# MLflow shows its pages about language-model traces unless it is told otherwise.
_TRAINING = "workflowType=machine_learning"


def day_url(base: str, experiment_id: str, day: date) -> str:
    """Return the address of the list of runs with the run of `day` alone.

    Unlike the address of the run itself it stays good when the day is published again.

    >>> day_url("http://mlflow", "1", date(2026, 1, 5)).partition("searchFilter=")[2]
    'tags.day%20%3D%20%272026-01-05%27'
    """
    condition = quote(f"tags.day = '{day}'")
    return f"{_runs(base, experiment_id)}?{_TRAINING}&searchFilter={condition}"


def artifact_url(base: str, experiment_id: str, run_id: str, path: str) -> str:
    """Return the address of the page that shows one artifact of a run.

    User and password of `base` stand in no address of this module.

    >>> artifact_url("http://u:pw@mlflow", "1", "ab", "figures/timeline.png").partition("?")[0]
    'http://mlflow/#/experiments/1/runs/ab/artifacts/figures/timeline.png'
    """
    return f"{_runs(base, experiment_id)}/{quote(run_id)}/artifacts/{quote(path)}?{_TRAINING}"


def public_url(url: str) -> str:
    """Return the address without user and password, for pages and messages.

    >>> public_url("https://ops:secret@mlflow:5000/x")
    'https://mlflow:5000/x'
    """
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _runs(base: str, experiment_id: str) -> str:
    return f"{public_url(base).rstrip('/')}/#/experiments/{quote(experiment_id)}/runs"
