"""`modwatch up --detach`, `down` and `status`."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from modwatch.common.errors import StackError
from modwatch.common.installed import MEASURING, SCORING
from modwatch.installation.stack.processes import counted, members, postgres_pid
from modwatch.installation.stack.progress import USUAL_STOP, Wait
from modwatch.installation.stack.record import PartState, StackFolder, already_runs, end_leftovers
from modwatch.monitoring.publishing.view import days_address
from modwatch.settings import Settings

if TYPE_CHECKING:
    from modwatch.installation.stack.airflow import AirflowClient

#: Seconds for everything to become ready, on a slow machine with an empty home.
_START_SECONDS = 300
#: Seconds for everything to stop before the supervisor is killed.
_STOP_SECONDS = 120
#: Log of a supervisor in the background.
_LOG = "stack.log"


def up_detached(folder: StackFolder, *, show: Callable[[str], None]) -> None:
    """Run the installation of the environment in the background; return once it is ready.

    Raises:
        StackError: as `up`; the output of the supervisor is shown before.
    """
    if (pid := folder.supervisor()) is not None:
        raise already_runs(folder.home, pid)
    folder.prepare()
    log = folder.logs / _LOG
    with log.open("ab") as output:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "modwatch", "up"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        position = output.tell()
    deadline = time.monotonic() + _START_SECONDS
    while not _has_started(folder, supervisor.pid):
        ended = supervisor.poll() is not None
        position = _show_added(log, position, show)
        if ended:
            raise StackError(f"the installation did not start; see {log}")
        if time.monotonic() > deadline:
            raise StackError(f"not everything is ready after {_START_SECONDS} s; see {log}")
        time.sleep(0.2)
    _show_added(log, position, show)


def down(folder: StackFolder, *, say: Callable[[str], None]) -> str:
    """Stop everything that runs in a home; return what was done, in a sentence."""
    supervisor = folder.supervisor()
    if supervisor is not None:
        _end_supervisor(folder, supervisor, say)
    if not folder.exists():
        return f"nothing runs in {folder.home}"
    with folder.held():
        left = end_leftovers(folder)
        database = _stop_postgres(folder.home)
    if supervisor is None and not left and not database:
        return f"nothing runs in {folder.home}"
    extra = f", with {counted(left)} of an earlier run" if left else ""
    return f"everything in {folder.home} is stopped{extra}"


def describe(folder: StackFolder) -> str:
    """Return the state of every part as a table, or why there is none."""
    supervisor, record = folder.supervisor(), folder.read()
    if supervisor is None and record is None:
        return f"nothing runs in {folder.home}; `modwatch up` starts it"
    if record is None:
        return f"starting in {folder.home} (process {supervisor})"
    if supervisor is None:
        left = counted(len(members(record.sessions, record.mark)))
        return (
            f"the supervisor (process {record.pid}) of {folder.home} was killed and left {left}; "
            "`modwatch up` resumes, `modwatch down` ends what is left"
        )
    return f"{record.phase} in {folder.home} (process {supervisor})\n{_table(record.parts)}"


def is_ready(folder: StackFolder) -> bool:
    """Return whether all parts of a home are ready."""
    record = folder.read()
    if folder.supervisor() is None or record is None:
        return False
    return record.phase == "running" and all(part.state == "ready" for part in record.parts)


def start_daily_job(settings: Settings) -> None:
    """Let the DAGs of the daily job run by their schedule.

    Raises:
        StackError: Airflow has not parsed them.
    """
    with closing(_airflow(settings)) as client:
        client.wait_for_dags({SCORING, MEASURING})
        for dag in (SCORING, MEASURING):
            client.unpause(dag)


def daily_job(settings: Settings) -> str:
    """Return when the DAGs of the daily job run next, one line each, and how paused ones start."""
    import httpx

    try:
        with closing(_airflow(settings)) as client:
            states = {dag: client.next_run(dag) for dag in (SCORING, MEASURING)}
    except httpx.HTTPError as exc:
        return f"  daily job    Airflow does not answer ({type(exc).__name__})"
    lines = [f"  {dag:<22} {state}" for dag, state in states.items()]
    if "paused" in states.values():
        start = " && ".join(f"modwatch airflow run dags unpause {dag}" for dag in states)
        lines.append(f"  Every new day runs by itself after: {start}")
    return "\n".join(lines)


def _airflow(settings: Settings) -> "AirflowClient":
    from modwatch.installation.stack.airflow import AirflowClient, AirflowHome

    folder = settings.home.resolve() / "airflow"
    return AirflowClient(AirflowHome.create(folder, url=settings.airflow_url, database_url=""))


def pages(settings: Settings) -> str:
    """Return the addresses of the parts, one line each."""
    home = settings.home.resolve()
    rows = [
        (
            "Airflow",
            settings.airflow_url,
            f"user admin, password in {home / 'airflow'}/passwords.json",
        ),
        ("MLflow", days_address(settings.mlflow_url), ""),
        ("console", settings.console_url, "`modwatch token NAME` prints a token to sign in with"),
        ("validation", f"{settings.checks_root}/index.html", ""),
        ("logs", str(home / "logs"), "`modwatch logs`"),
    ]
    return "\n".join(f"  {name:<12} {where}   {note}".rstrip() for name, where, note in rows)


def _end_supervisor(folder: StackFolder, pid: int, say: Callable[[str], None]) -> None:
    """Ask a supervisor to stop, kill it if it does not, and report the parts that have stopped."""
    reported = set[str]()
    wait = Wait(say, usual=folder.usual("stop", USUAL_STOP))
    say(f"stopping all parts, in the end PostgreSQL; {wait.left()}")
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    while folder.supervisor() == pid:
        record = folder.read()
        parts = record.parts if record else ()
        for part in parts:
            if part.state == "stopped" and part.name not in reported:
                reported.add(part.name)
                say(f"{part.name} is stopped")
        wait.show(partial(_what_still_runs, parts))
        if wait.elapsed() > _STOP_SECONDS:
            say(f"process {pid} did not stop within {_STOP_SECONDS} s and is killed")
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)


def _what_still_runs(parts: Sequence[PartState]) -> str:
    names = [part.name for part in parts if part.state != "stopped"]
    return f"waiting for the end of {', '.join(names) or 'all'}"


def _has_started(folder: StackFolder, pid: int) -> bool:
    record = folder.read()
    return record is not None and record.pid == pid and record.phase == "running"


def _show_added(log: Path, position: int, show: Callable[[str], None]) -> int:
    """Show the whole lines of a log after `position`; return where they end."""
    with log.open("rb") as file:
        file.seek(position)
        read = file.read()
    whole = read[: read.rfind(b"\n") + 1]
    if whole:
        show(whole.decode("utf-8", "replace").rstrip("\n"))
    return position + len(whole)


def _table(parts: Sequence[PartState]) -> str:
    rows: list[tuple[str, ...]] = [("part", "state", "pid", "address", "restarts", "last end")]
    rows += [tuple("" if cell is None else str(cell) for cell in astuple(part)) for part in parts]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(f"{cell:{w}}" for cell, w in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _stop_postgres(home: Path) -> bool:
    """Stop the PostgreSQL of a home if it runs without a user; return whether it did."""
    if postgres_pid(home) is None:
        return False
    from modwatch.review.embedded import embedded

    with embedded(home / "postgres"):
        pass  # the last user stops it
    return postgres_pid(home) is None
