import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from modwatch.common.errors import TrackingError
from modwatch.common.mlflow_client import connect, experiment_id, retire_others, runs_tagged

TAGS = {"kind": "day", "day": "2026-01-05"}


def test_importing_the_package_imports_neither_mlflow_nor_matplotlib():
    code = (
        "import sys, modwatch.monitoring.publishing, modwatch.monitoring.publishing.runs; "
        "sys.exit(bool({'mlflow', 'matplotlib'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_an_unreachable_server_is_named_within_seconds(free_port):
    begin = time.monotonic()
    url = f"http://ops:secret@127.0.0.1:{free_port}"
    with pytest.raises(TrackingError) as caught, connect(url) as client:
        client.get_experiment_by_name("modwatch")
    assert time.monotonic() - begin < 30
    assert f"127.0.0.1:{free_port}" in str(caught.value)
    assert "MODWATCH_MLFLOW_URL" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_refused_call_is_a_tracking_error(mlflow_url):
    with pytest.raises(TrackingError, match="RESOURCE_DOES_NOT_EXIST"), connect(mlflow_url) as c:
        c.get_run("0" * 32)


def test_the_environment_is_as_before(mlflow_url, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "7")
    with connect(mlflow_url):  # imports packages that set variables of their own
        pass
    before = dict(os.environ)
    with connect(mlflow_url):
        assert os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] == "7"
        assert "MLFLOW_HTTP_REQUEST_MAX_RETRIES" in os.environ
    assert dict(os.environ) == before


def test_an_experiment_is_made_once_whoever_is_first(mlflow_url, experiment):
    with connect(mlflow_url) as client, ThreadPoolExecutor(4) as pool:
        ids = set(pool.map(lambda _: experiment_id(client, experiment), range(8)))
        assert len(ids) == 1
        assert client.get_experiment(ids.pop()).tags["mlflow.experimentKind"]


def test_an_experiment_made_between_look_and_creation_is_used(mlflow_url, experiment):
    with connect(mlflow_url) as client:
        made = client.create_experiment(experiment)
        late = _LooksTooEarly(client)
        assert experiment_id(late, experiment) == made


class _LooksTooEarly:
    """A client whose first look misses the experiment, as when another process makes it next."""

    def __init__(self, client):
        self._client, self._looks = client, 0
        self.create_experiment = client.create_experiment

    def get_experiment_by_name(self, name):
        self._looks += 1
        return None if self._looks == 1 else self._client.get_experiment_by_name(name)


def test_a_deleted_experiment_is_named_with_its_remedy(mlflow_url, experiment):
    with connect(mlflow_url) as client:
        client.delete_experiment(experiment_id(client, experiment))
        with pytest.raises(TrackingError, match="restore it"):
            experiment_id(client, experiment)


def test_runs_are_found_by_all_their_tags(mlflow_url, experiment):
    with connect(mlflow_url) as client:
        where = experiment_id(client, experiment)
        run = client.create_run(where, tags=TAGS).info.run_id
        client.create_run(where, tags=TAGS | {"day": "2026-01-06"})
        assert [found.info.run_id for found in runs_tagged(client, where, TAGS)] == [run]


def test_a_replaced_run_leaves_no_file(mlflow_url, experiment):
    """By itself, MLflow keeps the files of runs that it shows no more."""
    with connect(mlflow_url) as client:
        where = experiment_id(client, experiment)
        old, new = (client.create_run(where, tags=TAGS).info.run_id for _ in range(2))
        for run in (old, new):
            client.log_text(run, "tables", "tables/day.csv")
        retire_others(client, where, TAGS, keep=new)
        assert client.list_artifacts(old) == []
        assert [found.path for found in client.list_artifacts(new)] == ["tables"]


def test_who_was_replaced_meanwhile_does_not_report_success(mlflow_url, experiment):
    with connect(mlflow_url) as client:
        where = experiment_id(client, experiment)
        mine, theirs = (client.create_run(where, tags=TAGS).info.run_id for _ in range(2))
        retire_others(client, where, TAGS, keep=theirs)
        with pytest.raises(TrackingError, match="publish it again"):
            retire_others(client, where, TAGS, keep=mine)
