"""Airflow in a stack: its configuration, its programs, and a client of its REST API."""

import datetime
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg

from modwatch.common.errors import StackError
from modwatch.common.files import kept
from modwatch.common.installed import SCORING, dags_folder
from modwatch.installation.stack.supervisor import Service

USER = "admin"

#: Seconds that a call may take, when all cores are busy.
_TIMEOUT = 120

#: Log servers would listen on all interfaces; the API server reads the files itself.
_PROGRAMS = (
    ("api-server",),
    ("scheduler", "--skip-serve-logs"),
    ("dag-processor",),
    ("triggerer", "--skip-serve-logs"),
)


#: When a program works, besides being there, by Airflow's tables: a DAG was parsed, and tasks are
#: started. Parameter: since.
_WORKS = {
    "dag-processor": f"SELECT FROM dag WHERE dag_id = '{SCORING}' AND NOT is_stale "
    "AND last_parsed_time > %s",
    "scheduler": "SELECT FROM job WHERE job_type = 'SchedulerJob' AND state = 'running' "
    "AND latest_heartbeat > %s",
}


@dataclass(frozen=True, kw_only=True)
class AirflowHome:
    """Configuration of Airflow: folder, URL and credentials."""

    folder: Path
    url: str
    database_url: str
    password: str
    jwt_secret: str

    @classmethod
    def create(cls, folder: Path, *, url: str, database_url: str) -> "AirflowHome":
        """Return the home in `folder`, with the password and the secret that it was made with."""
        jwt_secret = kept(folder / "jwt_secret", secrets.token_urlsafe(48))
        passwords = kept(_passwords(folder), json.dumps({USER: secrets.token_urlsafe(12)}))
        return cls(
            folder=folder,
            url=url,
            database_url=database_url,
            password=json.loads(passwords)[USER],
            jwt_secret=jwt_secret,
        )

    @property
    def env(self) -> dict[str, str]:
        """The environment of every Airflow program."""
        parts = urlsplit(self.url)
        return {
            "AIRFLOW_HOME": str(self.folder),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags_folder()),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__EXECUTOR": "modwatch.pipeline.airflow.executor.PreloadingExecutor",
            "AIRFLOW__CORE__PARALLELISM": "2",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(_passwords(self.folder)),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": self.database_url,
            "AIRFLOW__API__HOST": parts.hostname or "127.0.0.1",
            "AIRFLOW__API__PORT": str(parts.port or 8080),
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API__SECRET_KEY": self.jwt_secret,
            "AIRFLOW__API_AUTH__JWT_SECRET": self.jwt_secret,
            # These, too: Airflow writes their paths into its configuration file, and home may move.
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(self.folder / "plugins"),
            "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(self.folder / "logs"),
            "AIRFLOW__LOGGING__DAG_PROCESSOR_CHILD_PROCESS_LOG_DIRECTORY": str(
                self.folder / "logs" / "dag_processor"
            ),
            # Files that have changed are parsed at once; the others took a sixth of a core.
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "120",
            "AIRFLOW__SCHEDULER__ENABLE_HEALTH_CHECK": "False",
            # Tasks of a scheduler that was killed are queued again by the next one. It misses the
            # old one after 30 s, and by default would look for its tasks every five minutes.
            "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "30",
            "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        }

    @property
    def is_migrated(self) -> bool:
        """Whether Airflow's tables are those of the version that is installed."""
        return self._migrated.exists() and self._migrated.read_text() == _version()

    @property
    def _migrated(self) -> Path:
        return self.folder / "migrated"

    def migrate(self, logs: Path, *, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Bring Airflow's tables up to date; `meanwhile` is called five times a second.

        Raises:
            StackError: that failed.
        """
        logs.mkdir(parents=True, exist_ok=True)
        env = {**os.environ, **self.env}
        with (
            (logs / "airflow-migrate.log").open("wb") as log,
            subprocess.Popen([_airflow(), "db", "migrate"], env=env, stdout=log, stderr=log) as run,
        ):
            try:
                while run.poll() is None:
                    meanwhile()
                    time.sleep(0.2)
            except BaseException:
                run.kill()
                raise
        if run.returncode:
            raise StackError(f"The migration of Airflow's database failed; see {log.name}")
        self._migrated.write_text(_version())

    def services(self) -> list[Service]:
        """Return the services of Airflow."""
        ready = {"api-server": f"{self.url}/api/v2/monitor/health"}
        since = datetime.datetime.now(datetime.UTC)
        works = {
            program: partial(_holds, self.database_url, condition, since)
            for program, condition in _WORKS.items()
        }
        return [
            Service(
                name=f"airflow-{program}",
                command=[_airflow(), program, *options],
                env=self.env,
                ready_url=ready.get(program),
                is_ready=works.get(program),
                address=self.url if program in ready else "",
            )
            for program, *options in _PROGRAMS
        ]


def _holds(database_url: str, condition: str, since: datetime.datetime) -> bool:
    """Return whether a row meets a condition; False while the database is down."""
    url = database_url.replace("postgresql+psycopg2://", "postgresql://", 1)
    try:
        with psycopg.connect(url, connect_timeout=2) as connection:
            return connection.execute(condition, (since,)).fetchone() is not None
    except psycopg.Error:
        return False


def _version() -> str:
    return metadata.version("apache-airflow-core")


def _airflow() -> str:
    return str(Path(sys.executable).with_name("airflow"))


def _passwords(folder: Path) -> Path:
    return folder / "passwords.json"


class AirflowClient:
    """The calls of Airflow's REST API that an installation needs."""

    def __init__(self, home: AirflowHome) -> None:
        self.http = httpx.Client(base_url=home.url, timeout=_TIMEOUT, trust_env=False)
        answer = self.http.post("/auth/token", json={"username": USER, "password": home.password})
        answer.raise_for_status()
        self.http.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"

    def close(self) -> None:
        """Close the connections."""
        self.http.close()

    def wait_for_dags(self, wanted: set[str], *, timeout: float = 60) -> None:
        """Wait until every DAG of `wanted` is parsed."""
        deadline = time.monotonic() + timeout
        while missing := wanted - {dag["dag_id"] for dag in self.get("/dags")["dags"]}:
            if time.monotonic() > deadline:
                errors = [e["filename"] for e in self.get("/importErrors")["import_errors"]]
                raise StackError(
                    f"Airflow has not parsed {sorted(missing)}; import errors: {errors}"
                )
            time.sleep(0.5)

    def unpause(self, dag_id: str) -> None:
        """Unpause `dag_id`."""
        self.http.patch(f"/api/v2/dags/{dag_id}", json={"is_paused": False}).raise_for_status()

    def next_run(self, dag_id: str) -> str:
        """Return when a DAG runs next by its schedule, or that it is paused, in words."""
        dag = self.get(f"/dags/{dag_id}")
        if dag["is_paused"]:
            return "paused"
        due = dag["next_dagrun_run_after"]
        if due is None:
            return "no run is planned by time"
        moment = datetime.datetime.fromisoformat(due).astimezone(datetime.UTC)
        return f"next run on {moment:%Y-%m-%d %H:%M} UTC"

    def get(self, path: str, **params: int) -> dict[str, Any]:
        """Return the response of GET `/api/v2{path}`."""
        answer = self.http.get(f"/api/v2{path}", params=params)
        answer.raise_for_status()
        return dict(answer.json())
