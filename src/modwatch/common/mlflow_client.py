"""The connection to MLflow, with short timeouts and one error class; runs, points, URLs."""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from modwatch.common import addresses
from modwatch.common.errors import TrackingError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from mlflow import MlflowClient
    from mlflow.entities import Run

#: The experiment of the runs of audits.
AUDIT_EXPERIMENT = "modwatch-audits"

#: The tag that MLflow shows as a run's description.
DESCRIPTION_TAG = "mlflow.note.content"

#: Metric values by day and key.
Rows = Mapping[date, Mapping[str, float]]

#: Step, key and value of a point.
Point = tuple[int, str, float]

_BATCH = 1000  # MLflow rejects more in one call

# MLflow reads these from the environment only; by default it retries for four minutes. Variables
# that the operator has set take precedence.
_ENVIRONMENT = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_JITTER": "0",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # two lines per finished run
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}

# Makes MLflow open the experiment with runs and charts, not with a page about traces.
_EXPERIMENT_TAGS = {"mlflow.experimentKind": "custom_model_development"}

# Without it, MLflow opens its pages about traces of language models.
_TRAINING = "workflowType=machine_learning"


def load_mlflow() -> None:
    """Import what `connect` needs of MLflow, without its telemetry: it takes a second or two."""
    with _defaults():
        import mlflow
        import mlflow.artifacts  # noqa: F401


@contextmanager
def connect(tracking_uri: str) -> Iterator["MlflowClient"]:
    """Yield a client of MLflow at `tracking_uri`; an unreachable server fails within seconds.

    Raises:
        TrackingError: MLflow cannot be reached or rejects a call made inside the block.
    """
    with _defaults():
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
        from requests.exceptions import RequestException

        try:
            yield MlflowClient(tracking_uri, registry_uri=tracking_uri)
        except MlflowException as exc:
            raise TrackingError(_failure(tracking_uri, exc.error_code)) from exc
        except RequestException as exc:
            raise TrackingError(_failure(tracking_uri, type(exc).__name__)) from exc


def experiment_id(client: "MlflowClient", name: str) -> str:
    """Return the id of the experiment `name`, creating it if it does not exist.

    Raises:
        TrackingError: the experiment was deleted in MLflow.
    """
    from mlflow.exceptions import MlflowException

    existing = client.get_experiment_by_name(name)
    if existing is None:
        try:
            return str(client.create_experiment(name, tags=_EXPERIMENT_TAGS))
        except MlflowException as exc:
            if exc.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
            existing = client.get_experiment_by_name(name)
    if existing.lifecycle_stage != "active":
        raise TrackingError(f"Experiment {name!r} is deleted in MLflow; restore it there.")
    return str(existing.experiment_id)


def runs_tagged(client: "MlflowClient", experiment: str, tags: Mapping[str, str]) -> list["Run"]:
    """Return the runs of the experiment (an id) that carry all `tags` and are not deleted."""
    condition = " and ".join(f"tags.`{key}` = '{value}'" for key, value in tags.items())
    runs: list[Run] = []
    token = None
    while True:
        page = client.search_runs([experiment], condition, max_results=1000, page_token=token)
        runs += page
        token = page.token
        if not token:
            return runs


@contextmanager
def replacing_run(
    client: "MlflowClient",
    experiment: str,
    tags: Mapping[str, str],
    *,
    name: str,
    day: date,
    failed: bool = False,
) -> Iterator[str]:
    """Yield the id of a new run that replaces every other run with `tags` at the end of the block.

    The new run is written whole before the old one is deleted, so that readers always find one of
    them. After a crash in between, the next call deletes what was left. The run starts at the
    midnight of `day`, so that MLflow lists runs by day, whenever they were computed. Once whole, it
    is `FINISHED`; or `FAILED`, which MLflow marks in red, if what it reports has `failed`.

    Raises:
        TrackingError: another process replaced the run in the meantime.
    """
    start, end = midnight_ms(day), midnight_ms(day + timedelta(days=1))
    run = client.create_run(experiment, start_time=start, tags=dict(tags), run_name=name)
    run_id = str(run.info.run_id)
    yield run_id
    client.set_terminated(run_id, "FAILED" if failed else "FINISHED", end)
    retire_others(client, experiment, tags, keep=run_id)


