"""The processes of a stack, found whatever they do to their titles, groups and parents.

Programs rename themselves: Airflow's workers overwrite the memory where Linux keeps their
environment, so that a variable does not find them. They cannot change the session that they were
born into, only leave it for a new one. A process belongs to a stack if its session does, if
its environment has the stack's mark, or if its parent belongs to it.
"""

import contextlib
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

#: A Python program that Linux terminates when its parent dies, and that becomes another program:
#: `LAUNCH PARENT COMMAND …`. Code between fork and exec is unsafe in a process with threads.
LAUNCH = (
    "import ctypes, os, signal, sys\n"
    "_, parent, *command = sys.argv\n"
    "ctypes.CDLL(None).prctl(1, signal.SIGTERM)\n"  # PR_SET_PDEATHSIG
    "if os.getppid() != int(parent): sys.exit(1)\n"  # it died before
    "os.execvp(command[0], command)\n"
)

#: Environment variable of every process of a stack.
MARK = "MODWATCH_STACK"

#: Linux counts the start of a process in hundredths of a second since boot.
_SAME_START = 1.0


@dataclass(frozen=True, kw_only=True)
class Session:
    """A session that processes of a stack were seen in."""

    sid: int
    #: When its leader started, in seconds since 1970; None: the leader was gone when it was seen.
    started: float | None


def boot_id() -> str:
    """Return what identifies this run of the machine; process ids of another mean nothing."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def session_of(process: psutil.Process) -> Session | None:
    """Return the session of a process; None when it has ended."""
    try:
        sid = os.getsid(process.pid)
    except OSError:
        return None
    try:
        return Session(sid=sid, started=psutil.Process(sid).create_time())
    except psutil.Error:
        return Session(sid=sid, started=None)


def members(sessions: Iterable[Session], mark: str) -> list[psutil.Process]:
    """Return the running processes of a stack, without this one."""
    wanted = {session.sid for session in sessions if not _is_reused(session)}
    running = list(psutil.process_iter(["ppid"]))
    found = {process for process in running if _is_member(process, wanted, mark)}
    pids = {process.pid for process in found} - {os.getpid()}
    while added := {process for process in running if process.info["ppid"] in pids} - found:
        found |= added
        pids |= {process.pid for process in added}
    return [process for process in found if process.pid != os.getpid() and is_alive(process)]


def end(processes: Collection[psutil.Process], *, grace: float = 5) -> int:
    """Terminate `processes`, kill after `grace` seconds those that stay; return how many ended."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    _, alive = psutil.wait_procs(processes, timeout=grace)
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    _, alive = psutil.wait_procs(alive, timeout=grace)
    return len(processes) - len(alive)


def counted(processes: int) -> str:
    """Return a number of processes in words.

    >>> counted(1), counted(2)
    ('1 process', '2 processes')
    """
    return f"{processes} process{'' if processes == 1 else 'es'}"


def postgres_pid(home: Path) -> int | None:
    """Return the process of the PostgreSQL of a home, which outlives supervisors, if it runs."""
    try:
        pid = int((home / "postgres" / "cluster" / "postmaster.pid").read_text().split()[0])
        process = psutil.Process(pid)
        return pid if process.name().startswith("postgres") and is_alive(process) else None
    except (OSError, ValueError, IndexError, psutil.Error):
        return None


def is_alive(process: psutil.Process) -> bool:
    """Return whether a process runs, and is not just waited for by its parent."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _is_member(process: psutil.Process, sessions: Collection[int], mark: str) -> bool:
    try:
        return os.getsid(process.pid) in sessions or process.environ().get(MARK) == mark
    except (psutil.Error, OSError):
        return False


def _is_reused(session: Session) -> bool:
    """Return whether the number of a session is another process's by now."""
    try:
        started: float = psutil.Process(session.sid).create_time()
    except psutil.Error:
        return False  # its leader is gone; the number stays taken while it has members
    return session.started is None or abs(started - session.started) > _SAME_START
