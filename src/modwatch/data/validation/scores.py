"""Validation of a day's scores."""

import logging
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from modwatch.data.lake.schemas import QUARANTINE, SCORES, schema_of
from modwatch.data.validation.expectations import CHUNK_ROWS, failing_rows, judged_day
from modwatch.data.validation.ids import IdIndex
from modwatch.data.validation.own_expectations import TableCheck
from modwatch.data.validation.profiles import (
    measure_of,
    profile_scores,
    skipped,
    too_few_days,
    trailing_findings,
)
from modwatch.data.validation.result import (
    InvalidRows,
    Measure,
    RuleResult,
    ValidationResult,
    joined,
    percentage,
)
from modwatch.data.validation.rows import bools, columns_of, schema_faults
from modwatch.data.validation.rules import (
    Rule,
    Thresholds,
    day_parameters,
    reason_codes,
    suite_rules,
)
from modwatch.statistics.drift.day_comparison import Reference
from modwatch.statistics.drift.profile import Profile, pooled

log = logging.getLogger(__name__)

#: What decides a comment, besides its text.
_MODEL = ["model_version", "threshold"]


@dataclass(frozen=True, kw_only=True)
class ValidatedScores:
    """The validation result of a day's scores, its invalid scores, and its profile."""

    result: ValidationResult
    #: Rows of `schemas.QUARANTINE`, stage `scores`.
    quarantined: pa.RecordBatch
    #: The scores part.
    profile: Profile


@dataclass(frozen=True, kw_only=True)
class _Scores:
    """M scores of a day as numbers, with the N comments that should have one."""

    #: The N comments' ids.
    comment_ids: pa.LargeStringArray
    #: (M,) int64: the comment of each score, as a position in `comment_ids`; N if unknown.
    comment: NDArray[np.int64]
    #: (M,) float32; NaN where the probability is null.
    prob: NDArray[np.float32]
    #: (M,) bool
    flagged: NDArray[np.bool_]
    #: Comments of which the model read only a part.
    cut: int
    model_versions: tuple[str, ...]
    #: Number of pairs of model version and threshold.
    models: int
    #: A sentence for each missing or mistyped column, and the other columns.
    schema_faults: tuple[str, ...]
    columns: tuple[str, ...]


def validate_scores(
    batches: Iterable[pa.RecordBatch],
    *,
    day: date,
    comment_ids: Iterable[pa.Array],
    stale: int = 0,
    trailing: Sequence[Profile] = (),
    held_out: Profile | None = None,
    thresholds: Thresholds | None = None,
    expectations: Sequence[Rule] = (),
) -> ValidatedScores:
    """Validate the champion's scores of a day, then the valid ones as a whole.

    Args:
        batches: rows of `schemas.SCORES`, in any order, read once; other roles are left out.
        day: the UTC day that they belong to.
        comment_ids: the ids of the day's valid comments, in chunks.
        stale: how many of the scores are of comments that have changed since they were scored.
        trailing: profiles of the days to compare with; those that another model version scored are
            left out.
        held_out: held-out comments as the model scores them, to compare with while there are too
            few trailing days; None: it has none.
        thresholds: the bounds; None stands for the defaults.
        expectations: those of `load_expectations`; they are evaluated on all of the champion's
            scores.

    Raises:
        CheckError: Great Expectations could not evaluate a rule.
    """
    bounds = thresholds or Thresholds()
    rules, parameters = suite_rules("scores", bounds), day_parameters(day, bounds, SCORES)
    own = [rule for rule in expectations if rule.batch == "scores"]
    table = TableCheck(rules=own, parameters=parameters)
    scores = _read(batches, comment_ids, table)
    invalid, row_results = _check_rows(scores, rules, parameters, day)
    valid = invalid.reason == 0
    profile = profile_scores(scores.prob[valid], scores.flagged[valid], scores.model_versions)
    measures = _measures(scores, valid)
    measures |= {"stale_scores": _count(stale), "cut_comments": _count(scores.cut)}
    compared, flagged = _compared(profile, trailing, bounds, held_out=held_out)
    measures |= compared
    parameters |= flagged | {"mostly_scored": _mostly_scored(len(scores.comment_ids), bounds)}
    profiled = {
        "stale_scores": stale,
        "cut_comments": scores.cut,
        "model_versions": scores.models,
        "psi": measures["score_shift"].value,
    }
    prob = np.full(len(scores.comment_ids) + 1, np.nan, np.float32)
    prob[scores.comment[valid]] = scores.prob[valid]
    unknown = scores.comment == len(scores.comment_ids)
    frames = {
        "columns": pd.DataFrame(columns=scores.columns),
        "scores": pd.DataFrame({"comment_id": np.where(unknown, np.nan, scores.comment)}),
        "comments": pd.DataFrame({"prob": prob[:-1]}),
        "valid": pd.DataFrame({"flagged": scores.flagged[valid]}),
        "profile": pd.DataFrame([profiled]),
    }
    day_results = judged_day(rules, measures, parameters, frames)
    result = ValidationResult(
        suite="scores",
        day=day,
        rows=len(valid),
        valid=int(np.count_nonzero(valid)),
        results=(*day_results, *row_results, *table.own_results()),
        quarantined=invalid.counts(),
    )
    level = logging.INFO if result.status == "passed" else logging.WARNING
    log.log(level, result.summary, extra={"event": "scores_checked", "status": result.status})
    return ValidatedScores(result=result, quarantined=_quarantine(scores, invalid), profile=profile)


