"""Runs a command of Modwatch as a process of its own, and kills it at a chosen moment.

The process is forked from a server that has imported everything, so that a kill costs no seconds
of start-up and falls into the work itself. A moment is a trace that the process is about to leave,
in a file, a Delta table or a database, not a time: the same one on a fast machine and a busy one.
"""

import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa

_CONTEXT = multiprocessing.get_context("forkserver")
#: A process that is stuck is told from a slow one: the longest takes seconds.
_LIMIT_SECONDS = 300
_PRELOADED = [
    "killing",
    "modwatch.cli.main",
    "modwatch_lab.community",
    "modwatch.models.registry",
    "modwatch.pipeline",
    "modwatch.pipeline.audit",
    "modwatch.monitoring.publishing.publication",
    "modwatch.data.validation",
    "modwatch.review.queue",
    "modwatch.models.scoring.local",
    "great_expectations",
    "matplotlib.figure",
    "mlflow.artifacts",
]

#: What leaves a trace in a file system, by the names of Python's audit events.
_CHANGES = {"os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a process ended."""

    killed: bool
    status: int | None
    #: How many traces it left; 0 of one that was killed.
    traces: int


def run(
    arguments: Sequence[str],
    env: Mapping[str, str],
    *,
    dies_at: int = 0,
    until: Callable[[], bool] = lambda: False,
) -> Ended:
    """Run `modwatch ARGUMENTS`, or `score_shard DAY PART`, which may be killed by SIGKILL.

    It dies where it would leave its trace number `dies_at`, from 1 on, or as soon as `until()`.
    """
    _CONTEXT.set_forkserver_preload(_PRELOADED)
    counted, counts = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_main, args=(list(arguments), dict(env), dies_at, counts))
    process.start()
    counts.close()
    deadline = time.monotonic() + _LIMIT_SECONDS
    while process.is_alive() and not until():
        if time.monotonic() > deadline:
            process.kill()
            raise TimeoutError(f"modwatch {arguments[0]} did not end")
        time.sleep(0.001)
    process.kill()
    process.join()
    with counted:
        killed = process.exitcode == -signal.SIGKILL
        return Ended(killed=killed, status=process.exitcode, traces=0 if killed else counted.recv())


def _main(arguments: list[str], env: dict[str, str], dies_at: int, counts: Connection) -> None:
    from modwatch.cli.main import main

    os.environ.update(env)
    # Locks made from now on have no name that a killed process would leave behind.
    multiprocessing.set_start_method("fork", force=True)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    traces = _Traces(dies_at)
    status = _score_shard(*arguments[1:]) if arguments[0] == "score_shard" else main(arguments)
    counts.send(traces.left)
    sys.exit(status)


def _score_shard(day: str, part: str) -> int:
    """Score one shard, whose arguments are JSON, as the mapped task of the DAG does."""
    from modwatch.installation.resources import open_resources
    from modwatch.pipeline import daily

    with open_resources() as resources:
        daily.score_shard(resources, date.fromisoformat(day), **json.loads(part))
    return 0


class _Traces:
    """Counts the traces that this process leaves, and lets it die instead of a chosen one."""

    def __init__(self, dies_at: int) -> None:
        from deltalake import write_deltalake
        from sqlalchemy import Engine, event

        from modwatch.data.lake import delta

        self.left, self._dies_at = 0, dies_at
        sys.addaudithook(self._audited)
        for name in ("before_cursor_execute", "commit"):
            event.listen(Engine, name, self._leave)
        self._write_deltalake = write_deltalake
        vars(delta)["write_deltalake"] = self._write

    def _audited(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _CHANGES or (event == "open" and arguments[2] & _WRITING):
            self._leave()

    def _write(self, table: object, batches: Any, **options: Any) -> None:
        """Do what `write_deltalake` does: its files are written by Rust, which nobody audits."""
        stream = pa.RecordBatchReader.from_batches(batches.schema, self._traced(batches))
        self._write_deltalake(table, stream, **options)
        self._leave()

    def _traced(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        self._leave()
        for batch in batches:
            yield batch
            self._leave()

    def _leave(self, *_: object) -> None:
        if self.left + 1 == self._dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left += 1


def new_file(folder: Path) -> Callable[[], bool]:
    """Return a moment for `until`, which the process may outrun: a file is new below `folder`."""
    before = _files(folder)
    return lambda: bool(_files(folder) - before)


def _files(folder: Path) -> set[str]:
    return {f"{root}/{name}" for root, _, names in os.walk(folder) for name in names}
