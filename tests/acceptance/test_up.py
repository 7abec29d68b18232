"""`modwatch up` on a home of its own, whose parts and supervisor are killed one after the other."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from feed import good, write_json

from installation import MONDAY
from modwatch.installation.stack.airflow import AirflowHome
from modwatch.installation.stack.processes import MARK, members
from modwatch.installation.stack.record import StackFolder
from modwatch_lab.demo.airflow_runs import AirflowRuns

#: `tests/installation/stack` kills and stops small programs; `test_daily_job.py` runs all parts.
pytestmark = [pytest.mark.acceptance, pytest.mark.soak]

_PATIENCE = 240
_DAG = "score_comments"


@dataclass(frozen=True, kw_only=True)
class Home:
    """A home and the environment of commands in it."""

    folder: StackFolder
    env: dict[str, str]

    def run(self, *arguments: str, status: int = 0) -> str:
        """Run a command of Modwatch, and return all that it printed."""
        done = self._command(*arguments)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def is_ready(self) -> bool:
        """Return whether all parts run: a part that was killed takes others with it for a while."""
        return self._command("status").returncode == 0

    def _command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "modwatch", *arguments],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
        )

    def pids(self) -> dict[str, int | None]:
        record = self.folder.read()
        assert record is not None
        return {part.name: part.pid for part in record.parts}

    def processes(self) -> list[psutil.Process]:
        record = self.folder.read()
        assert record is not None
        return members(record.sessions, record.mark)

    @contextmanager
    def client(self) -> Iterator[AirflowRuns]:
        folder, url = self.folder.home / "airflow", self.env["MODWATCH_AIRFLOW_URL"]
        client = AirflowRuns(AirflowHome.create(folder, url=url, database_url=""))
        try:
            yield client
        finally:
            client.close()


@pytest.fixture(scope="module")
def home(services):
    with ExitStack() as exits:
        folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)  # PostgreSQL, started by a root, runs as another user
        rows = [good(number, prob=0.2 + number / 100) for number in range(40)]
        write_json(folder / f"{MONDAY}.jsonl", rows)
        env = {name: value for name, value in os.environ.items() if "MODWATCH_" not in name}
        env |= {
            "MODWATCH_HOME": str(folder / "home"),
            "MODWATCH_DATABASE_URL": "embedded",
            "MODWATCH_FIRST_DAY": MONDAY.isoformat(),
            "MODWATCH_LAST_DAY": MONDAY.isoformat(),
            "MODWATCH_SOURCE__KIND": "files",
            "MODWATCH_SOURCE__PATH": str(folder / "{dt}.jsonl"),
            "MODWATCH_SOURCE__OWN_SCORES": "true",
        }
        for name in ("AIRFLOW", "MLFLOW", "CONSOLE"):
            probe = exits.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            env[f"MODWATCH_{name}_URL"] = f"http://127.0.0.1:{probe.getsockname()[1]}"
            probe.close()
        made = Home(folder=StackFolder(home=folder / "home"), env=env)
        exits.callback(made.run, "down")
        made.run("up", "--detach")
        yield made


def eventually(holds: Callable[[], Any], seconds: float = _PATIENCE) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.5)
    return found


def test_all_parts_are_ready_and_listen_on_loopback_only(home):
    shown = home.run("status")
    assert all(f"{name} " in shown for name in home.pids())
    assert len(home.pids()) == 7
    listening = {
        connection.laddr.ip
        for process in home.processes()
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


def test_a_second_one_is_refused(home):
    supervisor = home.folder.supervisor()
    for command in (["up"], ["up", "--detach"]):
        assert f"already runs in {home.folder.home} (process {supervisor})" in home.run(
            *command, status=1
        )


@pytest.mark.parametrize(
    "name",
    [
        *("postgres", "mlflow", "console", "airflow-api-server", "airflow-scheduler"),
        *("airflow-dag-processor", "airflow-triggerer"),
    ],
)
def test_a_part_that_is_killed_comes_back(home, name):
    eventually(home.is_ready)  # what was killed before took others with it
    before = home.pids()[name]
    assert before is not None
    os.kill(before, signal.SIGKILL)
    eventually(lambda: home.pids()[name] not in (before, None))
    eventually(lambda: "ready" in _line(home, name))
    assert not psutil.pid_exists(before) or _zombie(before)


def _line(home: Home, name: str) -> str:
    record = home.folder.read()
    assert record is not None
    return next(part.state for part in record.parts if part.name == name)


def _zombie(pid: int) -> bool:
    return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


def test_a_day_survives_the_supervisor_and_its_workers(home):
    """Killed with a task at work: the next `up` ends the old worker, and the day is finished."""
    eventually(home.is_ready)
    home.run("person", "add", "ada", "--role", "lead")
    with home.client() as client:
        client.wait_for_dags({_DAG})
        client.unpause(_DAG)
        client.backfill(_DAG, MONDAY, MONDAY)
        workers = eventually(lambda: [p for p in home.processes() if _is_renamed(p)])
        eventually(lambda: "running" in _states(client))
    supervisor = home.folder.supervisor()
    assert supervisor is not None
    os.kill(supervisor, signal.SIGKILL)
    eventually(lambda: home.folder.supervisor() is None)
    home.run("status", status=1)

    home.run("up", "--detach")
    assert not any(worker.is_running() and not _zombie(worker.pid) for worker in workers)
    with home.client() as client:
        [run] = client.wait(_DAG, 1, timeout=_PATIENCE)
        assert (run.day, run.state) == (MONDAY, "success")
    assert "ada" in home.run("person", "list")


def _is_renamed(process: psutil.Process) -> bool:
    """Return whether a process is a worker whose environment its title has overwritten."""
    try:
        return "LocalExecutor" in " ".join(process.cmdline()) and MARK not in process.environ()
    except psutil.Error:
        return False


def _states(client: AirflowRuns) -> set[str]:
    return {
        state
        for run in client.runs(_DAG)
        for state in client.task_states(_DAG, run.run_id).values()
    }


def test_nothing_is_left_after_down(home):
    """It ends everything."""
    processes = [*home.processes(), psutil.Process(home.pids()["postgres"])]
    assert len(processes) > 7
    assert "is stopped" in home.run("down")
    assert [p for p in processes if p.is_running() and not _zombie(p.pid)] == []
    assert "nothing runs" in home.run("status", status=1)
    assert "nothing runs" in home.run("down")


def test_a_home_that_was_moved_starts_where_it_is(home):
    """After all others: nothing runs, and nothing is written to the old place."""
    home.run("down")  # it runs if a test before has failed
    place = home.folder.home.rename(home.folder.home.with_name("moved"))
    moved = Home(folder=StackFolder(home=place), env={**home.env, "MODWATCH_HOME": str(place)})
    try:
        said = moved.run("up", "--detach")
        assert moved.env["MODWATCH_AIRFLOW_URL"] in said
        assert f"password in {place}/airflow/passwords.json" in said
        assert moved.is_ready()
        assert "ada" in moved.run("person", "list")
        with moved.client() as client:
            assert [run.state for run in client.runs(_DAG)] == ["success"]
        assert not home.folder.home.exists()
    finally:
        moved.run("down")
