"""The result of validating a day: rules, counts and the numbers judged, without a text or an id.

`CheckStore` keeps them and their pages: a folder a day, on any fsspec URL.
"""

import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from modwatch.common.account import Account
from modwatch.common.errors import CheckError
from modwatch.data.lake.files import Folder

Suite = Literal["comments", "scores"]
Level = Literal["row", "day"]
Severity = Literal["critical", "warning", "info"]
Status = Literal["passed", "warned", "rejected"]


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One number of a day, as a rule judges it and as a person reads it."""

    #: Of a row-level rule, the failing rows. None without enough data; then the rule passes.
    value: float | None
    observed: str

    @classmethod
    def from_count(cls, failing: int, rows: int) -> "Measure":
        """Return how many rows fail a rule.

        >>> Measure.from_count(1, 4).observed
        '1 of 4 rows (25.0 %)'
        """
        text = f"{failing:,} of {rows:,} rows ({percentage(failing, rows)})" if failing else "none"
        return cls(value=failing, observed=text)


@dataclass(frozen=True, kw_only=True)
class RuleResult(Measure):
    """The outcome of one expectation on one day, and what was measured."""

    #: Named after the fault that the rule detects; also the reason in the quarantine.
    name: str
    #: The type of Great Expectations, and the columns that it reads.
    type: str = ""
    column: str = ""
    #: `row`: rows that fail it go to quarantine. `day`: validates the day as a whole.
    level: Level
    #: `critical` at day level rejects the day; a failing row is always quarantined; `info` is only
    #: shown.
    severity: Severity
    #: The values allowed, as text.
    allowed: str
    #: What the rule requires, as text.
    expectation: str
    #: What to do when it fails.
    remedy: str
    #: Whether it is of `expectations.json`.
    own: bool = False
    passed: bool


@dataclass(frozen=True, kw_only=True)
class ValidationResult:
    """The outcome of one suite on one day; small, and free of texts and ids."""

    suite: Suite
    day: date
    #: Rows validated.
    rows: int
    #: Rows that passed every row-level rule.
    valid: int
    results: tuple[RuleResult, ...]
    #: Quarantined rows by reason, which is the first rule that a row failed.
    quarantined: dict[str, int]
    #: Valid rows without a value that could not be read, by optional column and reason.
    left_out: dict[str, int] = field(default_factory=dict)
    #: Where the lines and records of the source ended; None: it was not kept.
    account: Account | None = None

    def with_account(self, account: Account | None, first: Mapping[str, str]) -> Self:
        """Return the result with the account of the source, whose landed rows it splits.

        `first` is where the first row of each reason is, without any value.

        Raises:
            CheckError: other rows landed than those of the account.
        """
        if account is None:
            return self
        if account.places["landed"] != self.rows:
            raise CheckError(
                f"The landed comments of {self.day} are not those that its last ingestion read; "
                "ingest the day again."
            )
        split = Account(read=account.read, places=account.places, first={**account.first, **first})
        split.move("landed", {**self.quarantined, "used": self.valid})
        split.close(f"The source of {self.day}")
        return replace(self, account=split)

    @property
    def rejected(self) -> bool:
        """Whether validation failed: with a critical rule of the day, nothing is published."""
        return bool(self._critical)

    @property
    def status(self) -> Status:
        """`rejected`: failed; `warned`: passed with a warning of the day; or `passed`.

        A few rows in quarantine are normal and no warning: `quarantined_many` is the rule for that.
        """
        if self.rejected:
            return "rejected"
        return "warned" if self._warnings else "passed"

    @property
    def failed(self) -> tuple[RuleResult, ...]:
        """The rules that failed: critical day-level ones first, then warnings, then rows."""
        return tuple(sorted((r for r in self.results if not r.passed), key=_urgency))

    def failed_of(self, level: Level) -> tuple[RuleResult, ...]:
        """Return the failed rules of one level, the critical ones first."""
        return tuple(result for result in self.failed if result.level == level)

    @property
    def summary(self) -> str:
        """The result in one sentence, for logs and the top of the page."""
        invalid, warnings = self.rows - self.valid, self._warnings
        rows = (
            f"{self.valid:,} of {self.rows:,} rows are valid" if self.rows else "there are no rows"
        )
        tail = f", {invalid:,} quarantined" if invalid and not self.rejected else ""
        outcome = "passed"
        if self.rejected:
            outcome = f"failed ({', '.join(rule.name for rule in self._critical)})"
        elif warnings:
            named = "; ".join(f"{rule.name}: {rule.observed}" for rule in warnings)
            outcome = f"passed with {len(warnings)} warning{'s' * (len(warnings) > 1)} ({named})"
        return f"Validation of the {self.suite} of {self.day} {outcome}: {rows}{tail}."

    @property
    def error(self) -> str:
        """The message of the error that ends a failed validation: each failed rule, what to do."""
        rules = "; ".join(
            f"{rule.name}: {rule.observed}, allowed: {rule.allowed}" for rule in self._critical
        )
        return (
            f"Validation of the {self.suite} of {self.day} failed ({rules}). "
            "Open the validation page of the day, fix the cause and run the day again."
        )

    @property
    def _critical(self) -> list[RuleResult]:
        return [rule for rule in self.failed_of("day") if rule.severity == "critical"]

    @property
    def _warnings(self) -> list[RuleResult]:
        return [rule for rule in self.failed_of("day") if rule.severity != "info"]

    def to_json(self) -> str:
        """Return the result as JSON text, with sorted keys, so equal results give equal files."""
        account = vars(self.account) if self.account else None
        plain = asdict(replace(self, account=None))
        plain |= {"day": self.day.isoformat(), "account": account}
        return json.dumps(plain, sort_keys=True, indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "ValidationResult":
        """Return the result that `to_json` wrote.

        Raises:
            CheckError: the text is not such a result.
        """
        try:
            plain: dict[str, Any] = json.loads(text)
            results = tuple(RuleResult(**result) for result in plain["results"])
            day = date.fromisoformat(plain["day"])
            account = Account(**plain["account"]) if plain["account"] else None
            return cls(**plain | {"day": day, "results": results, "account": account})
        except (ValueError, TypeError, KeyError) as exc:
            raise CheckError(
                "A stored validation result cannot be read; run the check of its day again."
            ) from exc


def _urgency(result: RuleResult) -> tuple[bool, int]:
    return result.level == "row", get_args(Severity).index(result.severity)


@dataclass(frozen=True, kw_only=True)
class InvalidRows:
    """The rows that fail a row-level rule, and which one."""

    day: date
    #: (n,) int16 by `row`: 0 is valid, k stands for `reasons[k-1]`.
    reason: NDArray[np.int16]
    reasons: tuple[str, ...]
    #: The first row with the id of another one, and other values, and that one; by `row`.
    conflict: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """How many rows are invalid."""
        return int(np.count_nonzero(self.reason))

    def failing(self, reason: str) -> NDArray[np.bool_]:
        """Return whether each row (n,) is invalid for that reason, one of `reasons`.

        >>> rows = InvalidRows(day=date(2026, 1, 5), reason=np.array([0, 1]), reasons=("nul_byte",))
        >>> rows.failing("nul_byte").tolist()
        [False, True]
        """
        failing: NDArray[np.bool_] = self.reason == self.reasons.index(reason) + 1
        return failing

    def counts(self) -> dict[str, int]:
        """Return invalid rows by reason, most frequent first, without reasons that have no row."""
        counts = np.bincount(self.reason, minlength=len(self.reasons) + 1)[1:]
        present = [(name, int(n)) for name, n in zip(self.reasons, counts, strict=True) if n]
        return dict(sorted(present, key=lambda item: (-item[1], item[0])))


def joined(names: Sequence[str]) -> str:
    """Return names joined for a sentence, or `none`."""
    return ", ".join(names) or "none"


def percentage(part: float, whole: float) -> str:
    """Return a share in per cent; a small one never reads as 0 %.

    >>> percentage(1, 4), percentage(1, 100_000), percentage(0, 3)
    ('25.0 %', 'under 0.1 %', '0 %')
    >>> percentage(3, 3)
    '100 %'
    """
    if not part:
        return "0 %"
    share = part / whole
    if share < 0.001:
        return "under 0.1 %"
    return "100 %" if share == 1 else f"{100 * share:.1f} %"


@dataclass(frozen=True, kw_only=True)
class CheckStore:
    """Validation results as JSON, and pages as HTML.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     CheckStore(root=root).load("comments", datetime.date(2026, 1, 5)) is None
    True
    """

    #: Folder or URL; holds `2026-01-05/comments.json`, `2026-01-05/index.html`, `index.html`,
    #: and by day what the source had: `source.json`, `source_counts.json`.
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

    def save_account(self, day: datetime.date, account: Account) -> None:
        """Keep the account of what the source of a day had."""
        self._folder.write(f"{day}/source.json", json.dumps(vars(account)).encode())

    def load_account(self, day: datetime.date) -> Account | None:
        """Return the account of a day, or None when it has not been ingested."""
        content = self._folder.read(f"{day}/source.json")
        return None if content is None else Account(**json.loads(content))

    def save_counts(
        self, day: datetime.date, counts: Mapping[datetime.date, tuple[int, int]]
    ) -> None:
        """Keep, as of `day`, how many rows of each day the source had, and how many had landed."""
        rows = [(str(past), *numbers) for past, numbers in counts.items()]
        self._folder.write(f"{day}/source_counts.json", json.dumps(rows).encode())

    def load_counts(self, day: datetime.date) -> dict[datetime.date, tuple[int, int]]:
        """Return the counts that were kept as of `day`; none when it was not counted."""
        rows = json.loads(self._folder.read(f"{day}/source_counts.json") or b"[]")
        return {
            datetime.date.fromisoformat(past): (source, landed) for past, source, landed in rows
        }

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
