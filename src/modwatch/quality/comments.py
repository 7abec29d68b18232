"""The check of a day's comments."""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from modwatch.quality.profile import OPTIONAL_COLUMNS, CommentsProfile, row_frame
from modwatch.quality.rules import (
    comment_day_rules,
    comment_id_rules,
    comment_row_rules,
    null_share_rule,
)
from modwatch.quality.shift import total_variation
from modwatch.quality.suite import Measure, judge_day, judge_rows, share_in_words
from modwatch.quality.thresholds import Thresholds
from modwatch.quality.verdict import (
    CommentsStatistics,
    Refusals,
    RuleResult,
    Verdict,
    counted,
    trailing,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class CheckedComments:
    """The verdict on a day's comments, and which rows it refuses."""

    verdict: Verdict
    refusals: Refusals


def check_comments(
    profile: CommentsProfile,
    *,
    history: Iterable[Verdict] = (),
    thresholds: Thresholds | None = None,
) -> CheckedComments:
    """The verdict on a day's comments, and the reason for each row that it refuses.

    Args:
        profile: the day, from `profile_comments`.
        history: verdicts of other days, in any order; those that are earlier, not rejected and
            recent enough are compared with. More than needed does no harm.
        thresholds: the bounds; None stands for the defaults.

    Raises:
        CheckError: Great Expectations could not evaluate a rule.
    """
    bounds = thresholds or Thresholds()
    refusals, row_results = _judge_rows(profile, bounds)
    usual = trailing(history, day=profile.day, suite="comments", days=bounds.trailing_days)
    accepted = profile.rows - int(np.count_nonzero(refusals.reason))
    measures = _day_measures(profile, accepted, usual, bounds)
    verdict = Verdict(
        suite="comments",
        day=profile.day,
        rows=profile.rows,
        accepted=accepted,
        results=(*judge_day(measures, comment_day_rules(bounds)), *row_results),
        quarantined=refusals.counts(),
        statistics=profile.statistics,
    )
    log.info(verdict.sentence, extra={"event": "comments_checked", "status": verdict.status})
    return CheckedComments(verdict=verdict, refusals=refusals)


def _judge_rows(
    profile: CommentsProfile, bounds: Thresholds
) -> tuple[Refusals, tuple[RuleResult, ...]]:
    """Judge each row alone, then the ids of those that passed; a bad row never takes an id."""
    alone_rules, id_rules = comment_row_rules(bounds), comment_id_rules()
    alone = judge_rows(row_frame(profile), alone_rules)
    good = np.flatnonzero(alone.first_failed == 0)
    ids = judge_rows(_id_frame(profile, good), id_rules)
    reasons = tuple(
        dict.fromkeys([*profile.problems, *(r.name for r in (*alone_rules, *id_rules))])
    )
    code = {name: np.int16(reasons.index(name) + 1) for name in reasons}
    reason = np.array([0, *(code[r.name] for r in alone_rules)], np.int16)[alone.first_failed]
    reason[good] = np.array([0, *(code[r.name] for r in id_rules)], np.int16)[ids.first_failed]
    problem = np.array([0, *(code[name] for name in profile.problems)], np.int16)[profile.problem]
    reason = np.where(problem > 0, problem, reason)
    return Refusals(day=profile.day, reason=reason, reasons=reasons), alone.results + ids.results


def _id_frame(profile: CommentsProfile, rows: NDArray[np.int64]) -> pd.DataFrame:
    """One row for each of `rows`, one column for each rule on ids."""
    earlier = profile.on_earlier_day[rows]
    _, first = np.unique(profile.id_group[rows], return_index=True)
    duplicate = np.ones(len(rows), dtype=bool)
    duplicate[first] = False
    return pd.DataFrame({"id_of_earlier_day": earlier, "duplicate_id": duplicate})


def _day_measures(
    profile: CommentsProfile, accepted: int, usual: Sequence[Verdict], bounds: Thresholds
) -> dict[str, Measure]:
    """One figure for each day-level rule."""
    history = [v.statistics for v in usual if isinstance(v.statistics, CommentsStatistics)]
    volume = _volume(profile.rows, history, bounds)
    return {
        "schema": Measure(value=len(profile.schema_faults), words=counted(profile.schema_faults)),
        "volume_collapse": volume,
        "volume_shift": volume,
        "empty_day": Measure(value=profile.rows, words=f"{profile.rows:,} rows"),
        **_quarantined(profile.rows, accepted, bounds),
        "language_shift": _languages(profile.statistics, history, bounds),
        **{
            null_share_rule(column): _null_share(column, profile.statistics, history, bounds)
            for column in OPTIONAL_COLUMNS
        },
    }


def _volume(rows: int, history: Sequence[CommentsStatistics], bounds: Thresholds) -> Measure:
    """The day's rows as a ratio to the trailing mean."""
    if (missing := _too_few_days(history, bounds)) is not None:
        return missing
    mean = sum(day.rows for day in history) / len(history)
    if not mean:
        return Measure(value=None, words="not judged: the trailing days are all empty")
    return Measure(
        value=rows / mean,
        words=f"{rows:,} rows, {rows / mean:.2f} times the trailing mean of {mean:,.0f}",
    )


def _quarantined(rows: int, accepted: int, bounds: Thresholds) -> dict[str, Measure]:
    refused = rows - accepted
    share = refused / rows if rows else 0.0
    words = f"{refused:,} of {rows:,} rows ({share_in_words(refused, rows)})"
    tolerated = accepted > 0 and refused <= bounds.tolerated_rows
    return {
        "quarantined_most": Measure(value=0.0 if tolerated else share, words=words),
        "quarantined_many": Measure(value=share, words=words),
    }


def _languages(
    today: CommentsStatistics, history: Sequence[CommentsStatistics], bounds: Thresholds
) -> Measure:
    """Total variation distance of the day's languages from the trailing days' together."""
    before: Counter[str] = Counter()
    for day in history:
        before.update(day.languages)
    missing = _too_few_days(history, bounds) or _too_few_rows(
        min(sum(today.languages.values()), before.total()), bounds
    )
    if missing is not None:
        return missing
    distance = total_variation(today.languages, before)
    names = sorted(today.languages, key=lambda name: (-today.languages[name], name))[:3]
    total = sum(today.languages.values())
    mix = ", ".join(f"{name} {share_in_words(today.languages[name], total)}" for name in names)
    return Measure(value=distance, words=f"{share_in_words(distance, 1)} differ; most today: {mix}")


def _null_share(
    column: str,
    today: CommentsStatistics,
    history: Sequence[CommentsStatistics],
    bounds: Thresholds,
) -> Measure:
    """Change of a column's share of nulls against the trailing days together."""
    before_rows = sum(day.rows for day in history)
    missing = _too_few_days(history, bounds) or _too_few_rows(min(today.rows, before_rows), bounds)
    if missing is not None:
        return missing
    before = sum(day.null_shares.get(column, 1.0) * day.rows for day in history) / before_rows
    now = today.null_shares[column]
    return Measure(
        value=abs(now - before),
        words=f"{share_in_words(now, 1)} missing, {share_in_words(before, 1)} before",
    )


def _too_few_days(history: Sequence[CommentsStatistics], bounds: Thresholds) -> Measure | None:
    if len(history) >= bounds.min_trailing_days:
        return None
    return Measure(
        value=None,
        words=f"not judged: {len(history)} trailing days, {bounds.min_trailing_days} needed",
    )


def _too_few_rows(rows: int, bounds: Thresholds) -> Measure | None:
    if rows >= bounds.min_rows:
        return None
    return Measure(value=None, words=f"not judged: {rows:,} rows, {bounds.min_rows:,} needed")