def log_figures(client: "MlflowClient", run_id: str, figures: "Mapping[str, Figure]") -> None:
    """Log figures as `figures/NAME.png`."""
    # Imports numpy, and matplotlib, which takes a second: not when a DAG file is parsed.
    from modwatch.common.charts import png

    with tempfile.TemporaryDirectory() as scratch:
        for name, figure in figures.items():
            Path(scratch, f"{name}.png").write_bytes(png(figure))
        client.log_artifacts(run_id, scratch, "figures")


def log_texts(
    client: "MlflowClient", run_id: str, *, params: Mapping[str, str], tags: Mapping[str, str]
) -> None:
    """Log parameters and tags of a run in one call."""
    from mlflow.entities import Param, RunTag

    client.log_batch(
        run_id,
        params=[Param(*item) for item in params.items()],
        tags=[RunTag(*item) for item in tags.items()],
    )


def is_whole(run: "Run") -> bool:
    """Return whether `replacing_run` has written the run to its end."""
    return run.info.status in ("FINISHED", "FAILED")


def remove_run(client: "MlflowClient", run: "Run") -> None:
    """Delete a run and its files, which MLflow by itself keeps until `mlflow gc`."""
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    files = get_artifact_repository(run.info.artifact_uri, tracking_uri=client.tracking_uri)
    files.delete_artifacts()
    client.delete_run(run.info.run_id)


def retire_others(
    client: "MlflowClient", experiment: str, tags: Mapping[str, str], *, keep: str
) -> None:
    """Delete every run with `tags` except `keep`: the last step of replacing a run.

    Raises:
        TrackingError: another process deleted `keep` in the meantime.
    """
    for run in runs_tagged(client, experiment, tags):
        if run.info.run_id != keep:
            remove_run(client, run)
    # Two processes may have deleted each other's run; then neither must report success.
    if client.get_run(keep).info.lifecycle_stage != "active":
        raise TrackingError(
            f"Another process replaced the MLflow run with tags {dict(tags)} while it was written; "
            "publish it again."
        )


def points_of(rows: Rows, *, first: date) -> set[Point]:
    """Return the points of `rows`; the step counts days from `first`.

    Neither a date such as 20260105 nor days since 1970 serve as a step: MLflow's axis shows them
    as 20.26M and 20.46k, the former with a gap after every month.

    >>> points_of({date(2026, 1, 6): {"day/comments": 10.0}}, first=date(2026, 1, 5))
    {(1, 'day/comments', 10.0)}
    """
    return {
        ((day - first).days, key, float(value))
        for day, row in rows.items()
        for key, value in row.items()
    }


def log_points(client: "MlflowClient", run_id: str, points: set[Point], *, first: date) -> None:
    """Log points to a run, each at its day's UTC midnight, so that the time axis shows days."""
    start = midnight_ms(first)
    log_steps(
        client,
        run_id,
        [(step, key, value, start + step * 86_400_000) for step, key, value in sorted(points)],
    )


def log_steps(
    client: "MlflowClient", run_id: str, steps: Sequence[tuple[int, str, float, int]]
) -> None:
    """Log step, key, value and time (milliseconds since 1970) of many points to a run."""
    from mlflow.entities import Metric

    metrics = [Metric(key, value, at, step) for step, key, value, at in steps]
    for begin in range(0, len(metrics), _BATCH):
        client.log_batch(run_id, metrics=metrics[begin : begin + _BATCH])


def midnight_ms(day: date) -> int:
    """Return the day's UTC midnight in milliseconds since 1970.

    >>> midnight_ms(date(1970, 1, 2))
    86400000
    """
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000)


