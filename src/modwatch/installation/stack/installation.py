"""An installation on one machine: PostgreSQL, MLflow, the review console and Airflow."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

from pydantic import SecretStr

from modwatch.common.errors import SettingsError
from modwatch.installation.resources import open_resources
from modwatch.installation.stack.airflow import AirflowHome
from modwatch.installation.stack.ports import require_free_ports
from modwatch.installation.stack.postgres import postgres_pid
from modwatch.installation.stack.processes import counted
from modwatch.installation.stack.progress import Wait, time_left
from modwatch.installation.stack.record import StackFolder, end_leftovers
from modwatch.installation.stack.supervisor import Neighbour, Service, Stack
from modwatch.review.embedded import APPLICATION, embedded, kept_running
from modwatch.review.migrate import upgrade
from modwatch.settings import EMBEDDED, Settings, load_settings

#: Seconds that Airflow's migration and the end of PostgreSQL usually take, on two cores.
_USUAL_MIGRATION, _USUAL_STOP = 8.0, 2.0


@dataclass(frozen=True, kw_only=True)
class RunningInstallation:
    """An installation whose parts are all started."""

    settings: Settings
    stack: Stack
    airflow: AirflowHome


class Narrator:
    """Prints progress messages, with the seconds since the start."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def say(self, message: str) -> None:
        """Print one line."""
        print(f"[{time.monotonic() - self._started:4.0f} s] {message}", flush=True)


@contextmanager
def running(
    settings: Settings,
    *,
    say: Callable[[str], None],
    fresh: bool = False,
    also_free: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[RunningInstallation]:
    """Start the installation of `settings` in its home, and stop it at the end.

    MLflow is ready when the block begins; `Stack.wait_ready` waits for the other parts.

    What a supervisor that was killed left running is ended first. With `fresh` the home is emptied.
    `also_free` are variables and URLs of programs that the caller will start. The environment gets
    the URL of the review database while the block runs.

    Raises:
        SettingsError: no review database is set.
        StackError: another process runs this home, a port is in use, or a part does not start.
    """
    if settings.database_url is None:
        raise SettingsError(
            "MODWATCH_DATABASE_URL is not set; set it to embedded, for a server in MODWATCH_HOME, "
            "or to postgresql://user:password@host/database"
        )
    folder = StackFolder(home=settings.home.resolve())
    with ExitStack() as exits:
        exits.enter_context(folder.held())
        if ended := end_leftovers(folder):
            say(f"ended {counted(ended)} that an earlier run had left")
        require_free_ports({**_urls(settings), **also_free})
        if fresh:
            _empty(folder.home)
        say(f"starting PostgreSQL in {folder.home}")
        databases = exits.enter_context(_databases(folder.home, settings))
        exits.callback(say, f"stopping PostgreSQL; {time_left(_USUAL_STOP)}")
        airflow = AirflowHome.create(
            folder.home / "airflow",
            url=settings.airflow_url,
            database_url=for_psycopg2(databases.airflow),
        )
        exits.callback(folder.forget)
        stack = exits.enter_context(Stack(logs=folder.logs, folder=folder, say=say))
        stack.show(Neighbour(name="postgres", pid=lambda: postgres_pid(folder.home)))
        say("starting MLflow, the review console and Airflow")
        stack.start(_mlflow(settings.mlflow_url, for_psycopg2(databases.mlflow), folder.home))
        if not airflow.is_migrated:
            _migrate(airflow, folder.logs, say)
        for service in (_console(settings.console_url), *airflow.services()):
            stack.start(service)
        stack.wait_ready("mlflow")
        yield RunningInstallation(settings=load_settings(), stack=stack, airflow=airflow)
        say("stopping")
    say("everything is stopped")


def _migrate(airflow: AirflowHome, logs: Path, say: Callable[[str], None]) -> None:
    """Bring Airflow's tables up to date, and say every ten seconds that this takes its time."""
    doing = "preparing Airflow's database"
    wait = Wait(say, usual=_USUAL_MIGRATION)
    say(f"{doing}; {wait.left()}")
    airflow.migrate(logs, meanwhile=lambda: wait.show(lambda: doing))


def for_psycopg2(url: str) -> str:
    """Return `url` for the driver of Airflow and MLflow."""
    return url.replace("postgresql+psycopg://", "postgresql+psycopg2://", 1)


@dataclass(frozen=True, kw_only=True)
class _Databases:
    """URLs of the databases of Airflow and MLflow."""

    airflow: str
    mlflow: str


@contextmanager
def _databases(home: Path, settings: Settings) -> Iterator[_Databases]:
    """Run PostgreSQL with all databases, migrated; the environment gets the review database."""
    name = "MODWATCH_DATABASE_URL"
    before = {name: os.environ[name]} if name in os.environ else {}
    with embedded(home / "postgres") as server, kept_running(server):
        if settings.database_url == SecretStr(EMBEDDED):
            os.environ[name] = server.application_url("modwatch")
            upgrade(server.url("modwatch"), application=APPLICATION)
        else:
            with open_resources(settings) as at:
                at.migrate()
        try:
            yield _Databases(airflow=server.url("airflow"), mlflow=server.url("mlflow"))
        finally:
            os.environ.pop(name, None)
            os.environ.update(before)


def _urls(settings: Settings) -> dict[str, str]:
    return {
        "MODWATCH_MLFLOW_URL": settings.mlflow_url,
        "MODWATCH_CONSOLE_URL": settings.console_url,
        "MODWATCH_AIRFLOW_URL": settings.airflow_url,
    }


def _empty(home: Path) -> None:
    """Remove all that is in a home, but the lock that is held."""
    for path in home.iterdir():
        if path.is_dir() and path.name != "run":
            shutil.rmtree(path)
        elif path.is_file():
            path.unlink()


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
        address=url,
    )  # fmt: skip


def _console(url: str) -> Service:
    command = [sys.executable, "-m", "modwatch", "console"]
    return Service(name="console", command=command, ready_url=f"{url}/readyz", address=url)
