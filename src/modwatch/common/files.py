"""Small files that are written whole or not at all, by default for their owner only."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

#: Modes: for the owner only, and as the user's umask has it.
PRIVATE, USUAL = 0o600, 0o666


def write_new(path: Path, content: bytes, *, mode: int = PRIVATE) -> None:
    """Write a file; FileExistsError if there is one."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)


def replace(path: Path, content: bytes, *, mode: int = PRIVATE) -> None:
    """Write a file whole or not at all, in place of an existing one."""
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    write_new(draft, content, mode=mode)
    draft.replace(path)


def kept(path: Path, fresh: str) -> str:
    """Return the content of a file, which has `fresh` at first; processes that race agree on it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        with tempfile.NamedTemporaryFile("w", dir=path.parent) as draft:  # mode 0600
            draft.write(fresh)
            draft.flush()
            with suppress(FileExistsError):  # another process was first
                path.hardlink_to(draft.name)
    return path.read_text()
