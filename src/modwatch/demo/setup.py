"""Starts the services of the demo, and stops them at the end."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from modwatch.demo.airflow import AirflowHome
from modwatch.demo.datasets import DemoData
from modwatch.demo.stack import Service, Stack, require_free_ports
from modwatch.errors import StackError
from modwatch.ingest.corpora.corpus import LabelledTexts
from modwatch.review.embedded import APPLICATION, embedded
from modwatch.review.migrate import upgrade
from modwatch.settings import Settings, load_settings

#: What all demos set beside their own source; the environment goes before.
DEMO_SETTINGS = {
    "MODWATCH_REVIEW_FRACTION": "0.1",
    "MODWATCH_SLICE_SHARE": "0.25",
    "MODWATCH_QUEUE_RULES": str(Path(__file__).with_name("queue_rules.toml")),
    "MODWATCH_TORCH_THREADS": "1",  # two scoring tasks share the two cores
}

#: Default address of the model server.
MODEL_SERVER = "http://127.0.0.1:8095"


class Narrator:
    """Prints progress messages, with the seconds since the start."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def say(self, message: str) -> None:
        """Print one line."""
        print(f"[{time.monotonic() - self._started:4.0f} s] {message}", flush=True)


@dataclass(frozen=True, kw_only=True)
class Demo:
    """A running demo."""

    data: DemoData
    settings: Settings
    stack: Stack
    airflow: AirflowHome
    narrator: Narrator

    @property
    def postgres_pid_file(self) -> Path:
        """The pid file of the embedded PostgreSQL, which is not a child process."""
        return self.settings.home / "postgres" / "cluster" / "postmaster.pid"


@contextmanager
def started(data: DemoData, narrator: Narrator, *, served: bool = False) -> Iterator[Demo]:
    """Start PostgreSQL, MLflow, the console and Airflow; stop them at the end.

    With `served`, tasks score with the server in `MODWATCH_SCORER`, which `start_model_server`
    starts once there is a model.
    """
    with ExitStack() as exits:
        exits.enter_context(_configured(data, served=served))
        settings = load_settings()
        urls = {
            "MODWATCH_MLFLOW_URL": settings.mlflow_url,
            "MODWATCH_CONSOLE_URL": settings.console_url,
            "MODWATCH_AIRFLOW_URL": settings.airflow_url,
        }
        if served:
            urls["MODWATCH_SCORER"] = settings.scorer
        require_free_ports(urls)
        home = _emptied(settings.home)
        narrator.say(f"{data.title}; all data is in {home}")
        narrator.say("starting PostgreSQL and migrating the databases")
        server = exits.enter_context(embedded(home / "postgres"))
        os.environ["MODWATCH_DATABASE_URL"] = server.application_url("modwatch")
        upgrade(server.url("modwatch"), application=APPLICATION)
        settings = load_settings()  # now with the database
        airflow = AirflowHome.create(
            home / "airflow",
            url=settings.airflow_url,
            database_url=for_psycopg2(server.url("airflow")),
        )
        migrate(airflow, home / "logs")
        stack = exits.enter_context(Stack(logs=home / "logs"))
        narrator.say("starting MLflow, the review console and Airflow")
        mlflow = _mlflow(settings.mlflow_url, for_psycopg2(server.url("mlflow")), home)
        for service in (mlflow, _console(settings.console_url), *airflow.services()):
            stack.start(service)
        stack.wait_ready()
        yield Demo(data=data, settings=settings, stack=stack, airflow=airflow, narrator=narrator)


def start_model_server(demo: Demo) -> None:
    """Start `modwatch serve` where `MODWATCH_SCORER` says, and wait until it has a model."""
    url = demo.settings.scorer
    host, port = urlsplit(url).hostname or "127.0.0.1", str(urlsplit(url).port or 80)
    command = [sys.executable, "-m", "modwatch", "serve", "--host", host, "--port", port]
    demo.narrator.say(f"starting the model server at {url}")
    demo.stack.start(
        Service(name="model-server", command=command, ready_url=f"{url}/v2/health/ready")
    )
    demo.stack.wait_ready()


@contextmanager
def _configured(data: DemoData, *, served: bool) -> Iterator[None]:
    """Set the settings of the demo in the environment of this process and its children."""
    before = dict(os.environ)
    home = Path(before.get("MODWATCH_HOME", "var")) / "demo" / data.name
    os.environ["MODWATCH_HOME"] = str(home.resolve())
    os.environ["MODWATCH_WITNESS_FOLDER"] = str(home.resolve() / "witnesses")
    os.environ["MODWATCH_TRAINING_DATA"] = json.dumps([str(home.resolve() / "training.jsonl")])
    if data.evaluation is not None:
        os.environ["MODWATCH_EVALUATION_DATA"] = str(home.resolve() / "evaluation.jsonl")
    os.environ["MODWATCH_FIRST_DAY"] = data.first_day.isoformat()
    os.environ["MODWATCH_LAST_DAY"] = data.last_day.isoformat()
    if served and os.environ.get("MODWATCH_SCORER", "local") == "local":
        os.environ["MODWATCH_SCORER"] = MODEL_SERVER
    for name, value in {**DEMO_SETTINGS, **data.settings}.items():
        os.environ.setdefault(name, value)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _emptied(home: Path) -> Path:
    """Return the folder of the demo, emptied: a demo always begins with its first day."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    return home


def write_model_data(data: DemoData, settings: Settings) -> None:
    """Write the files that MODWATCH_TRAINING_DATA and MODWATCH_EVALUATION_DATA of a demo name."""
    for path in settings.training_data:
        _write_labelled(Path(path), data.training())
    if settings.evaluation_data is not None and data.evaluation is not None:
        _write_labelled(settings.evaluation_data, data.evaluation())


def _write_labelled(path: Path, corpus: LabelledTexts) -> None:
    """Write labelled comments as JSON lines, for `train_model`."""
    groups = corpus.groups or ((),) * len(corpus.texts)
    with path.open("w", encoding="utf-8") as file:
        for text, label, named in zip(corpus.texts, corpus.labels, groups, strict=True):
            row = {"text": text, "label": float(label), "groups": list(named)}
            file.write(f"{json.dumps(row)}\n")


def for_psycopg2(url: str) -> str:
    """Return `url` for the driver of Airflow and MLflow."""
    return url.replace("postgresql+psycopg://", "postgresql+psycopg2://", 1)


def migrate(airflow: AirflowHome, logs: Path) -> None:
    """Make Airflow's tables; StackError when that fails."""
    command = [str(Path(sys.executable).with_name("airflow")), "db", "migrate"]
    logs.mkdir(parents=True, exist_ok=True)
    with (logs / "airflow-migrate.log").open("wb") as log:
        done = subprocess.run(
            command, env={**os.environ, **airflow.env}, stdout=log, stderr=log, check=False
        )
    if done.returncode:
        raise StackError(f"The migration of Airflow's database failed; see {log.name}")


def _mlflow(url: str, database_url: str, home: Path) -> Service:
    parts = urlsplit(url)
    return Service(
        name="mlflow",
        command=[
            str(Path(sys.executable).with_name("mlflow")), "server",
            "--host", parts.hostname or "127.0.0.1", "--port", str(parts.port or 5000),
            "--workers", "1",
            "--backend-store-uri", database_url,
            "--artifacts-destination", str(home / "mlflow-artifacts"),
        ],
        env={"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"},
        ready_url=f"{url}/health",
    )  # fmt: skip


def _console(url: str) -> Service:
    command = [sys.executable, "-m", "modwatch", "console"]
    return Service(name="console", command=command, ready_url=f"{url}/readyz")
