"""Where the verdicts and pages of the daily checks are kept: a folder a day, on any fsspec URL."""

import datetime
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from modwatch.errors import LakeError
from modwatch.quality.verdict import Suite, Verdict


@dataclass(frozen=True, kw_only=True)
class CheckStore:
    """Verdicts as JSON and pages as HTML.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     CheckStore(root=root).load("comments", datetime.date(2026, 1, 5)) is None
    True
    """

    #: Folder or URL; holds `2026-01-05/comments.json`, `2026-01-05/index.html`, `index.html`.
    root: str

    def save(self, verdict: Verdict) -> None:
        """Keep `verdict`, in place of an earlier one of the same suite and day.

        A new verdict on the comments ends that on the scores, which are to be made again.
        """
        if verdict.suite == "comments":
            self._remove(self._verdict_name("scores", verdict.day))
        self._write(self._verdict_name(verdict.suite, verdict.day), verdict.to_json())

    def load(self, suite: Suite, day: datetime.date) -> Verdict | None:
        """Return the verdict of a suite on `day`, or None when it has not run."""
        text = self._read(self._verdict_name(suite, day))
        return None if text is None else Verdict.from_json(text)

    def history(self, suite: Suite, days: Iterable[datetime.date]) -> list[Verdict]:
        """Return the verdicts of the `days` that have one, in the order of `days`."""
        return [verdict for day in days if (verdict := self.load(suite, day)) is not None]

    def days(self) -> list[datetime.date]:
        """Return the days that have been checked, in order."""
        fs, root = self._open()
        with _mapped(root, "read"):
            found = fs.ls(root, detail=False) if fs.exists(root) else []
        names = [PurePosixPath(path).name for path in found]
        return sorted(datetime.date.fromisoformat(name) for name in names if name[:1].isdigit())

    def save_page(self, day: datetime.date | None, html: str) -> str:
        """Keep the page of `day` (None: the list of days); return its path or URL."""
        return self._write(f"{day}/index.html" if day else "index.html", html)

    def read_page(self, day: datetime.date) -> str | None:
        """Return the page of `day`, or None when nothing was checked."""
        return self._read(f"{day}/index.html")

    def _verdict_name(self, suite: Suite, day: datetime.date) -> str:
        return f"{day}/{suite}.json"

    def _write(self, name: str, text: str) -> str:
        """Write whole or not at all: a reader never sees half a page."""
        fs, root = self._open()
        target = f"{root}/{name}"
        with _mapped(target, "written"):
            fs.makedirs(target.rsplit("/", 1)[0], exist_ok=True)
            fs.pipe_file(f"{target}.part", text.encode())
            fs.mv(f"{target}.part", target)
        return target

    def _read(self, name: str) -> str | None:
        fs, root = self._open()
        target = f"{root}/{name}"
        with _mapped(target, "read"):
            try:
                return str(fs.cat_file(target).decode())
            except FileNotFoundError:
                return None

    def _remove(self, name: str) -> None:
        fs, root = self._open()
        target = f"{root}/{name}"
        with _mapped(target, "removed"):
            if fs.exists(target):
                fs.rm_file(target)

    def _open(self) -> tuple[Any, str]:
        from fsspec.core import url_to_fs

        fs, root = url_to_fs(self.root)
        return fs, root.rstrip("/")


@contextmanager
def _mapped(target: str, doing: str) -> Iterator[None]:
    """Raise what a file system raises as LakeError; the results lie beside the tables."""
    try:
        yield
    except OSError as exc:
        raise LakeError(
            f"the check results at {target} could not be {doing} ({type(exc).__name__}); "
            "check MODWATCH_LAKE, its permissions and free space"
        ) from exc