def valid_scores(
    batches: Iterable[pa.RecordBatch], validated: ValidatedScores
) -> Iterator[pa.RecordBatch]:
    """Yield batches of `schemas.SCORES`: those of `batches`, without the invalid scores."""
    invalid, schema = validated.quarantined.column("comment_id"), schema_of("scores")
    for batch in batches:
        columns = columns_of(batch, schema)
        keep = pc.invert(pc.is_in(columns["comment_id"], invalid))
        yield pa.RecordBatch.from_pydict(columns, schema=schema).filter(keep)


def _check_rows(
    scores: _Scores, rules: Sequence[Rule], parameters: Mapping[str, Any], day: date
) -> tuple[InvalidRows, tuple[RuleResult, ...]]:
    """Judge each score by itself."""
    by_row = [rule for rule in rules if rule.level == "row"]
    codes, rows = reason_codes(by_row), len(scores.prob)
    reason, failing = np.zeros(rows, np.int16), Counter[Rule]()
    for start in range(0, rows, CHUNK_ROWS):
        frame = pd.DataFrame({"prob": scores.prob[start : start + CHUNK_ROWS]})
        for positions, rule in zip(failing_rows(frame, by_row, parameters), by_row, strict=True):
            failing[rule] += len(positions)
            new = positions[reason[start + positions] == 0]
            reason[start + new] = codes[rule.name]
    measures = [Measure.from_count(failing[rule], rows) for rule in by_row]
    results = (r.result(m, passed=m.value == 0) for r, m in zip(by_row, measures, strict=True))
    return InvalidRows(day=day, reason=reason, reasons=tuple(codes)), tuple(results)


def _mostly_scored(comments: int, bounds: Thresholds) -> float:
    """Return the share of the comments that must have a valid score: an exact multiple of 1/N."""
    unscored = math.floor(round(bounds.unscored_critical * comments, 6))
    tolerated = min(bounds.tolerated_rows, comments - 1)
    return (comments - max(unscored, tolerated)) / max(comments, 1)


def _read(
    batches: Iterable[pa.RecordBatch], comment_ids: Iterable[pa.Array], table: TableCheck
) -> _Scores:
    index = IdIndex.from_chunks(list(comment_ids))
    parts = [(np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, bool))]
    models: set[tuple[str, float | None]] = set()
    cut = 0
    faults: tuple[str, ...] = ()
    found = tuple(SCORES.names)
    for batch in batches:
        if not faults:
            faults, found = schema_faults(batch.schema, SCORES)
        columns = columns_of(batch, SCORES)
        wanted = pc.equal(columns["role"], "champion")
        columns = {name: column.filter(wanted) for name, column in columns.items()}
        table.add({name: columns[name] for name in table.columns}, wanted.true_count)
        prob = pc.fill_null(columns["prob"], float("nan")).to_numpy()
        parts.append((index.positions(columns["comment_id"]), prob, bools(columns["flagged"])))
        cut += bools(columns["cut"]).sum()
        pairs = pa.table([columns["model_version"], columns["threshold"]], names=_MODEL)
        pairs = pairs.filter(pc.is_valid(pairs["model_version"])).group_by(_MODEL).aggregate([])
        models.update(zip(*(pairs[name].to_pylist() for name in _MODEL), strict=True))
    comment, prob, flagged = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _Scores(
        comment_ids=index.ids,
        comment=comment,
        prob=prob,
        flagged=flagged,
        cut=int(cut),
        model_versions=tuple(sorted({version for version, _ in models})),
        models=len(models),
        schema_faults=faults,
        columns=found,
    )


