"""Reads the logs of a stack: their last lines, and what is added."""

import contextlib
import time
from collections.abc import Callable, MutableMapping
from pathlib import Path

#: Characters of a line, about; more than the last lines need is not read.
_LINE = 4_000


def last_lines(path: Path, lines: int) -> tuple[str, int]:
    """Return the last `lines` lines of a file, and its size in bytes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.log"
    ...     written = path.write_text("one\\ntwo\\nthree\\n")
    ...     last_lines(path, 2)
    ('two\\nthree\\n', 14)
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - _LINE * lines))
        read = file.read(size - file.tell())
    kept = read.splitlines(keepends=True)[-lines:] if lines else []
    return b"".join(kept).decode("utf-8", "replace"), size


def follow(
    ends: MutableMapping[Path, int], *, show: Callable[[Path, str], None], every: float = 0.5
) -> None:
    """Show what is added to files after `ends` (bytes), until Ctrl-C."""
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            for path, end in ends.items():
                text, ends[path] = added(path, end)
                if text:
                    show(path, text)
            time.sleep(every)


def added(path: Path, end: int) -> tuple[str, int]:
    """Return the whole lines of a file after byte `end`, and where they end.

    A file that is shorter than before is read from its beginning.
    """
    size = path.stat().st_size
    begin = end if size >= end else 0
    with path.open("rb") as file:
        file.seek(begin)
        read = file.read(size - begin)
    whole = read[: read.rfind(b"\n") + 1]
    return whole.decode("utf-8", "replace"), begin + len(whole)
