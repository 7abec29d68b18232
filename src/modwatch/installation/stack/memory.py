"""Measures the memory of a stack while it runs."""

import os
import threading
from pathlib import Path

import psutil

from modwatch.installation.stack.processes import family
from modwatch.installation.stack.supervisor import Stack


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
            processes = {*family(os.getpid()), *self._server(), *self._stack.processes()}
            self.peak_bytes = max(self.peak_bytes, sum(map(_proportional_bytes, processes)))

    def _server(self) -> list[psutil.Process]:
        if self._pid_file is None or not self._pid_file.exists():
            return []
        return family(int(self._pid_file.read_text().split()[0]))


def _proportional_bytes(process: psutil.Process) -> int:
    """Return the proportional set size: shared pages are split among their processes."""
    try:
        return int(process.memory_full_info().pss)
    except (psutil.Error, OSError, AttributeError):
        return 0
