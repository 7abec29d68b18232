"""A folder of small files at any fsspec URL: local, in memory, or in an object store."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from modwatch.common.errors import LakeError
from modwatch.data.lake.privacy import keep_private


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
