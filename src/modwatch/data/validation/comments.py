"""Validation of a day's comments."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from statistics import median
from types import MappingProxyType

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from modwatch.data.validation.duplicates import DuplicateTexts
from modwatch.data.validation.expectations import validate_day, validate_rows
from modwatch.data.validation.measures import measure_of, skipped, too_few_days, trailing_findings
from modwatch.data.validation.profiles import OPTIONAL_COLUMNS, profile_comments
from modwatch.data.validation.result import (
    InvalidRows,
    Measure,
    RuleResult,
    ValidationResult,
    joined,
    percentage,
)
from modwatch.data.validation.rows import RowFacts, row_facts
from modwatch.data.validation.rules import (
    VALIDATED_COLUMNS,
    comment_day_rules,
    comment_id_rules,
    comment_row_rules,
    missing_share_rule,
)
from modwatch.data.validation.thresholds import Thresholds
from modwatch.statistics.drift.profile import Profile, pooled
from modwatch.statistics.drift.seasons import Volume, season

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ValidatedComments:
    """The validation result of a day's comments, its invalid rows, and its profile."""

    result: ValidationResult
    invalid: InvalidRows
    #: The comments part.
    profile: Profile


def validate_comments(
    landed: Callable[..., Iterable[pa.RecordBatch]],
    *,
    day: date,
    earlier_ids: Iterable[pa.Array] = (),
    trailing: Sequence[Profile] = (),
    volumes: Mapping[date, Volume] = MappingProxyType({}),
    thresholds: Thresholds | None = None,
    own_scores: bool = False,
) -> ValidatedComments:
    """Validate a day's landed rows, then the profile of the valid ones.

    Args:
        landed: called twice, returns rows of `schemas.LANDED` in any order; the second time
            `columns` names those that are needed.
        day: the UTC day that they belong to.
        earlier_ids: comment ids that earlier days published, in chunks; streamed once.
        trailing: profiles of the days to compare with.
        volumes: of earlier days, for the season of the day's (`metrics.volume`).
        thresholds: the bounds; None stands for the defaults.
        own_scores: the source brings scores; then every row needs one. So it does if any row of the
            day has one.

    Raises:
        CheckError: `row` does not number the rows 0…N−1, they changed between the calls, or Great
            Expectations could not evaluate a rule.
    """
    bounds = thresholds or Thresholds()
    facts = row_facts(landed(), day=day, earlier_ids=earlier_ids, own_scores=own_scores)
    invalid, row_results = _validate_rows(facts, bounds)
    texts = DuplicateTexts.of(facts.id_group, invalid.failing("duplicate_id"), invalid.reason == 0)
    again = landed(columns=["row", "text", *OPTIONAL_COLUMNS])
    profile = profile_comments(texts.reading(again), invalid)
    measures = _measures(profile, facts.schema_faults, trailing, bounds)
    shift = measures["volume_shift"]
    known = season(day, Volume(rows=profile.landed, ratio=shift.value), volumes)
    if known:
        measures["volume_shift"] = skipped(f"{shift.observed}; {known}")
    day_rules = comment_day_rules(bounds, own_scores=facts.own_scores)
    if facts.own_scores:
        versions = np.unique(facts.version[invalid.reason == 0]).size
        measures["several_model_versions"] = Measure(value=versions, observed=f"{versions:,}")
    result = ValidationResult(
        suite="comments",
        day=day,
        rows=profile.landed,
        valid=profile.comments,
        results=(*validate_day(measures, day_rules), *_with_texts(row_results, texts)),
        quarantined=invalid.counts(),
    )
    log.info(result.summary, extra={"event": "comments_checked", "status": result.status})
    return ValidatedComments(result=result, invalid=invalid, profile=profile)


