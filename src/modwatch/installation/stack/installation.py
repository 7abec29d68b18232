"""An installation on one machine: PostgreSQL, MLflow, the review console and Airflow."""

import contextlib
import os
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

from modwatch.common.addresses import is_loopback
from modwatch.common.errors import SettingsError, StackError
from modwatch.installation.environment import require_space
from modwatch.installation.stack.airflow import AirflowHome
from modwatch.installation.stack.commands import pages
from modwatch.installation.stack.logs import remove_old
from modwatch.installation.stack.processes import counted, postgres_pid
from modwatch.installation.stack.progress import Wait, time_left
from modwatch.installation.stack.record import StackFolder, end_leftovers
from modwatch.installation.stack.supervisor import Service, Stack, interruptible
from modwatch.review.embedded import APPLICATION, EmbeddedServer, embedded, kept_running
from modwatch.review.migrate import upgrade
from modwatch.settings import Settings, load_settings

#: Seconds between two looks for logs of tasks that are old.
_ONE_DAY = 24 * 3600.0

#: Seconds that Airflow's migration and the end of PostgreSQL usually take, on two cores.
_USUAL_MIGRATION, _USUAL_STOP = 8.0, 2.0


@dataclass(frozen=True, kw_only=True)
class RunningInstallation:
    """An installation whose parts are all started."""

    settings: Settings
    stack: Stack
    airflow: AirflowHome


def narrator() -> Callable[[str], None]:
    """Return a function that prints a progress message, with the seconds since this call."""
    started = time.monotonic()
    return lambda message: print(f"[{time.monotonic() - started:4.0f} s] {message}", flush=True)


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

    First it ends what a killed supervisor left running. With `fresh` the home is emptied.
    `also_free` are variables and URLs of programs that the caller will start. The environment gets
    the URL of the review database while the block runs.

    Raises:
        SettingsError: no review database is set.
        StackError: another process runs this home, a port is in use, a disk is nearly full, or a
            part does not start.
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
            say(f"ended {counted(ended)} of an earlier run")
        require_space(settings)
        urls = {
            "MODWATCH_MLFLOW_URL": settings.mlflow_url,
            "MODWATCH_CONSOLE_URL": settings.console_url,
            "MODWATCH_AIRFLOW_URL": settings.airflow_url,
        }
        require_free_ports({**urls, **also_free})
        if fresh:
            _empty(folder.home)
        say(f"starting PostgreSQL in {folder.home}")
        server = exits.enter_context(_databases(folder.home, settings))
        exits.callback(say, f"stopping PostgreSQL; {time_left(_USUAL_STOP)}")
        airflow = _airflow(folder.home, server, settings)
        exits.callback(folder.forget)
        stack = exits.enter_context(Stack(logs=folder.logs, folder=folder, say=say))
        stack.show("postgres", lambda: postgres_pid(folder.home))
        say("starting MLflow, the review console and Airflow")
        stack.start(_mlflow(settings.mlflow_url, for_psycopg2(server.url("mlflow")), folder.home))
        if not airflow.is_migrated:
            _migrate(airflow, folder.logs, say)
        for service in (_console(settings.console_url), *airflow.services()):
            stack.start(service)
        stack.wait_ready("mlflow")
        yield RunningInstallation(settings=load_settings(), stack=stack, airflow=airflow)
        say("stopping")
    say("everything is stopped")


def up(settings: Settings, *, show: Callable[[str], None]) -> None:
    """Run the installation of `settings` until SIGINT, SIGTERM or SIGHUP.

    Raises:
        StackError: it runs already, a port is in use, or a part did not start.
    """
    with (
        contextlib.suppress(KeyboardInterrupt),
        interruptible(),
        running(settings, say=narrator()) as installation,
    ):
        installation.stack.wait_ready()
        if sys.stdout.isatty():
            show(f"{pages(installation.settings)}\nPress Ctrl-C to stop everything.")
        while True:
            remove_old(installation.airflow.folder / "logs")
            time.sleep(_ONE_DAY)


@contextmanager
def inside_airflow(settings: Settings) -> Iterator[None]:
    """Configure this process for Airflow, as the parts of a running installation are.

    Where Airflow is configured already, as in a container of it, nothing changes.

    Raises:
        StackError: it is not configured, and no installation runs in the home.
    """
    folder = StackFolder(home=settings.home.resolve())
    os.environ.setdefault("AIRFLOW__LOGGING__LOGGING_LEVEL", "WARNING")
    if "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN" in os.environ:
        yield
    elif folder.supervisor() is None:
        raise StackError(
            f"nothing runs in {folder.home}, and Airflow is not configured here; run `modwatch up` "
            "first, or this command where Airflow runs"
        )
    else:
        with embedded(folder.home / "postgres") as server:
            os.environ.update(_airflow(folder.home, server, settings).env)
            yield


def require_free_ports(urls: Mapping[str, str]) -> None:
    """Raise StackError unless each URL is on the loopback interface and its port is free.

    Keys are the variables of the URLs.

    >>> require_free_ports({"MODWATCH_CONSOLE_URL": "http://127.0.0.1:0"})
    """
    for setting, url in urls.items():
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 0
        if not is_loopback(host):
            raise StackError(
                f"{setting} is not on the loopback interface, where every part must listen; set it "
                f"to a URL such as http://127.0.0.1:{port or 8090}"
            )
        if not is_free(port, host):
            raise StackError(
                f"port {port} is in use; set {setting} to a URL with a free port, "
                f"such as http://127.0.0.1:{port + 1}"
            )


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Return whether nothing listens on a port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _airflow(home: Path, server: EmbeddedServer, settings: Settings) -> AirflowHome:
    url, database_url = settings.airflow_url, for_psycopg2(server.url("airflow"))
    return AirflowHome.create(home / "airflow", url=url, database_url=database_url)


def _migrate(airflow: AirflowHome, logs: Path, say: Callable[[str], None]) -> None:
    """Bring Airflow's tables up to date, with a message every ten seconds."""
    doing = "preparing Airflow's database"
    wait = Wait(say, usual=_USUAL_MIGRATION)
    say(f"{doing}; {wait.left()}")
    airflow.migrate(logs, meanwhile=lambda: wait.show(lambda: doing))


def for_psycopg2(url: str) -> str:
    """Return `url` for the driver of Airflow and MLflow."""
    return url.replace("postgresql+psycopg://", "postgresql+psycopg2://", 1)


@contextmanager
def _databases(home: Path, settings: Settings) -> Iterator[EmbeddedServer]:
    """Run PostgreSQL, the review database migrated; the environment gets the URL of that."""
    name = "MODWATCH_DATABASE_URL"
    before = {name: os.environ[name]} if name in os.environ else {}
    with embedded(home / "postgres") as server, kept_running(server):
        if settings.is_embedded:
            os.environ[name] = server.application_url("modwatch")
            upgrade(server.url("modwatch"), application=APPLICATION)
        else:
            from modwatch.installation.resources import open_resources

            with open_resources(settings) as resources:
                resources.migrate()
        try:
            yield server
        finally:
            os.environ.pop(name, None)
            os.environ.update(before)


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
            sys.executable, "-m", "modwatch.installation.stack.mlflow_server", "server",
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
