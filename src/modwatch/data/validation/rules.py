"""The validation rules of a day: two suites of Great Expectations, and the bounds they refer to.

`suites/comments.json` and `suites/scores.json` hold the rules. The `meta` of an expectation names
the rule, the batch that it is evaluated on, and how the validation page describes it: by default
nothing is `allowed`, and the `remedy` is that of rows in quarantine. An expectation on `{column}`
stands for one on each of `validated`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from importlib.resources import files
from typing import Any

import pyarrow as pa

from modwatch.common.columns import Column, profiled
from modwatch.common.text import LONGEST_ID, LONGEST_TEXT
from modwatch.data.validation.result import Level, Measure, RuleResult, Severity, Suite
from modwatch.statistics.drift.day_comparison import MINIMUM_DAYS

#: Batches whose rows are judged one by one: rows that fail go to quarantine. All others validate
#: the day as a whole.
_ROW_BATCHES = ("landed", "rows", "own_scores", "ids")

#: What the names of rules on missing values begin with.
MISSING_SHARE = "missing_share_"

_REMEDY = "Fix these rows at the source and run the day again. They are kept in quarantine."


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """Bounds that a day is validated by; the defaults suit a platform of any size.

    Shares lie in [0, 1]. How much data a comparison needs at all is a property of the metric:
    `day_comparison.MINIMUM_COMMENTS`.

    >>> Thresholds().max_text_length
    50000
    """

    #: Longest valid text, in characters (code points).
    max_text_length: int = LONGEST_TEXT
    #: Longest valid comment_id, in characters.
    max_id_length: int = LONGEST_ID
    #: Trailing days needed before a day is compared with them at all.
    min_trailing_days: int = MINIMUM_DAYS
    #: A smaller volume ratio to the trailing median fails the day.
    collapsed_volume: float = 0.1
    #: A smaller volume ratio to the trailing median is a warning; closer where volumes vary less.
    low_volume: float = 1 / 3
    #: A larger volume ratio to the trailing median is a warning.
    high_volume: float = 3.0
    #: A larger share of quarantined rows is a warning.
    quarantined_warning: float = 0.02
    #: A larger share of quarantined rows fails the day.
    quarantined_critical: float = 0.2
    #: A larger share of comments whose value of an optional column cannot be read is a warning.
    left_out_warning: float = 0.02
    #: So many quarantined rows or unscored comments never fail the day while others are valid.
    tolerated_rows: int = 5
    #: Largest change of a column's share of missing values against the trailing days.
    missing_share_change: float = 0.25
    #: Largest Jensen–Shannon divergence, in bits, of the day's languages or scripts from the
    #: trailing days'.
    language_shift: float = 0.05
    #: A larger share of comments without a valid score fails the day.
    unscored_critical: float = 0.01
    #: Largest population stability index of the probabilities against the trailing days.
    score_shift: float = 0.2
    #: Largest factor by which the flagged share may change against the trailing days.
    flagged_ratio: float = 3.0
    #: Fewer flagged comments than this, counted and expected: their share is not compared.
    min_flagged: int = 20
    #: Fewer scores than this, of the day or of the trailing days: scores are not compared.
    min_scores: int = 500

    def words(self) -> dict[str, Any]:
        """Return the bounds by name for sentences, shares in per cent too (`NAME_percent`)."""
        percent = {f"{name}_percent": f"{100 * getattr(self, name):g}" for name in _SHARES}
        return {**asdict(self), **percent, "least_flagged_ratio": 1 / self.flagged_ratio}


_SHARES = (
    "collapsed_volume",
    "low_volume",
    "quarantined_warning",
    "quarantined_critical",
    "left_out_warning",
    "missing_share_change",
    "language_shift",
    "unscored_critical",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Rule:
    """One expectation of a suite."""

    #: Named after the fault that it detects; also the reason in the quarantine. Two expectations
    #: may detect the same fault.
    name: str
    #: The type of Great Expectations, such as `expect_column_values_to_not_be_null`.
    type: str
    #: Its arguments, which may refer to parameters.
    kwargs: Mapping[str, Any]
    severity: Severity
    #: What it is evaluated on.
    batch: str
    #: The values allowed, what the rule requires, and what to do when it fails, as text.
    allowed: str
    expectation: str
    remedy: str
    #: Whether it is of `expectations.json`.
    own: bool = False

    @property
    def level(self) -> Level:
        """`row`: rows that fail go to quarantine. `day`: it validates the day as a whole."""
        return "row" if self.batch in _ROW_BATCHES else "day"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the expectation reads."""
        named = [self.kwargs.get(name) for name in ("column", "column_A", "column_B")]
        return tuple(name for name in [*named, *self.kwargs.get("column_list", ())] if name)

    def result(self, measure: Measure, *, passed: bool) -> RuleResult:
        """Return the outcome of the rule, with what was measured."""
        return RuleResult(
            name=self.name,
            type=self.type,
            column=", ".join(self.columns),
            level=self.level,
            severity=self.severity,
            allowed=self.allowed,
            expectation=self.expectation,
            remedy=self.remedy,
            own=self.own,
            passed=passed,
            **vars(measure),
        )


def validated(own: Sequence[Column] = ()) -> tuple[str, ...]:
    """Return the columns whose share of missing values is validated; `own` are the platform's.

    Which comments mention `groups` depends on what people talk about, so drift measures it and
    validation does not.

    >>> "language" in validated(), "groups" in validated()
    (True, False)
    """
    return tuple(name for name in profiled(own) if name != "groups")


def suite_rules(suite: Suite, bounds: Thresholds, own: Sequence[Column] = ()) -> tuple[Rule, ...]:
    """Return the rules of a suite, in the order in which they are tried."""
    words = bounds.words()
    rules = []
    for config in _expectations(suite, validated(own)):
        meta = config["meta"]["modwatch"]
        rules.append(
            Rule(
                name=meta["rule"],
                type=config["type"],
                kwargs=config["kwargs"],
                severity=config["severity"],
                batch=meta["batch"],
                allowed=meta.get("allowed", "none").format(**words),
                expectation=meta["expectation"],
                remedy=meta.get("remedy", _REMEDY),
            )
        )
    return tuple(rules)


def day_parameters(day: date, bounds: Thresholds, table: pa.Schema) -> dict[str, Any]:
    """Return what every expectation on a day's rows of `table` may refer to as `$PARAMETER`."""
    start = datetime.combine(day, time(), UTC)
    ends = {"day_start": start, "day_end": start + timedelta(days=1)}
    return {**asdict(bounds), **ends, "columns": table.names}


def reason_codes(rules: Sequence[Rule]) -> dict[str, int]:
    """Return a code for each reason, from 1, in the order in which rules are tried."""
    return {name: code for code, name in enumerate(dict.fromkeys(r.name for r in rules), start=1)}


@cache
def _expectations(suite: Suite, compared: Sequence[str]) -> tuple[Mapping[str, Any], ...]:
    content = files("modwatch.data.validation") / "suites" / f"{suite}.json"
    found: list[Mapping[str, Any]] = []
    for config in json.loads(content.read_text("utf-8"))["expectations"]:
        text = json.dumps(config)
        columns = compared if "{column}" in text else ("",)
        found += (json.loads(text.replace("{column}", column)) for column in columns)
    return tuple(found)


def missing_share_rule(column: str) -> str:
    """Return the name of the rule on a column's share of missing values."""
    return f"{MISSING_SHARE}{column}"
