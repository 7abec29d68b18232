"""The connection to MLflow: short waits, few words, one kind of error; runs found by tag."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from modwatch.errors import TrackingError
from modwatch.tracking.links import public_url

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

# MLflow's client has no arguments for these, only the environment; by default it keeps trying for
# four minutes. What the operator has set stays.
_ENVIRONMENT = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_JITTER": "0",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # it prints two lines a finished run
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}

# Shows the experiment as runs and charts rather than as an empty page about traces.
_EXPERIMENT_TAGS = {"mlflow.experimentKind": "custom_model_development"}


@contextmanager
def connect(tracking_uri: str) -> Iterator["MlflowClient"]:
    """Yield a client of MLflow at `tracking_uri`; an unreachable server is known within seconds.

    Raises:
        TrackingError: MLflow cannot be reached or refuses a call made inside the block.
    """
    with _defaults(_ENVIRONMENT):
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
        from requests.exceptions import RequestException

        try:
            yield MlflowClient(tracking_uri, registry_uri=tracking_uri)
        except MlflowException as exc:
            raise TrackingError(_refusal(tracking_uri, exc.error_code)) from exc
        except RequestException as exc:
            raise TrackingError(_refusal(tracking_uri, type(exc).__name__)) from exc


def experiment_id(client: "MlflowClient", name: str) -> str:
    """Return the id of the experiment `name`, made at the first call, whoever makes it first.

    Raises:
        TrackingError: somebody deleted the experiment in MLflow.
    """
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            return str(client.create_experiment(name, tags=_EXPERIMENT_TAGS))
        except MlflowException as exc:
            if exc.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
            found = client.get_experiment_by_name(name)
    if found.lifecycle_stage != "active":
        raise TrackingError(
            f"The experiment {name!r} was deleted in MLflow; restore it there or set another name."
        )
    return str(found.experiment_id)


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


def retire_others(
    client: "MlflowClient", experiment: str, tags: Mapping[str, str], *, keep: str
) -> None:
    """Delete every run with `tags` but the run `keep`: the last step of replacing a run.

    Raises:
        TrackingError: `keep` itself is gone, because another process replaced it meanwhile.
    """
    for run in runs_tagged(client, experiment, tags):
        if run.info.run_id != keep:
            client.delete_run(run.info.run_id)
    # Two processes may each have deleted the other's run; then neither may report success.
    if client.get_run(keep).info.lifecycle_stage != "active":
        raise TrackingError(
            f"The run tagged {dict(tags)} in MLflow was replaced by another process while it was "
            "written; publish it again."
        )


def _refusal(tracking_uri: str, what: str) -> str:
    return (
        f"MLflow at {public_url(tracking_uri)} cannot be reached or refused a call ({what}); "
        "check MODWATCH_MLFLOW_URL and that the server runs."
    )


@contextmanager
def _defaults(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables that are not set, and unset them again."""
    added = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
