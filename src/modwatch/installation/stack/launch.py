"""Becomes a program that Linux terminates when its parent dies: `launch.py PARENT COMMAND …`.

A script of its own, since code between fork and exec is unsafe in a process with threads.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(parent: int, *command: str) -> None:
    """Replace this process by `command`, unless its parent is already gone."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it died before the call above
        sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
