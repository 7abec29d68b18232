"""The store of validation results and their pages: a folder a day, on any fsspec URL."""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass

from modwatch.data.lake.files import Folder
from modwatch.data.validation.result import Suite, ValidationResult


@dataclass(frozen=True, kw_only=True)
class CheckStore:
    """Validation results as JSON, and pages as HTML.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     CheckStore(root=root).load("comments", datetime.date(2026, 1, 5)) is None
    True
    """

    #: Folder or URL; holds `2026-01-05/comments.json`, `2026-01-05/index.html`, `index.html`.
    root: str

    def save(self, result: ValidationResult) -> None:
        """Keep `result`, in place of an earlier one of the same suite and day.

        A new result for the comments removes that for the scores, which must be validated again.
        """
        if result.suite == "comments":
            self._folder.remove(f"{result.day}/scores.json")
        self._folder.write(f"{result.day}/{result.suite}.json", result.to_json().encode())

    def load(self, suite: Suite, day: datetime.date) -> ValidationResult | None:
        """Return the result of a suite on `day`, or None when it has not run."""
        content = self._folder.read(f"{day}/{suite}.json")
        return None if content is None else ValidationResult.from_json(content.decode())

    def history(self, suite: Suite, days: Iterable[datetime.date]) -> list[ValidationResult]:
        """Return the results of the `days` that have one, in the order of `days`."""
        return [result for day in days if (result := self.load(suite, day)) is not None]

    def days(self) -> list[datetime.date]:
        """Return the days that have been validated, in order."""
        return sorted(
            datetime.date.fromisoformat(name) for name in self._folder.names() if name[:1].isdigit()
        )

    def save_page(self, day: datetime.date | None, html: str) -> str:
        """Keep the page of `day` (None: the list of days); return its path or URL."""
        return self._folder.write(f"{day}/index.html" if day else "index.html", html.encode())

    def read_page(self, day: datetime.date) -> str | None:
        """Return the page of `day`, or None when it has not been validated."""
        content = self._folder.read(f"{day}/index.html")
        return None if content is None else content.decode()

    @property
    def _folder(self) -> Folder:
        return Folder(root=self.root, holds="validation results")