def _quarantine(scores: _Scores, invalid: InvalidRows) -> pa.RecordBatch:
    """Return the invalid scores by their comment's id.

    Scores of unknown comments are left out: they fail the day.
    """
    known = scores.comment < len(scores.comment_ids)
    at = np.flatnonzero((invalid.reason > 0) & known)
    ids = scores.comment_ids.take(pa.array(scores.comment[at])).to_pylist()
    rules = [invalid.reasons[code - 1] for code in invalid.reason[at]]
    rows = [
        {"dt": invalid.day, "stage": "scores", "rule": rule, "comment_id": comment_id}
        for rule, comment_id in zip(rules, ids, strict=True)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=QUARANTINE)


def _measures(scores: _Scores, valid: NDArray[np.bool_]) -> dict[str, Measure]:
    """Return one measure for each rule on the scores alone; `valid` is (M,)."""
    comments = len(scores.comment_ids)
    scored = np.bincount(scores.comment, minlength=comments + 1)
    valid_of = np.bincount(scores.comment[valid], minlength=comments + 1)[:comments]
    unscored = int(np.count_nonzero(valid_of == 0))
    observed = f"{unscored:,} of {comments:,} comments ({percentage(unscored, comments)})"
    return {
        "schema": Measure(value=len(scores.schema_faults), observed=joined(scores.schema_faults)),
        "double_scores": _count(int(np.maximum(scored[:comments] - 1, 0).sum())),
        "unknown_scores": _count(int(scored[comments])),
        "several_model_versions": _count(scores.models),
        "unscored_many": Measure(value=unscored / max(comments, 1), observed=observed),
        "unscored": Measure(value=unscored, observed=observed),
    }


def _count(value: int) -> Measure:
    return Measure(value=value, observed=f"{value:,}" if value else "none")


def _compared(
    today: Profile,
    trailing: Sequence[Profile],
    bounds: Thresholds,
    *,
    held_out: Profile | None,
) -> tuple[dict[str, Measure], dict[str, float]]:
    """Return one measure for each rule against the trailing days of the same model version.

    While there are too few of them, against the held-out comments of the model, if there are any.
    Also returns the bounds of the flagged share.
    """
    days = Reference.from_days("trailing", trailing).scored_by(today.model_version)
    missing = too_few_days(days, bounds.min_trailing_days, " of this model version")
    against = f"{len(days)} trailing days"
    if missing and held_out is not None:
        missing, days, against = None, [held_out], "held-out comments of the model"
    before = pooled(days)
    if not missing and (scores := min(today.scored, before.scored)) < bounds.min_scores:
        missing = skipped(f"{scores:,} scores; {bounds.min_scores} are needed")
    if missing:
        return {"score_shift": missing, "flagged_shift": missing}, {}
    psi = trailing_findings(today, days)["psi", "prob"]
    measures = {
        "score_shift": measure_of(psi, lambda value: f"PSI {value:.3f} against {against}"),
        "flagged_shift": _flagged_shift(today, before, bounds, against),
    }
    # With half a flag added to each, as in the ratio that is measured.
    usual, half = (before.flagged + 0.5) / before.scored, 0.5 / today.scored
    return measures, {
        "least_flagged": usual / bounds.flagged_ratio - half,
        "most_flagged": usual * bounds.flagged_ratio - half,
    }


def _flagged_shift(today: Profile, before: Profile, bounds: Thresholds, against: str) -> Measure:
    """Return the ratio of the flagged shares, with half a flag added so that it is finite.

    `against` names `before`.
    """
    expected = before.flagged * today.scored / before.scored
    if max(expected, today.flagged) < bounds.min_flagged:
        return skipped(f"under {bounds.min_flagged} comments are flagged or expected to be")
    ratio = (today.flagged + 0.5) / today.scored / ((before.flagged + 0.5) / before.scored)
    now, usual = (percentage(part.flagged, part.scored) for part in (today, before))
    return Measure(value=ratio, observed=f"{now} flagged, {usual} on {against}")
