"""The processes of a stack, found whatever they do to their titles, groups and parents.

Programs rename themselves: Airflow's workers overwrite the memory where Linux keeps their
environment, so that a variable does not find them. They cannot change the session that they were
born into, only leave it for one of their own. A process belongs to a stack if its session does, if
its environment has the stack's mark, or if its parent belongs to it.
"""

import contextlib
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

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
    wanted = {each.sid for each in sessions if not _is_reused(each)}
    running = list(psutil.process_iter(["ppid"]))
    found = {each for each in running if _sid(each) in wanted or _has_mark(each, mark)}
    pids = {each.pid for each in found} - {os.getpid()}
    while added := {p for p in running if p.info["ppid"] in pids} - found:
        found |= added
        pids |= {each.pid for each in added}
    return [each for each in found if each.pid != os.getpid() and not _is_zombie(each)]


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


def family(pid: int) -> list[psutil.Process]:
    """Return a process and its descendants."""
    with contextlib.suppress(psutil.Error):
        head = psutil.Process(pid)
        return [head, *head.children(recursive=True)]
    return []


def counted(processes: int) -> str:
    """Return a number of processes in words.

    >>> counted(1), counted(2)
    ('1 process', '2 processes')
    """
    return f"{processes} process{'' if processes == 1 else 'es'}"


def _sid(process: psutil.Process) -> int | None:
    try:
        return os.getsid(process.pid)
    except OSError:
        return None


def _is_reused(session: Session) -> bool:
    """Return whether the number of a session is another process's by now."""
    try:
        started: float = psutil.Process(session.sid).create_time()
    except psutil.Error:
        return False  # its leader is gone; the number stays taken while it has members
    return session.started is None or abs(started - session.started) > _SAME_START


def _has_mark(process: psutil.Process, mark: str) -> bool:
    try:
        return bool(process.environ().get(MARK) == mark)
    except (psutil.Error, OSError):
        return False


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return True
