"""Kills a process that carries a step of an audit out, after so many of its files are written."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping

_CHILD = """
import os, signal, sys
from modwatch.data.lake.files import Folder
from modwatch.installation.resources import open_resources

write, left = Folder.write, int(sys.argv[1])

def counted(*arguments):
    global left
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return write(*arguments)

Folder.write = counted
with open_resources() as at:
    getattr(at.audit("small"), sys.argv[2])(*map(eval, sys.argv[3:]))
    # Not a file more is written: the kill falls behind the step.
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_after(writes: int, step: str, *arguments: object, env: Mapping[str, str]) -> bool:
    """Run `Audit.<step>` of the small audit in its own process; return whether it was killed.

    It dies by SIGKILL where it would write one file more than `writes`, or at its end.
    """
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(writes), step, *map(repr, arguments)],
        env={**os.environ, **env},
        capture_output=True,
        check=False,
        timeout=120,
    )
    return done.returncode == -signal.SIGKILL