def public_url(url: str) -> str:
    """Return the URL without user and password.

    >>> public_url("https://ops:secret@mlflow:5000/x")
    'https://mlflow:5000/x'
    """
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def alert_links(
    site: addresses.Site, *, experiment: str = "modwatch", dag: str = "monitor_collaboration"
) -> Callable[[date], Mapping[str, str]]:
    """Return a function from a day to the pages to link from its alerts, by name.

    MLflow is asked once, at the first call; while it is down, its home page is linked.
    """

    @cache
    def experiment_in_mlflow() -> str:
        with suppress(TrackingError), connect(site.mlflow_url) as client:
            return experiment_id(client, experiment)
        return ""

    def links(day: date) -> Mapping[str, str]:
        number, mlflow = experiment_in_mlflow(), site.mlflow_url
        pages = {
            "Modwatch": addresses.overview_url(site.airflow_url),
            "MLflow": day_url(mlflow, number, day) if number else public_url(mlflow),
            "review queue": site.console_url,
            "Airflow": f"{site.airflow_url}/dags/{dag}/runs",
        }
        if dag == "monitor_collaboration":
            pages["validation"] = addresses.day_url(site.airflow_url, day, "validation")
        return pages

    return links


def day_url(base: str, experiment_id: str, day: date) -> str:
    """Return the URL of the list of runs, filtered to the run of `day`.

    Unlike the URL of the run, it stays valid when the day is published again.

    >>> day_url("http://mlflow", "1", date(2026, 1, 5)).partition("searchFilter=")[2]
    'tags.day%20%3D%20%272026-01-05%27'
    """
    condition = quote(f"tags.day = '{day}'")
    return f"{_runs(base, experiment_id)}?{_TRAINING}&searchFilter={condition}"


def view_url(base: str, experiment_id: str, view: str) -> str:
    """Return the URL of a saved view of the list of runs, without credentials.

    A link with a filter of its own would not open the view: MLflow then ignores it.

    >>> view_url("http://u:pw@mlflow", "1", "days").partition("?")[2]
    'workflowType=machine_learning&viewStateShareKey=days'
    """
    return f"{_runs(base, experiment_id)}?{_TRAINING}&viewStateShareKey={quote(view)}"


def run_url(base: str, experiment_id: str, run_id: str, *, tab: str = "/model-metrics") -> str:
    """Return the URL of the page with the charts of a run, without credentials.

    With an empty `tab`, that of the page with its description.

    >>> run_url("http://u:pw@mlflow", "1", "ab").partition("?")[0]
    'http://mlflow/#/experiments/1/runs/ab/model-metrics'
    """
    return f"{_runs(base, experiment_id)}/{quote(run_id)}{tab}?{_TRAINING}"


def artifact_url(base: str, experiment_id: str, run_id: str, path: str) -> str:
    """Return the URL of the page that shows one artifact of a run, without credentials.

    >>> artifact_url("http://u:pw@mlflow", "1", "ab", "figures/timeline.png").partition("?")[0]
    'http://mlflow/#/experiments/1/runs/ab/artifacts/figures/timeline.png'
    """
    return f"{_runs(base, experiment_id)}/{quote(run_id)}/artifacts/{quote(path)}?{_TRAINING}"


def _runs(base: str, experiment_id: str) -> str:
    return f"{public_url(base).rstrip('/')}/#/experiments/{quote(experiment_id)}/runs"


def _failure(tracking_uri: str, cause: str) -> str:
    return (
        f"MLflow at {public_url(tracking_uri)} cannot be reached or rejected a call ({cause}); "
        "check MODWATCH_MLFLOW_URL and that the server is running."
    )


@contextmanager
def _defaults() -> Iterator[None]:
    """Set the variables of `_ENVIRONMENT` that are not set, and unset them at the end."""
    added = {name: value for name, value in _ENVIRONMENT.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
