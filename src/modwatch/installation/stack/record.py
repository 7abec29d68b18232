"""The record of a stack on disk: its supervisor, its parts, and the sessions of its processes."""

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from modwatch.common import files
from modwatch.common.errors import StackError
from modwatch.installation.stack.processes import Session, boot_id, end, members


@dataclass(frozen=True, kw_only=True)
class PartState:
    """The last known state of one part of a stack."""

    name: str
    #: `starting`, `ready`, `restarting` (it died, and its next start is due), `failed`, `stopped`.
    state: str
    pid: int | None
    #: Where it answers; empty for a program that listens nowhere.
    address: str
    #: How often it was started again.
    restarts: int
    #: Its last end, such as `SIGKILL at 14:05:09`; empty: it never ended.
    last_end: str


@dataclass(frozen=True, kw_only=True)
class StackRecord:
    """A stack, as its supervisor last recorded it."""

    mark: str
    #: Of the supervisor.
    pid: int
    boot: str
    #: `starting`, `running` or `stopping`.
    phase: str
    parts: Sequence[PartState]
    sessions: Sequence[Session]


@dataclass(frozen=True, kw_only=True)
class StackFolder:
    """The folder `HOME/run`: the lock of the only supervisor, and its record."""

    home: Path

    @property
    def _record(self) -> Path:
        return self.home / "run" / "stack.json"

    @property
    def _lock(self) -> Path:
        return self.home / "run" / "stack.lock"

    @property
    def _times(self) -> Path:
        return self.home / "run" / "durations.json"

    @property
    def logs(self) -> Path:
        """The folder with a log of each part."""
        return self.home / "logs"

    def exists(self) -> bool:
        """Return whether something was ever started in this home."""
        return self._lock.exists()

    def prepare(self) -> None:
        """Make the folders of locks and logs.

        Raises:
            StackError: this user may not write into the home.
        """
        try:
            for folder in (self._lock.parent, self.logs):
                folder.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=folder):
                    pass
        except OSError as exc:
            raise StackError(
                f"the home {self.home} cannot be written ({exc.strerror}); set MODWATCH_HOME to a "
                "folder that this user may write into"
            ) from None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Be the only supervisor of this home; Linux releases the lock of one that is killed.

        Raises:
            StackError: another process supervises it, or this user may not write into the home.
        """
        self.prepare()
        with self._lock.open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise already_runs(self.home, self.supervisor()) from None
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            yield

    def supervisor(self) -> int | None:
        """Return the process that supervises this home; None: none does."""
        try:
            with self._lock.open("r") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return int(lock.read() or 0) or None
        except (FileNotFoundError, NotADirectoryError):
            pass
        return None

    def write(self, record: StackRecord) -> None:
        """Replace the record."""
        content = json.dumps(asdict(record), indent=1).encode()
        files.replace(self._record, content, mode=files.USUAL)

    def read(self) -> StackRecord | None:
        """Return the record; None: there is none, or the machine has started since."""
        try:
            known: dict[str, Any] = json.loads(self._record.read_text())
        except (FileNotFoundError, NotADirectoryError):
            return None
        if known["boot"] != boot_id():
            return None
        known["parts"] = [PartState(**part) for part in known["parts"]]
        known["sessions"] = [Session(**session) for session in known["sessions"]]
        return StackRecord(**known)

    def usual(self, wait: str, default: float) -> float:
        """Return the seconds that a wait took when it was last measured here, or `default`."""
        return self._durations().get(wait, default)

    def remember(self, wait: str, seconds: float) -> None:
        """Keep how long a wait took, for `usual`."""
        self._times.write_text(json.dumps({**self._durations(), wait: round(seconds, 1)}))

    def _durations(self) -> dict[str, float]:
        try:
            return dict(json.loads(self._times.read_text()))
        except (FileNotFoundError, ValueError):  # of a supervisor that was killed while it wrote
            return {}

    def forget(self) -> None:
        """Remove the record of a stack that has no processes left."""
        self._record.unlink(missing_ok=True)


def already_runs(home: Path, supervisor: int | None) -> StackError:
    """Return the error for a second stack in a home."""
    return StackError(
        f"a stack already runs in {home} (process {supervisor or 'unknown'}); `modwatch status` "
        "shows it, `modwatch down` stops it"
    )


def end_leftovers(folder: StackFolder) -> int:
    """End the processes of a stack whose supervisor is gone; return how many.

    PostgreSQL keeps running: the next supervisor joins it.
    """
    record = folder.read()
    if record is None:
        return 0
    ended = end(members(record.sessions, record.mark), grace=10)
    folder.forget()
    return ended
