"""What a check found: rules, counts and statistics of one day, without a text or an id."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from modwatch.errors import CheckError

Suite = Literal["comments", "scores"]
Level = Literal["row", "day"]
Severity = Literal["critical", "warning"]
Status = Literal["passed", "warned", "rejected"]


@dataclass(frozen=True, kw_only=True)
class RuleResult:
    """One rule and what came of it."""

    #: Named after the fault that the rule looks for; also the reason in the quarantine.
    name: str
    #: `row`: rows that fail it go to quarantine. `day`: judges the day as a whole.
    level: Level
    #: `critical` at day level stops the run; a failing row is always quarantined.
    severity: Severity
    #: False when there was not enough to judge by; such a rule counts as passed.
    judged: bool
    passed: bool
    #: Rows that fail a row-level rule; 0 or 1 for a day-level rule.
    failing: int
    #: What was seen, in words.
    observed: str
    #: What is allowed, in words.
    bound: str
    #: What the rule asks for, in words.
    asks: str
    #: What to do when it fails, in words.
    remedy: str


@dataclass(frozen=True, kw_only=True)
class CommentsStatistics:
    """What later days are compared with, from a day's landed comments."""

    #: Landed rows.
    rows: int
    #: Share of nulls in [0, 1] by optional column, over readable rows.
    null_shares: dict[str, float]
    #: Readable rows by primary language subtag; `und` where the language is null.
    languages: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class ScoresStatistics:
    """What later days are compared with, from a day's scores."""

    #: Scores with a probability.
    scores: int
    #: Scores above the model's threshold.
    flagged: int
    #: The one model version of the day; null when there was none or several.
    model_version: str | None
    #: Scores by bin of `shift.PROBABILITY_EDGES`.
    histogram: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What one suite found on one day; small, and free of texts and ids."""

    suite: Suite
    day: date
    #: Rows judged.
    rows: int
    #: Rows that no row-level rule refused.
    accepted: int
    results: tuple[RuleResult, ...]
    #: Quarantined rows by reason, which is the first rule that a row failed.
    quarantined: dict[str, int]
    statistics: CommentsStatistics | ScoresStatistics

    @property
    def rejected(self) -> bool:
        """True when a critical rule of the day failed: nothing of the day may go on."""
        return any(result.severity == "critical" for result in self.failed_of("day"))

    @property
    def status(self) -> Status:
        """`rejected`, `warned` (a rule of the day failed, the day goes on) or `passed`.

        A few rows in quarantine are daily business and no warning; the rule `quarantined_many`
        says when they are too many.
        """
        if self.rejected:
            return "rejected"
        return "warned" if self.failed_of("day") else "passed"

    @property
    def failed(self) -> tuple[RuleResult, ...]:
        """The rules that failed: critical day-level ones first, then warnings, then rows."""
        return tuple(sorted((r for r in self.results if not r.passed), key=_urgency))

    def failed_of(self, level: Level) -> tuple[RuleResult, ...]:
        """The failed rules of one level, the critical ones first."""
        return tuple(result for result in self.failed if result.level == level)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence, for logs, errors and the top of the page."""
        refused = self.rows - self.accepted
        kept = f"{self.accepted:,} of {self.rows:,} are good" if self.rows else "there are none"
        tail = f" and {refused:,} went to quarantine" if refused else ""
        if self.rejected:
            names = ", ".join(r.name for r in self.failed_of("day") if r.severity == "critical")
            return f"The {self.suite} of {self.day} were rejected ({names}); {kept}."
        warnings = len(self.failed_of("day"))
        noted = f", with {warnings} warning{'s' * (warnings > 1)}" if warnings else ""
        return f"The {self.suite} of {self.day} go on{noted}: {kept}{tail}."

    def to_json(self) -> str:
        """The verdict as JSON text, with sorted keys, so equal verdicts give equal files."""
        plain = asdict(self) | {"day": self.day.isoformat()}
        return json.dumps(plain, sort_keys=True, indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Verdict":
        """The verdict that `to_json` wrote.

        Raises:
            CheckError: the text is not such a verdict.
        """
        try:
            return _verdict(json.loads(text))
        except (ValueError, TypeError, KeyError) as exc:
            raise CheckError(
                "a stored check result cannot be read; run the check of its day again"
            ) from exc


def _urgency(result: RuleResult) -> tuple[bool, bool]:
    return result.level == "row", result.severity != "critical"


def _verdict(plain: dict[str, Any]) -> Verdict:
    statistics: CommentsStatistics | ScoresStatistics
    if plain["suite"] == "comments":
        statistics = CommentsStatistics(**plain["statistics"])
    else:
        values = plain["statistics"]
        statistics = ScoresStatistics(**values | {"histogram": tuple(values["histogram"])})
    results = tuple(RuleResult(**result) for result in plain["results"])
    day = date.fromisoformat(plain["day"])
    return Verdict(**plain | {"day": day, "results": results, "statistics": statistics})


@dataclass(frozen=True, kw_only=True)
class Refusals:
    """Which rows the row-level rules refused, and why."""

    day: date
    #: (n,) int16 by `row`: 0 is accepted, k stands for `reasons[k-1]`.
    reason: NDArray[np.int16]
    reasons: tuple[str, ...]

    def counts(self) -> dict[str, int]:
        """Refused rows by reason, most frequent first; reasons without a row are left out."""
        counts = np.bincount(self.reason, minlength=len(self.reasons) + 1)[1:]
        found = [(name, int(n)) for name, n in zip(self.reasons, counts, strict=True) if n]
        return dict(sorted(found, key=lambda item: (-item[1], item[0])))


def trailing(verdicts: Iterable[Verdict], *, day: date, suite: Suite, days: int) -> list[Verdict]:
    """The latest `days` verdicts of `suite` before `day` that were not rejected, oldest first.

    A rejected day is no measure of a usual one, so it is left out.
    """
    usual = [v for v in verdicts if v.suite == suite and v.day < day and not v.rejected]
    return sorted(usual, key=lambda verdict: verdict.day)[-days:]


def rejection(verdict: Verdict) -> str:
    """The message of the error that stops a rejected day.

    It names the day and the failed rules with what was seen, and says what to do.
    """
    critical = [r for r in verdict.failed_of("day") if r.severity == "critical"]
    found = "; ".join(f"{r.name}: {r.observed}, allowed is {r.bound}" for r in critical)
    return (
        f"the {verdict.suite} of {verdict.day} were rejected ({found}); "
        f"open the check page of the day, mend the cause and run the day again"
    )


def counted(names: Sequence[str]) -> str:
    """Names joined for a sentence, or `none`."""
    return ", ".join(names) or "none"
