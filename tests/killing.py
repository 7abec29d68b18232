"""Runs a command of Modwatch as a process of its own, and kills it at a chosen moment.

The process is forked from a server that has imported everything, so that a kill costs no seconds
of start-up and falls into the work itself.
"""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_CONTEXT = multiprocessing.get_context("forkserver")
_LIMIT_SECONDS = 60
_PRELOADED = [
    "killing",
    "modwatch.cli",
    "modwatch.ingest.community",
    "modwatch.models.registry",
    "modwatch.pipeline",
    "modwatch.stops.publication",
    "modwatch.quality",
    "modwatch.review.queue",
    "modwatch.scoring.local",
    "great_expectations",
    "matplotlib.figure",
    "mlflow.artifacts",
]


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a process ended."""

    killed: bool
    status: int | None
    seconds: float


def run_until(
    arguments: Sequence[str], env: Mapping[str, str], moment: Callable[[float], bool]
) -> Ended:
    """Run `modwatch ARGUMENTS`; SIGKILL it as soon as `moment(seconds since the start)`."""
    _CONTEXT.set_forkserver_preload(_PRELOADED)
    process = _CONTEXT.Process(target=_main, args=(list(arguments), dict(env)))
    process.start()
    started = time.monotonic()
    while process.is_alive() and (seconds := time.monotonic() - started) < _LIMIT_SECONDS:
        if moment(seconds):
            os.kill(process.pid, signal.SIGKILL)
            break
        time.sleep(0.001)
    process.join(_LIMIT_SECONDS)
    return Ended(
        killed=process.exitcode == -signal.SIGKILL,
        status=process.exitcode,
        seconds=time.monotonic() - started,
    )


def _main(arguments: list[str], env: dict[str, str]) -> None:
    from modwatch.cli import main

    os.environ.update(env)
    # Locks made from now on have no name that a killed process would leave behind.
    multiprocessing.set_start_method("fork", force=True)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    sys.exit(main(arguments))


def never(_: float) -> bool:
    return False


def after(seconds: float) -> Callable[[float], bool]:
    """Return a moment: so long after the start."""
    return lambda elapsed: elapsed >= seconds


def new_files(folders: Sequence[Path], count: int) -> Callable[[float], bool]:
    """Return a moment: when so many files have appeared below `folders` since now."""
    before, seen = _files(folders), set[str]()

    def moment(_: float) -> bool:
        seen.update(_files(folders) - before)
        return len(seen) >= count

    return moment


def _files(folders: Sequence[Path]) -> set[str]:
    walks = (walk for folder in folders for walk in os.walk(folder))
    return {f"{root}/{name}" for root, _, names in walks for name in names}
