"""Airflow in a stack: its configuration, and its programs."""

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit

from modwatch.common.errors import StackError
from modwatch.common.installed import dags_folder
from modwatch.installation.stack.supervisor import Service

USER = "admin"

#: Log servers would listen on all interfaces; the API server reads the files itself.
_PROGRAMS = (
    ("api-server",),
    ("scheduler", "--skip-serve-logs"),
    ("dag-processor",),
    ("triggerer", "--skip-serve-logs"),
)


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
        folder.mkdir(parents=True, exist_ok=True)
        jwt_secret = _kept(folder / "jwt_secret", secrets.token_urlsafe(48))
        passwords = _kept(_passwords(folder), json.dumps({USER: secrets.token_urlsafe(12)}))
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
            "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(self.folder / "logs"),
            # A small day takes seconds: look for ended tasks more often than once a second.
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
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
        return [
            Service(
                name=f"airflow-{program}",
                command=[_airflow(), program, *options],
                env=self.env,
                ready_url=ready.get(program),
                address=self.url if program in ready else "",
            )
            for program, *options in _PROGRAMS
        ]


def _version() -> str:
    return metadata.version("apache-airflow-core")


def _airflow() -> str:
    return str(Path(sys.executable).with_name("airflow"))


def _passwords(folder: Path) -> Path:
    return folder / "passwords.json"


def _kept(path: Path, fresh: str) -> str:
    """Return the content of a file that only its owner can read, made with `fresh` at first."""
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(fresh)
    return path.read_text()
