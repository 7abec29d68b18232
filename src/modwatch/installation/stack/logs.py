"""The logs of a stack stay small: one earlier part of each, and tasks of the last weeks."""

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

#: Bytes from which the log of a part begins anew.
LARGEST = 10 * 1024**2

#: Days after which logs of tasks and of the DAG processor are removed.
KEPT_DAYS = 30


def rotate(folder: Path, largest: int = LARGEST) -> None:
    """Move what is in large logs of a folder to `NAME.log.1`, which replaces an earlier one.

    The programs that write them go on: they append, to the file that is empty again.
    """
    for log in folder.glob("*.log"):
        with suppress(OSError):
            if log.stat().st_size > largest:
                shutil.copyfile(log, log.with_suffix(".log.1"))
                os.truncate(log, 0)


def remove_old(folder: Path, days: float = KEPT_DAYS) -> None:
    """Remove the files of a folder tree that nobody wrote to for some days, and empty folders."""
    oldest = time.time() - days * 24 * 3600
    for inside, _, names in os.walk(folder, topdown=False):
        for path in (Path(inside, name) for name in names):
            with suppress(OSError):
                if path.lstat().st_mtime < oldest:
                    path.unlink()
        if Path(inside) != folder:
            with suppress(OSError):  # not empty
                Path(inside).rmdir()
