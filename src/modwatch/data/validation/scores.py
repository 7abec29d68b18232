"""Validation of a day's scores."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from modwatch.data.lake.schemas import QUARANTINE, SCORES
from modwatch.data.validation.expectations import validate_day, validate_rows
from modwatch.data.validation.id_index import IdIndex
from modwatch.data.validation.measures import measure_of, skipped, too_few_days, trailing_findings
from modwatch.data.validation.profiles import profile_scores
from modwatch.data.validation.result import (
    InvalidRows,
    Measure,
    ValidationResult,
    joined,
    percentage,
)
from modwatch.data.validation.rules import score_day_rules, score_row_rules
from modwatch.data.validation.schema import bools, columns_of, schema_faults
from modwatch.data.validation.thresholds import Thresholds
from modwatch.statistics.drift.day_comparison import Reference
from modwatch.statistics.drift.profile import Profile, pooled

log = logging.getLogger(__name__)

#: What decides a comment, beside its text.
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
    """M scores of a day as numbers, beside the N comments that should have one."""

    #: The N comments' ids.
    comment_ids: pa.LargeStringArray
    #: (M,) int64: the comment of each score, as a position in `comment_ids`; N if unknown.
    comment: NDArray[np.int64]
    #: (M,) float32; NaN where the probability is null.
    prob: NDArray[np.float32]
    #: (M,) bool
    flagged: NDArray[np.bool_]
    model_versions: tuple[str, ...]
    #: Number of pairs of model version and threshold.
    models: int
    #: A sentence for each missing or mistyped column.
    schema_faults: tuple[str, ...]


def validate_scores(
    batches: Iterable[pa.RecordBatch],
    *,
    day: date,
    comment_ids: Iterable[pa.Array],
    stale: int = 0,
    trailing: Sequence[Profile] = (),
    held_out: Profile | None = None,
    thresholds: Thresholds | None = None,
) -> ValidatedScores:
    """Validate the champion's scores of a day, then the profile of the valid ones.

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

    Raises:
        CheckError: Great Expectations could not evaluate a rule.
    """
    bounds, rules = thresholds or Thresholds(), score_row_rules()
    scores = _read(batches, comment_ids)
    frame = {"missing_probability": np.isnan(scores.prob), "probability_out_of_range": scores.prob}
    first_failed, row_results = validate_rows(pd.DataFrame(frame), rules)
    invalid = InvalidRows(day=day, reason=first_failed, reasons=tuple(r.name for r in rules))
    valid = first_failed == 0
    profile = profile_scores(scores.prob[valid], scores.flagged[valid], scores.model_versions)
    measures = _measures(scores, valid, bounds) | _compared(
        profile, trailing, bounds, held_out=held_out
    )
    measures["stale_scores"] = _count(stale)
    result = ValidationResult(
        suite="scores",
        day=day,
        rows=len(valid),
        valid=int(np.count_nonzero(valid)),
        results=(*validate_day(measures, score_day_rules(bounds)), *row_results),
        quarantined=invalid.counts(),
    )
    log.info(result.summary, extra={"event": "scores_checked", "status": result.status})
    return ValidatedScores(result=result, quarantined=_quarantine(scores, invalid), profile=profile)


def valid_scores(
    batches: Iterable[pa.RecordBatch], validated: ValidatedScores
) -> Iterator[pa.RecordBatch]:
    """Yield batches of `schemas.SCORES`: those of `batches`, without the invalid scores."""
    invalid = validated.quarantined.column("comment_id")
    for batch in batches:
        columns = columns_of(batch, SCORES)
        keep = pc.invert(pc.is_in(columns["comment_id"], invalid))
        yield pa.RecordBatch.from_pydict(columns, schema=SCORES).filter(keep)


def _read(batches: Iterable[pa.RecordBatch], comment_ids: Iterable[pa.Array]) -> _Scores:
    index = IdIndex.of(list(comment_ids))
    parts = [(np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, bool))]
    models: set[tuple[str, float | None]] = set()
    faults: tuple[str, ...] = ()
    for batch in batches:
        faults = faults or schema_faults(batch.schema, SCORES)
        columns = columns_of(batch, SCORES)
        wanted = pc.equal(columns["role"], "champion")
        columns = {name: column.filter(wanted) for name, column in columns.items()}
        prob = pc.fill_null(columns["prob"], float("nan")).to_numpy()
        parts.append((index.positions(columns["comment_id"]), prob, bools(columns["flagged"])))
        pairs = pa.table([columns["model_version"], columns["threshold"]], names=_MODEL)
        pairs = pairs.filter(pc.is_valid(pairs["model_version"])).group_by(_MODEL).aggregate([])
        models.update(zip(*(pairs[name].to_pylist() for name in _MODEL), strict=True))
    comment, prob, flagged = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _Scores(
        comment_ids=index.ids,
        comment=comment,
        prob=prob,
        flagged=flagged,
        model_versions=tuple(sorted({version for version, _ in models})),
        models=len(models),
        schema_faults=faults,
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


def _measures(scores: _Scores, valid: NDArray[np.bool_], bounds: Thresholds) -> dict[str, Measure]:
    """Return one measure for each rule on the scores alone; `valid` is (M,)."""
    comments = len(scores.comment_ids)
    scored = np.bincount(scores.comment, minlength=comments + 1)
    valid_of = np.bincount(scores.comment[valid], minlength=comments + 1)[:comments]
    unscored = int(np.count_nonzero(valid_of == 0))
    share = unscored / max(comments, 1)
    tolerated = unscored <= bounds.tolerated_rows and share < 1
    observed = f"{unscored:,} of {comments:,} comments ({percentage(unscored, comments)})"
    return {
        "schema": Measure(value=len(scores.schema_faults), observed=joined(scores.schema_faults)),
        "double_scores": _count(int(np.maximum(scored[:comments] - 1, 0).sum())),
        "unknown_scores": _count(int(scored[comments])),
        "several_model_versions": _count(scores.models),
        "unscored_many": Measure(value=0.0 if tolerated else share, observed=observed),
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
) -> dict[str, Measure]:
    """Return one measure for each rule against the trailing days of the same model version.

    While there are too few of them, against the held-out comments of the model, if there are any.
    """
    days = Reference.of("trailing", trailing).scored_by(today.model_version)
    missing = too_few_days(days, bounds, of=" of this model version")
    against = f"{len(days)} trailing days"
    if missing and held_out is not None:
        missing, days, against = None, [held_out], "held-out comments of the model"
    before = pooled(days)
    if not missing and (scores := min(today.scored, before.scored)) < bounds.min_scores:
        missing = skipped(f"{scores:,} scores; {bounds.min_scores} are needed")
    if missing:
        return {"score_shift": missing, "flagged_shift": missing}
    psi = trailing_findings(today, days)["psi", "prob"]
    return {
        "score_shift": measure_of(psi, lambda value: f"PSI {value:.3f} against {against}"),
        "flagged_shift": _flagged_shift(today, before, bounds, against),
    }


def _flagged_shift(today: Profile, before: Profile, bounds: Thresholds, against: str) -> Measure:
    """Return the ratio of the flagged shares, with half a flag added so that it is finite.

    `against` says what `before` is.
    """
    expected = before.flagged * today.scored / before.scored
    if max(expected, today.flagged) < bounds.min_flagged:
        return skipped(f"under {bounds.min_flagged} comments are flagged or expected to be")
    ratio = (today.flagged + 0.5) / today.scored / ((before.flagged + 0.5) / before.scored)
    now, usual = (percentage(part.flagged, part.scored) for part in (today, before))
    return Measure(value=ratio, observed=f"{now} flagged, {usual} on {against}")
