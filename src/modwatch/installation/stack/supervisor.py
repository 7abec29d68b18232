"""Starts, watches, restarts and stops the programs of a stack."""

import contextlib
import datetime
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx
import psutil

from modwatch.common.errors import StackError
from modwatch.installation.stack.logs import rotate
from modwatch.installation.stack.processes import (
    LAUNCH,
    MARK,
    Session,
    boot_id,
    end,
    members,
    session_of,
)
from modwatch.installation.stack.progress import USUAL_START, USUAL_STOP, Wait
from modwatch.installation.stack.record import PartState, StackFolder, StackRecord

#: Seconds between two looks at all parts.
_EVERY = 1.0
#: The same while a part starts.
_SOON = 0.25
#: Seconds after which a program that answers nowhere counts as started.
_PROBATION = 5.0
#: Seconds after which earlier deaths of a part are forgotten.
_SETTLED = 60.0
#: Longest wait before a restart, in seconds.
_LONGEST_WAIT = 60.0
#: Deaths in a row after which `check` calls a part broken; it is restarted all the same.
_BROKEN = 5
#: Seconds between two looks at the size of the logs.
_TIDY_EVERY = 60.0
#: Seconds that a program gets to end by itself.
_GRACE = 15.0


@dataclass(frozen=True, kw_only=True)
class Service:
    """One program of the stack."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    #: URL that returns 200 when the program is ready; None: see `is_ready`.
    ready_url: str | None = None
    #: Returns whether the program is ready; by default it is when it has started.
    is_ready: Callable[[], bool] | None = None
    #: URL to reach it; empty: none.
    address: str = ""
    #: Start it again when it dies.
    restart: bool = True


@dataclass(kw_only=True)
class _Neighbour:
    """A program that starts and restarts without us, such as the embedded PostgreSQL."""

    name: str
    find: Callable[[], int | None]
    pid: int | None
    restarts: int = 0
    last_end: str = ""

    def look(self) -> None:
        """Note whether it is another process than before."""
        pid = self.find()
        if pid != self.pid and self.pid is not None:
            self.restarts += 1
            self.last_end = f"died at {_now()}"
        self.pid = pid

    def state(self) -> PartState:
        """Return the last known state."""
        return PartState(
            name=self.name,
            state="ready" if self.pid else "restarting",
            pid=self.pid,
            address="",
            restarts=self.restarts,
            last_end=self.last_end,
        )


@dataclass(kw_only=True)
class _Part:
    """A service with its current process."""

    service: Service
    process: subprocess.Popen[bytes]
    session: Session
    begun: float
    status: str = "starting"
    #: It was ready once.
    proven: bool = False
    restarts: int = 0
    #: Deaths in a row.
    deaths: int = 0
    #: When the next start is due.
    due: float = 0.0
    last_end: str = ""

    def state(self) -> PartState:
        """Return the last known state."""
        return PartState(
            name=self.service.name,
            state=self.status,
            pid=self.process.pid if self.status in ("starting", "ready") else None,
            address=self.service.address,
            restarts=self.restarts,
            last_end=self.last_end,
        )


class Stack:
    """A context with running services; on exit they are stopped, newest first.

    A service that dies is started again: after a second, then two, four … and at most a minute.
    What its process left behind is ended first, so that no old worker runs next to its successor.
    One that dies before it was ever ready is not started again.

    >>> import tempfile, sys
    >>> with tempfile.TemporaryDirectory() as logs, Stack(logs=Path(logs)) as stack:
    ...     stack.start(Service(name="nap", command=[sys.executable, "-c", "print('up')"]))
    """

    def __init__(
        self,
        *,
        logs: Path,
        folder: StackFolder | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.logs = logs
        self.mark = secrets.token_hex(8)
        self.say = say
        self._folder = folder
        self._parts: list[_Part] = []
        self._neighbours: list[_Neighbour] = []
        self._sessions: dict[int, Session] = {}
        self._phase = "starting"
        self._lock = threading.RLock()
        self._done, self._idle, self._stopped = (threading.Event() for _ in range(3))
        self._thread: threading.Thread | None = None

    def __enter__(self) -> "Stack":
        self._record()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, service: Service) -> None:
        """Start `service`; its output goes to `LOGS/NAME.log`."""
        self.logs.mkdir(parents=True, exist_ok=True)
        with self._lock:
            self._parts.append(self._started(service))
            self._record()
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, daemon=True, name="supervisor")
            self._thread.start()

    def show(self, name: str, find: Callable[[], int | None]) -> None:
        """Show a program that we do not start among the parts; `find` returns its process ID."""
        with self._lock:
            self._neighbours.append(_Neighbour(name=name, find=find, pid=find()))

    def wait_ready(self, *names: str, timeout: float = 180) -> None:
        """Wait until every service is ready, or those of these names.

        Raises:
            StackError: a service exited or was not ready in time; the message names its log.
        """
        what = f"start of {', '.join(self._starting(names))}"
        wait = self._wait(what, USUAL_START)
        while waiting := self._starting(names):
            self.check()
            wait.show(partial("waiting for {}".format, ", ".join(waiting)))
            if wait.elapsed() > timeout:
                raise StackError(
                    f"{waiting[0]} was not ready within {timeout:.0f} s; see "
                    f"{self._log(waiting[0])}"
                )
            time.sleep(0.1)
        self.check()
        self._remember(what, wait)
        if not names:
            with self._lock:
                self._phase = "running"
                self._record()

    def _starting(self, names: Collection[str]) -> list[str]:
        """Return the parts that are not ready yet, of these names if there are any."""
        found = [part.service.name for part in self._parts if part.status == "starting"]
        return [name for name in found if not names or name in names]

    def check(self) -> None:
        """Raise StackError when a service did not start, or dies again and again."""
        for part in list(self._parts):
            if part.status == "failed" or part.deaths >= _BROKEN:
                raise StackError(
                    f"{part.service.name} exited with {part.last_end}; "
                    f"see {self._log(part.service.name)}"
                )

    def pid(self, name: str) -> int:
        """Return the process ID of the service `name`."""
        return next(part.process.pid for part in self._parts if part.service.name == name)

    def parts(self) -> list[PartState]:
        """Return the last known state of every part."""
        return [*map(_Neighbour.state, self._neighbours), *map(_Part.state, self._parts)]

    def processes(self) -> list[psutil.Process]:
        """Return every running process of this stack."""
        with self._lock:
            found = members(self._sessions.values(), self.mark)
            for session in filter(None, map(session_of, found)):
                self._sessions.setdefault(session.sid, session)
        return found

    def stop(self) -> None:
        """Stop every service, newest first, then all that they left behind."""
        self._done.set()
        if self._thread is not None:
            self._idle.wait()
        self._phase = "stopping"
        self._record()
        wait = self._wait("stop", USUAL_STOP)
        for number, part in enumerate(reversed(self._parts), start=1):
            self.say(f"stopping {part.service.name}, {number} of {len(self._parts)}; {wait.left()}")
            self._end(part, wait)
        self._parts.clear()
        end(self.processes())
        self._remember("stop", wait)
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        """Watch and restart the parts until the stack is stopped.

        Linux ends programs with the thread that started them: this one stays until all are ended.
        """
        tidied = 0.0
        while not self._done.wait(_SOON if self._starting(()) else _EVERY):
            with self._lock:
                before = self.parts(), len(self._sessions)
                for part in self._parts:
                    self._check_part(part)
                for neighbour in self._neighbours:
                    neighbour.look()
                self.processes()  # records their sessions
                if time.monotonic() >= tidied + _TIDY_EVERY:
                    tidied = time.monotonic()
                    rotate(self.logs)
                if before != (self.parts(), len(self._sessions)):
                    self._record()
        self._idle.set()
        self._stopped.wait()

    def _check_part(self, part: _Part) -> None:
        now = time.monotonic()
        if part.status == "restarting":
            if now >= part.due:
                self._restart(part)
        elif part.status != "failed" and part.process.poll() is not None:
            self._handle_exit(part, now)
        elif part.status == "starting" and _answers(part.service):
            part.status = "ready"
            where = f" at {part.service.address}" if part.service.address else ""
            self.say(f"{part.service.name} is ready{where}")
        if part.status == "ready":
            age = now - part.begun
            asked = part.service.ready_url or part.service.is_ready
            part.proven |= asked is not None or age > _PROBATION
            part.deaths = 0 if age > _SETTLED else part.deaths

    def _handle_exit(self, part: _Part, now: float) -> None:
        """Note the end of a part, and when it starts again."""
        status = part.process.returncode
        how = f"status {status}" if status >= 0 else signal.Signals(-status).name
        part.last_end = f"{how} at {_now()}"
        part.deaths += 1
        name = part.service.name
        if not (part.proven and part.service.restart):
            part.status = "failed"
            self.say(f"{name} exited with {part.last_end}; see {self._log(name)}")
            return
        wait = min(2.0 ** (part.deaths - 1), _LONGEST_WAIT)
        part.status, part.due = "restarting", now + wait
        self.say(f"{name} exited with {part.last_end}; it starts again in {wait:.0f} s")

    def _restart(self, part: _Part) -> None:
        end(members([part.session], ""), grace=2)
        fresh = self._started(part.service)
        part.process, part.session, part.begun = fresh.process, fresh.session, fresh.begun
        part.status = "starting"
        part.restarts += 1

    def _started(self, service: Service) -> _Part:
        with self._log(service.name).open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", LAUNCH, str(os.getpid()), *service.command],
                env={**os.environ, **service.env, MARK: self.mark},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches this process only, which stops services
            )
        session = Session(sid=process.pid, started=psutil.Process(process.pid).create_time())
        self._sessions[session.sid] = session
        return _Part(service=service, process=process, session=session, begun=time.monotonic())

    def _record(self) -> None:
        """Record what another process must know to show or end this stack."""
        if self._folder is None:
            return
        record = StackRecord(
            mark=self.mark,
            pid=os.getpid(),
            boot=boot_id(),
            phase=self._phase,
            parts=self.parts(),
            sessions=list(self._sessions.values()),
        )
        self._folder.write(record)

    def _end(self, part: _Part, wait: Wait) -> None:
        """Terminate a program and its group; kill it if it stays."""
        _signal_group(part.process.pid, signal.SIGTERM)
        deadline = time.monotonic() + _GRACE
        while part.process.poll() is None:
            if time.monotonic() > deadline:
                _signal_group(part.process.pid, signal.SIGKILL)
                part.process.wait()
            wait.show(lambda: f"{part.service.name} ends its work, in {_GRACE:.0f} s at most")
            time.sleep(0.05)
        part.status = "stopped"
        self._record()

    def _wait(self, what: str, usual: float) -> Wait:
        known = usual if self._folder is None else self._folder.usual(what, usual)
        return Wait(self.say, usual=known)

    def _remember(self, what: str, wait: Wait) -> None:
        if self._folder is not None:
            self._folder.remember(what, wait.elapsed())

    def _log(self, name: str) -> Path:
        return self.logs / f"{name}.log"


def _answers(service: Service) -> bool:
    url = service.ready_url
    if url is None:
        return service.is_ready is None or service.is_ready()
    # Without TLS no certificates are loaded, which takes 20 ms of a core each time.
    tls = url.startswith("https:")
    try:
        return httpx.get(url, timeout=2, trust_env=False, verify=tls).status_code == 200
    except httpx.HTTPError:
        return False


def _signal_group(pid: int, which: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, which)


def _now() -> str:
    return datetime.datetime.now().astimezone().strftime("%H:%M:%S")


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt for SIGINT, SIGTERM and SIGHUP, so that `with` blocks exit.

    SIGINT is included because it is ignored in programs that a shell starts in the background.
    """

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {which: signal.signal(which, interrupt) for which in ends}
    try:
        yield
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)