def _validate_rows(
    facts: RowFacts, bounds: Thresholds
) -> tuple[InvalidRows, tuple[RuleResult, ...]]:
    """Validate each row alone, then the ids of those that passed; an invalid row takes no id."""
    alone_rules = comment_row_rules(bounds, own_scores=facts.own_scores)
    id_rules = comment_id_rules()
    first, alone_results = validate_rows(facts.frame, alone_rules)
    good = np.flatnonzero(first == 0)
    first_of_ids, id_results = validate_rows(_id_frame(facts, good), id_rules)
    reasons = tuple(
        dict.fromkeys([*facts.problems, *(rule.name for rule in (*alone_rules, *id_rules))])
    )
    code = {name: np.int16(reasons.index(name) + 1) for name in reasons}
    reason = np.array([0, *(code[r.name] for r in alone_rules)], np.int16)[first]
    reason[good] = np.array([0, *(code[r.name] for r in id_rules)], np.int16)[first_of_ids]
    problem = np.array([0, *(code[name] for name in facts.problems)], np.int16)[facts.problem]
    reason = np.where(problem > 0, problem, reason)
    invalid = InvalidRows(day=facts.day, reason=reason, reasons=reasons)
    return invalid, alone_results + id_results


def _with_texts(results: Iterable[RuleResult], texts: DuplicateTexts) -> Iterator[RuleResult]:
    """Yield the results; that on duplicate ids says how many have another text."""
    for result in results:
        if result.name == "duplicate_id" and (differ := texts.contradicting):
            tail = f"{differ:,} with another text than the row that is kept"
            result = replace(result, observed=f"{result.observed}, {tail}")
        yield result


def _id_frame(facts: RowFacts, rows: NDArray[np.int64]) -> pd.DataFrame:
    """Return one row for each of `rows`, one column for each rule on ids."""
    earlier = facts.on_earlier_day[rows]
    _, first = np.unique(facts.id_group[rows], return_index=True)
    duplicate = np.ones(len(rows), dtype=bool)
    duplicate[first] = False
    return pd.DataFrame({"id_of_earlier_day": earlier, "duplicate_id": duplicate})


def _measures(
    today: Profile, faults: Sequence[str], trailing: Sequence[Profile], bounds: Thresholds
) -> dict[str, Measure]:
    """Return one measure for each day-level rule."""
    findings, before = trailing_findings(today, trailing), pooled(trailing)
    few = too_few_days(trailing, bounds)

    def compared(metric: str, feature: str, observed: Callable[[float], str]) -> Measure:
        return few or measure_of(findings[metric, feature], observed)

    usual = median(day.landed for day in trailing or [Profile()])
    volume = compared(
        "volume_ratio",
        "comments",
        lambda ratio: (
            f"{today.landed:,} rows, {ratio:.2f} times the trailing median of {usual:,.0f}"
        ),
    )
    return {
        "schema": Measure(value=len(faults), observed=joined(faults)),
        "volume_collapse": volume,
        "volume_shift": volume,
        "empty_day": Measure(value=today.landed, observed=f"{today.landed:,} rows"),
        **_quarantined(today, bounds),
        "language_shift": compared(
            "jensen_shannon", "language", lambda value: f"{value:.3f} bits; {_languages(today)}"
        ),
        **{
            missing_share_rule(column): compared(
                "missing_share_change", column, partial(_missing, today, before, column)
            )
            for column in VALIDATED_COLUMNS
        },
    }


def _quarantined(today: Profile, bounds: Thresholds) -> dict[str, Measure]:
    share = today.quarantined / max(today.landed, 1)
    percent = percentage(today.quarantined, today.landed)
    observed = f"{today.quarantined:,} of {today.landed:,} rows ({percent})"
    tolerated = today.comments > 0 and today.quarantined <= bounds.tolerated_rows
    return {
        "quarantined_most": Measure(value=0.0 if tolerated else share, observed=observed),
        "quarantined_many": Measure(value=share, observed=observed),
    }


def _languages(today: Profile) -> str:
    """Return the three most frequent languages with their shares."""
    counts = today.categories["language"]
    names = sorted(counts, key=lambda name: (-counts[name], name))[:3]
    return ", ".join(f"{name} {percentage(counts[name], today.comments)}" for name in names)


def _missing(today: Profile, before: Profile, column: str, _change: float) -> str:
    now = percentage(today.missing[column], today.comments)
    return f"{now} missing, {percentage(before.missing.get(column, 0), before.comments)} before"
