"""A training of the tiny model in a process of its own, which dies by a real SIGKILL.

It is forked from a server that has PyTorch, whose import takes longer than the training.
"""

import multiprocessing
import os
import signal
from dataclasses import replace
from pathlib import Path

_CONTEXT = multiprocessing.get_context("forkserver")


def train_until_killed(method: str, folder: Path, steps: int) -> int | None:
    """Train two members with checkpoints in `folder`; return the status of the process.

    It kills itself after so many steps, unless it ends before.
    """
    _CONTEXT.set_forkserver_preload(["modwatch.models.training"])
    process = _CONTEXT.Process(target=_train, args=(method, folder, steps))
    process.start()
    process.join(timeout=300)
    if process.is_alive():
        process.kill()
        raise TimeoutError("the training did not end")
    return process.exitcode


def _train(method: str, folder: Path, steps: int) -> None:
    from models.conftest import TINY, tiny_corpus
    from modwatch.models.training import train

    left = steps

    def count(_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    recipe = replace(TINY, method=method, members=2)
    train(*tiny_corpus(), recipe=recipe, seed=1, checkpoints=folder, progress=count)
