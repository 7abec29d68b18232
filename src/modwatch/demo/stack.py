"""Starts, monitors and stops the processes of the demo."""

import contextlib
import ctypes
import os
import secrets
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil

from modwatch.errors import StackError

#: Environment variable of every process of a stack, to find processes that are left over.
_MARK = "MODWATCH_DEMO_STACK"
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, kw_only=True)
class Service:
    """One program of the stack."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    #: URL that returns 200 when the program is ready; None: ready when started.
    ready_url: str | None = None


class Stack:
    """A context with running services; on exit they are stopped, newest first.

    >>> import tempfile, sys
    >>> with tempfile.TemporaryDirectory() as logs, Stack(logs=Path(logs)) as stack:
    ...     stack.start(Service(name="nap", command=[sys.executable, "-c", "print('up')"]))
    """

    def __init__(self, *, logs: Path) -> None:
        self.logs = logs
        self.mark = secrets.token_hex(8)
        self._running: list[tuple[Service, subprocess.Popen[bytes]]] = []

    def __enter__(self) -> "Stack":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, service: Service) -> None:
        """Start `service`; its output goes to `LOGS/NAME.log`."""
        self.logs.mkdir(parents=True, exist_ok=True)
        with self._log(service).open("ab") as log:
            process = subprocess.Popen(
                service.command,
                env={**os.environ, **service.env, _MARK: self.mark},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches this process only, which stops services
                preexec_fn=_die_with_parent,
            )
        self._running.append((service, process))

    def wait_ready(self, *, timeout: float = 90) -> None:
        """Wait until every service is ready.

        Raises:
            StackError: a service exited or was not ready in time; the message names its log.
        """
        deadline = time.monotonic() + timeout
        for service, _ in self._running:
            while not _answers(service):
                self.check()
                if time.monotonic() > deadline:
                    raise StackError(
                        f"{service.name} was not ready within {timeout:.0f} s; "
                        f"see {self._log(service)}"
                    )
                time.sleep(0.3)

    def check(self) -> None:
        """Raise StackError when a service has exited."""
        for service, process in self._running:
            if process.poll() is not None:
                raise StackError(
                    f"{service.name} exited with status {process.returncode}; "
                    f"see {self._log(service)}"
                )

    def pid(self, name: str) -> int:
        """Return the process ID of the service `name`."""
        return next(process.pid for service, process in self._running if service.name == name)

    def stop(self) -> None:
        """Stop every service, newest first, then other processes with the mark of this stack."""
        while self._running:
            _, process = self._running.pop()
            _signal_group(process.pid, signal.SIGTERM)
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                _signal_group(process.pid, signal.SIGKILL)
                process.wait()
        self._sweep()

    def processes(self) -> list[psutil.Process]:
        """Return every running process with the mark of this stack."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def _sweep(self) -> None:
        strays = self.processes()
        for process in strays:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.terminate()
        _, alive = psutil.wait_procs(strays, timeout=5)
        for process in alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return bool(process.environ().get(_MARK) == self.mark)
        except (psutil.Error, OSError):
            return False

    def _log(self, service: Service) -> Path:
        return self.logs / f"{service.name}.log"


def require_free_ports(urls: Mapping[str, str]) -> None:
    """Raise StackError when the port of a URL is in use; keys are the variables of the URLs.

    >>> require_free_ports({"MODWATCH_CONSOLE_URL": "http://127.0.0.1:0"})
    """
    for setting, url in urls.items():
        parts = urlsplit(url)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((parts.hostname or "127.0.0.1", parts.port or 0))
            except OSError:
                raise StackError(
                    f"port {parts.port} is in use; set {setting} to a URL with a free port, "
                    f"such as http://127.0.0.1:{(parts.port or 0) + 1}"
                ) from None


class MemoryGauge:
    """Samples the memory of this process, its descendants, a stack and a server.

    `pid_file` is that of a server which is not a descendant, such as PostgreSQL.
    """

    def __init__(self, stack: Stack, *, pid_file: Path | None = None, every: float = 2.0) -> None:
        self.peak_bytes = 0
        self._stack = stack
        self._pid_file = pid_file
        self._every = every
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> "MemoryGauge":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._done.wait(self._every):
            processes = {*_family(os.getpid()), *self._server(), *self._stack.processes()}
            self.peak_bytes = max(self.peak_bytes, sum(map(_proportional_bytes, processes)))

    def _server(self) -> list[psutil.Process]:
        if self._pid_file is None or not self._pid_file.exists():
            return []
        return _family(int(self._pid_file.read_text().split()[0]))


def _family(pid: int) -> list[psutil.Process]:
    """Return a process and its descendants."""
    with contextlib.suppress(psutil.Error):
        head = psutil.Process(pid)
        return [head, *head.children(recursive=True)]
    return []


def _proportional_bytes(process: psutil.Process) -> int:
    """Return the proportional set size: shared pages are split among their processes."""
    try:
        return int(process.memory_full_info().pss)
    except (psutil.Error, OSError, AttributeError):
        return 0


def _answers(service: Service) -> bool:
    if service.ready_url is None:
        return True
    try:
        return httpx.get(service.ready_url, timeout=2, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def _signal_group(pid: int, which: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, which)


def _die_with_parent() -> None:
    """Let Linux terminate the child when the demo itself is killed."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


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
