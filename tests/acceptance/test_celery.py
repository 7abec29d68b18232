"""The shards of a day on two Celery workers with a real Redis, one of which is killed."""

import shutil
import socket
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from installation import MONDAY, Installation, table_rows
from modwatch.installation.resources import open_resources
from modwatch.installation.stack.airflow import AirflowHome
from modwatch.installation.stack.installation import for_psycopg2
from modwatch.installation.stack.supervisor import Service, Stack
from modwatch_lab.demo.airflow_runs import AirflowRuns

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.soak,  # `test_daily_job` kills a shard in make test
    # MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated"),
    pytest.mark.skipif(not shutil.which("redis-server"), reason="redis-server is not installed"),
]

WORKERS = ("worker-1", "worker-2")
DAG = "score_comments"
PRELOADED = '{"imports": ["modwatch.pipeline.airflow.celery_worker"]}'
_LIMIT_SECONDS = 420


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Airflow with Celery workers, as processes of this machine."""

    client: AirflowRuns
    stack: Stack
    home: Installation

    def shards(self) -> list[dict[str, Any]]:
        """Return the task instances of `score_shard` of the only run."""
        [run] = self.client.runs(DAG)
        return [
            task
            for task in self.client.tasks(DAG, run.run_id)
            if task["task_id"] == "score_shard" and task["map_index"] >= 0
        ]

    def kill(self, worker: str) -> None:
        """Kill a worker and all that it runs, for good."""
        main = psutil.Process(self.stack.pid(worker))
        for process in (main, *main.children(recursive=True)):
            process.kill()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def celery(redis: str, database_url: str) -> dict[str, str]:
    """Return what the operations page says to set for Celery, and short times for the test."""
    results = database_url.replace("postgresql+psycopg2", "db+postgresql")
    return {
        "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
        "AIRFLOW__CELERY__BROKER_URL": redis,
        "AIRFLOW__CELERY__RESULT_BACKEND": results,
        "AIRFLOW__CELERY__EXTRA_CELERY_CONFIG": PRELOADED,
        "AIRFLOW__CELERY__WORKER_CONCURRENCY": "1",
        "AIRFLOW__CORE__HOSTNAME_CALLABLE": "worker_names.name",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_SEC": "2",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "15",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "3",
        "PYTHONPATH": str(Path(__file__).parents[1] / "support"),
    }  # fmt: skip


def worker(name: str, env: dict[str, str]) -> Service:
    airflow = str(Path(sys.executable).with_name("airflow"))
    return Service(
        name=name,
        command=[
            *(airflow, "celery", "worker", "--celery-hostname", f"{name}@localhost"),
            *("--skip-serve-logs", "--without-mingle", "--without-gossip"),
        ],
        env={**env, "WORKER_NAME": name},
        restart=False,
    )


@pytest.fixture
def cluster(make_installation, path_server, monkeypatch):
    with ExitStack() as exits:
        folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        # A model takes seconds to load in each task: enough time to kill one.
        home = make_installation(folder, shard_tokens=1_700)
        for name, value in home.env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("MODWATCH_FIRST_DAY", MONDAY.isoformat())
        monkeypatch.setenv("MODWATCH_LAST_DAY", MONDAY.isoformat())
        database_url = for_psycopg2(path_server.url("airflow_celery"))
        port, url = free_port(), f"http://127.0.0.1:{free_port()}"
        airflow = AirflowHome.create(folder / "airflow", url=url, database_url=database_url)
        env = {**airflow.env, **celery(f"redis://127.0.0.1:{port}/0", database_url)}
        airflow.migrate(folder / "logs")
        stack = exits.enter_context(Stack(logs=folder / "logs"))
        command = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", ""]
        stack.start(Service(name="redis", command=command))
        for service in airflow.services():
            stack.start(replace(service, env=env))
        for name in WORKERS:
            stack.start(worker(name, env))
        stack.wait_ready()
        client = AirflowRuns(airflow)
        exits.callback(client.close)
        yield Cluster(client=client, stack=stack, home=home)


def test_shards_of_a_day_on_two_workers_of_which_one_is_killed(
    cluster, make_installation, tmp_path
):
    client = cluster.client
    client.wait_for_dags({DAG})
    client.unpause(DAG)
    client.backfill(DAG, MONDAY, MONDAY)
    killed: dict[str, Any] = {}
    deadline = time.monotonic() + _LIMIT_SECONDS
    while True:
        runs = client.runs(DAG)
        shards = cluster.shards() if runs else []
        both = {task["hostname"] for task in shards if task["state"] in ("running", "success")}
        mine = [task for task in shards if task["state"] == "running"
                and task["hostname"] == WORKERS[0] and task["pid"]]  # fmt: skip
        if not killed and mine and both >= {*WORKERS}:
            killed = mine[0]
            cluster.kill(WORKERS[0])
        if runs and runs[0].state in ("success", "failed"):
            break
        assert time.monotonic() < deadline, {task["map_index"]: task["state"] for task in shards}
        time.sleep(0.1 if shards and not killed else 2)

    for name in WORKERS:
        log = (cluster.stack.logs / f"{name}.log").read_text()
        assert log.count("The packages of the tasks were loaded in") == 1
    assert killed, "no worker was killed while it scored"
    assert runs[0].state == "success"
    shards = {task["map_index"]: task for task in cluster.shards()}
    assert len(shards) >= 6
    victim = shards.pop(killed["map_index"])
    assert (victim["try_number"], victim["hostname"]) == (2, WORKERS[1])
    assert {task["hostname"] for task in shards.values()} <= {*WORKERS}
    assert all(task["try_number"] == 1 for task in shards.values())

    undisturbed = cluster.home.but(home=tmp_path / "undisturbed")
    undisturbed.run("ingest", "check_comments", "score", "check_scores")
    with (
        open_resources(cluster.home.settings) as resources,
        open_resources(undisturbed.settings) as other,
    ):
        ids = resources.lake.table("scores", MONDAY, columns=["comment_id"]).column(0).to_pylist()
        assert len(ids) == len(set(ids)) == resources.lake.count("comments", MONDAY)
        assert table_rows(resources.lake, "scores") == table_rows(other.lake, "scores")
