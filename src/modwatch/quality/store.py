"""Where the verdicts and pages of the daily checks are kept: a folder a day, on any fsspec URL."""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass

from modwatch.lake.files import Folder
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
            self._folder.remove(self._verdict_name("scores", verdict.day))
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
        return sorted(
            datetime.date.fromisoformat(name) for name in self._folder.names() if name[:1].isdigit()
        )

    def save_page(self, day: datetime.date | None, html: str) -> str:
        """Keep the page of `day` (None: the list of days); return its path or URL."""
        return self._write(f"{day}/index.html" if day else "index.html", html)

    def read_page(self, day: datetime.date) -> str | None:
        """Return the page of `day`, or None when nothing was checked."""
        return self._read(f"{day}/index.html")

    def _verdict_name(self, suite: Suite, day: datetime.date) -> str:
        return f"{day}/{suite}.json"

    def _write(self, name: str, text: str) -> str:
        return self._folder.write(name, text.encode())

    def _read(self, name: str) -> str | None:
        content = self._folder.read(name)
        return None if content is None else content.decode()

    @property
    def _folder(self) -> Folder:
        return Folder(root=self.root, holds="check results")
