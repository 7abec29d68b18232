"""A folder of small files, on any fsspec URL: local, in memory, or in an object store."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from modwatch.errors import LakeError


@dataclass(frozen=True, kw_only=True)
class Folder:
    """Reads and writes whole files.

    >>> folder = Folder(root="memory://an-example", holds="notes")
    >>> target = folder.write("a/b.txt", b"c")
    >>> folder.read("a/b.txt"), folder.read("missing"), folder.names()
    (b'c', None, ['a'])
    """

    #: Path or URL.
    root: str
    #: What is kept there, for messages.
    holds: str

    def write(self, name: str, content: bytes) -> str:
        """Write whole or not at all, so that no reader sees half of it; return its path or URL."""
        fs, root = self._open()
        target = f"{root}/{name}"
        with self._mapped(target, "written"):
            fs.makedirs(target.rsplit("/", 1)[0], exist_ok=True)
            fs.pipe_file(f"{target}.part", content)
            fs.mv(f"{target}.part", target)
        return target

    def read(self, name: str) -> bytes | None:
        """Return a file, or None when there is none of that name."""
        fs, root = self._open()
        target = f"{root}/{name}"
        with self._mapped(target, "read"):
            try:
                return bytes(fs.cat_file(target))
            except FileNotFoundError:
                return None

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        fs, root = self._open()
        target = f"{root}/{name}"
        with self._mapped(target, "removed"):
            if fs.exists(target):
                fs.rm_file(target)

    def names(self, below: str = "") -> list[str]:
        """Return the names of the files and folders in the folder, or in one below it."""
        fs, root = self._open()
        target = f"{root}/{below}".rstrip("/")
        with self._mapped(target, "read"):
            found = fs.ls(target, detail=False, refresh=True) if fs.exists(target) else []
        return sorted(PurePosixPath(path).name for path in found)

    def _open(self) -> tuple[Any, str]:
        from fsspec.core import url_to_fs

        fs, root = url_to_fs(self.root)
        return fs, root.rstrip("/")

    @contextmanager
    def _mapped(self, target: str, doing: str) -> Iterator[None]:
        """Raise what a file system raises as LakeError; what is kept lies beside the tables."""
        try:
            yield
        except OSError as exc:
            raise LakeError(
                f"the {self.holds} at {target} could not be {doing} ({type(exc).__name__}); "
                "check MODWATCH_LAKE, its permissions and free space"
            ) from exc
