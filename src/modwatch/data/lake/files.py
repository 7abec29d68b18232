"""A folder of small files at any fsspec URL: local, in memory, or in an object store.

Local folders with comments in them are readable only by the user who runs Modwatch.
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from modwatch.common.errors import LakeError

_log = logging.getLogger(__name__)

#: Folders that were looked at, so that each is warned of once in a process.
_seen: set[Path] = set()


@dataclass(frozen=True, kw_only=True)
class Folder:
    """A folder whose files are read and written as a whole.

    >>> folder = Folder(root="memory://an-example", holds="notes")
    >>> target = folder.write("a/b.txt", b"c")
    >>> folder.read("a/b.txt"), folder.read("missing"), folder.names()
    (b'c', None, ['a'])
    """

    #: Path or URL.
    root: str
    #: Description of the files, for messages.
    holds: str

    def write(self, name: str, content: bytes) -> str:
        """Write a file atomically; return its path or URL."""
        fs, root = self._open()
        target = f"{root}/{name}"
        with self._mapped(name, "written"):
            keep_private(self.root)
            fs.makedirs(target.rsplit("/", 1)[0], exist_ok=True)
            fs.pipe_file(f"{target}.part", content)
            fs.mv(f"{target}.part", target)
        return target

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or None when it does not exist."""
        fs, root = self._open()
        target = f"{root}/{name}"
        with self._mapped(name, "read"):
            try:
                return bytes(fs.cat_file(target))
            except FileNotFoundError:
                return None

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        fs, root = self._open()
        target = f"{root}/{name}"
        with self._mapped(name, "removed"):
            if fs.exists(target):
                fs.rm_file(target)

    def names(self, below: str = "") -> list[str]:
        """Return the names of the files and folders in the folder, or in its subfolder `below`."""
        fs, root = self._open()
        target = f"{root}/{below}".rstrip("/")
        with self._mapped(below, "read"):
            paths = fs.ls(target, detail=False, refresh=True) if fs.exists(target) else []
        return sorted(PurePosixPath(path).name for path in paths)

    def _open(self) -> tuple[Any, str]:
        from fsspec.core import url_to_fs

        fs, root = url_to_fs(self.root)
        return fs, root.rstrip("/")

    @contextmanager
    def _mapped(self, name: str, doing: str) -> Iterator[None]:
        """Raise errors of the file system as LakeError."""
        try:
            yield
        except _storage_errors() as exc:
            place = f"{self.root.rstrip('/')}/{name}".rstrip("/")
            raise LakeError(
                f"the {self.holds} at {place} could not be {doing} ({type(exc).__name__}); "
                "check MODWATCH_LAKE, its permissions and free space"
            ) from exc


def _storage_errors() -> tuple[type[Exception], ...]:
    """Return what file systems raise; that of S3 does not turn all of it into OSError."""
    s3 = sys.modules.get("botocore.exceptions")
    return (OSError, s3.BotoCoreError) if s3 else (OSError,)


def keep_private(root: str) -> None:
    """Create the folder `root` for its owner only (mode 0700), if it is local and does not exist.

    What is inside is then closed to others, whatever its own mode. Others may want a folder that
    exists to be readable for a group, so it is not changed: a warning names the command. An object
    store has its own rules.
    """
    folder = _local(root)
    if folder is None or folder in _seen:
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if folder.stat().st_mode & 0o077:
            _log.warning(
                "Other users of this machine may read the comments in %s; run: chmod 700 '%s'",
                folder,
                folder,
                extra={"event": "lake.readable", "folder": str(folder)},
            )
    _seen.add(folder)


def _local(root: str) -> Path | None:
    parts = urlsplit(root)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if "://" in root else Path(root).expanduser().absolute()
