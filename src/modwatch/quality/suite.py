"""What both suites share: judging rows, judging the day, and putting the verdict together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from modwatch.quality.expectations import Rule, failing_rows
from modwatch.quality.verdict import RuleResult


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One figure of a day, as a rule judges it and as a person reads it."""

    #: Null where there is not enough to judge by; such a rule passes.
    value: float | None
    words: str


@dataclass(frozen=True, kw_only=True)
class JudgedRows:
    """What row-level rules found."""

    #: (n,) int16: 0 passed all, k failed `rules[k-1]` first.
    first_failed: NDArray[np.int16]
    results: tuple[RuleResult, ...]


def judge_rows(frame: pd.DataFrame, rules: Sequence[Rule]) -> JudgedRows:
    """The first rule that each row of `frame` fails, and the result of every rule."""
    failing = failing_rows(frame, rules)
    first = np.zeros(len(frame), dtype=np.int16)
    for number, rule in reversed(list(enumerate(rules, start=1))):
        first[failing[rule.name]] = number
    results = tuple(
        rule.result(len(failing[rule.name]), _rows_in_words(len(failing[rule.name]), len(frame)))
        for rule in rules
    )
    return JudgedRows(first_failed=first, results=results)


def judge_day(measures: Mapping[str, Measure], rules: Sequence[Rule]) -> tuple[RuleResult, ...]:
    """The result of every rule on the one figure of its name."""
    values = {rule.name: measures[rule.name].value for rule in rules}
    failing = failing_rows(pd.DataFrame([values], dtype=np.float64), rules)
    return tuple(
        rule.result(
            len(failing[rule.name]),
            measures[rule.name].words,
            judged=measures[rule.name].value is not None,
        )
        for rule in rules
    )


def _rows_in_words(failing: int, rows: int) -> str:
    if not failing:
        return "none"
    return f"{failing:,} of {rows:,} rows ({share_in_words(failing, rows)})"


def share_in_words(part: float, whole: float) -> str:
    """A share in per cent; a small one never reads as 0 %.

    >>> share_in_words(1, 4), share_in_words(1, 100_000), share_in_words(0, 3)
    ('25.0 %', 'under 0.1 %', '0 %')
    >>> share_in_words(3, 3)
    '100 %'
    """
    if not part:
        return "0 %"
    share = part / whole
    if share < 0.001:
        return "under 0.1 %"
    return "100 %" if share == 1 else f"{100 * share:.1f} %"
